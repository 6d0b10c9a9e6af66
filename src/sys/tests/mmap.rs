use std::{fs, sync::atomic::Ordering};

use tempfile::TempDir;

use super::open;
use crate::sys::{MappedWords, Open};

/// F132: no map of nothing.
#[test]
fn zero_bytes_are_handled_without_a_map() {
    let temp = TempDir::new().unwrap();
    let file = open(temp.path()).open_file("a", Open::CreateNew { mode: 0o644 }).unwrap();
    for is_writable in [false, true] {
        let words = MappedWords::map(&file, 0, 0, is_writable).unwrap();
        assert_eq!(words.len_bytes(), 0);
        assert_eq!(words.load32(0), None);
        assert!(!words.store32(0, 1));
        assert!(words.words32().is_empty() && words.words64().is_empty());
    }
    assert_eq!(MappedWords::anonymous(0).unwrap().load64(0), None);
}

#[test]
fn nothing_past_the_reserved_part_is_touched() {
    let temp = TempDir::new().unwrap();
    let file = open(temp.path()).open_file("a", Open::CreateNew { mode: 0o644 }).unwrap();
    // The file is empty: whoever touched the map now would be killed.
    let words = MappedWords::map(&file, 1 << 20, 0, true).unwrap();
    assert!(!words.store32(0, 7));
    assert_eq!(words.load32(0), None);
    assert!(words.extend_reserved(&file, 4096).is_err(), "the file is asked, not the caller");
    file.zero_fill(0, 4096).unwrap();
    words.extend_reserved(&file, 4096).unwrap();
    assert!(words.store32(1023, 0x0102_0304_u32.to_be()));
    assert!(!words.store32(1024, 7));
    assert!(words.store64(0, 9, Ordering::Release));
    assert_eq!(words.words32().len(), 1024);
    assert_eq!(fs::read(temp.path().join("a")).unwrap()[4092..], [1, 2, 3, 4]);
    words.shrink_reserved(4);
    assert_eq!((words.load32(0).is_some(), words.load32(1)), (true, None));
    file.set_len(4).unwrap();
    assert!(MappedWords::map(&file, 4096, 4096, false).is_err());
}

#[test]
fn a_read_only_map_is_only_read() {
    let temp = TempDir::new().unwrap();
    fs::write(temp.path().join("a"), [1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
    let file = open(temp.path()).open_file("a", Open::Read).unwrap();
    let words = MappedWords::map(&file, 9, 9, false).unwrap();
    assert_eq!(words.load32(1), Some(0x0506_0708_u32.to_be()));
    assert_eq!(words.load64(0), Some(0x0102_0304_0506_0708_u64.to_be()));
    assert_eq!(words.load32(2), None, "a part of a word is no word");
    assert!(!words.store32(0, 1));
    assert!(words.words32().is_empty());
    assert!(MappedWords::map(&file, 9, 9, true).is_err(), "a file opened to read is not mapped to write");
}
