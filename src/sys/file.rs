//! A regular file: positioned reads and writes, reservation, durability, advice.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Advice, FallocateFlags, IFlags, Mode, OFlags, SeekFrom},
    io::{Errno, ReadWriteFlags},
};

use super::{
    Error, PAGE_BYTES, PageBuf, Result, Stat,
    error::retry,
    recorder::{Admitted, Tap},
};

/// The piece by which bytes are copied where the kernel does not copy by itself.
const COPY_BYTES: usize = 256 * 1024;
/// How many slices go into one gathered write.
const GATHER_COUNT: usize = 64;

/// An open regular file without a cursor: every read and write names its position.
#[derive(Debug)]
pub(crate) struct File {
    fd: OwnedFd,
    path: PathBuf,
    is_new: bool,
    tap: Tap,
}

/// The pattern in which a file will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    #[cfg_attr(not(test), expect(dead_code, reason = "what a file is opened with"))]
    Normal,
    Sequential,
    Random,
}

/// What came of asking for blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preallocated {
    Done,
    /// This file system does not reserve; a write may meet a full disk.
    Unsupported,
}

/// What a copy that leaves out zeros did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Copied {
    /// How many bytes were written.
    pub(crate) data_bytes: u64,
    /// How much of the source range lies before its last byte that is not zero.
    pub(crate) end: u64,
}

impl File {
    pub(super) fn from_parts(fd: OwnedFd, path: PathBuf, is_new: bool, tap: Tap) -> Self {
        Self { fd, path, is_new, tap }
    }

