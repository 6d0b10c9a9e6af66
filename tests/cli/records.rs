//! How records are printed and chosen: forms, filters, CSV, templates, counts.

use serde_json::Value;

use crate::run::{Place, fails, numbers, ok, run};

/// JSON lines with keys, headers, nulls and bytes that are not text, one each second from 1970 on.
const MIXED: &str = r#"{"key":"a","value":"first, \"one\"","timestamp":0,"headers":[{"key":"h","value":"x"}]}
{"key":null,"value":"","timestamp":1000}
{"key":"","value":null,"timestamp":2000,"headers":[{"key":"h","value":null},{"key":"","value":"e"}]}
{"key":"AAAABw==","key_encoding":"base64","value":"/wA=","value_encoding":"base64","timestamp":3000}
{"key":"a","value":"{ \"n\": [1, 2] }","timestamp":4000,"headers":[{"key":"h","value":"y"},{"key":"h","value":"z"}]}
{"key":"b","value":"two\nlines\r\n","timestamp":5000}
"#;

fn mixed(place: &Place) -> String {
    place.log("mixed-3", MIXED.as_bytes(), &["--format", "jsonl"])
}

fn text(args: &[&str]) -> String {
    String::from_utf8(ok(args, b"")).unwrap()
}

/// The offsets that are printed.
fn offsets(dir: &str, options: &[&str]) -> Vec<i64> {
    let out = text(&[&["cat", dir, "--format", "%o\\n"], options].concat());
    out.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn grep() {
    let place = Place::new();
    let dir = mixed(&place);
    let cases: [(&[&str], &[i64]); 13] = [
        (&["--grep", "a"], &[0, 4]),
        (&["--grep", "^$"], &[1, 2]),
        (&["--grep", "FIRST"], &[]),
        (&["--grep", "FIRST", "-i"], &[0]),
        (&["--grep", "first", "--grep", "two"], &[0, 5]),
        (&["--grep", "first|two", "--invert-match"], &[1, 2, 3, 4]),
        (&["--grep", "a", "--grep-in", "key"], &[0, 4]),
        (&["--grep", "one", "--grep-in", "key"], &[]),
        (&["--grep", "^[xz]$", "--grep-in", "headers"], &[0, 4]),
        (&["--grep", "e", "--grep-in", "headers,value"], &[0, 2, 5]),
        (&["--grep", "(?s-u:\\xff)"], &[3]),
        (&["--grep", "\\bone\\b"], &[0]),
        (&["--grep", "lines$"], &[]),
    ];
    for (options, found) in cases {
        assert_eq!(offsets(&dir, options), found, "{options:?}");
        // Compressed, the bytes of a batch tell nothing.
        let packed = place.path("packed-0");
        let _ = std::fs::remove_dir_all(&packed);
        ok(&["append", &packed, "--create", "--format", "jsonl", "-z", "zstd"], MIXED.as_bytes());
        assert_eq!(offsets(&packed, options), found, "{options:?}");
    }
    assert_eq!(offsets(&dir, &["--grep", "a", "-c", "1"]), [0]);
    fails(&["cat", &dir, "--grep", "("], b"", 2, "unclosed group");
    fails(&["cat", &dir, "--grep-in", "key"], b"", 2, "--grep");
    fails(&["get", &dir, "0", "--grep", "a"], b"", 2, "--grep");
}

#[test]
fn conditions() {
    let place = Place::new();
    let dir = mixed(&place);
    let cases: [(&[&str], &[i64]); 10] = [
        (&["--where", "value is null"], &[2]),
        (&["--where", "key = null"], &[1]),
        (&["--where", "key is not null and key != ''"], &[0, 3, 4, 5]),
        (&["--where", "offset >= 2 and offset < 4"], &[2, 3]),
        (&["--where", "timestamp >= @1970-01-01T00:00:04Z"], &[4, 5]),
        (&["--where", "headers.h =~ '^[xz]$' or key = \"b\""], &[0, 4, 5]),
        (&["--where", "headers[''] is not null"], &[2]),
        (&["--where", "not (size > 5) and partition = 3"], &[1, 2]),
        (&["--where", "offset > 0", "--where", "offset < 2"], &[1]),
        (&["--where", "offset > 0", "--grep", "a", "-o", "1:"], &[4]),
    ];
    for (options, found) in cases {
        assert_eq!(offsets(&dir, options), found, "{options:?}");
    }
    let ran = fails(&["cat", &dir, "--where", "offset > and"], b"", 2, "no field");
    assert!(ran.err.contains("\n  offset > and\n           ^"), "{}", ran.err);
    fails(&["cat", &dir, "--where", &"(".repeat(100_000)], b"", 2, "more than 64");
}

#[test]
fn the_last_that_are_let_through() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(5000), &["--batch-size", "500"]);
    let tail = |options: &[&str]| text(&[&["tail", &dir], options].concat());
    assert_eq!(tail(&["-n", "3", "--grep", "00$"]), "4800\n4900\n5000\n");
    assert_eq!(tail(&["-n", "2", "--where", "value < 3"]), "1\n2\n");
    assert_eq!(tail(&["--where", "value = 7"]), "7\n");
    assert_eq!(tail(&["-n", "all", "--where", "value <= 2"]), "1\n2\n");
    assert_eq!(tail(&["-n", "0", "--grep", "1"]), "");
    assert_eq!(tail(&["--grep", "none"]), "");
}

