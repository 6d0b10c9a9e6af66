use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use serde_json::Value;

use crate::run::{Place, fails, logctl, numbers, ok, run, snapshot};

/// A record each second from 1970 on: `0` to `count - 1`, several to a batch and many segments.
fn seconds(place: &Place, name: &str, count: u32) -> String {
    let line = |n| format!("{{\"value\":\"{n}\",\"timestamp\":{}}}\n", n * 1000).into_bytes();
    let lines: Vec<u8> = (0..count).flat_map(line).collect();
    place.log(name, &lines, &["--format", "jsonl", "--batch-size", "200", "--segment-bytes", "2k"])
}

fn lines(from: u32, to: u32) -> Vec<u8> {
    (from..to).flat_map(|n| format!("{n}\n").into_bytes()).collect()
}

#[test]
fn ranges() {
    let place = Place::new();
    let dir = seconds(&place, "t-0", 500);
    let cases = [
        ("start", 0, 500),
        ("end", 0, 0),
        ("490", 490, 500),
        (":3", 0, 3),
        ("17:20", 17, 20),
        ("+495", 495, 500),
        ("-5", 495, 500),
        ("-99999", 0, 500),
        ("-5:-2", 495, 498),
        ("@100:103", 100, 103),
        ("@1970-01-01T00:08:18Z", 498, 500),
        ("@now", 0, 0),
        ("s@99500", 100, 500),
        ("498:99999", 498, 500),
        ("0:0", 0, 0),
        ("500", 0, 0),
    ];
    for (range, from, to) in cases {
        assert_eq!(ok(&["cat", &dir, "-o", range], b""), lines(from, to), "{range}");
    }
    assert_eq!(ok(&["cat", &dir, "-o", "s@10000", "-o", "e@12000"], b""), lines(10, 12));
    assert_eq!(ok(&["cat", &dir, "-c", "3"], b""), lines(0, 3));
    assert_eq!(ok(&["cat", &dir, "-c", "0"], b""), b"");
    assert_eq!(ok(&["cat", &dir, "-o", "10:20", "-c", "50"], b""), lines(10, 20));
    fails(&["cat", &dir, "-o", "501"], b"", 3, "offset 501 is out of range");
    fails(&["cat", &dir, "-o", "+501"], b"", 3, "out of range");
    fails(&["cat", &dir, "-o", "x"], b"", 2, "not an offset");
    fails(&["cat", &dir, "-o", "1", "-o", "2"], b"", 2, "given twice");
    for backward in ["5:4", "3:1", "+3:+1", "-2:-5", "@20:10"] {
        fails(&["cat", &dir, "-o", backward], b"", 2, "ends before it begins");
    }
}

#[test]
fn the_last_records() {
    let place = Place::new();
    let dir = seconds(&place, "t-0", 100);
    assert_eq!(ok(&["tail", &dir], b""), lines(90, 100));
    for (n, from) in [
        ("0", 100),
        ("1", 99),
        ("100", 0),
        ("1000", 0),
        ("18446744073709551615", 0),
        ("99999999999999999999999", 0),
    ] {
        assert_eq!(ok(&["tail", &dir, "-n", n], b""), lines(from, 100), "-n {n}");
    }
    assert_eq!(ok(&["tail", &dir, "--since", "95"], b""), lines(95, 100));
    assert_eq!(ok(&["tail", &dir, "--since", "50", "-n", "2"], b""), lines(98, 100));
    assert_eq!(ok(&["tail", &dir, "--since", "50", "--until", "53"], b""), lines(50, 53));
    assert_eq!(ok(&["tail", &dir, "--since", "@50", "--until", "@53"], b""), lines(50, 53));
    assert_eq!(ok(&["tail", &dir, "--since", "now"], b""), b"");
    fails(&["tail", &dir, "-n", "-1"], b"", 2, "'-1'");
    let empty = place.log("empty-0", b"", &[]);
    assert_eq!(ok(&["tail", &empty], b""), b"");
    assert_eq!(ok(&["cat", &empty], b""), b"");
    fails(&["get", &empty, "0"], b"", 3, "out of range");
}

