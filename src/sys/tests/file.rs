use std::{fs, io::ErrorKind};

use tempfile::TempDir;

use super::open;
use crate::sys::{Access, File, Open, PageBuf, Preallocated};

fn new_file(temp: &TempDir, name: &str) -> File {
    open(temp.path()).open_file(name, Open::CreateNew { mode: 0o644 }).unwrap()
}

#[test]
fn bytes_come_back_from_where_they_were_put() {
    let temp = TempDir::new().unwrap();
    let file = new_file(&temp, "a");
    file.write_all_at(b"world", 6).unwrap();
    file.write_all_at(b"hello ", 0).unwrap();
    file.write_all_at(b"", 3).unwrap();
    let mut bytes = [0; 20];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 11);
    assert_eq!(&bytes[..11], b"hello world");
    assert_eq!(file.read_at(&mut bytes, 11).unwrap(), 0);
    assert_eq!(file.read_at(&mut [], 0).unwrap(), 0);
    let error = file.read_exact_at(&mut bytes, 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert!(file.read_at(&mut bytes, u64::MAX - 5).is_err());
    assert!(file.write_all_at(b"x", u64::MAX).is_err());
    file.sync_data().unwrap();
    file.sync_all().unwrap();
    for access in [Access::Normal, Access::Sequential, Access::Random] {
        file.advise(access);
    }
}

#[test]
fn a_gathered_write_is_its_parts_in_order() {
    let temp = TempDir::new().unwrap();
    let file = new_file(&temp, "a");
    // More parts than go into one call, empty ones among them.
    let parts: Vec<Vec<u8>> = (0..200_u8).map(|i| vec![i; usize::from(i % 7)]).collect();
    let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    file.write_all_vectored_at(&slices, 10).unwrap();
    file.write_all_vectored_at(&[], 0).unwrap();
    file.write_all_vectored_at(&[b"", b""], 0).unwrap();
    let stored = fs::read(temp.path().join("a")).unwrap();
    assert_eq!(stored[10..], parts.concat());
    assert_eq!(stored[..10], [0; 10]);
}

#[test]
fn reserving_makes_blocks_and_length() {
    let temp = TempDir::new().unwrap();
    let file = new_file(&temp, "a");
    file.write_all_at(b"data", 0).unwrap();
    if file.preallocate(0, 1 << 20, true).unwrap() == Preallocated::Unsupported {
        return;
    }
    let stat = file.stat().unwrap();
    assert_eq!(stat.len, 4);
    assert!(stat.blocks_bytes >= 1 << 20);
    assert_eq!(file.preallocate(0, 1 << 20, false).unwrap(), Preallocated::Done);
    assert_eq!(file.len().unwrap(), 1 << 20);
    file.set_len(4).unwrap();
    assert!(file.stat().unwrap().blocks_bytes < 1 << 20);
    assert_eq!(fs::read(temp.path().join("a")).unwrap(), b"data");
    assert_eq!(file.preallocate(0, 0, false).unwrap(), Preallocated::Done);
    file.zero_fill(4, 100_000).unwrap();
    assert_eq!(file.len().unwrap(), 100_004);
}

/// F101: a full disk is not "not supported".
#[test]
fn asking_for_more_than_the_disk_has_is_storage_full() {
    let temp = TempDir::new().unwrap();
    let dir = open(temp.path());
    let file = new_file(&temp, "a");
    let far = dir.free_bytes().unwrap().saturating_add(1 << 40);
    match file.preallocate(0, far, true) {
        Err(error) => assert!(error.is_storage_full() || error.kind() == ErrorKind::FileTooLarge, "{error}"),
        Ok(done) => assert_eq!(done, Preallocated::Unsupported),
    }
}

#[test]
fn direct_reads_see_what_was_written() {
    let temp = TempDir::new().unwrap();
    let file = new_file(&temp, "a");
    let bytes: Vec<u8> = (0..10_000_u32).flat_map(u32::to_be_bytes).collect();
    file.write_all_at(&bytes, 0).unwrap();
    file.sync_data().unwrap();
    let Some(direct) = file.direct().unwrap() else { return };
    let mut buf = PageBuf::new(64 * 1024).unwrap();
    assert_eq!(direct.read_at(&mut buf, 64 * 1024, 0).unwrap(), bytes.len());
    assert_eq!(buf.as_slice()[..bytes.len()], bytes);
    assert_eq!(direct.read_at(&mut buf, 1, 4096).unwrap(), 4096, "whole pages");
    assert_eq!(buf.as_slice()[..4096], bytes[4096..8192]);
    assert_eq!(direct.read_at(&mut buf, 1, 1).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn dropped_pages_are_gone_and_dirty_ones_are_not() {
    let temp = TempDir::new().unwrap();
    let file = new_file(&temp, "a");
    file.write_all_at(&[7; 3 * 4096], 0).unwrap();
    if file.is_cached(0, 3 * 4096).unwrap() != Some(true) {
        return;
    }
    file.sync_data().unwrap();
    file.drop_cached(0, 3 * 4096).unwrap();
    if open(temp.path()).file_system().unwrap() == crate::sys::FileSystem::Ext {
        assert_eq!(file.is_cached(0, 3 * 4096).unwrap(), Some(false));
    }
    let mut bytes = [0; 1];
    file.read_exact_at(&mut bytes, 4096).unwrap();
    assert_eq!(file.is_cached(0, 3 * 4096).unwrap(), Some(true));
    assert_eq!(file.is_cached(1 << 30, 4096).unwrap(), Some(false), "past the end there is nothing");
}

#[test]
fn a_copied_range_is_the_same_bytes() {
    let temp = TempDir::new().unwrap();
    let (from, to) = (new_file(&temp, "a"), new_file(&temp, "b"));
    let bytes: Vec<u8> = (0..200_000_u32).flat_map(u32::to_be_bytes).collect();
    from.write_all_at(&bytes, 0).unwrap();
    assert_eq!(to.copy_range_from(&from, 100, 50, 700_000).unwrap(), 700_000);
    assert_eq!(fs::read(temp.path().join("b")).unwrap()[50..], bytes[100..700_100]);
    assert_eq!(to.copy_range_from(&from, 799_990, 0, 700_000).unwrap(), 10, "no more than there is");
}

#[test]
fn a_tail_is_copied_without_its_zeros() {
    let temp = TempDir::new().unwrap();
    let (from, to) = (new_file(&temp, "a"), new_file(&temp, "b"));
    from.write_all_at(b"kept, then ", 0).unwrap();
    from.write_all_at(b"torn", 5_000).unwrap();
    from.write_all_at(b"more", 9_000_000).unwrap();
    from.preallocate(0, 64 << 20, false).unwrap();
    let copied = to.copy_data_from(&from, 4_999, 0, u64::MAX).unwrap();
    assert_eq!(copied.end, 9_000_004 - 4_999);
    assert!(copied.data_bytes < 20_000, "{copied:?}");
    let stored = fs::read(temp.path().join("b")).unwrap();
    assert_eq!(stored.len() as u64, copied.end);
    assert_eq!(&stored[1..5], b"torn");
    assert_eq!(&stored[9_000_000 - 4_999..], b"more");
    assert!(stored[5..9_000_000 - 4_999].iter().all(|byte| *byte == 0));
    let none = to.copy_data_from(&from, 20 << 20, 0, 1 << 20).unwrap();
    assert_eq!((none.data_bytes, none.end), (0, 0));
}
