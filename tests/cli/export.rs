//! `export` and `import`: formats, parts, damage, going on after an interrupt.

use std::{
    fs,
    io::Write,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use crate::run::{Place, fails, logctl, numbers, ok, run, signal, snapshot};

const SMALL: [&str; 4] = ["--batch-size", "200", "--segment-bytes", "4k"];

/// Where each batch of a raw stream begins, and where the last ends.
fn borders(raw: &[u8]) -> Vec<usize> {
    let mut borders = vec![0];
    while let Some(at) = borders.last().copied().filter(|at| *at < raw.len()) {
        let length = u32::from_be_bytes(raw[at + 8..at + 12].try_into().unwrap());
        borders.push(at + 12 + usize::try_from(length).unwrap());
    }
    borders
}

fn base_offset(raw: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(raw[at..at + 8].try_into().unwrap())
}

#[test]
fn a_stream_goes_through_a_pipe_packed_or_not() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(2000), &SMALL);
    for codec in ["none", "gzip:1", "snappy", "lz4", "zstd", "zstd:19"] {
        let copy = place.path(&format!("{codec}-0"));
        let stream = ok(&["export", &dir, "-z", codec], b"");
        ok(&["import", &copy, "--create"], &stream);
        ok(&["diff", &dir, &copy], b"");
        // What is cut short is damaged, and is told so, wherever that is noticed.
        let cut = run(&["import", &copy, "--create", "--dry-run", "--resume"], &stream[..stream.len() - 9]);
        assert_eq!(cut.code, Some(4), "{codec}: {}", cut.err);
        assert!(cut.err.contains("standard input"), "{codec}: {}", cut.err);
    }
    fails(&["export", &dir, "-z", "brotli"], b"", 2, "brotli");
    fails(&["export", &dir, "--committed"], b"", 2, "--format jsonl");
    fails(&["export", &place.path("absent-0")], b"", 3, "no such file");
}

#[test]
fn a_range_is_exported_and_one_segment_by_itself() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(1000), &SMALL);
    let raw = ok(&["export", &dir], b"");
    let at = borders(&raw);
    // Whole batches: those that hold the first and the last of the range too.
    let (second, last) = (base_offset(&raw, at[1]), base_offset(&raw, at[5]));
    let range = format!("{}:{}", second + 1, last + 1);
    assert!(ok(&["export", &dir, "-o", &range], b"") == raw[at[1]..at[6]]);
    let lines = ok(&["export", &dir, "-o", "10:13", "--format", "csv"], b"");
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(lines.lines().count(), 4, "{lines}");
    assert!(lines.starts_with("offset,timestamp,") && lines.contains(",,11,[]\n"), "{lines}");
    let file = Path::new(&dir).join("00000000000000000000.log");
    let first = ok(&["export", file.to_str().unwrap()], b"");
    assert!(raw.starts_with(&first) && first.len() < raw.len());
    let copy = place.path("u-0");
    // A segment's file is a raw stream.
    ok(&["import", &copy, "--create", "--from", file.to_str().unwrap()], b"");
    assert!(ok(&["export", &copy], b"") == first);
}

