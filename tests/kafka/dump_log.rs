//! Kafka's own dump tool over directories that we wrote: no complaint, and exactly the records that went in.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::{
    CODECS,
    command::{Ran, kafka, kafka_is_here, logctl, run},
    corpus,
    record::Told,
};

const ALL: &[&str] = &["index", "log", "timeindex"];

#[test]
fn kafkas_dump_tool_finds_no_fault_and_prints_what_was_written() {
    if !kafka_is_here() {
        return;
    }
    let place = TempDir::new().unwrap();
    let records = corpus::records(0, 1500);
    let dirs: Vec<PathBuf> = CODECS.iter().map(|codec| place.path().join(format!("{codec}-0"))).collect();
    for (dir, codec) in dirs.iter().zip(CODECS) {
        corpus::write(dir, codec, &records);
    }
    let files: Vec<String> = dirs.iter().flat_map(|dir| corpus::files(dir, ALL)).collect();
    let indexes = files.iter().filter(|file| file.ends_with("index")).count();

    let sane = dump(&["--deep-iteration", "--index-sanity-check"], &files);
    assert_eq!(complaints(&sane), [""; 0]);
    assert_eq!(sane.text().matches(" passed sanity check.").count(), indexes);

    // Without the sanity check it compares each entry with the log.
    let compared = dump(&["--verify-index-only"], &files);
    assert_eq!(complaints(&compared), [""; 0]);

    let deep = dump(&["--deep-iteration"], &files);
    assert_eq!(complaints(&deep), [""; 0]);
    let entries = deep.text().lines().filter(|line| line.starts_with("offset: ")).count();
    assert!(entries > files.len(), "{entries} index entries prove little");
    let ours = run(logctl(&["dump", "--deep-iteration"]).args(&files), b"");
    assert_eq!(ours.code, Some(0), "{}", ours.err);
    assert_eq!(first_other_line(ours.text(), deep.text()), None, "our dump and Kafka's");

    // What the records are, each directory by itself.
    for (dir, codec) in dirs.iter().zip(CODECS) {
        let printed = dump(&["--print-data-log"], &corpus::files(dir, &["log"]));
        if let Some(difference) = difference(&records, codec, printed.text()) {
            panic!("{codec}: {difference}");
        }
        // The same text is of no other codec, and of no other records.
        let other = if codec == "zstd" { "none" } else { "zstd" };
        assert!(difference(&records, other, printed.text()).is_some());
        assert!(difference(&records[..1499], codec, printed.text()).is_some());
        assert!(difference(&corpus::records(1, 1501), codec, printed.text()).is_some());
    }

    // One flipped bit in the middle of a segment, and an index entry that points elsewhere, do not stay unseen.
    let log = &corpus::files(&dirs[0], &["log"])[1];
    flip(log, 200);
    let flipped = dump(&["--print-data-log"], &corpus::files(&dirs[0], &["log"]));
    assert!(difference(&records, "none", flipped.text()).is_some());
    let index = log.replace(".log", ".index");
    flip(&index, 6);
    let flipped = dump(&["--verify-index-only"], &[index]);
    assert_ne!(complaints(&flipped), [""; 0]);
}

fn flip(file: &str, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

#[track_caller]
fn dump(options: &[&str], files: &[String]) -> Ran {
    let files = files.join(",");
    run(&mut kafka(&[&["tool", "dump-log"], options, &["--files", &files]].concat()), b"")
}

/// Everything that the tool says and that is neither data nor the one false alarm that it raises for each segment which
/// does not begin at offset 0. It ends with 0 whatever it found.
fn complaints(ran: &Ran) -> Vec<String> {
    let mut found = Vec::new();
    if ran.code != Some(0) || ran.out.is_empty() {
        found.push(format!("exit code {:?}, {} bytes", ran.code, ran.out.len()));
    }
    let data = ["Dumping ", "Log starting offset: ", "baseOffset: ", "| offset: ", "offset: ", "timestamp: "];
    let is_data = |line: &&str| {
        (data.iter().any(|start| line.starts_with(start)) && !line.contains("isvalid: false"))
            || line.ends_with(" passed sanity check.")
    };
    found.extend(ran.text().lines().filter(|line| !is_data(line)).map(str::to_owned));
    let mut lines = ran.err.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("Non-consecutive offsets in ") {
            let is_first = |next: &&str| next.trim_start().starts_with("-1 is followed by ");
            while lines.next_if(is_first).is_some() {}
            found.extend(lines.next_if(|next| next.contains(" is followed by ")).map(str::to_owned));
        } else {
            found.push(line.to_owned());
        }
    }
    found
}

