//! What `verify` says of transaction indexes: warnings, since nobody who reads here asks them.

use std::{fs, path::Path};

use stratalog::inspect::{FindingKind, Severity, VerifyOptions, VerifyReport, verify};

use crate::support::{copy_dir, fast_dir};

const CASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0/transactions/transactions-0");
const INDEX: &str = "00000000000000000008.txnindex";
const ENTRY: usize = 34;

/// What is done to the bytes of an index.
type Harm = Box<dyn Fn(&mut Vec<u8>)>;

/// Changes a field of an entry, counted from the producer's id on.
fn put(entry: usize, field: usize, value: i64) -> impl Fn(&mut Vec<u8>) {
    move |bytes: &mut Vec<u8>| {
        let at = entry * ENTRY + 2 + field * 8;
        bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
    }
}

fn checked(dir: &Path) -> VerifyReport {
    verify(dir, &VerifyOptions::default(), &mut |_| {}).unwrap()
}

#[test]
fn an_index_that_is_right() {
    let report = checked(Path::new(CASE));
    assert_eq!((report.damage_count, report.warning_count), (0, 0), "{:?}", report.findings);
}

#[test]
fn an_index_that_lies_or_lacks_something() {
    // The fourth entry is of producer 15, offsets 13 to 22, stable up to 23; before it stands one up to 17.
    let harms: [(&str, Harm, &str); 14] = [
        ("another version", Box::new(|bytes| bytes[3 * ENTRY] = 1), "version 256"),
        ("another version's lower byte", Box::new(|bytes| bytes[3 * ENTRY + 1] = 1), "version 1 "),
        ("a short entry", Box::new(|bytes| bytes.truncate(bytes.len() - 1)), "entry 11: the file ends in it"),
        ("a negative number", Box::new(put(3, 1, -5)), "entry 3: a negative number"),
        (
            "an order that falls",
            Box::new(|bytes| {
                put(3, 2, 17)(bytes);
                put(3, 3, 15)(bytes);
            }),
            "entry 3: not behind",
        ),
        ("garbage", Box::new(|bytes| bytes.iter_mut().for_each(|byte| *byte ^= 0x77)), "entry 0: version"),
        ("another producer", Box::new(put(3, 0, 13)), "producer 13, offsets 13 to 22"),
        ("a later first offset", Box::new(put(3, 1, 14)), "offsets 14 to 22"),
        ("an earlier first offset", Box::new(put(3, 1, 12)), "offsets 12 to 22"),
        ("another marker", Box::new(put(4, 2, 30)), "offsets 25 to 30"),
        ("another stable offset", Box::new(put(3, 3, 22)), "stable up to 22"),
        (
            "one entry less",
            Box::new(|bytes| drop(bytes.drain(3 * ENTRY..4 * ENTRY))),
            "lacks the aborted transaction of producer 15 from offset 13 to 22",
        ),
        ("the last entry less", Box::new(|bytes| bytes.truncate(11 * ENTRY)), "from offset 116 to 126"),
        ("no entry", Box::new(Vec::clear), "lacks the aborted transaction"),
    ];
    for (what, harm, says) in harms {
        let temp = fast_dir();
        copy_dir(Path::new(CASE), temp.path());
        let mut bytes = fs::read(temp.path().join(INDEX)).unwrap();
        harm(&mut bytes);
        fs::write(temp.path().join(INDEX), bytes).unwrap();
        let report = checked(temp.path());
        let found = report.findings.iter().find(|finding| finding.detail.contains(says));
        let found = found.unwrap_or_else(|| panic!("{what}: {:?}", report.findings));
        assert_eq!((found.kind, found.severity), (FindingKind::TxnIndex, Severity::Warning), "{what}");
        assert_eq!(found.file.file_name().unwrap().to_str(), Some(INDEX), "{what}");
        assert_eq!(report.damage_count, 0, "{what}: {:?}", report.findings);
    }
    let temp = fast_dir();
    copy_dir(Path::new(CASE), temp.path());
    fs::remove_file(temp.path().join(INDEX)).unwrap();
    let report = checked(temp.path());
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert!(report.findings[0].detail.contains("12 aborted transactions"), "{:?}", report.findings);
}

/// Of what retention or compaction took, an index may know more than the log.
#[test]
fn an_index_that_knows_more_than_is_left() {
    let temp = fast_dir();
    copy_dir(Path::new(CASE), temp.path());
    for suffix in ["log", "index", "timeindex"] {
        fs::remove_file(temp.path().join(format!("{:020}.{suffix}", 0))).unwrap();
    }
    let report = checked(temp.path());
    assert_eq!((report.damage_count, report.warning_count), (0, 0), "{:?}", report.findings);
    // Not that it says less.
    let mut bytes = fs::read(temp.path().join(INDEX)).unwrap();
    bytes.drain(3 * ENTRY..4 * ENTRY);
    fs::write(temp.path().join(INDEX), bytes).unwrap();
    assert_eq!(checked(temp.path()).warning_count, 1);
}

#[test]
fn a_snapshot_that_cannot_be_read() {
    let harms: [fn(&mut Vec<u8>); 3] = [|bytes| bytes[20] ^= 1, |bytes| bytes[1] = 2, Vec::clear];
    for harm in harms {
        let temp = fast_dir();
        copy_dir(Path::new(CASE), temp.path());
        let path = temp.path().join("00000000000000000144.snapshot");
        let mut bytes = fs::read(&path).unwrap();
        harm(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let report = checked(temp.path());
        let found: Vec<_> =
            report.findings.iter().map(|found| (found.kind, found.severity, &found.file)).collect();
        assert_eq!(found, [(FindingKind::Snapshot, Severity::Warning, &path)], "{:?}", report.findings);
    }
}