#[test]
fn one_record_and_its_batch() {
    let place = Place::new();
    let dir = place.log("t-0", b"k=a\nk=\n", &["-K", "=", "-Z", "--timestamp", "1000"]);
    assert_eq!(ok(&["get", &dir, "0"], b""), b"a\n");
    assert_eq!(ok(&["get", &dir, "0", "--raw"], b""), b"a");
    assert_eq!(ok(&["get", &dir, "1", "--raw"], b""), b"");
    assert_eq!(ok(&["get", &dir, "1", "-f", "%o:%k:%S"], b""), b"1:k:-1");
    let record: Value = serde_json::from_slice(&ok(&["get", &dir, "1", "-J", "--batch-meta"], b"")).unwrap();
    assert_eq!(record["value"], Value::Null);
    assert_eq!(record["batch"]["base_offset"], 0);
    assert_eq!(record["batch"]["codec"], "none");
    let batch: Value = serde_json::from_slice(&ok(&["get", &dir, "1", "--batch", "-J"], b"")).unwrap();
    assert_eq!(batch["base_offset"], 0);
    assert_eq!(batch["last_offset"], 1);
    assert_eq!(batch["record_count"], 2);
    assert_eq!(batch["max_timestamp"], 1_000_000);
    let raw = ok(&["get", &dir, "1", "--batch", "--raw"], b"");
    assert_eq!(raw.len() as u64, batch["size_bytes"].as_u64().unwrap());
    let log = fs::read(format!("{dir}/00000000000000000000.log")).unwrap();
    assert_eq!(&log[..raw.len()], &raw[..]);
    let text = String::from_utf8(ok(&["get", &dir, "0", "--batch"], b"")).unwrap();
    assert!(text.contains("records        2\n"), "{text}");
    fails(&["get", &dir, "2"], b"", 3, "out of range");
    fails(&["get", &dir, "-1"], b"", 2, "");
}

#[test]
fn parts_of_records() {
    let place = Place::new();
    let dir = place.log("t-0", b"k=v\n", &["-K", "=", "--timestamp", "2026-01-30T08:20:00.123Z"]);
    assert_eq!(ok(&["cat", &dir, "--keys-only"], b""), b"k\n");
    assert_eq!(
        String::from_utf8(ok(&["cat", &dir, "--meta-only"], b"")).unwrap(),
        "offset=0 timestamp=2026-01-30T08:20:00.123Z (create) leader_epoch=0 key_bytes=1 value_bytes=1 headers=0 producer_id=-1\n"
    );
    let object = |options: &[&str]| -> Value {
        serde_json::from_slice(&ok(&[&["cat", &dir, "-J"], options].concat(), b"")).unwrap()
    };
    assert_eq!(object(&["--keys-only"]).get("value"), None);
    assert_eq!(object(&["--meta-only"]).get("key"), None);
    assert_eq!(object(&[]).get("batch"), None);
    assert_eq!(object(&["--pretty"]), object(&[]));
    assert!(ok(&["cat", &dir, "--pretty"], b"").starts_with(b"{\n  \"topic\": \"t\",\n"));
    assert_eq!(ok(&["cat", &dir, "-D", ""], b""), b"v");
    assert_eq!(
        ok(&["cat", &dir, "-f", "%d{strftime[%F %T]} %p:%o %k=%v\\n"], b""),
        b"2026-01-30 08:20:00 0:0 k=v\n"
    );
    fails(&["cat", &dir, "-J", "--format", "x"], b"", 2, "");
    fails(&["cat", &dir, "-f", "%d{%F}"], b"", 2, "%d{strftime[%F %T]}");
    for verb in ["cat", "tail", "get"] {
        let help = String::from_utf8(ok(&[verb, "--help"], b"")).unwrap();
        assert!(help.contains("%h{..}") && help.contains("%d{strftime["), "{help}");
    }
}