#[test]
fn forms() {
    let place = Place::new();
    let dir = mixed(&place);
    let one = |options: &[&str]| text(&[&["cat", &dir, "-o", "3:4"], options].concat());
    assert_eq!(one(&["--decode", "key=i32be,value=hex", "--format", "%k %v\\n"]), "7 ff00\n");
    assert_eq!(one(&["--decode", "value=u16le"]), "255\n");
    assert_eq!(one(&["--decode", "key=>I", "--keys-only"]), "7\n");
    assert_eq!(one(&["--decode", "value=i32"]), "0xff00\n");
    let json = |range: &str, forms: &str| -> Value {
        serde_json::from_str(&text(&["cat", &dir, "-J", "-o", range, "--decode", forms])).unwrap()
    };
    let record = json("3:4", "key=i32be,value=hex");
    assert_eq!((&record["key"], record.get("key_encoding")), (&Value::from(7), None));
    assert_eq!((&record["value"], &record["value_encoding"]), (&"ff00".into(), &"hex".into()));
    assert_eq!(json("3:4", "key=f64")["key_encoding"], "base64", "what has not this form is as it was");
    assert_eq!(json("4:5", "value=json")["value"], serde_json::json!({"n": [1, 2]}));
    assert_eq!(json("0:1", "value=json")["value"], "first, \"one\"");
    assert_eq!(json("0:1", "header=hex")["headers"][0]["value_encoding"], "hex");
    assert_eq!(json("2:3", "value=hex")["value"], Value::Null);
    // Hexadecimal and base64 are read again.
    for form in ["hex", "base64", "utf8"] {
        let forms = format!("key={form},value={form},header={form}");
        let lines = ok(&["cat", &dir, "-J", "--decode", &forms], b"");
        let again = place.path(form);
        ok(&["append", &again, "--create", "--format", "jsonl"], &lines);
        assert_eq!(run(&["diff", &dir, &again, "--records"], b"").code, Some(0), "{form}");
    }
    fails(&["cat", &dir, "--decode", "key=i33"], b"", 2, "unknown form");
    fails(&["cat", &dir, "--decode", "key=hex,key=hex"], b"", 2, "given twice");
}

#[test]
fn null_can_be_told_from_empty() {
    let place = Place::new();
    let dir = mixed(&place);
    assert_eq!(text(&["cat", &dir, "-o", "1:3"]), "\n\n");
    assert_eq!(text(&["cat", &dir, "-o", "1:3", "-Z"]), "\nNULL\n");
    assert_eq!(text(&["cat", &dir, "-o", "1:3", "-Z", "--keys-only"]), "NULL\n\n");
    assert_eq!(text(&["cat", &dir, "-o", "1:3", "-Z", "-f", "%k=%v;%h{%v,}\\n"]), "NULL=;\n=NULL;NULL,e,\n");
}

