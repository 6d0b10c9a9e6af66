//! Streams that lie or break off, lines without an end, segments smaller than what is gathered.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use flate2::{Compression, write::GzEncoder};

use crate::run::{Place, fails, logctl, numbers, ok, run, signal};

const SMALL: [&str; 4] = ["--batch-size", "200", "--segment-bytes", "4k"];

/// The streams of an export in parts, one behind the other.
fn parts(place: &Place, dir: &str, codec: &str) -> Vec<Vec<u8>> {
    let name = place.path(&format!("{codec}-parts"));
    ok(&["export", dir, "--to", &name, "--split", "3k", "-z", codec], b"");
    let parts = (1..).map(|number| fs::read(format!("{name}.{number:05}"))).map_while(Result::ok);
    parts.collect()
}

#[test]
fn packed_streams_one_behind_the_other_are_one_stream() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(5000), &SMALL);
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let parts = parts(&place, &dir, codec);
        assert!(parts.len() > 2, "{codec}: {} parts", parts.len());
        let copy = place.path(&format!("{codec}-0"));
        ok(&["import", &copy, "--create"], &parts.concat());
        assert_eq!(ok(&["cat", &copy], b""), numbers(5000), "{codec}");
    }
}

#[test]
fn a_packed_stream_that_breaks_off_is_damaged() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(2000), &SMALL);
    let stream = ok(&["export", &dir, "-z", "lz4"], b"");
    let import = |bytes: &[u8]| run(&["import", &place.path("u-0"), "--create", "--dry-run"], bytes);
    assert_eq!(import(&stream).code, Some(0));
    // The magic alone, the header, and all but the end mark or the checksum behind it.
    let ends = (1..=20).chain(stream.len() - 12..stream.len());
    for end in ends {
        let ran = import(&stream[..end]);
        assert_eq!(ran.code, Some(4), "{end} of {}: {}", stream.len(), ran.err);
    }
    for behind in [&b"rubbish behind it"[..], &stream[..9], &[0; 64]] {
        let ran = import(&[&stream, behind].concat());
        assert_eq!(ran.code, Some(4), "{}: {}", behind.len(), ran.err);
    }
}

#[test]
fn what_is_gathered_never_exceeds_a_segment() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(30_000), &["--batch-size", "500"]);
    for (format, more) in
        [("raw", &[][..]), ("jsonl", &["--batch-size", "2KiB"]), ("csv", &["--batch-size", "1KiB"])]
    {
        let stream = ok(&["export", &dir, "--format", format], b"");
        let copy = place.path(&format!("{format}-0"));
        let import = ["import", &copy, "--create", "--segment-bytes", "16KiB"];
        ok(&[&import[..], more].concat(), &stream);
        assert_eq!(ok(&["cat", &copy], b""), numbers(30_000), "{format}");
        let largest =
            fs::read_dir(&copy).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).max();
        assert!(largest <= Some(16 << 10), "{format}: {largest:?}");
    }
}

/// `count` bytes between `head` and `tail`, packed.
fn bomb(head: &[u8], count: usize, tail: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(head).unwrap();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..count >> 20 {
        packer.write_all(&block).unwrap();
    }
    packer.write_all(tail).unwrap();
    packer.finish().unwrap()
}

#[test]
fn a_line_without_an_end_takes_no_more_memory_than_is_allowed() {
    let place = Place::new();
    for (name, head) in [
        ("jsonl", &b"{\"offset\":0,\"timestamp\":1,\"value\":\""[..]),
        ("csv", b"offset,timestamp,value\n0,1,\""),
        ("names", b"offset,"),
    ] {
        let file = place.path(name);
        fs::write(&file, bomb(head, 1200 << 20, b"\"}\n")).unwrap();
        let import = |more: &str| {
            let line = format!(
                "ulimit -v 1500000; exec '{}' import '{}' --create --dry-run --from '{file}' {more}",
                env!("CARGO_BIN_EXE_logctl"),
                place.path("u-0")
            );
            Command::new("sh").args(["-c", &line]).env("LOGCTL_CONFIG", "").output().unwrap()
        };
        for more in ["", "--max-batch-bytes 1MiB"] {
            let output = import(more);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(4), "{name} {more}: {said}");
            assert!(said.contains("of more than") && said.contains("--max-batch-bytes"), "{name}: {said}");
        }
    }
    // Where it is one record it is taken: so long as it was asked for.
    let value = vec![b'y'; 3 << 20];
    let line = [b"{\"offset\":0,\"timestamp\":1,\"value\":\"", &value[..], b"\"}\n"].concat();
    ok(&["import", &place.path("v-0"), "--create"], &line);
    fails(
        &["import", &place.path("w-0"), "--create", "--max-batch-bytes", "64KiB"],
        &line,
        4,
        "of more than",
    );
}

