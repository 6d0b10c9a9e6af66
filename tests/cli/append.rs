use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::Stdio,
};

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use crate::run::{Place, fails, logctl, numbers, ok, run};

/// A generator with a fixed start: the same bytes in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let odd: [&[u8]; 7] = [b"", b"\n", b"\r\n", b"\0", b"\xf0\x90\x80", b"\xed\xa0\x80", b"\"\\\x1b[0m"];
        match self.below(10) {
            0 => None,
            1..=3 => Some(odd[usize::try_from(self.below(7)).unwrap()].to_vec()),
            _ => {
                let length = self.below(300);
                Some((0..length).map(|_| self.next().to_le_bytes()[3]).collect())
            }
        }
    }
}

type Fields = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<(String, Option<Vec<u8>>)>, i64);

fn encode(field: Option<&[u8]>) -> (Value, Value) {
    match field.map(|bytes| (std::str::from_utf8(bytes), bytes)) {
        None => (Value::Null, Value::Null),
        Some((Ok(text), _)) => (json!(text), Value::Null),
        Some((Err(_), bytes)) => (json!(BASE64_STANDARD.encode(bytes)), json!("base64")),
    }
}

fn decode(object: &Value, name: &str) -> Option<Vec<u8>> {
    let text = object[name].as_str()?;
    Some(match object[format!("{name}_encoding")].as_str() {
        Some("base64") => BASE64_STANDARD.decode(text).unwrap(),
        Some(other) => panic!("{other}"),
        None => text.as_bytes().to_vec(),
    })
}

fn line_of((key, value, headers, timestamp): &Fields) -> String {
    let (key, key_encoding) = encode(key.as_deref());
    let (value, value_encoding) = encode(value.as_deref());
    let headers: Vec<Value> = headers
        .iter()
        .map(|(name, value)| {
            let (value, encoding) = encode(value.as_deref());
            json!({"key": name, "value": value, "value_encoding": encoding})
        })
        .collect();
    json!({"key": key, "key_encoding": key_encoding, "value": value, "value_encoding": value_encoding,
           "headers": headers, "timestamp": timestamp})
    .to_string()
}

fn fields_of(line: &str) -> Fields {
    let record: Value = serde_json::from_str(line).unwrap();
    let headers = record["headers"].as_array().unwrap();
    let headers =
        headers.iter().map(|h| (h["key"].as_str().unwrap().to_owned(), decode(h, "value"))).collect();
    (decode(&record, "key"), decode(&record, "value"), headers, record["timestamp"].as_i64().unwrap())
}

#[test]
fn a_thousand_random_records_come_back_byte_for_byte_through_two_logs() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut records: Vec<Fields> = (0..1000)
        .map(|_| {
            let headers = (0..random.below(4)).map(|n| (format!("h\u{e9}{n}\n"), random.bytes())).collect();
            let timestamp = i64::try_from(random.below(1 << 41)).unwrap() - 1;
            (random.bytes(), random.bytes(), headers, timestamp)
        })
        .collect();
    records[500].1 = Some((0..1 << 20).map(|_| random.next().to_le_bytes()[2]).collect());
    let lines: Vec<String> = records.iter().map(line_of).collect();
    let place = Place::new();
    let options = ["--format", "jsonl", "--batch-size", "16k", "--max-batch-bytes", "2MiB"];
    for codec in ["none", "gzip", "snappy", "lz4", "zstd:3"] {
        let codec_option = ["-z", codec];
        let first = place.log(
            &format!("{codec}-a-0"),
            lines.join("\n").as_bytes(),
            &[&options[..], &codec_option].concat(),
        );
        let printed = ok(&["cat", &first, "-J"], b"");
        let printed = String::from_utf8(printed).unwrap();
        let back: Vec<Fields> = printed.lines().map(fields_of).collect();
        assert_eq!(back.len(), records.len());
        for (index, (got, wanted)) in back.iter().zip(&records).enumerate() {
            assert!(got == wanted, "record {index} with {codec}");
        }
        let second = place.log(&format!("{codec}-b-0"), printed.as_bytes(), &options);
        let again = String::from_utf8(ok(&["cat", &second, "-J"], b"")).unwrap();
        assert!(again == printed.replace(&format!("{codec}-a"), &format!("{codec}-b")));
    }
}

