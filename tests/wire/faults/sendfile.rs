//! The kernel sends less than it was asked to, or not at all: F174.

use std::{fs, io::Read, path::Path, process::Command};

use crate::{
    client::{Client, Wanted, batch},
    serve::serve,
};

const VALUE_BYTES: usize = 400_000;

/// Four large batches, and the same as they lie in the file.
fn fill(client: &mut Client, dir: &Path) -> Vec<u8> {
    client.topic("t");
    let mut len = 0;
    for number in 0..4_u8 {
        let batch = batch(&[&vec![number; VALUE_BYTES]]);
        assert_eq!(client.produce("t", &batch).code, 0);
        len += batch.len();
    }
    let mut stored = fs::read(dir.join("t-0/00000000000000000000.log")).unwrap();
    stored.truncate(len);
    stored
}

fn all() -> Wanted<'static> {
    Wanted { max_bytes: 8 << 20, ..Wanted::new("t", 0) }
}

#[test]
fn f174_a_slow_reader_gets_every_byte_once() {
    let temp = tempfile::tempdir().unwrap();
    let settings = ["--override", "socket.send.buffer.bytes=4096"];
    let dir = temp.path().join("data");
    let served = serve(&[], &dir, &settings);
    let mut client = Client::new(served.address);
    let stored = fill(&mut client, &dir);
    client.send_fetch(11, &all());
    let mut length = [0; 4];
    client.stream.read_exact(&mut length).unwrap();
    let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    for piece in frame.chunks_mut(1024) {
        client.stream.read_exact(piece).unwrap();
    }
    assert!(frame.ends_with(&stored));
    assert_eq!(client.fetch(&all()).bytes, stored, "and the connection is in step");
}

#[test]
fn f174_errors_of_sendfile_lose_and_repeat_nothing() {
    let can_trace = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    if !can_trace.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "strace is needed");
        return;
    }
    for (what, is_served) in [
        ("error=EINTR:when=1+3", true),
        // No sendfile for this file or socket, or none at all: read and written instead.
        ("error=EINVAL", true),
        ("error=ENOSYS:when=2+2", true),
        // The length is promised and the bytes are not there: the connection ends, and no call is made again and again.
        ("retval=0", false),
        ("error=EIO", false),
        // The client took nothing for as long as it may.
        ("error=EAGAIN", false),
    ] {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let inject = format!("inject=sendfile:{what}");
        let log = temp.path().join("trace");
        let wrapper =
            ["strace", "-D", "-f", "-e", "trace=sendfile", "-e", &inject, "-o", log.to_str().unwrap()];
        let served = serve(&wrapper, &dir, &[]);
        let mut client = Client::new(served.address);
        let stored = fill(&mut client, &dir);
        // Calls are counted for each thread of the server, so for each connection.
        let mut reader = Client::new(served.address);
        for _ in 0..3 {
            let id = reader.send_fetch(11, &all());
            if is_served {
                assert_eq!(reader.fetched(id, 11).bytes, stored, "{what}");
                continue;
            }
            let mut got = Vec::new();
            // Less than was promised, and then the end.
            let _ = reader.stream.read_to_end(&mut got);
            let promised = got.first_chunk().map_or(u32::MAX, |length| u32::from_be_bytes(*length));
            assert!(got.len() < usize::try_from(promised).unwrap(), "{what}");
            reader = Client::new(served.address);
        }
        let trace = fs::read_to_string(&log).unwrap();
        assert!(trace.contains("INJECTED"), "{what}: {trace}");
        assert!(trace.lines().count() < 300, "called over and over: {trace}");
        // Others do not mind.
        assert_eq!(client.produce("t", &batch(&[b"v"])).base_offset, 4);
    }
}