#[test]
fn parts_are_whole_and_an_export_goes_on_behind_them() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(3000), &SMALL);
    let raw = ok(&["export", &dir], b"");
    for (format, codec) in [("raw", "none"), ("raw", "zstd"), ("jsonl", "none"), ("csv", "gzip")] {
        let name = place.path(&format!("{format}-{codec}"));
        let args =
            ["export", &dir, "--format", format, "-z", codec, "--to", &name, "--split", "5000", "--resume"];
        ok(&args, b"");
        let parts = || {
            let mut parts: Vec<_> = fs::read_dir(place.path(""))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.to_str().unwrap().starts_with(&format!("{name}.")))
                .collect();
            parts.sort();
            parts
        };
        let whole: Vec<_> = parts().iter().map(|path| fs::read(path).unwrap()).collect();
        assert!(whole.len() > 1, "{format} {codec}: {} parts", whole.len());
        if codec == "none" {
            assert!(whole.iter().all(|part| part.len() <= 5200), "{format}");
        }
        if (format, codec) == ("raw", "none") {
            assert!(whole.concat() == raw);
        }
        // What an interrupt leaves: the last parts are not there, or not under their names.
        for gone in parts().iter().skip(whole.len() / 2) {
            fs::remove_file(gone).unwrap();
        }
        ok(&args, b"");
        let again: Vec<_> = parts().iter().map(|path| fs::read(path).unwrap()).collect();
        let copy = place.path(&format!("{format}-{codec}-copy-0"));
        let mut import = vec!["import".to_owned(), copy.clone(), "--create".into(), "--from".into()];
        import.extend(parts().iter().map(|path| path.to_str().unwrap().to_owned()));
        ok(&import.iter().map(String::as_str).collect::<Vec<_>>(), b"");
        ok(&["diff", &dir, &copy, "--by", if format == "raw" { "batches" } else { "records" }], b"");
        if codec == "none" {
            assert!(again == whole, "{format}");
        }
        // Out of order they are refused.
        if let [.., a, b] = import.as_mut_slice() {
            std::mem::swap(a, b);
        }
        let other = place.path(&format!("{format}-{codec}-other-0"));
        import[1].clone_from(&other);
        fails(&import.iter().map(String::as_str).collect::<Vec<_>>(), b"", 1, "not in order");
    }
}

#[test]
fn parts_of_another_log_are_not_gone_on_with() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(300), &SMALL);
    let other = place.log("u-0", &numbers(3000), &["--batch-size", "150"]);
    let name = place.path("parts");
    ok(&["export", &dir, "--to", &name, "--split", "1KiB"], b"");
    fails(&["export", &dir, "--to", &name, "--split", "1KiB"], b"", 1, "exists");
    fails(&["export", &other, "--to", &name, "--split", "1KiB", "--resume"], b"", 4, "does not have there");
    ok(&["export", &dir, "--to", &name, "--split", "100KiB", "--force"], b"");
    assert!(Path::new(&format!("{name}.00001")).exists() && !Path::new(&format!("{name}.00002")).exists());
    let file = place.path("one");
    ok(&["export", &dir, "--to", &file], b"");
    fails(&["export", &dir, "--to", &file], b"", 1, "--force");
    ok(&["export", &dir, "--to", &file, "--force"], b"");
    fails(&["export", &dir, "--split", "1k"], b"", 2, "--to");
    fails(&["export", &dir, "--to", "/dev/null", "--force"], b"", 2, "not a regular file");
    fails(&["export", &dir, "--to", "/dev/full"], b"", 2, "not a regular file");
}

#[test]
fn what_is_damaged_is_not_exported() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(500), &["--batch-size", "200"]);
    let log = Path::new(&dir).join("00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    let at = borders(&bytes)[3];
    bytes[at + 70] ^= 1;
    fs::write(&log, &bytes).unwrap();
    for format in ["raw", "jsonl", "csv"] {
        let ran = fails(&["export", &dir, "--format", format], b"", 4, &format!("byte {at}"));
        if format == "raw" {
            assert!(ran.out == bytes[..at]);
        }
        // A file that is not whole does not get its name.
        let file = place.path(format);
        fails(&["export", &dir, "--format", format, "--to", &file], b"", 4, "");
        assert!(!Path::new(&file).exists() && !Path::new(&format!("{file}.unfinished")).exists());
        fails(&["export", log.to_str().unwrap(), "--format", format], b"", 4, &format!("byte {at}"));
    }
}