#[test]
fn lines_are_kept_as_they_are() {
    let place = Place::new();
    let cases: [(&[u8], &[u8]); 7] = [
        (b"", b""),
        (b"\n", b"\n"),
        (b"a\nb", b"a\nb\n"),
        (b"a\r\nb\r\n", b"a\r\nb\r\n"),
        (b"\n\n", b"\n\n"),
        (b"\0\xff\xfe\n\xed\xa0\x80", b"\0\xff\xfe\n\xed\xa0\x80\n"),
        (b"tab\there\n", b"tab\there\n"),
    ];
    for (index, (input, output)) in cases.into_iter().enumerate() {
        let dir = place.log(&format!("case-{index}"), input, &[]);
        assert_eq!(ok(&["cat", &dir], b""), output, "{}", input.escape_ascii());
    }
    let dir = place.log("nul-0", b"a\nb\0c\0", &["-D", "\\0"]);
    assert_eq!(ok(&["cat", &dir, "-D", "|"], b""), b"a\nb|c|");
}

#[test]
fn keys_headers_and_nulls() {
    let place = Place::new();
    let options = ["-K", "=", "-Z", "-H", "a=1", "-H", "b:2", "--timestamp", "1769761200123"];
    let dir = place.log("orders-0", b"k=v\nk=\nplain\n=x\n", &options);
    assert_eq!(
        String::from_utf8(ok(&["cat", &dir, "--format", "%t-%p %o [%k][%v] %S %h{%k=%v;} %d\\n"], b""))
            .unwrap(),
        "orders-0 0 [k][v] 1 a=1;b=2; 1769761200123\n\
         orders-0 1 [k][] -1 a=1;b=2; 1769761200123\n\
         orders-0 2 [][plain] 5 a=1;b=2; 1769761200123\n\
         orders-0 3 [][x] 1 a=1;b=2; 1769761200123\n"
    );
    let json = ok(&["cat", &dir, "-J", "-c", "3"], b"");
    let json = String::from_utf8(json).unwrap();
    let keys: Vec<Value> =
        json.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["key"].clone()).collect();
    assert_eq!(keys, [json!("k"), json!("k"), Value::Null]);
    assert_eq!(
        json.lines().next().unwrap(),
        concat!(
            r#"{"topic":"orders","partition":0,"offset":0,"timestamp":1769761200123,"timestamp_type":"create","#,
            r#""leader_epoch":0,"key":"k","value":"v","headers":[{"key":"a","value":"1"},{"key":"b","value":"2"}],"#,
            r#""producer_id":-1}"#
        )
    );
}

#[test]
fn files_and_the_whole_input() {
    let place = Place::new();
    let (one, two) = (place.path("one"), place.path("two"));
    fs::write(&one, "a\nb").unwrap();
    fs::write(&two, "c\n").unwrap();
    let dir = place.log("lines-0", b"", &["-l", &one, "-l", &two]);
    assert_eq!(ok(&["cat", &dir], b""), b"a\nb\nc\n");
    let dir = place.log("raw-0", b"x\ny\n", &["--format", "raw"]);
    assert_eq!(ok(&["get", &dir, "0", "--raw"], b""), b"x\ny\n");
    assert_eq!(run(&["get", &dir, "1"], b"").code, Some(3));
    let missing = place.path("missing");
    let ran = fails(&["append", &dir, "-l", &missing], b"", 1, "missing");
    assert!(!ran.err.contains("durable"), "nothing was appended: {}", ran.err);
    let ran = fails(&["append", &dir, "-l", &one, "-l", &missing], b"", 1, "missing");
    assert!(ran.err.contains("records below offset 3 are durable"), "{}", ran.err);
}

