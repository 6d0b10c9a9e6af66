//! Looking at a log that was left behind.

use std::path::Path;

use stratalog::{
    AppendOptions, FsyncPolicy, LogReader, LogWriter, ReadOptions, RecoveryReport, record::Record,
};

use super::writer::{config, value};

/// What a log holds after it was opened.
pub(crate) struct Observed {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) report: RecoveryReport,
}

/// Every record from `start` to `end` is there once, in order, and what was appended at its offset.
fn read(reader: &LogReader, what: &str) -> (i64, i64) {
    let (start, end) = (reader.start().value(), reader.end().value());
    let mut next = start;
    for record in reader.owned_records(reader.start()) {
        let record = record.unwrap_or_else(|error| panic!("{what}: reading at {next}: {error}"));
        assert_eq!(record.offset.value(), next, "{what}: offsets are not in order");
        let found = record.value.map(|value| value.to_vec());
        assert!(found == Some(value(next)), "{what}: offset {next} holds what was never appended there");
        next += 1;
    }
    assert_eq!(next, end, "{what}: the log ends at {end}");
    (start, end)
}

/// Opens, reads, opens again, appends, closes and reads as a stranger would.
pub(crate) fn open_and_read(dir: &Path, what: &str) -> Observed {
    let mut config = config("commit");
    config.fsync = FsyncPolicy::Commit;
    let log = LogWriter::open(dir, config.clone()).unwrap_or_else(|error| panic!("{what}: open: {error}"));
    let report = log.recovery().clone();
    assert!(report.lost.is_none() && report.corrupt.is_empty(), "{what}: {report:?}");
    let (start, end) = read(&log.reader(), what);
    assert_eq!(log.durable_end().value(), end, "{what}");
    drop(log);
    let mut log = LogWriter::open(dir, config).unwrap_or_else(|error| panic!("{what}: again: {error}"));
    let again = log.recovery();
    assert!(
        again.cut.is_none() && again.rebuilt.is_empty() && again.warnings.is_empty(),
        "{what}: {again:?}"
    );
    let appended = log.append_records(&[Record::value_only(&value(end))], AppendOptions::default());
    let appended = appended.unwrap_or_else(|error| panic!("{what}: append: {error}"));
    assert_eq!(appended.base_offset.value(), end, "{what}");
    log.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
    let reader = LogReader::open(dir, ReadOptions::default());
    let reader = reader.unwrap_or_else(|error| panic!("{what}: reader: {error}"));
    assert_eq!(read(&reader, what), (start, end + 1), "{what}: a reader sees something else");
    Observed { start, end: end + 1, report }
}