#[test]
fn a_single_segment_file() {
    let place = Place::new();
    let dir = seconds(&place, "t-0", 500);
    let mut names: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| std::path::Path::new(name).extension().is_some_and(|e| e == "log"))
        .collect();
    names.sort();
    assert!(names.len() > 2, "{names:?}");
    let path = |name: &str| format!("{dir}/{name}");
    let all: Vec<u8> = names.iter().flat_map(|name| ok(&["cat", &path(name)], b"")).collect();
    assert_eq!(all, lines(0, 500));
    let first: u32 = names[1].trim_end_matches(".log").parse().unwrap();
    let next: u32 = names[2].trim_end_matches(".log").parse().unwrap();
    let second = path(&names[1]);
    assert_eq!(ok(&["cat", &second], b""), lines(first, next));
    assert_eq!(ok(&["cat", &second, "-o", "-2"], b""), lines(next - 2, next));
    assert_eq!(ok(&["cat", &second, "-o", &format!("@{}", first + 1)], b""), lines(first + 1, next));
    assert_eq!(ok(&["tail", &second, "-n", "3"], b""), lines(next - 3, next));
    assert_eq!(
        ok(&["get", &second, &first.to_string(), "-f", "%t-%p:%o"], b""),
        format!("t-0:{first}").as_bytes()
    );
    fails(&["cat", &second, "-o", "0"], b"", 3, "out of range");
    fails(&["cat", &second.replace(".log", ".index")], b"", 2, "no whole batch");
    fails(&["tail", &second, "-f"], b"", 2, "cannot be followed");
    // A flipped bit: what lies before it is printed, then where it is.
    let mut bytes = fs::read(&second).unwrap();
    let at = bytes.len() - 10;
    bytes[at] ^= 1;
    fs::write(&second, bytes).unwrap();
    let ran = fails(&["cat", &second], b"", 4, &names[1]);
    assert!(!ran.out.is_empty() && lines(first, next).starts_with(&ran.out));
}

#[test]
fn behind_damage_it_is_told_where_to_go_on() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(20_000), &["--batch-size", "1000", "--segment-bytes", "100k"]);
    let path = format!("{dir}/00000000000000000000.log");
    let sound = fs::read(&path).unwrap();
    for at in [50_000, sound.len() - 5, 30] {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x40;
        fs::write(&path, bytes).unwrap();
        let ran = fails(&["cat", &dir], b"", 4, "reads on behind it");
        let (_, hint) = ran.err.split_once("`-o ").unwrap();
        let next: u32 = hint.split_once('`').unwrap().0.parse().unwrap();
        assert_eq!(ok(&["cat", &dir, "-o", &next.to_string()], b""), lines(next + 1, 20_001));
        // What was lost is the damaged batch alone.
        let printed = u32::try_from(ran.text().lines().count()).unwrap();
        assert!(printed < next && next - printed < 1000, "{printed} {next}");
    }
}

#[test]
fn reading_changes_nothing() {
    let place = Place::new();
    let dir = seconds(&place, "t-0", 300);
    // The state that a killed writer leaves.
    let _ = fs::remove_file(format!("{dir}/.lock"));
    // One that waits says so in the one word that is there for it.
    let state = || {
        let mut files = snapshot(&dir);
        let page = files.iter_mut().find(|file| file.0 == ".stratalog-waiters").unwrap();
        page.1[64..68].fill(0);
        page.2 = std::time::UNIX_EPOCH;
        files
    };
    let before = state();
    for args in [
        &["cat", &dir][..],
        &["cat", &dir, "-o", "@100:", "-J"],
        &["tail", &dir, "-n", "3"],
        &["tail", &dir, "-f", "--timeout", "100ms"],
        &["get", &dir, "7"],
        &["info", &dir],
        &["info", &dir, "-J", "--segments", "--epochs"],
    ] {
        run(args, b"");
        assert!(state() == before, "{args:?} changed a file");
    }
}