#[test]
fn csv() {
    let place = Place::new();
    let dir = mixed(&place);
    assert_eq!(
        ok(&["cat", &dir, "--csv"], b""),
        b"offset,timestamp,key,value\n0,0,a,\"first, \"\"one\"\"\"\n1,1000,,\"\"\n2,2000,\"\",\n3,3000,\0\0\0\x07,\xff\0\n\
          4,4000,a,\"{ \"\"n\"\": [1, 2] }\"\n5,5000,b,\"two\nlines\r\n\"\n"
    );
    assert_eq!(
        text(&["cat", &dir, "-o", "4:5", "-f", "csv"]),
        "offset,timestamp,key,value\n4,4000,a,\"{ \"\"n\"\": [1, 2] }\"\n"
    );
    let columns = "topic,partition,offset,time,timestamp_type,leader_epoch,header.h,header.none,key_bytes,value_bytes,producer_id";
    assert_eq!(
        text(&["cat", &dir, "-o", "4:5", "--csv", "--columns", columns, "-D", "\\r\\n"]),
        format!("{columns}\r\nmixed,3,4,1970-01-01T00:00:04.000Z,create,0,z,,1,15,-1\r\n")
    );
    assert_eq!(text(&["tail", &dir, "-n", "1", "--csv", "--columns", "key"]), "key\nb\n");
    assert_eq!(
        text(&["cat", &dir, "-o", "end", "--csv", "--columns", "key"]),
        "key\n",
        "names without records"
    );
    // All that a record is comes back.
    let table = ok(&["cat", &dir, "--csv", "--columns", "timestamp,key,value,headers,offset"], b"");
    let again = place.path("again-3");
    ok(&["append", &again, "--create", "--format", "csv"], &table);
    assert_eq!(run(&["diff", &dir, &again, "--records"], b"").code, Some(0));
    let part = ok(&["cat", &dir, "--csv", "-o", "4:"], b"");
    let kept = place.path("kept-0");
    ok(&["append", &kept, "--create", "--format", "csv", "--preserve"], &part);
    assert_eq!(offsets(&kept, &[]), [4, 5]);
    fails(&["cat", &dir, "--csv", "--columns", "x"], b"", 2, "unknown column");
    fails(&["cat", &dir, "--columns", "key"], b"", 2, "--csv");
    fails(&["append", &again, "--format", "csv"], b"key,value\n\"a", 1, "row 2: a quote that is not closed");
    fails(&["append", &again, "--format", "csv"], b"k,v\n", 1, "row 1: unknown column \"k\"");
}

#[test]
fn names_of_kcat() {
    let place = Place::new();
    let dir = mixed(&place);
    assert_eq!(
        text(&["cat", &dir, "--json-style", "kcat", "-o", "2:4"]),
        "{\"topic\":\"mixed\",\"partition\":3,\"offset\":2,\"tstype\":\"create\",\"ts\":2000,\"broker\":-1,\
         \"headers\":[\"h\",null,\"\",\"e\"],\"key\":\"\",\"payload\":null}\n\
         {\"topic\":\"mixed\",\"partition\":3,\"offset\":3,\"tstype\":\"create\",\"ts\":3000,\"broker\":-1,\
         \"key\":\"\\u0000\\u0000\\u0000\\u0007\",\"payload\":\"/wA=\",\"payload_encoding\":\"base64\"}\n"
    );
    assert_eq!(ok(&["cat", &dir, "--format", "json"], b""), ok(&["cat", &dir, "-J"], b""));
}

#[test]
fn counts() {
    let place = Place::new();
    let dir = mixed(&place);
    assert_eq!(text(&["cat", &dir, "--count-by", "key"]), "2\ta\n1\t<null>\n1\t\n1\t\0\0\0\x07\n1\tb\n");
    assert_eq!(text(&["cat", &dir, "--count-by", "key", "-o", ":3", "--where", "key = 'a'"]), "1\ta\n");
    assert_eq!(text(&["cat", &dir, "--count-by", "partition", "-c", "4"]), "4\t3\n");
    assert_eq!(text(&["cat", &dir, "--count-by", "header.h"]), "4\t<null>\n1\tx\n1\tz\n");
    let json = text(&["cat", &dir, "--count-by", "key", "-J", "--decode", "key=hex"]);
    assert!(
        json.starts_with(
            "{\"key\":\"61\",\"key_encoding\":\"hex\",\"count\":2}\n{\"key\":null,\"count\":1}\n"
        ),
        "{json}"
    );
    fails(&["cat", &dir, "--count-by", "size"], b"", 2, "cannot be counted by");
}

#[test]
fn a_record_by_its_time() {
    let place = Place::new();
    let dir = mixed(&place);
    let get = |at: &str| text(&["get", &dir, at, "-f", "%o"]);
    assert_eq!(get("@2"), "2");
    assert_eq!(get("@1970-01-01T00:00:02.001Z"), "3");
    assert_eq!(get("1970-01-01"), "0");
    assert_eq!(get("start"), "0");
    assert_eq!(get("end"), "5");
    assert_eq!(text(&["cat", &dir, "-o", "@+2500ms", "-c", "1", "-f", "%o"]).len(), 0, "from now on");
    fails(&["cat", &dir, "-o", "@2500ms"], b"", 2, "from now on or back?");
    assert_eq!(text(&["cat", &dir, "-o", "@1970-01-01T00:00:02.001Z", "-c", "1", "-f", "%o"]), "3");
    fails(&["get", &dir, "@now"], b"", 3, "or later");
    fails(&["get", &dir, "6"], b"", 3, "out of range");
    fails(&["get", &dir, "soon"], b"", 2, "no place in a log");
    let file = format!("{dir}/00000000000000000000.log");
    assert_eq!(text(&["get", &file, "@2", "-f", "%o %[ %]"]), "2 0 6");
}