/// Where the tool's text of `.log` files differs from these records.
fn difference(records: &[Told], codec: &str, printed: &str) -> Option<String> {
    let codec = format!(" compresscodec: {codec} ");
    let mut left = records.iter();
    // Values may hold newlines: what counts are the lines that begin something.
    for entry in entries(printed) {
        if entry.starts_with("baseOffset: ") {
            if !entry.contains(&codec) || !entry.ends_with("isvalid: true") || !entry.contains(" magic: 2 ") {
                return Some(format!("not a valid batch of {codec}: {entry}"));
            }
        } else if entry.starts_with("| offset: ") {
            let Some(record) = left.next() else { return Some(format!("one too many: {entry}")) };
            let (metadata, data) = expected(record);
            let same = match data {
                Some(data) => entry == metadata.clone() + &data,
                None => entry.starts_with(&metadata),
            };
            if !same {
                return Some(format!("they differ:\n  {record:?}\n  {entry}"));
            }
        }
    }
    left.next().map(|record| format!("not printed: {record:?}"))
}

/// The text cut before each line that begins something.
fn entries(printed: &str) -> Vec<&str> {
    let starts = ["Dumping ", "Log starting offset: ", "baseOffset: ", "| offset: "];
    let begins = |at: usize| starts.iter().any(|start| printed[at..].starts_with(start));
    let mut cuts: Vec<usize> =
        printed.match_indices('\n').map(|(at, _)| at + 1).filter(|at| begins(*at)).collect();
    cuts.insert(0, 0);
    cuts.push(printed.len());
    cuts.windows(2)
        .map(|cut| printed[cut[0]..cut[1]].strip_suffix('\n').unwrap_or(&printed[cut[0]..cut[1]]))
        .collect()
}

/// What the tool prints of a record: up to its headers, and the rest where it is text (what Java makes of other bytes is
/// its own affair; their sizes are in the first part).
fn expected(record: &Told) -> (String, Option<String>) {
    let size =
        |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap());
    let headers: Vec<_> = record.headers.iter().map(|(key, _)| str::from_utf8(key).unwrap()).collect();
    let metadata = format!(
        "| offset: {} CreateTime: {} keySize: {} valueSize: {} sequence: -1 headerKeys: [{}]",
        record.offset,
        record.timestamp,
        size(&record.key),
        size(&record.value),
        headers.join(",")
    );
    let text = |name: &str, bytes: &Option<Vec<u8>>| match bytes {
        None => Some(String::new()),
        Some(bytes) => str::from_utf8(bytes).ok().map(|text| format!(" {name}: {text}")),
    };
    let data = text("key", &record.key).zip(text("payload", &record.value)).map(|(key, value)| key + &value);
    (metadata, data)
}

fn first_other_line(left: &str, right: &str) -> Option<(String, String)> {
    let (mut left, mut right) = (left.lines(), right.lines());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some((a.unwrap_or("the end").to_owned(), b.unwrap_or("the end").to_owned())),
        }
    }
}

#[test]
fn only_the_false_alarm_is_excused() {
    let ran = |out: &str, err: &str| Ran { code: Some(0), out: out.into(), err: err.into() };
    let fine = "Dumping a.log\nLog starting offset: 5\nbaseOffset: 5 isvalid: true\n";
    let alarm = "Non-consecutive offsets in a.log\n  -1 is followed by 5\n";
    assert_eq!(complaints(&ran(fine, alarm)), [""; 0]);
    assert_ne!(complaints(&ran("", "")), [""; 0]);
    assert_ne!(complaints(&ran(fine, "Non-consecutive offsets in a.log\n  5 is followed by 7\n")), [""; 0]);
    assert_ne!(complaints(&ran(fine, &(alarm.to_owned() + "  5 is followed by 7\n"))), [""; 0]);
    assert_ne!(complaints(&ran(fine, "Index mismatches in a.index\n")), [""; 0]);
    assert_ne!(complaints(&ran("baseOffset: 5 isvalid: false\n", "")), [""; 0]);
    assert_ne!(complaints(&ran("Found timestamp mismatch\n", "")), [""; 0]);
    assert_ne!(complaints(&Ran { code: Some(1), ..ran(fine, "") }), [""; 0]);
}