#[test]
fn a_missing_or_foreign_target() {
    let place = Place::new();
    for verb in ["cat", "tail", "info"] {
        fails(&[verb, &place.path("missing")], b"", 3, "no such file or directory");
        fails(&[verb], b"", 2, "no target");
    }
    let empty = place.path("empty");
    fs::create_dir(&empty).unwrap();
    fails(&["cat", &empty], b"", 3, "no log");
    assert!(fails(&["verify", &empty], b"", 3, "no log").out.is_empty());
    fails(&["cat", "/dev/null"], b"", 1, "neither");
    fails(&["nonsense"], b"", 2, "nonsense");
    assert_eq!(run(&["--version"], b"").code, Some(0));
    assert_eq!(run(&["--help"], b"").code, Some(0));
}

#[test]
fn what_a_log_holds() {
    let place = Place::new();
    let dir = seconds(&place, "orders-2", 100);
    let info: Value = serde_json::from_slice(&ok(&["info", &dir, "-J"], b"")).unwrap();
    assert_eq!(info["topic"], "orders");
    assert_eq!(info["partition"], 2);
    assert_eq!(info["start"], 0);
    assert_eq!(info["end"], 100);
    assert_eq!(info["durable_end"], 100);
    assert_eq!(info["first_timestamp"], 0);
    assert_eq!(info["max_timestamp"], 99_000);
    let table: Value =
        serde_json::from_slice(&ok(&["info", &dir, "-J", "--segments", "--epochs", "--batches"], b""))
            .unwrap();
    let segments = table["segment_list"].as_array().unwrap();
    assert_eq!(segments.len() as u64, info["segments"].as_u64().unwrap());
    assert_eq!(table["records"], 100);
    assert_eq!(table["leader_epochs"][0]["epoch"], 0);
    let text = String::from_utf8(ok(&["info", &dir, "--segments"], b"")).unwrap();
    assert!(text.contains("00000000000000000000.log"), "{text}");
    assert_eq!(segments.last().unwrap()["max_timestamp"], 99_000, "the active segment's too");
    let stamped = place.log("stamped-0", b"x\n", &["--timestamp-type", "append", "--timestamp", "5"]);
    let info: Value = serde_json::from_slice(&ok(&["info", &stamped, "-J"], b"")).unwrap();
    assert_eq!(info["first_timestamp"], info["max_timestamp"], "a producer's time that was stamped over");
    let line = b"{\"value\":\"x\",\"timestamp\":-1}\n";
    let timeless = place.log("timeless-0", line, &["--format", "jsonl"]);
    let info: Value = serde_json::from_slice(&ok(&["info", &timeless, "-J"], b"")).unwrap();
    assert_eq!(info["first_timestamp"], Value::Null);
    let big = place.log("big-0", &numbers(10), &[]);
    assert!(String::from_utf8(ok(&["info", &big], b"")).unwrap().contains("0 up to 10"));
}