#[test]
fn an_error_quotes_a_little_of_its_input() {
    let place = Place::new();
    let long = "n".repeat(200_000);
    for lines in [
        format!("{{\"offset\":0,\"timestamp\":\"{long}\",\"value\":\"x\"}}\n"),
        format!("{{\"offset\":0,\"value_encoding\":\"{long}\",\"value\":\"x\"}}\n"),
        format!("{long},value\n1,2\n"),
        format!("value,header.{long},header.{long}\n1,2,3\n"),
        format!("value,headers\n1,\"[\"\"{long}\"\"]\"\n"),
    ] {
        for args in [
            &["import", &place.path("t-0"), "--create", "--dry-run"][..],
            &[
                "append",
                &place.path("u-0"),
                "--create",
                "--format",
                if lines.starts_with('{') { "jsonl" } else { "csv" },
            ],
        ] {
            let ran = run(args, lines.as_bytes());
            assert!(matches!(ran.code, Some(1 | 4)), "{:?}: {}", ran.code, ran.err.len());
            assert!(ran.err.len() < 2000, "{args:?}: {} bytes of error", ran.err.len());
        }
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_record() {
    let place = Place::new();
    let line = "\u{feff}{\"offset\":0,\"timestamp\":1,\"key\":\"k\",\"value\":\"x\"}\r\n";
    let rows = "\u{feff}offset,timestamp,key,value\n0,1,k,x\n";
    for (name, text) in [("json", line), ("csv", rows)] {
        let (imported, appended) = (place.path(&format!("{name}-0")), place.path(&format!("{name}-1")));
        ok(&["import", &imported, "--create"], text.as_bytes());
        let format = if name == "json" { "jsonl" } else { "csv" };
        ok(&["append", &appended, "--create", "--format", format], text.as_bytes());
        for dir in [imported, appended] {
            assert_eq!(ok(&["cat", &dir, "-f", "%k=%s\\n"], b""), b"k=x\n", "{dir}");
        }
    }
    fails(&["import", &place.path("u-0"), "--create"], "\u{feff}{\"offset\":x}\n".as_bytes(), 4, "column 14");
}

#[test]
fn parts_that_are_gone_on_with_tell_where_the_log_begins() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(3000), &SMALL);
    let name = place.path("parts");
    let export = ["export", &dir, "--to", &name, "--split", "2k"];
    ok(&export, b"");
    fs::remove_file(format!("{name}.00004")).unwrap();
    let last = (5..).map(|number| format!("{name}.{number:05}")).take_while(|part| Path::new(part).exists());
    last.for_each(|part| fs::remove_file(part).unwrap());
    let ran = run(&[&export[..], &["--resume"]].concat(), b"");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(!ran.err.contains("--start"), "{}", ran.err);
    assert!(!Path::new(&format!("{name}.start")).exists());
}

#[test]
fn an_interrupted_export_says_so() {
    let place = Place::new();
    let value = vec![b'x'; 100_000];
    let lines: Vec<u8> = (0..300).flat_map(|_| [&value[..], b"\n"].concat()).collect();
    let dir = place.log("t-0", &lines, &[]);
    let file = place.path("file");
    // A level at which it takes its time.
    let mut child = logctl(&["export", &dir, "--to", &file, "--format", "jsonl", "-z", "zstd:19"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !Path::new(&format!("{file}.unfinished")).exists() {
        assert!(child.try_wait().unwrap().is_none(), "it was over too soon");
        thread::yield_now();
    }
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("the export is not finished"), "{said}");
    assert!(!Path::new(&file).exists() && !Path::new(&format!("{file}.unfinished")).exists());
}

#[test]
fn an_escape_that_means_nothing_is_a_mistake() {
    let place = Place::new();
    let dir = place.log("t-0", b"q\n1\n", &[]);
    fails(&["cat", &dir, "--where", "value = '\\q'"], b"", 2, "unknown escape");
    fails(&["cat", &dir, "--where", "value != \"\\x1\""], b"", 2, "hexadecimal");
    fails(&["cat", &dir, "--where", "headers['\\d'] is null"], b"", 2, "unknown escape");
    // In a regular expression they have a meaning of their own.
    assert_eq!(ok(&["cat", &dir, "--where", "value =~ '^\\d$'"], b""), b"1\n");
    assert_eq!(ok(&["cat", &dir, "--where", "value = '\\x71'"], b""), b"q\n");
}