#[test]
fn templates_of_the_log() {
    let place = Place::new();
    let dir = mixed(&place);
    assert_eq!(text(&["cat", &dir, "-o", "5:", "-f", "%o %[ %| %] %i\\n"]), "5 0 6 6 1\n");
    assert_eq!(
        text(&["cat", &dir, "-o", "5:", "-f", "%d{go[Jan 2 15:04:05]}|%k{unpack[B]}\\n"]),
        "Jan 1 00:00:05|98\n"
    );
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0/transactions/transactions-0");
    let out = text(&["cat", case, "-c", "1", "-f", "%|"]);
    assert_eq!(out, "142");
    let report = ok(&["append", &dir, "--report", "%o %[ %| %]\\n"], b"x\n");
    assert_eq!(report, b"6 0 7 7\n");
}

#[test]
fn input_as_a_template_says() {
    let place = Place::new();
    let dir = place.path("t-0");
    let append = |options: &[&str], input: &[u8]| {
        let _ = std::fs::remove_dir_all(&dir);
        ok(&[&["append", &dir, "--create", "--timestamp", "9"], options].concat(), input);
        text(&["cat", &dir, "-Z", "-f", "%k|%v|%h|%d\\n"])
    };
    assert_eq!(append(&["-f", "%k: %v\\n"], b"a: 1\nb: 2"), "a|1||9000\nb|2||9000\n");
    assert_eq!(append(&["-f", "%d %H%h{ %k=%v;} %v\\n"], b"5 1 h=x; v\n"), "NULL|v|h=x|5\n");
    assert_eq!(append(&["-f", "%K{big16}%k%V{big16}%v"], b"\0\x01k\0\0"), "k|||9000\n");
    assert_eq!(append(&["-f", "%v{json}\\n", "-k", "fix"], b"{ \"a\" : 1 }\n"), "fix|{\"a\":1}||9000\n");
    assert_eq!(append(&["-f", "%k\\n", "-Z", "-H", "a:b"], b"gone\n"), "gone|NULL|a=b|9000\n");
    // What prints binary records reads them.
    let mixed = mixed(&place);
    let template = "%d %o %K{big32}%k%V{big32}%v%H{byte}%h{%K{byte}%k%V{byte}%v}";
    let out = ok(&["cat", &mixed, "-f", template, "-o", "3:"], b"");
    let again = place.path("again-0");
    ok(&["append", &again, "--create", "-f", template, "--preserve"], &out);
    let json = |dir: &str| text(&["cat", dir, "-o", "3:", "-f", "%o %d %k{hex} %v{hex} %h\\n"]);
    assert_eq!(json(&again), json(&mixed));
    let ran = fails(&["append", &dir, "-f", "%k: %v\\n"], b"a: 1\nnonsense\n", 1, "record 2, byte 9");
    assert!(ran.err.contains("midst"), "{}", ran.err);
    assert_eq!(text(&["cat", &dir, "-o", "-1"]), "1\n", "what was whole is there");
    fails(&["append", &dir, "-f", "%k%v\\n"], b"", 2, "what ends `%k`");
    fails(&["append", &dir, "--format", "lies"], b"", 2, "no format");
    fails(&["append", &dir, "-f", "%v\\n", "--preserve"], b"", 2, "a template with %o");
    fails(&["append", &dir, "-f", "%v\\n", "-D", "x"], b"", 2, "--delim");
    fails(&["append", &dir, "-f", "%v\\n", "-K", "="], b"", 2, "--key-sep");
}

#[test]
fn other_ways_to_append() {
    let place = Place::new();
    let dir = place.log("t-0", b"a\nb\n", &[]);
    fails(&["append", &dir, "--expect", "1"], b"", 1, "expected the log to end at 1");
    ok(&["append", &dir, "--expect", "2"], b"");
    assert_eq!(ok(&["append", &dir, "--tee", "-K", "="], b"k=c\nd"), b"k=c\nd");
    assert_eq!(text(&["cat", &dir]), "a\nb\nc\nd\n");
    ok(&["append", &dir, "--linger", "0"], b"e\n");
    ok(&["append", &dir, "--linger", "1h"], b"f\n");
    assert_eq!(text(&["cat", &dir, "-o", "4:"]), "e\nf\n", "the end of the input is waited for no longer");
    fails(&["append", &dir, "--tee", "--report", "%o"], b"", 2, "--tee");
}
