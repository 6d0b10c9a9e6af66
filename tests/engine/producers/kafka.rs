//! Directories that a broker wrote: what its snapshots and transaction indexes say is what comes out here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use stratalog::{AppendOptions, Clock, LogReader, LogWriter, Offsets, ReadOptions, Timestamp};

use super::{NOW_MS, known, nobody, place, raw};
use crate::support::{TempLog, at, copy_dir, fast_dir};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0");

/// A copy of a partition, below a data directory that says how far a broker had recovered it, if it says so.
fn copy(topic: &str, recovery_point: Option<i64>) -> TempLog {
    let mut log = TempLog::with(|config| {
        config.clock = Clock::manual(Timestamp::from_millis(NOW_MS));
        config.segment_bytes = 1 << 30;
        config.index_interval_bytes = 512;
    });
    log.temp = fast_dir();
    copy_dir(&Path::new(FIXTURES).join(topic).join(format!("{topic}-0")), &log.path());
    if let Some(offset) = recovery_point {
        fs::write(log.temp.path().join("meta.properties"), "version=1\n").unwrap();
        let text = format!("0\n1\nt 0 {offset}\n");
        fs::write(log.temp.path().join("recovery-point-offset-checkpoint"), text).unwrap();
    }
    log
}

fn path(log: &TempLog, base: i64, suffix: &str) -> PathBuf {
    log.path().join(format!("{base:020}.{suffix}"))
}

/// The entries of a snapshot by rising producer id.
fn entries(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut entries: Vec<_> = bytes[10..].chunks(46).map(<[u8]>::to_vec).collect();
    entries.sort();
    entries
}

#[test]
fn the_idempotent_directory_says_what_its_snapshots_say() {
    for recovery_point in [None, Some(0), Some(200), Some(300)] {
        let log = copy("idempotent", recovery_point);
        let kafkas: Vec<Vec<u8>> =
            [235, 300].iter().map(|base| fs::read(path(&log, *base, "snapshot")).unwrap()).collect();
        let mut writer = log.open();
        let expected =
            [(9, 0, 58, Some(284)), (10, 0, 60, Some(279)), (11, 0, 55, Some(299)), (12, 0, 52, Some(296))];
        assert_eq!(known(&writer), expected, "{recovery_point:?}");
        // Built anew from the batches, or believed: the same bytes.
        assert_eq!(fs::read(path(&log, 235, "snapshot")).unwrap(), kafkas[0]);
        // Five of each, though a snapshot keeps one.
        let again = AppendOptions::default();
        assert_eq!(place(writer.append(&batch_at(&log, 299), again)), (299, 299, true));
        assert_eq!(place(writer.append(&batch_at(&log, 285), again)), (285, 288, true));
        writer.close().unwrap();
        // Nothing changed, so nothing was written; what is written is what the broker wrote.
        let mut writer = log.open();
        writer.roll().unwrap();
        writer.close().unwrap();
        assert_eq!(entries(&fs::read(path(&log, 300, "snapshot")).unwrap()), entries(&kafkas[1]));
    }
}

/// The bytes of the batch that begins at an offset.
fn batch_at(log: &TempLog, offset: i64) -> Vec<u8> {
    let reader = LogReader::open(log.path(), ReadOptions::default()).unwrap();
    let mut batches = reader.batches(at(offset));
    batches.next_batch().unwrap().unwrap().as_bytes().to_vec()
}

#[test]
fn a_brokers_snapshot_that_the_log_contradicts_is_not_believed() {
    let expected = known(&copy("idempotent", Some(300)).open());
    let from = |base: i64| {
        fs::read(Path::new(FIXTURES).join(format!("idempotent/idempotent-0/{base:020}.snapshot"))).unwrap()
    };
    let foreign =
        fs::read(Path::new(FIXTURES).join("transactions/transactions-0/00000000000000000144.snapshot"))
            .unwrap();
    for stale in [from(76), from(154), from(300), nobody(), foreign, Vec::new()] {
        let log = copy("idempotent", Some(300));
        fs::write(path(&log, 235, "snapshot"), &stale).unwrap();
        assert_eq!(known(&log.open()), expected);
    }
}

#[test]
fn the_transactions_directory_says_what_its_snapshot_says() {
    for recovery_point in [None, Some(144)] {
        for lacks in [false, true] {
            let log = copy("transactions", recovery_point);
            let (snapshot, txn_index) = (
                fs::read(path(&log, 144, "snapshot")).unwrap(),
                fs::read(path(&log, 8, "txnindex")).unwrap(),
            );
            if lacks {
                fs::remove_file(path(&log, 144, "snapshot")).unwrap();
                fs::remove_file(path(&log, 8, "snapshot")).unwrap();
                fs::remove_file(path(&log, 8, "txnindex")).unwrap();
            }
            let mut writer = log.open();
            let infos = writer.producers();
            let open: Vec<_> = infos.iter().filter_map(|info| info.transaction_start).collect();
            assert_eq!(open, [at(142)]);
            assert_eq!(fs::read(path(&log, 8, "txnindex")).unwrap(), txn_index, "lacks {lacks}");
            writer.roll().unwrap();
            writer.close().unwrap();
            assert_eq!(entries(&fs::read(path(&log, 144, "snapshot")).unwrap()), entries(&snapshot));
        }
    }
}