#[test]
fn damage_is_refused_with_its_place_and_nothing_after_it_is_taken() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(500), &SMALL);
    let raw = ok(&["export", &dir], b"");
    let at = borders(&raw);
    let (begin, offset) = (at[4], base_offset(&raw, at[4]));
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = raw.clone();
        change(&mut bytes);
        bytes
    };
    let flipped = changed(&|bytes| bytes[begin + 65] ^= 1);
    let huge = changed(&|bytes| bytes[begin + 8..begin + 12].copy_from_slice(&i32::MAX.to_be_bytes()));
    let large =
        changed(&|bytes| bytes[begin + 8..begin + 12].copy_from_slice(&(900_i32 << 20).to_be_bytes()));
    let negative = changed(&|bytes| bytes[begin + 8] = 0xff);
    let zeros = changed(&|bytes| bytes[begin..].fill(0));
    let magic = changed(&|bytes| bytes[begin + 16] = 9);
    let cut = changed(&|bytes| bytes.truncate(begin + 80));
    let cut_in_header = changed(&|bytes| bytes.truncate(begin + 10));
    for (name, bytes, says) in [
        ("flipped", flipped, "checksum"),
        ("huge", huge, "batch"),
        ("large", large, "into the batch"),
        ("negative", negative, "length"),
        ("zeros", zeros, "length"),
        ("magic", magic, "magic"),
        ("cut", cut, "ends 80 bytes into the batch"),
        ("cut-in-header", cut_in_header, "ends 10 bytes into a batch"),
    ] {
        let copy = place.path(&format!("{name}-0"));
        let file = place.path(name);
        fs::write(&file, &bytes).unwrap();
        let import = ["import", &copy, "--create", "--from", &file];
        let dry = fails(&[&import[..], &["--dry-run"]].concat(), b"", 4, &format!("{file} at byte {begin}"));
        assert!(!Path::new(&copy).exists(), "{name}: a dry run made a directory");
        assert!(dry.err.to_lowercase().contains(says) || says == "checksum", "{name}: {}", dry.err);
        let ran = fails(&import, b"", 4, &format!("before offset {offset} is imported"));
        assert!(ran.err.contains(&format!("{file} at byte {begin}")), "{name}: {}", ran.err);
        assert!(ok(&["export", &copy], b"") == raw[..begin], "{name}");
        // With the rest at hand it goes on.
        fs::write(&file, &raw).unwrap();
        ok(&[&import[..], &["--resume"]].concat(), b"");
        ok(&["diff", &dir, &copy], b"");
    }
}

#[test]
fn lines_and_rows_that_are_no_record_are_told_with_their_number() {
    let place = Place::new();
    let dir = place.path("t-0");
    let good = r#"{"offset":0,"timestamp":1,"value":"x"}"#;
    for (lines, says) in [
        (format!("{good}\nhello\n"), "line 2"),
        (format!("{good}\n{{\"timestamp\":1,\"value\":\"x\"}}\n"), "no `offset`"),
        (format!("{good}\n{{\"offset\":1,\"value\":\"x\"}}\n"), "no `timestamp`"),
        (format!("{good}\n{good}\n"), "offset 0 comes where the log ends at 1"),
        ("offset,value,timestamp\n0,x,1\n1,y\n".into(), "line 3: 2 fields"),
        ("offset,value,timestamp\n0,x,1\n1,\"y\n".into(), "not closed"),
        ("offset,timestamp\n".into(), "`value`"),
    ] {
        let ran = run(&["import", &dir, "--create", "--dry-run"], lines.as_bytes());
        assert!(matches!(ran.code, Some(1 | 4)), "{lines}: {}", ran.err);
        assert!(ran.err.contains(says), "{lines}: {}", ran.err);
    }
}