#[test]
fn a_mistake_in_json_names_its_place_and_nothing_after_it_is_appended() {
    let place = Place::new();
    let dir = place.path("t-0");
    let input = b"{\"value\":\"a\"}\n\n{\"value\":\"b\"}\n{\"value\":7}\n{\"value\":\"c\"}\n";
    let ran = fails(
        &["append", &dir, "--create", "--format", "jsonl", "--report", "%o\\n"],
        input,
        1,
        "line 4, column 10",
    );
    assert_eq!(ran.text(), "0\n1\n");
    assert!(ran.err.contains("records below offset 2 are durable"), "{}", ran.err);
    assert_eq!(ok(&["cat", &dir], b""), b"a\nb\n");
    fails(&["append", &dir, "--format", "jsonl"], b"garbage\xff\n", 1, "line 1, column 1");
}

#[test]
fn a_line_that_is_too_large_is_named_and_those_before_it_are_kept() {
    let place = Place::new();
    let dir = place.path("t-0");
    let options = ["append", &dir, "--create", "--batch-size", "1k", "--max-batch-bytes", "2k"];
    let mut input = b"small\n".to_vec();
    input.resize(input.len() + 2000, b'x');
    input.extend(b"\nlater\n");
    fails(&options, &input, 1, "line 2");
    assert_eq!(ok(&["cat", &dir], b""), b"small\n");
    // Larger than --batch-size, and small enough for the log.
    let mut input = vec![b'x'; 1500];
    input.push(b'\n');
    ok(&options, &input);
    assert_eq!(ok(&["get", &dir, "1", "--raw"], b"").len(), 1500);
    let endless = vec![b'x'; 1 << 20];
    fails(&options, &endless, 1, "line 1 is longer than 2048 bytes");
}

#[test]
fn offsets_can_be_kept() {
    let place = Place::new();
    let line = |offset: u32| format!("{{\"offset\":{offset},\"value\":\"v{offset}\"}}\n");
    let input: String = [5, 6, 7, 100, 101].map(line).concat();
    let dir = place.log("t-0", input.as_bytes(), &["--format", "jsonl", "--preserve"]);
    assert_eq!(ok(&["cat", &dir, "--format", "%o=%v "], b""), b"5=v5 6=v6 7=v7 100=v100 101=v101 ");
    let append = ["append", &dir, "--format", "jsonl", "--preserve"];
    ok(&append, line(102).as_bytes());
    let ran = run(&append, line(50).as_bytes());
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    fails(&append, b"{\"value\":\"x\"}\n", 1, "offset");
    // The last of all offsets is no record's: nothing may come of it, least of all another offset.
    fails(
        &append,
        b"{\"value\":\"x\",\"offset\":9223372036854775807}\n",
        1,
        "line 1, column 1: --preserve needs",
    );
    assert_eq!(ok(&["cat", &dir, "-o", "101:", "--format", "%o "], b""), b"101 102 ");
    fails(&["get", &dir, "50"], b"", 3, "no record at offset 50");
    assert_eq!(ok(&["tail", &dir, "-n", "4", "--format", "%o "], b""), b"7 100 101 102 ");
}

#[test]
fn an_expected_end_is_checked() {
    let place = Place::new();
    let dir = place.log("t-0", b"a\nb\n", &[]);
    fails(&["append", &dir, "--expect", "1"], b"c\n", 1, "expected the log to end at 1");
    ok(&["append", &dir, "--expect", "2"], b"c\n");
    assert_eq!(ok(&["cat", &dir], b""), b"a\nb\nc\n");
}

#[test]
fn a_pause_commits_and_a_report_line_is_a_promise() {
    let place = Place::new();
    let dir = place.path("t-0");
    let mut child = logctl(&["append", &dir, "--create", "--report", "%o:%v\\n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut reports = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in ["first", "second"] {
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        let report = reports.next().unwrap().unwrap();
        assert!(report.ends_with(&format!(":{line}")), "{report}");
        let printed = ok(&["tail", &dir, "-n", "1"], b"");
        assert_eq!(printed, format!("{line}\n").as_bytes());
    }
    fails(&["append", &dir], b"x\n", 5, "locked by another writer");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ok(&["cat", &dir], b""), b"first\nsecond\n");
    ok(&["append", &dir], b"third\n");
    assert_eq!(ok(&["cat", &dir], b""), b"first\nsecond\nthird\n");
}