/// Copies a partition batch by batch, the segments beginning where the broker's do.
fn copied() -> (TempLog, LogWriter) {
    let from = Path::new(FIXTURES).join("transactions/transactions-0");
    let reader = LogReader::open(from, ReadOptions::default()).unwrap();
    let log = TempLog::in_memory(|config| {
        config.clock = Clock::manual(Timestamp::from_millis(NOW_MS));
        config.segment_bytes = 1 << 30;
        config.roll_after = None;
    });
    let mut writer = log.open();
    let preserve = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
    let mut batches = reader.batches(at(0));
    while let Some(batch) = batches.next_batch().unwrap() {
        if batch.base_offset() == at(8) {
            writer.roll().unwrap();
        }
        writer.append(batch.as_bytes(), preserve).unwrap();
    }
    (log, writer)
}

#[test]
fn a_copy_gets_the_brokers_sidecars() {
    let from = Path::new(FIXTURES).join("transactions/transactions-0");
    let txn_index = fs::read(from.join("00000000000000000008.txnindex")).unwrap();
    let snapshot = fs::read(from.join("00000000000000000144.snapshot")).unwrap();
    let first = fs::read(from.join("00000000000000000008.snapshot")).unwrap();
    let (log, writer) = copied();
    assert_eq!(fs::read(path(&log, 8, "txnindex")).unwrap(), txn_index, "as they are appended");
    assert_eq!(entries(&fs::read(path(&log, 8, "snapshot")).unwrap()), entries(&first));
    let infos = writer.producers();
    writer.close().unwrap();
    assert_eq!(entries(&fs::read(path(&log, 144, "snapshot")).unwrap()), entries(&snapshot));
    assert!(!path(&log, 0, "txnindex").exists());
    assert_eq!(log.open().producers(), infos);
}

#[test]
fn transaction_indexes_are_built_anew_by_recovery() {
    let txn_index =
        fs::read(Path::new(FIXTURES).join("transactions/transactions-0/00000000000000000008.txnindex"))
            .unwrap();
    let mut stale = txn_index.clone();
    stale[20] ^= 1;
    for found in [None, Some(&txn_index[..34]), Some(&txn_index[..40]), Some(&stale[..]), Some(&[7; 34][..])]
    {
        let (log, writer) = copied();
        let infos = writer.producers();
        drop(writer);
        match found {
            None => fs::remove_file(path(&log, 8, "txnindex")).unwrap(),
            Some(bytes) => fs::write(path(&log, 8, "txnindex"), bytes).unwrap(),
        }
        // One that speaks of a segment without aborted transactions.
        fs::write(path(&log, 0, "txnindex"), &txn_index).unwrap();
        fs::remove_file(log.path().join(".stratalog-checkpoint")).unwrap();
        let writer = log.open();
        assert_eq!(fs::read(path(&log, 8, "txnindex")).unwrap(), txn_index);
        assert!(!path(&log, 0, "txnindex").exists());
        assert_eq!(writer.producers(), infos);
        assert!(writer.recovery().rebuilt.contains(&path(&log, 8, "txnindex")));
    }
}

#[test]
fn an_abort_behind_a_torn_entry_stands_where_it_belongs() {
    let (log, writer) = copied();
    writer.close().unwrap();
    let len = fs::metadata(path(&log, 8, "txnindex")).unwrap().len();
    fs::OpenOptions::new().write(true).open(path(&log, 8, "txnindex")).unwrap().set_len(len - 7).unwrap();
    let mut writer = log.open();
    let preserve = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
    let time = Timestamp::from_millis(NOW_MS);
    let end = stratalog::record::EndTxnMarker { coordinator_epoch: 0 };
    let marker = stratalog::record::end_txn_marker(at(144), 0, (13, 12), false, end, time);
    place(writer.append(&marker, preserve));
    let bytes = fs::read(path(&log, 8, "txnindex")).unwrap();
    assert_eq!(bytes.len() as u64, len);
    let entry = &bytes[bytes.len() - 34..];
    assert_eq!(entry[2..26], [13_i64, 142, 144].map(i64::to_be_bytes).concat()[..]);
    assert_eq!(entry[26..], 145_i64.to_be_bytes());
    assert_eq!(writer.producers()[0].transaction_start, None);
    place(writer.append(&raw(13, 12, 1, 1, true), AppendOptions::default()));
}