#[test]
fn whether_a_log_was_closed_is_told() {
    let place = Place::new();
    let dir = place.log("t-0", b"x\n", &[]);
    let shown = |dir: &str| String::from_utf8(ok(&["info", dir, "--batches"], b"")).unwrap();
    let text = shown(&dir);
    for row in ["closed cleanly", "below 1\n", "1 segment, ", "1 batch with 1 record\n"] {
        assert!(text.contains(row), "{row}: {text}");
    }
    // A writer's room ahead is nothing to warn of while it writes.
    let mut child = logctl(&["append", &dir, "--report", "%o\\n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"y\n").unwrap();
    let mut report = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut report).unwrap();
    let untrimmed = || {
        let text = String::from_utf8(ok(&["verify", &dir], b"")).unwrap();
        assert!(text.contains("untrimmed"), "{text}");
        text
    };
    let text = untrimmed();
    assert!(!text.contains("warning"), "{text}");
    assert!(text.contains(": no damage: 1 segment, 2 batches, 2 records, "), "{text}");
    assert!(shown(&dir).contains("in use"));
    drop(stdin);
    child.wait().unwrap();
    assert!(shown(&dir).contains("closed cleanly"));
    let log = fs::File::options().append(true).open(format!("{dir}/00000000000000000000.log")).unwrap();
    log.set_len(log.metadata().unwrap().len() + 4096).unwrap();
    assert!(untrimmed().ends_with("; 1 warning\n"), "room in a log that was closed");
    // As a broker's directory, which has none of our files.
    let broker = place.log("b-0", b"x\n", &[]);
    for name in fs::read_dir(&broker).unwrap().map(|entry| entry.unwrap().path()) {
        if name.file_name().unwrap().to_str().unwrap().starts_with(".stratalog") {
            fs::remove_file(name).unwrap();
        }
    }
    assert_eq!(shown(&broker).matches("not known").count(), 2, "{}", shown(&broker));
    let info: Value = serde_json::from_slice(&ok(&["info", &broker, "-J"], b"")).unwrap();
    assert_eq!((info.get("durable_end"), info.get("clean")), (None, None));
}

#[test]
fn the_last_offsets_of_all() {
    let place = Place::new();
    let line = b"{\"value\":\"x\",\"offset\":9223372036854775805}\n";
    let dir = place.log("t-0", line, &["--format", "jsonl", "--preserve"]);
    ok(&["append", &dir], b"y\n");
    assert_eq!(run(&["append", &dir], b"no offset is left\n").code, Some(1));
    ok(&["verify", &dir, "--deep"], b"");
    // Index entries are named by their own offsets, so none is told to be damaged.
    let dump = String::from_utf8(ok(&["dump", &dir], b"")).unwrap();
    assert!(dump.contains("offset: 922337203685477580"), "{dump}");
}

/// What a consumer of Kafka was given of the same directory.
#[test]
fn committed_records_alone() {
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0/transactions");
    let dir = format!("{case}/transactions-0");
    let consumed = fs::read_to_string(format!("{case}/consumed.jsonl")).unwrap();
    for line in consumed.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let level = line["isolation"].as_str().unwrap();
        let offsets: Vec<String> =
            line["offsets"].as_array().unwrap().iter().map(|offset| format!("{offset}\n")).collect();
        let print = ["--isolation", level, "--format", "%o\\n"];
        assert_eq!(ok(&[&["cat", &dir], &print[..]].concat(), b""), offsets.concat().into_bytes());
        let last = offsets[offsets.len() - 3..].concat();
        assert_eq!(ok(&[&["tail", &dir, "-n", "3"], &print[..]].concat(), b""), last.into_bytes());
    }
    // The first record of an aborted transaction, and one that is not decided.
    for offset in ["0", "142"] {
        assert_eq!(run(&["get", &dir, offset], b"").code, Some(0));
        assert_eq!(run(&["get", &dir, offset, "--isolation", "committed"], b"").code, Some(3));
    }
    let markers = ok(&["cat", &dir, "--isolation", "committed", "--control", "--format", "%o\\n"], b"");
    assert!(String::from_utf8(markers).unwrap().starts_with("3\n8\n9\n10\n17\n18\n"), "markers on demand");
    let file = format!("{dir}/00000000000000000008.log");
    let refused = run(&["cat", &file, "--isolation", "committed"], b"");
    assert_eq!(refused.code, Some(2));
    let info: Value = serde_json::from_slice(&ok(&["info", &dir, "-J", "--batches"], b"")).unwrap();
    let expected = serde_json::json!({ "last_stable_offset": 142, "open": 1, "aborted": 12 });
    assert_eq!(info["transactions"], expected);
    let text = String::from_utf8(ok(&["info", &dir, "--batches"], b"")).unwrap();
    assert!(text.contains("1 open, 12 aborted; committed up to 142"), "{text}");
    let info: Value = serde_json::from_slice(&ok(&["info", &dir, "-J"], b"")).unwrap();
    assert_eq!(info.get("transactions"), None, "it would read the log");
}
