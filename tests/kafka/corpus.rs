//! What the tests write: records of every kind, the same in every run, and partitions made of them.

use std::{fs, path::Path};

use crate::{
    command::ok,
    record::{Told, assert_same},
};

/// Of offset 0.
pub(crate) const FIRST_TIMESTAMP: i64 = 1_700_000_000_000;

/// Small enough that every log has many segments, batches and index entries.
pub(crate) const SMALL: &[&str] =
    &["--segment-bytes", "24KiB", "--batch-size", "2KiB", "--index-interval", "1KiB", "--format", "jsonl"];

/// Records with offsets `from` up to `to`, as they are read from a log of ours: keys, values and headers that are null,
/// empty, text and not text; times that go back and forth.
pub(crate) fn records(from: i64, to: i64) -> Vec<Told> {
    (from..to).map(record).collect()
}

fn record(offset: i64) -> Told {
    let mut noise = Noise(offset.unsigned_abs());
    let text = |text: String| Some(text.into_bytes());
    let key = match offset % 7 {
        0 => None,
        1 => Some(Vec::new()),
        2 => Some(noise.bytes(9)),
        3 => text(format!("schl\u{fc}ssel-\u{1f680}-{offset}")),
        _ => text(format!("key-{}", offset % 50)),
    };
    let value = match offset % 13 {
        0 => None,
        1 => Some(Vec::new()),
        2 => Some(noise.bytes(300)),
        3 => text(format!("two\nlines\r\n\t\"{offset}\" \\ and \u{0}")),
        4 => Some(vec![0; 500]),
        5 => Some((0..=255).collect()),
        6 => text("a value that packs well; ".repeat(20)),
        _ if offset % 211 == 7 => Some(noise.bytes(5000)),
        _ => text(format!("value {offset} {:x}", noise.next())),
    };
    let headers = match offset % 5 {
        0 => vec![(b"trace".to_vec(), text(format!("{offset}")))],
        1 => vec![(b"same".to_vec(), Some(b"1".to_vec())), (b"same".to_vec(), None)],
        2 => vec![(Vec::new(), Some(noise.bytes(20))), ("h\u{e9}ader".into(), Some(Vec::new()))],
        _ => Vec::new(),
    };
    let timestamp = match offset {
        11 => 0,
        17 => FIRST_TIMESTAMP - 86_400_000,
        _ => FIRST_TIMESTAMP + offset * 1000 - i64::from(noise.bytes(1)[0]) * 40,
    };
    Told { offset, timestamp, is_append_time: false, leader_epoch: 0, key, value, headers }
}

/// Bytes that do not compress: xorshift64*, seeded through an odd multiplier.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        let mut x = self.0.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^= x >> 30;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 27;
        self.0 = self.0.wrapping_add(0x6a09_e667_f3bc_c909);
        x
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < count {
            all.extend_from_slice(&self.next().to_le_bytes());
        }
        all.truncate(count);
        all
    }
}

/// The lines of records, for `append --format jsonl`.
pub(crate) fn lines(records: &[Told]) -> Vec<u8> {
    records.iter().map(Told::to_line).collect::<String>().into_bytes()
}

/// A new log of these records with many segments, closed cleanly.
#[track_caller]
pub(crate) fn write(dir: &Path, codec: &str, records: &[Told]) {
    let dir_text = dir.to_str().unwrap();
    ok(&[&["append", dir_text, "--create", "-q", "-z", codec], SMALL].concat(), &lines(records));
    assert_same(codec, &read(dir), records);
    assert!(segments(dir) >= 6, "{codec}: {} segments prove little", segments(dir));
}

/// Offsets 0 up to `end` with the contents of the records from `first` on.
pub(crate) fn records_from(first: i64, end: i64) -> Vec<Told> {
    (0..end).map(|offset| Told { offset, ..record(first + offset) }).collect()
}

/// What `logctl cat -J` finds in a directory.
#[track_caller]
pub(crate) fn read(dir: &Path) -> Vec<Told> {
    ok(&["cat", "-J", "--control", dir.to_str().unwrap()], b"").lines().map(Told::by_logctl).collect()
}

/// How many segments it has.
pub(crate) fn segments(dir: &Path) -> usize {
    files(dir, &["log"]).len()
}

/// The files with these endings, in the order of their names.
pub(crate) fn files(dir: &Path, endings: &[&str]) -> Vec<String> {
    let mut all: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|own| endings.iter().any(|ending| own == *ending)));
    all.sort();
    all.into_iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

/// A copy of a directory as it is, files of ours included.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