    /// The path it was opened by. A later rename is not seen.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True where opening created it: its name is durable only after a sync of the directory.
    #[cfg_attr(not(test), expect(dead_code, reason = "every new name is synced"))]
    pub(crate) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Its length in bytes, reserved blocks within it included.
    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.stat()?.len)
    }

    /// What is known of it.
    pub(crate) fn stat(&self) -> Result<Stat> {
        rustix::fs::fstat(&self.fd)
            .map(|stat| Stat::of(&stat))
            .map_err(|source| self.error("look at", source))
    }

    /// Reads until `into` is full or the file ends; returns how many bytes.
    pub(crate) fn read_at(&self, into: &mut [u8], position: u64) -> Result<usize> {
        self.tap.admit_read().map_err(|source| self.error("read", source))?;
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = position.checked_add(done as u64).ok_or_else(|| self.error("read", Errno::OVERFLOW))?;
            match retry(|| rustix::io::pread(&self.fd, &mut *rest, at)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(source) => return Err(self.error("read", source)),
            }
        }
        Ok(done)
    }

    /// Fills `into`; a file that ends before that is `UnexpectedEof`.
    pub(crate) fn read_exact_at(&self, into: &mut [u8], position: u64) -> Result<()> {
        let read = self.read_at(into, position)?;
        if read < into.len() {
            let reason =
                format!("the file ends {} bytes early, at {}", into.len() - read, position + read as u64);
            return Err(self.error("read", io::Error::new(io::ErrorKind::UnexpectedEof, reason)));
        }
        Ok(())
    }

    /// Writes all bytes. After an error any part of them may be in the file: write the same range again, or cut it.
    pub(crate) fn write_all_at(&self, bytes: &[u8], position: u64) -> Result<()> {
        match self.tap.admit_write(bytes.len()).map_err(|source| self.error("write", source))? {
            Admitted::Whole => {}
            Admitted::Part(part, source) => {
                let part = bytes.get(..part).unwrap_or(bytes);
                self.write_bytes(part, position)?;
                self.tap.note_write(&[part], position);
                return Err(self.error("write", source));
            }
        }
        self.write_bytes(bytes, position)?;
        self.tap.note_write(&[bytes], position);
        Ok(())
    }

    /// Writes several slices one after the other, in one call where the kernel takes it.
    pub(crate) fn write_all_vectored_at(&self, parts: &[&[u8]], position: u64) -> Result<()> {
        let total = parts.iter().map(|part| part.len()).sum();
        if let Admitted::Part(part, source) =
            self.tap.admit_write(total).map_err(|source| self.error("write", source))?
        {
            let joined = parts.concat();
            let part = joined.get(..part).unwrap_or(&joined);
            self.write_bytes(part, position)?;
            self.tap.note_write(&[part], position);
            return Err(self.error("write", source));
        }
        let mut at = position;
        let mut parts_left = parts;
        let mut skip = 0;
        loop {
            while parts_left.first().is_some_and(|first| first.len() <= skip) {
                skip -= parts_left.first().map_or(0, |first| first.len());
                parts_left = parts_left.get(1..).unwrap_or_default();
            }
            if parts_left.is_empty() {
                break;
            }
            let slices: Vec<IoSlice<'_>> = parts_left
                .iter()
                .take(GATHER_COUNT)
                .enumerate()
                .map(|(i, part)| {
                    IoSlice::new(if i == 0 { part.get(skip..).unwrap_or_default() } else { part })
                })
                .collect();
            match retry(|| rustix::io::pwritev(&self.fd, &slices, at)) {
                Ok(0) => return Err(self.error("write", io::Error::from(io::ErrorKind::WriteZero))),
                Ok(count) => {
                    skip += count;
                    at = at.checked_add(count as u64).ok_or_else(|| self.error("write", Errno::FBIG))?;
                }
                Err(source) => return Err(self.error("write", source)),
            }
        }
        self.tap.note_write(parts, position);
        Ok(())
    }

    /// Reserves blocks for `len_bytes` from `position` on, and makes the file at least that long unless `keep_size`.
    ///
    /// A full disk is an error; a file system that cannot reserve is an answer.
    pub(crate) fn preallocate(&self, position: u64, len_bytes: u64, keep_size: bool) -> Result<Preallocated> {
        if len_bytes == 0 {
            return Ok(Preallocated::Done);
        }
        let flags = if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
        let done = match self.tap.admit_preallocate() {
            Ok(()) => retry(|| rustix::fs::fallocate(&self.fd, flags, position, len_bytes)),
            Err(source) => Err(Errno::from_io_error(&source).unwrap_or(Errno::IO)),
        };
        match done {
            Ok(()) => {
                self.tap.note_preallocate(position.saturating_add(len_bytes), keep_size);
                Ok(Preallocated::Done)
            }
            Err(
                Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::BADF | Errno::NODEV,
            ) => Ok(Preallocated::Unsupported),
            Err(source) => Err(self.error("reserve space for", source)),
        }
    }

    /// Writes real zeros, where blocks are needed and cannot be reserved.
    pub(crate) fn zero_fill(&self, position: u64, len_bytes: u64) -> Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let mut at = position;
        let end = position.saturating_add(len_bytes);
        while at < end {
            let piece = usize::try_from(end - at).unwrap_or(ZEROS.len()).min(ZEROS.len());
            self.write_all_at(ZEROS.get(..piece).unwrap_or_default(), at)?;
            at += piece as u64;
        }
        Ok(())
    }

    /// Cuts or extends the file; what is beyond the new end is gone, what is new reads as zeros.
    pub(crate) fn set_len(&self, len: u64) -> Result<()> {
        self.tap.admit_set_len().map_err(|source| self.error("set the length of", source))?;
        retry(|| rustix::fs::ftruncate(&self.fd, len))
            .map_err(|source| self.error("set the length of", source))?;
        self.tap.note_set_len(len);
        Ok(())
    }

    /// Makes bytes and length durable (`fdatasync`). A failure means that none of the unsynced bytes can be trusted.
    pub(crate) fn sync_data(&self) -> Result<()> {
        self.sync(true)
    }

    /// Makes bytes, length and times durable (`fsync`).
    pub(crate) fn sync_all(&self) -> Result<()> {
        self.sync(false)
    }

    /// Tells the kernel how the file will be read. Advice only: an error changes nothing and is dropped.
    pub(crate) fn advise(&self, access: Access) {
        let advice = match access {
            Access::Normal => Advice::Normal,
            Access::Sequential => Advice::Sequential,
            Access::Random => Advice::Random,
        };
        let _ = rustix::fs::fadvise(&self.fd, 0, None, advice);
    }

    /// Asks the kernel to forget its clean cached pages of the range. [`File::is_cached`] tells whether it did.
    pub(crate) fn drop_cached(&self, position: u64, len_bytes: u64) -> Result<()> {
        let len = std::num::NonZeroU64::new(len_bytes);
        rustix::fs::fadvise(&self.fd, position, len, Advice::DontNeed)
            .map_err(|source| self.error("drop the cached pages of", source))
    }

    /// True where any page of the range is in the page cache; `None` where the file system cannot say.
    ///
    /// Asked by reads that do not wait, which needs no map as `mincore` would.
    pub(crate) fn is_cached(&self, position: u64, len_bytes: u64) -> Result<Option<bool>> {
        let end = position.saturating_add(len_bytes).min(self.len()?);
        let page = PAGE_BYTES as u64;
        let mut at = position - position % page;
        while at < end {
            let mut byte = [0_u8; 1];
            let mut into = [io::IoSliceMut::new(&mut byte)];
            match retry(|| rustix::io::preadv2(&self.fd, &mut into, at, ReadWriteFlags::NOWAIT)) {
                Ok(0) | Err(Errno::AGAIN) => {}
                Ok(_) => return Ok(Some(true)),
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return Ok(None),
                Err(source) => return Err(self.error("read", source)),
            }
            at = at.saturating_add(page);
        }
        Ok(Some(false))
    }

    /// The same file opened once more, past the page cache; `None` where the file system has no direct reads.
    pub(crate) fn direct(&self) -> Result<Option<DirectFile>> {
        let link = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        match retry(|| rustix::fs::open(&link, flags, Mode::empty())) {
            Ok(fd) => Ok(Some(DirectFile { fd, path: self.path.clone() })),
            // Without /proc there is no way to open it anew by its descriptor.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOENT) => Ok(None),
            Err(source) => Err(self.error("open", source)),
        }
    }

    /// Asks that blocks be overwritten in place (btrfs). Only an empty file takes it; false where it cannot be had.
    pub(crate) fn set_no_cow(&self) -> bool {
        rustix::fs::ioctl_getflags(&self.fd)
            .and_then(|flags| rustix::fs::ioctl_setflags(&self.fd, flags | IFlags::NOCOW))
            .and_then(|()| rustix::fs::ioctl_getflags(&self.fd))
            .is_ok_and(|flags| flags.contains(IFlags::NOCOW))
    }

    /// True where the file system overwrites this file's blocks in place on request (`FS_NOCOW_FL`).
    pub(crate) fn is_no_cow(&self) -> bool {
        rustix::fs::ioctl_getflags(&self.fd).is_ok_and(|flags| flags.contains(IFlags::NOCOW))
    }

    /// Copies a range of another file here, sharing blocks where the file system can; returns how many bytes there
    /// were to copy.
    pub(crate) fn copy_range_from(
        &self,
        from: &Self,
        from_position: u64,
        to_position: u64,
        len_bytes: u64,
    ) -> Result<u64> {
        let mut copied = 0;
        // A recorded file is written by calls that the recorder sees.
        while copied < len_bytes && !self.tap.is_recording() {
            let (mut from_at, mut to_at) =
                (from_position.saturating_add(copied), to_position.saturating_add(copied));
            let piece = usize::try_from(len_bytes - copied).unwrap_or(usize::MAX).min(1 << 30);
            let call = retry(|| {
                rustix::fs::copy_file_range(&from.fd, Some(&mut from_at), &self.fd, Some(&mut to_at), piece)
            });
            match call {
                // Some file systems claim success and copy nothing; the loop below finds out.
                Ok(count) if count > 0 => copied += count as u64,
                Ok(_)
                | Err(
                    Errno::XDEV
                    | Errno::INVAL
                    | Errno::OPNOTSUPP
                    | Errno::NOSYS
                    | Errno::BADF
                    | Errno::TXTBSY
                    | Errno::PERM,
                ) => break,
                Err(source) => return Err(self.error("copy into", source)),
            }
        }
        let mut buffer = Vec::new();
        while copied < len_bytes {
            buffer.resize(usize::try_from(len_bytes - copied).unwrap_or(COPY_BYTES).min(COPY_BYTES), 0);
            let read = from.read_at(&mut buffer, from_position.saturating_add(copied))?;
            let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
            self.write_all_at(bytes, to_position.saturating_add(copied))?;
            copied += read as u64;
        }
        Ok(copied)
    }

    /// Copies what is not zeros from a range of another file, to the same distances from `to_position`: pages of zeros
    /// are left out, so what was reserved and never written costs nothing.
    pub(crate) fn copy_data_from(
        &self,
        from: &Self,
        from_position: u64,
        to_position: u64,
        len_bytes: u64,
    ) -> Result<Copied> {
        let end = from_position.saturating_add(len_bytes).min(from.len()?);
        let mut copied = Copied { data_bytes: 0, end: 0 };
        let mut buffer = vec![0_u8; COPY_BYTES];
        let mut at = from_position;
        while let Some(data) = from.next_data(at, end)? {
            at = data;
            let piece = usize::try_from(end - at).unwrap_or(COPY_BYTES).min(COPY_BYTES);
            let read = from.read_at(buffer.get_mut(..piece).unwrap_or_default(), at)?;
            if read == 0 {
                break;
            }
            for (page, bytes) in buffer.get(..read).unwrap_or_default().chunks(PAGE_BYTES).enumerate() {
                if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
                    let distance = at - from_position + (page * PAGE_BYTES) as u64;
                    let bytes = bytes.get(..=last).unwrap_or_default();
                    self.write_all_at(bytes, to_position.saturating_add(distance))?;
                    copied.data_bytes += bytes.len() as u64;
                    copied.end = distance + bytes.len() as u64;
                }
            }
            at += read as u64;
        }
        Ok(copied)
    }

    /// The first position from `at` on, before `end`, that is not known to be a hole.
    pub(crate) fn next_data(&self, at: u64, end: u64) -> Result<Option<u64>> {
        if at >= end {
            return Ok(None);
        }
        match retry(|| rustix::fs::seek(&self.fd, SeekFrom::Data(at))) {
            Ok(data) => Ok((data < end).then_some(data.max(at))),
            Err(Errno::NXIO) => Ok(None),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(at)),
            Err(source) => Err(self.error("read", source)),
        }
    }

    fn write_bytes(&self, bytes: &[u8], position: u64) -> Result<()> {
        let mut rest = bytes;
        let mut at = position;
        while !rest.is_empty() {
            match retry(|| rustix::io::pwrite(&self.fd, rest, at)) {
                Ok(0) => return Err(self.error("write", io::Error::from(io::ErrorKind::WriteZero))),
                Ok(count) => {
                    rest = rest.get(count..).unwrap_or_default();
                    at = at.checked_add(count as u64).ok_or_else(|| self.error("write", Errno::FBIG))?;
                }
                Err(source) => return Err(self.error("write", source)),
            }
        }
        Ok(())
    }

    fn sync(&self, data_only: bool) -> Result<()> {
        let began = self.tap.begin_sync().map_err(|source| self.error("sync", source))?;
        let done = if data_only {
            retry(|| rustix::fs::fdatasync(&self.fd))
        } else {
            retry(|| rustix::fs::fsync(&self.fd))
        };
        done.map_err(|source| self.error("sync", source))?;
        self.tap.note_sync(began);
        Ok(())
    }

    pub(super) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    pub(super) fn tap(&self) -> &Tap {
        &self.tap
    }

    pub(super) fn error(&self, op: &'static str, source: impl Into<io::Error>) -> Error {
        Error::new(op, &self.path, source)
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// A file opened past the page cache: what it reads is what the device has.
#[derive(Debug)]
pub(crate) struct DirectFile {
    fd: OwnedFd,
    path: PathBuf,
}

impl DirectFile {
    /// Reads whole pages into the front of `into`, from a position that is a multiple of [`PAGE_BYTES`], until
    /// `len_bytes` (rounded up to whole pages, at most the buffer) are there or the file ends; returns how many.
    ///
    /// # Errors
    /// `InvalidInput` where the device wants another alignment than a page: read through the page cache then.
    pub(crate) fn read_at(&self, into: &mut PageBuf, len_bytes: usize, position: u64) -> Result<usize> {
        let fail = |source: Errno| Error::new("read directly from", &self.path, source);
        if !position.is_multiple_of(PAGE_BYTES as u64) {
            return Err(fail(Errno::INVAL));
        }
        let len = len_bytes.checked_next_multiple_of(PAGE_BYTES).unwrap_or(usize::MAX).min(into.capacity());
        let mut done = 0;
        while let Some(rest) = into.as_mut().get_mut(done..len).filter(|rest| !rest.is_empty()) {
            let count =
                retry(|| rustix::io::pread(&self.fd, &mut *rest, position + done as u64)).map_err(fail)?;
            done += count;
            // A part of a page is the file's end: the next read could not be aligned.
            if count == 0 || !count.is_multiple_of(PAGE_BYTES) {
                break;
            }
        }
        Ok(done)
    }
}
