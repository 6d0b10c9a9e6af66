//! A file's first bytes in another file: shared blocks where the file system has them, else copied without holes.

use std::{fs::File, io, os::unix::fs::FileExt};

use rustix::{
    fs::{Advice, FallocateFlags, SeekFrom},
    io::Errno,
};

use super::error::retry;

/// The file that marks a copy which is not finished, of a log or of a data directory; in it stands what of. Files of the log
/// may be missing, and whoever finishes the copy writes over what there is: nobody else may write there.
pub const UNFINISHED_COPY: &str = ".stratalog-copy-of";

/// A read and a write of this size cost the least where the kernel has to copy.
const PIECE_BYTES: usize = 1 << 20;
/// Behind so much what was written is handed to the disk, so that the sync at the end has little left to wait for.
const BEHIND_BYTES: u64 = 8 << 20;

/// What came of [`copy_file`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyOutcome {
    /// How many of the wanted bytes the target has now, holes included. Fewer than wanted where the source ends before,
    /// or where the caller did not want to go on.
    pub bytes: u64,
    /// True where both files share their blocks until one of them is written to.
    pub is_shared: bool,
    /// How many of the bytes lie in holes and take no room.
    pub hole_bytes: u64,
}

/// Copies the first `len_bytes` of `from` to `to`, which must be empty, and gives `to` that length.
///
/// With `may_share` the blocks are shared where the file system can (`FICLONE`: btrfs, XFS, bcachefs; both files on one
/// file system). Else bytes are read and written; holes of the source are left out and stay holes. `go_on` is told how many
/// bytes are done, a MiB or so apart; `false` ends the copy there. Nothing is synced: that is the caller's to do.
///
/// # Errors
/// What the operating system says; what was copied by then is in `to`.
pub fn copy_file(
    from: &File,
    to: &File,
    len_bytes: u64,
    may_share: bool,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> io::Result<CopyOutcome> {
    let len = len_bytes.min(from.metadata()?.len());
    if may_share && len > 0 && retry(|| rustix::fs::ioctl_ficlone(to, from)).is_ok() {
        // All of it: what is not wanted goes again.
        to.set_len(len)?;
        return Ok(CopyOutcome { bytes: len, is_shared: true, hole_bytes: 0 });
    }
    let mut outcome = CopyOutcome::default();
    let first_hole = seek(from, SeekFrom::Hole(0), len)?.unwrap_or(len);
    if first_hole >= len {
        // In one piece, and a full disk is met before anything was copied. A file system that reserves nothing goes on.
        let reserved = retry(|| rustix::fs::fallocate(to, FallocateFlags::KEEP_SIZE, 0, len));
        if let Err(error @ (Errno::NOSPC | Errno::DQUOT)) = reserved {
            return Err(error.into());
        }
    }
    let _ = rustix::fs::fadvise(from, 0, None, Advice::Sequential);
    let mut buffer = vec![0; PIECE_BYTES];
    let (mut at, mut handed) = (0, 0);
    while let Some(data) = seek(from, SeekFrom::Data(at), len)? {
        outcome.hole_bytes += data - at;
        let end = seek(from, SeekFrom::Hole(data), len)?.unwrap_or(len);
        at = data;
        while at < end {
            if !go_on(at) {
                outcome.bytes = at;
                return Ok(outcome);
            }
            let wanted = usize::try_from(end - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = match from.read_at(buffer.get_mut(..wanted).unwrap_or_default(), at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                // It was cut meanwhile.
                outcome.bytes = at;
                return Ok(outcome);
            }
            to.write_all_at(buffer.get(..read).unwrap_or_default(), at)?;
            at += read as u64;
            if at - handed >= 2 * BEHIND_BYTES {
                hand_to_disk(to, handed, BEHIND_BYTES);
                handed += BEHIND_BYTES;
            }
        }
    }
    outcome.hole_bytes += len - at;
    // A hole at the end, if there is one.
    to.set_len(len)?;
    outcome.bytes = len;
    Ok(outcome)
}

/// Drops what the page cache holds of a file that was synced, so that reading it reads the disk. Best effort.
pub fn drop_cached(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
}

/// Begins to write dirty pages out without waiting for them.
fn hand_to_disk(file: &File, position: u64, len_bytes: u64) {
    let len = std::num::NonZeroU64::new(len_bytes);
    let _ = rustix::fs::fadvise(file, position, len, Advice::DontNeed);
}

/// Where the next data or hole begins, before `end`. A file system that knows no holes has data everywhere.
fn seek(file: &File, to: SeekFrom, end: u64) -> io::Result<Option<u64>> {
    let (at, is_data) = match to {
        SeekFrom::Data(at) => (at, true),
        SeekFrom::Hole(at) => (at, false),
        _ => return Ok(None),
    };
    if at >= end {
        return Ok(None);
    }
    match retry(|| rustix::fs::seek(file, to)) {
        Ok(found) => Ok((found < end).then_some(found.max(at))),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(is_data.then_some(at)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn copied(from: &[(u64, &[u8])], len: u64, wanted: u64) -> (CopyOutcome, Vec<u8>, u64) {
        let dir = tempfile::tempdir().unwrap();
        let source =
            File::options().read(true).write(true).create_new(true).open(dir.path().join("a")).unwrap();
        for (at, bytes) in from {
            source.write_all_at(bytes, *at).unwrap();
        }
        source.set_len(len).unwrap();
        let target = File::create(dir.path().join("b")).unwrap();
        let outcome = copy_file(&source, &target, wanted, true, &mut |_| true).unwrap();
        let blocks = target.metadata().unwrap().blocks();
        (outcome, std::fs::read(dir.path().join("b")).unwrap(), blocks)
    }

    #[test]
    fn the_first_bytes_are_copied_and_holes_stay_holes() {
        let data = [7; 8192];
        let (outcome, bytes, _) = copied(&[(0, &data)], 8192, 5000);
        assert_eq!((outcome.bytes, bytes.as_slice()), (5000, &data[..5000]));
        // Data, a hole of 16 MiB, data, a hole at the end.
        let len = 40 << 20;
        let (outcome, bytes, blocks) = copied(&[(0, &data), (20 << 20, &data)], len, u64::MAX);
        assert_eq!((outcome.bytes, bytes.len() as u64), (len, len));
        assert!(bytes[..8192] == data && bytes[20 << 20..][..8192] == data);
        assert_eq!(bytes.iter().filter(|byte| **byte != 0).count(), 2 * 8192);
        if !outcome.is_shared && outcome.hole_bytes > 0 {
            assert!(outcome.hole_bytes >= 30 << 20 && blocks * 512 < 4 << 20, "{outcome:?} {blocks}");
        }
        let (outcome, bytes, _) = copied(&[], 0, 10);
        assert_eq!((outcome.bytes, bytes.len()), (0, 0));
    }

    #[test]
    fn a_copy_ends_where_it_is_told_to() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), vec![1; 5 << 20]).unwrap();
        let source = File::open(dir.path().join("a")).unwrap();
        let target = File::create(dir.path().join("b")).unwrap();
        let outcome = copy_file(&source, &target, u64::MAX, false, &mut |done| done < 2 << 20).unwrap();
        assert_eq!(outcome.bytes, 2 << 20);
    }
}
