//! Walking damaged files that are awkward to make from a fixture: very large, very long, hostile.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use super::{LogFile, Piece, Pieces, Reason, Tail};
use crate::{
    offset::Offset,
    record::{BatchError, BatchOptions, Record, batch_size, crc32c, encode_batch},
};

/// A batch with one record.
fn batch(base: i64, value: &[u8]) -> Vec<u8> {
    let options = BatchOptions { base_offset: Offset::new(base).unwrap(), ..BatchOptions::default() };
    let records = [Record::value_only(value)];
    let mut bytes = vec![0; usize::try_from(batch_size(&records, &options)).unwrap()];
    encode_batch(&records, &options, &mut bytes).unwrap();
    bytes
}

#[derive(Debug, PartialEq)]
struct Found {
    /// Base offsets of batches with a right CRC.
    sound: Vec<i64>,
    /// Positions of batches with a wrong one.
    wrong: Vec<u64>,
    /// Ranges that are no batch.
    bad: Vec<(u64, u64)>,
    tail: Tail,
}

fn write(dir: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join("00000000000000000000.log");
    fs::write(&path, bytes).unwrap();
    path
}

/// What is found, whether the records are going to be read or not.
fn walk(bytes: &[u8]) -> Found {
    let dir = TempDir::new().unwrap();
    let log = LogFile::open(write(&dir, bytes)).unwrap();
    let found = walk_through(log.pieces(), bytes.len(), true);
    assert_eq!(walk_through(log.pieces().by_headers(true), bytes.len(), false), found);
    found
}

fn walk_through(mut pieces: Pieces<'_>, len: usize, is_whole: bool) -> Found {
    let mut found = Found { sound: Vec::new(), wrong: Vec::new(), bad: Vec::new(), tail: Tail::Clean };
    let mut end = 0;
    while let Some(piece) = pieces.next_piece().unwrap() {
        let (position, size_bytes) = match piece {
            Piece::Batch(entry) => {
                if entry.crc_ok() {
                    assert!(entry.batch.is_some() || !is_whole, "what is sound can be read");
                    found.sound.push(entry.header.base_offset().value());
                } else {
                    found.wrong.push(entry.position);
                }
                (entry.position, u64::from(entry.header.size_bytes()))
            }
            Piece::Bad { position, size_bytes, .. } => {
                found.bad.push((position, size_bytes));
                (position, size_bytes)
            }
            Piece::Old(entry) => (entry.position, u64::from(entry.size_bytes())),
        };
        assert_eq!(position, end, "pieces lie one behind the other");
        assert!(size_bytes > 0, "the walk goes on");
        end = position + size_bytes;
    }
    found.tail = pieces.tail().unwrap().clone();
    let (position, rest) = found.tail.place().unwrap_or((end, 0));
    assert_eq!((position, position + rest), (end, len as u64), "nothing is left out");
    assert!(pieces.next_piece().unwrap().is_none());
    found
}

#[test]
fn an_empty_file_ends_clean() {
    assert_eq!(walk(&[]).tail, Tail::Clean);
}

#[test]
fn batches_across_blocks_and_larger_than_a_block() {
    let mut bytes = Vec::new();
    for (base, size) in [(0, 700_000), (1, 700_000), (2, 3 << 20), (3, 10), (4, 9 << 20), (5, 0)] {
        bytes.extend(batch(base, &vec![7; size]));
    }
    let found = walk(&bytes);
    assert_eq!(found.sound, [0, 1, 2, 3, 4, 5]);
    assert_eq!(found.tail, Tail::Clean);
    // The large one is checked piece by piece all the same.
    let at = bytes.len() - batch(5, &[]).len() - 5;
    bytes[at] ^= 1;
    let found = walk(&bytes);
    assert_eq!((found.sound, found.wrong.len()), (vec![0, 1, 2, 3, 5], 1));
}

#[test]
fn a_batch_inside_a_records_value_is_not_taken_for_one_of_the_log() {
    let inner = batch(5, b"copied from another log");
    let mut bytes = batch(0, b"first");
    let outer_at = bytes.len();
    bytes.extend(batch(1, &inner));
    bytes.extend(batch(2, b"last"));
    // The outer batch's CRC is wrong; its length is right, so its inside is not searched.
    bytes[outer_at + 30] ^= 1;
    let found = walk(&bytes);
    assert_eq!((found.sound, found.wrong), (vec![0, 2], vec![outer_at as u64]));
    // And where the length is wrong too, a batch that goes back in offsets is passed over.
    let mut bytes = batch(7, b"first");
    let outer_at = bytes.len();
    bytes.extend(batch(8, &inner));
    let next = bytes.len();
    bytes.extend(batch(9, b"last"));
    bytes[outer_at + 11] ^= 1;
    let found = walk(&bytes);
    assert_eq!((found.sound, found.bad), (vec![7, 9], vec![(outer_at as u64, (next - outer_at) as u64)]));
}

#[test]
fn a_wrong_offset_in_front_hides_nothing_behind_damage() {
    // The base offset lies outside the CRC: this one is not what was written, and looks right.
    let mut bytes = batch(1000, b"first");
    let hole = bytes.len();
    bytes.extend([0xff; 100]);
    bytes.extend(batch(1, b"second"));
    bytes.extend(batch(2, b"third"));
    let found = walk(&bytes);
    assert_eq!((found.sound, found.bad), (vec![1000, 1, 2], vec![(hole as u64, 100)]));
}