#[test]
fn input_that_never_pauses_is_appended_nevertheless() {
    let place = Place::new();
    let dir = place.path("t-0");
    let mut child = logctl(&["append", &dir, "--create", "--report", "%o\\n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        // Far from the size of a batch, and never 50 ms without a line.
        while stdin.write_all(b"x\n").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    let mut reports = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(reports.next().unwrap().unwrap(), "0");
    child.kill().unwrap();
    child.wait().unwrap();
    feeder.join().unwrap();
}

#[test]
fn a_reader_of_the_report_that_goes_away_does_not_make_the_summary_wrong() {
    let place = Place::new();
    let dir = place.path("t-0");
    let mut child = logctl(&["append", &dir, "--create", "--report", "%o\\n", "--batch-size", "64"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || while stdin.write_all(b"x\n").is_ok() {});
    let mut reports = BufReader::new(child.stdout.take().unwrap());
    reports.read_line(&mut String::new()).unwrap();
    drop(reports);
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert_eq!(output.status.code(), Some(141));
    let count = ok(&["cat", &dir], b"").len() / 2;
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(err.starts_with(&format!("appended {count} record")), "{count} are there: {err}");
}

#[test]
fn on_a_full_disk_the_line_to_go_on_from_is_told() {
    let place = Place::new();
    let dir = place.log("t-0", b"a\n", &[]);
    for (format, input) in [("lines", &b"b\nc\n"[..]), ("jsonl", b"\n{\"value\":\"b\"}\n")] {
        let first = if format == "jsonl" { 2 } else { 1 };
        let args = ["append", &dir, "--format", format, "--min-free", "8191TiB"];
        let ran = fails(&args, input, 1, &format!("make room and go on from line {first}"));
        assert!(!ran.err.contains("again"), "{}", ran.err);
    }
    assert_eq!(ok(&["cat", &dir], b""), b"a\n");
}

#[test]
fn every_policy_appends_everything() {
    let place = Place::new();
    let input = numbers(5000);
    for (index, sync) in
        ["batch", "close", "never", "every:100", "every:4k", "interval:10ms"].iter().enumerate()
    {
        let dir = place.path(&format!("t-{index}"));
        let ran = run(
            &[
                "append",
                &dir,
                "--create",
                "--sync",
                sync,
                "--batch-size",
                "2k",
                "--segment-bytes",
                "16k",
                "--report",
                "%o\\n",
            ],
            &input,
        );
        assert_eq!(ran.code, Some(0), "{sync}: {}", ran.err);
        assert!(ran.err.contains("appended 5000 records"), "{}", ran.err);
        assert_eq!(ran.text().lines().count(), 5000);
        assert!(ok(&["cat", &dir], b"") == input, "{sync}");
    }
}

#[test]
fn what_cannot_work_is_told_with_its_code() {
    let place = Place::new();
    let missing = place.path("missing-0");
    fails(&["append", &missing], b"x\n", 3, "--create");
    assert!(!Path::new(&missing).exists());
    let file = place.path("file");
    fs::write(&file, "").unwrap();
    fails(&["append", &file, "--create"], b"x\n", 2, "not a directory");
    fails(&["append"], b"", 2, "no target");
    let dir = place.log("t-0", b"", &[]);
    fails(&["append", &dir, "--report", "%z"], b"", 2, "unknown `%z`");
    fails(&["append", &dir, "--batch-size", "x"], b"", 2, "not a size");
    fails(&["append", &dir, "--segment-bytes", "1"], b"", 2, "segment_bytes");
    fails(&["append", &dir, "-z", "brotli"], b"", 2, "brotli");
    fails(&["append", &dir, "--preserve"], b"", 2, "jsonl");
    fails(&["append", &dir, "-D", ""], b"", 2, "empty");
    fails(&["append", &dir, "--min-free", "100000t"], b"x\n", 1, "make room and go on from line 1");
    // Reading a directory as if it were a file is an error of the input, not its end.
    let output = logctl(&["append", &dir]).stdin(fs::File::open(&dir).unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read standard input"));
}

#[test]
fn a_data_directory_with_topic_and_partition() {
    let place = Place::new();
    let data = place.path("data");
    ok(&["append", "--create", "-d", &data, "-t", "orders", "-p", "3"], b"x\n");
    assert_eq!(ok(&["cat", &data, "-t", "orders", "-p", "3", "--format", "%t/%p/%v"], b""), b"orders/3/x");
    assert_eq!(ok(&["cat", "orders-3", "-d", &data], b""), b"x\n");
    assert_eq!(ok(&["get", "-d", &data, "-t", "orders", "-p", "3", "0"], b""), b"x\n");
    fails(&["cat", &data], b"", 3, "orders-3");
    fails(&["cat", "-d", &data, "-t", "orders"], b"", 3, "topic `orders` has partition 3");
    fails(&["append", "-d", &data, "-t", "a/b", "--create"], b"", 2, "topic");
}

#[test]
fn quiet_means_quiet_and_the_summary_says_what_is_in_the_log() {
    let place = Place::new();
    let dir = place.path("t-0");
    let ran = run(&["append", &dir, "--create", "-q"], b"a\nb\n");
    assert_eq!((ran.code, ran.text(), ran.err.as_str()), (Some(0), "", ""));
    let ran = run(&["append", &dir], b"abc\n");
    assert_eq!(ran.err, "appended 1 record, 3 bytes of keys and values, offset 2, durable\n");
    let ran = run(&["append", &dir], b"");
    assert_eq!(ran.err, "appended nothing\n");
}

#[test]
fn old_segments_go_however_short_the_run() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(10_000), &["--segment-bytes", "4k", "--batch-size", "500"]);
    let bytes = || -> u64 {
        let info: Value = serde_json::from_slice(&ok(&["info", &dir, "-J"], b"")).unwrap();
        info["bytes"].as_u64().unwrap()
    };
    assert!(bytes() > 60_000);
    ok(&["append", &dir, "--retention-bytes", "20k"], b"");
    assert!((20 << 10..28 << 10).contains(&bytes()), "{}", bytes());
    ok(&["append", &dir, "--retention-bytes", "8k"], b"one more\n");
    assert!((8 << 10..16 << 10).contains(&bytes()), "{}", bytes());
    assert!(ok(&["cat", &dir], b"").ends_with(b"9999\n10000\none more\n"));
    ok(&["verify", &dir], b"");
}

#[test]
fn what_would_not_be_read_back_is_refused() {
    let place = Place::new();
    let dir = place.log("t-0", b"x\n", &[]);
    for option in ["--batch-size", "--max-batch-bytes"] {
        fails(&["append", &dir, "-z", "zstd", option, "129MiB"], b"x\n", 2, "unpacks to more");
        ok(&["append", &dir, "-z", "zstd", option, "128MiB"], b"x\n");
        ok(&["append", &dir, option, "129MiB"], b"x\n");
    }
}

/// What opening cuts is told with -q too, with what could still be read of it; and a refusal names the bad batch.
#[test]
fn what_opening_cuts_is_told() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(2000), &["--batch-size", "100"]);
    let log = Path::new(&dir).join("00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&log, bytes).unwrap();
    // Nothing says any more what was durable.
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with(".stratalog") {
            fs::remove_file(path).unwrap();
        }
    }
    let found = String::from_utf8(run(&["verify", &dir, "-J"], b"").out).unwrap();
    let bad: Value = found
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|line: &Value| line["kind"] == "bad-crc")
        .unwrap();
    let refused = fails(&["append", &dir, "--refuse-damage", "-q"], b"", 4, &bad["position"].to_string());
    assert!(refused.err.contains(&bad["offset"].to_string()), "{}", refused.err);

    let ran = run(&["append", &dir, "-q"], b"new\n");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in [
        "warning: ",
        &format!("from offset {} on", bad["offset"]),
        "that can be read, offsets",
        "up to 2000",
        ".stratalog-cut-",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}
