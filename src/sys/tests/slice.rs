use std::{
    fs,
    io::{ErrorKind, Read},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
};

use tempfile::TempDir;

use super::open;
use crate::sys::{FileSlice, Open};

fn slice_of(temp: &TempDir, bytes: &[u8], position: u64, len: u32) -> FileSlice {
    fs::write(temp.path().join("log"), bytes).unwrap();
    FileSlice::new(Arc::new(open(temp.path()).open_file("log", Open::ReadWrite).unwrap()), position, len)
}

fn pattern(len: u32) -> Vec<u8> {
    (0..len).flat_map(u32::to_be_bytes).collect()
}

#[test]
fn all_of_a_slice_arrives_and_nothing_else() {
    let temp = TempDir::new().unwrap();
    let bytes = pattern(500_000);
    let mut slice = slice_of(&temp, &bytes, 3, 1_900_001);
    let (mut near, far) = UnixStream::pair().unwrap();
    let reader = thread::spawn(move || {
        let mut got = Vec::new();
        near.read_to_end(&mut got).map(|_| got).unwrap()
    });
    let mut sent = 0;
    while !slice.is_empty() {
        let count = slice.send_to(&far).unwrap();
        assert!(count > 0);
        sent += count;
    }
    assert_eq!(slice.send_to(&far).unwrap(), 0, "an empty slice sends nothing and says so");
    drop(far);
    assert_eq!(sent, 1_900_001);
    assert_eq!(reader.join().unwrap(), bytes[3..1_900_004]);
}

#[test]
fn a_full_socket_is_would_block_and_loses_nothing() {
    let temp = TempDir::new().unwrap();
    let bytes = pattern(500_000);
    let mut slice = slice_of(&temp, &bytes, 0, 2_000_000);
    let (mut near, far) = UnixStream::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    let mut got = Vec::new();
    let mut blocked = 0;
    while !slice.is_empty() {
        match slice.send_to(&far) {
            Ok(count) => assert!(count > 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                blocked += 1;
                let mut room = vec![0; 65_536];
                let count = near.read(&mut room).unwrap();
                got.extend_from_slice(&room[..count]);
            }
        }
    }
    drop(far);
    near.read_to_end(&mut got).unwrap();
    assert!(blocked > 0);
    assert_eq!(got, bytes);
}

/// A file opened to append is one that the kernel does not send to by itself (EINVAL).
#[test]
fn where_sendfile_is_refused_the_bytes_arrive_all_the_same() {
    let temp = TempDir::new().unwrap();
    let bytes = pattern(50_000);
    let mut slice = slice_of(&temp, &bytes, 5, 150_000);
    let to = temp.path().join("to");
    let target = fs::OpenOptions::new().append(true).create(true).open(&to).unwrap();
    let mut calls = 0;
    while !slice.is_empty() {
        slice.send_to(&target).unwrap();
        calls += 1;
    }
    assert!(calls >= 3, "a piece at a time");
    assert_eq!(fs::read(to).unwrap(), bytes[5..150_005]);
}

#[test]
fn a_file_cut_from_outside_is_an_error_not_a_loop() {
    let temp = TempDir::new().unwrap();
    let mut slice = slice_of(&temp, &[1; 10], 4, 20);
    let (_near, far) = UnixStream::pair().unwrap();
    assert_eq!(slice.send_to(&far).unwrap(), 6);
    assert_eq!(slice.send_to(&far).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(slice.len(), 14, "still owed");
    assert_eq!(slice.read_into(&mut [0; 2]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    let target = fs::OpenOptions::new().append(true).create(true).open(temp.path().join("to")).unwrap();
    assert_eq!(slice.send_to(&target).unwrap_err().kind(), ErrorKind::UnexpectedEof, "by the other way too");
}

#[test]
fn a_closed_socket_is_an_error() {
    let temp = TempDir::new().unwrap();
    let mut slice = slice_of(&temp, &[1; 10], 0, 10);
    let (near, far) = UnixStream::pair().unwrap();
    drop(near);
    assert_eq!(slice.send_to(&far).unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(slice.len(), 10);
}

#[test]
fn a_slice_splits_reads_and_shows_itself() {
    let temp = TempDir::new().unwrap();
    let slice = slice_of(&temp, b"0123456789", 2, 6);
    let mut bytes = [0; 4];
    slice.read_into(&mut bytes).unwrap();
    assert_eq!(&bytes, b"2345");
    assert_eq!(slice.read_into(&mut [0; 7]).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(format!("{slice:?}").ends_with("log, 2..8)"));
    let (front, back) = slice.split_at(4);
    assert_eq!((front.len(), back.len()), (4, 2));
    let mut rest = [0; 2];
    back.read_into(&mut rest).unwrap();
    assert_eq!(&rest, b"67");
    let (all, none) = front.split_at(99);
    assert_eq!((all.len(), none.is_empty()), (4, true));
}