#[test]
fn an_import_goes_on_only_with_its_own_first_part() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(1000), &SMALL);
    for format in ["raw", "jsonl", "csv"] {
        let copy = place.path(&format!("{format}-0"));
        let stream = ok(&["export", &dir, "--format", format], b"");
        let part = ok(&["export", &dir, "--format", format, "-o", ":500"], b"");
        ok(&["import", &copy, "--create"], &part);
        let before = snapshot(&copy);
        // Without a word nothing is taken twice.
        fails(&["import", &copy], &stream, 1, "--resume");
        fails(&["import", &copy, "--expect", "7"], &stream, 1, "expected the log to end at 7");
        let dry = run(&["import", &copy, "--resume", "--dry-run"], &stream);
        assert_eq!(dry.code, Some(0), "{}", dry.err);
        assert!(dry.err.contains("would be imported") && dry.err.contains("are the same"), "{}", dry.err);
        let logs = |files: Vec<(String, Vec<u8>, _)>| {
            files
                .into_iter()
                .filter(|(name, ..)| Path::new(name).extension().is_some_and(|suffix| suffix == "log"))
                .map(|(_, bytes, _)| bytes)
                .collect::<Vec<_>>()
        };
        assert!(logs(snapshot(&copy)) == logs(before), "{format}: refused, and something changed");
        ok(&["import", &copy, "--resume"], &stream);
        ok(&["diff", &dir, &copy, "--by", if format == "raw" { "batches" } else { "records" }], b"");
        // All of it is there: nothing to do. Less than what is there, or something else: not this input's.
        ok(&["import", &copy, "--resume"], &stream);
        fails(&["import", &copy, "--resume"], &part, 4, "not the first part");
        let other = place.log(&format!("{format}-other-0"), &numbers(3), &[]);
        fails(&["import", &other, "--resume"], &stream, 4, "at offset 0");
        assert_eq!(ok(&["cat", &other], b""), numbers(3));
    }
}

#[test]
fn an_import_keeps_the_rules_of_writers() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(100), &SMALL);
    let (raw, copy) = (ok(&["export", &dir], b""), place.path("u-0"));
    fails(&["import", &copy], &raw, 3, "--create");
    fails(&["import", &copy, "--create", "--from", &place.path("absent")], b"", 3, "no such file");
    assert!(!Path::new(&copy).exists());
    ok(&["import", &copy, "--create", "--expect", "0", "--start", "40"], &raw);
    assert_eq!(ok(&["cat", &copy, "-c", "1"], b""), b"41\n");
    fails(&["import", &copy, "--start", "4000"], b"", 3, "out of range");
    // A log that somebody writes to.
    let mut writer = logctl(&["append", &copy]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(b"one more\n").unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while ok(&["offsets", &copy], b"").is_empty() || run(&["import", &copy], b"").code != Some(5) {
        assert!(Instant::now() < until, "the writer never took the lock");
    }
    fails(&["import", &copy, "--resume"], &raw, 5, "is locked");
    drop(input);
    writer.wait().unwrap();
}

#[test]
fn an_interrupted_import_says_how_to_go_on() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(3000), &SMALL);
    let (raw, copy) = (ok(&["export", &dir], b""), place.path("u-0"));
    let mut child =
        logctl(&["import", &copy, "--create"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&raw[..raw.len() / 2]).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !Path::new(&copy).join("00000000000000000000.log").exists() {
        assert!(Instant::now() < until, "nothing was imported");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "INT");
    // What comes now lets it look at the signal; more may not be wanted any more.
    let _ = input.write_all(&raw[raw.len() / 2..]);
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("--resume goes on"), "{said}");
    ok(&["import", &copy, "--resume"], &raw);
    ok(&["diff", &dir, &copy], b"");
    ok(&["verify", &copy, "--deep"], b"");
}

#[test]
fn an_empty_log_is_an_empty_stream() {
    let place = Place::new();
    let dir = place.log("t-0", b"", &[]);
    let file = place.path("stream");
    ok(&["export", &dir, "--to", &file], b"");
    assert_eq!(fs::metadata(&file).unwrap().len(), 0);
    ok(&["import", &place.path("u-0"), "--create", "--from", &file], b"");
    ok(&["diff", &dir, &place.path("u-0")], b"");
}
