//! Any bytes as a partition directory: the first half of the input is a `.log`, the rest its indexes and our private
//! files. It is read from outside, opened for writing, appended to, closed and opened again; what was there stays there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stratalog::{AppendOptions, FsyncPolicy, LogConfig, LogReader, LogWriter, ReadOptions, record::Record};

fn read(dir: &std::path::Path) -> Option<Vec<(i64, Option<Vec<u8>>)>> {
    let reader = LogReader::open(dir, ReadOptions::default()).ok()?;
    let mut records = Vec::new();
    for record in reader.owned_records(reader.start()).take(10_000) {
        let Ok(record) = record else { continue };
        records.push((record.offset.value(), record.value.map(|value| value.to_vec())));
    }
    let _ = reader.max_timestamp();
    Some(records)
}

fuzz_target!(|bytes: &[u8]| {
    let temp = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let dir = temp.path();
    let (log, rest) = bytes.split_at(bytes.len() / 2);
    let each = rest.len() / 5;
    let names = [
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        ".stratalog-checkpoint",
        ".stratalog-summary",
        "leader-epoch-checkpoint",
    ];
    std::fs::write(dir.join("00000000000000000000.log"), log).expect("a file");
    for (name, part) in names.iter().zip(rest.chunks(each.max(1))) {
        std::fs::write(dir.join(name), part).expect("a file");
    }
    read(dir);
    let mut config = LogConfig::default();
    config.fsync = FsyncPolicy::Never;
    let Ok(mut writer) = LogWriter::open(dir, config.clone()) else { return };
    let before = read(dir);
    let end = writer.end();
    writer.append_records(&[Record::value_only(b"new")], AppendOptions::default()).expect("an append");
    writer.close().expect("a close");
    let writer = LogWriter::open(dir, config).expect("opened again");
    assert_eq!(Some(writer.end()), end.next());
    let mut expected = before.expect("readable");
    expected.push((end.value(), Some(b"new".to_vec())));
    assert_eq!(read(dir).expect("readable"), expected);
});