#[test]
fn several_damaged_batches_in_a_row() {
    let mut bytes = Vec::new();
    let mut starts = Vec::new();
    for base in 0..6 {
        starts.push(bytes.len());
        bytes.extend(batch(base, b"value"));
    }
    for number in [1, 2] {
        bytes[starts[number] + 62] ^= 1;
    }
    bytes[starts[4]..starts[5]].fill(0xff);
    let found = walk(&bytes);
    assert_eq!(found.sound, [0, 3, 5]);
    assert_eq!(found.wrong, [starts[1] as u64, starts[2] as u64]);
    assert_eq!(found.bad, [(starts[4] as u64, (starts[5] - starts[4]) as u64)]);
}

#[test]
fn the_search_finds_a_batch_wherever_a_block_ends() {
    const BLOCK: usize = 1 << 20;
    for gap in
        [1, 2, 60, 61, 62, BLOCK - 100, BLOCK - 61, BLOCK - 60, BLOCK - 17, BLOCK - 1, BLOCK, BLOCK + 1]
    {
        let mut bytes = vec![0xfe; gap];
        bytes.extend(batch(3, b"here"));
        let found = walk(&bytes);
        assert_eq!((found.sound, found.bad), (vec![3], vec![(0, gap as u64)]), "{gap}");
    }
}

#[test]
fn room_at_the_end_is_told_from_a_hole() {
    let mut bytes = batch(0, b"x");
    let end = bytes.len() as u64;
    bytes.resize(bytes.len() + (3 << 20), 0);
    let size_bytes = 3 << 20;
    assert_eq!(walk(&bytes).tail, Tail::Zeros { position: end, size_bytes });
    *bytes.last_mut().unwrap() = 1;
    assert_eq!(walk(&bytes).tail, Tail::Bad { position: end, size_bytes, reason: Reason::Zeroed });
    bytes.extend(batch(1, b"y"));
    let found = walk(&bytes);
    assert_eq!((found.sound, found.bad), (vec![0, 1], vec![(end, size_bytes)]));
}

#[test]
fn a_length_out_of_nowhere_gets_no_memory() {
    // A header that claims nearly the whole file, which is sparse: memory is given to what was checked only.
    let dir = TempDir::new().unwrap();
    let mut head = batch(0, b"x");
    let size: u32 = 1 << 28;
    head[8..12].copy_from_slice(&(size - 12).to_be_bytes());
    let path = write(&dir, &head);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(u64::from(size)).unwrap();
    let log = LogFile::open(&path).unwrap();
    let mut pieces = log.pieces();
    let Some(Piece::Batch(entry)) = pieces.next_piece().unwrap() else {
        panic!("a header that makes sense, up to the end")
    };
    assert!(!entry.crc_ok() && entry.batch.is_none());
    assert!(pieces.next_piece().unwrap().is_none());
    assert!(pieces.window_bytes() <= 2 << 20, "{}", pieces.window_bytes());
}

#[test]
fn headers_made_to_be_searched_do_not_hold_up_the_search() {
    // Every 61 bytes a header that makes sense, claims the rest of the file, and has a wrong CRC.
    // Unbounded, that would be some terabytes to check.
    let count: u32 = 400_000;
    let total = count * 61;
    let mut bytes = vec![0xff];
    let mut head = batch(0, b"");
    head.truncate(61);
    for number in 0..count {
        head[8..12].copy_from_slice(&(total - number * 61 - 12).to_be_bytes());
        bytes.extend(&head);
    }
    let found = walk(&bytes);
    assert_eq!(found.sound, Vec::<i64>::new());
    assert!(matches!(found.tail, Tail::Bad { position: 0, .. }), "{:?}", found.tail);
}

#[test]
fn counts_and_deltas_that_cannot_be() {
    for (at, value) in [(57, -1), (23, -1), (23, i32::MIN)] {
        let mut bytes = batch(0, b"x");
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        let crc = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        let next = bytes.len() as u64;
        bytes.extend(batch(1, b"y"));
        let found = walk(&bytes);
        assert_eq!((found.sound, found.bad), (vec![1], vec![(0, next)]), "{value} at {at}");
    }
}

#[test]
fn a_header_is_read_wherever_one_is_asked_for() {
    let dir = TempDir::new().unwrap();
    let mut bytes = batch(0, b"x");
    let second = bytes.len() as u64;
    bytes.extend(batch(1, b"y"));
    let log = LogFile::open(write(&dir, &bytes)).unwrap();
    assert_eq!(log.header_at(second).unwrap().unwrap().base_offset().value(), 1);
    assert!(log.header_at(second + 1).unwrap().is_err());
    assert!(log.header_at(u64::MAX).is_ok_and(|header| header.is_err()));
    let cut = LogFile::open(write(&dir, &bytes[..bytes.len() - 1])).unwrap();
    assert!(matches!(cut.header_at(second).unwrap(), Err(BatchError::TooShort { .. })));
}
