//! A range of an open file: what `sendfile` wants.

use std::{fmt, io, os::fd::AsFd, sync::Arc};

use rustix::io::Errno;

use super::{File, error::retry};

/// How much is read at a time where the kernel cannot send from the file by itself.
const FALLBACK_BYTES: usize = 64 * 1024;

/// Stored bytes, named and not read: an open file and a range of it.
///
/// The slice keeps the file alive, so retention may delete it and the bytes are still there; a published byte never
/// changes, so what is sent is what was appended. Sending takes from the front, so that a slice that was sent in part
/// is what is still owed.
#[derive(Clone)]
pub struct FileSlice {
    file: Arc<File>,
    position: u64,
    len: u32,
}

impl FileSlice {
    /// The `len` bytes of `file` from `position` on. The caller knows that they exist.
    pub(crate) fn new(file: Arc<File>, position: u64, len: u32) -> Self {
        Self { file, position, len }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Where in the file the slice begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How many bytes are (still) in the slice.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// True where nothing is left.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Hands some of the bytes to `socket` with one `sendfile` call and takes them off the front; returns how many.
    ///
    /// 0 is returned only for an empty slice. Call again until it is empty. Any descriptor that can be written is
    /// accepted: where the kernel does not send to it by itself, the bytes go through a buffer.
    ///
    /// # Errors
    /// What the socket says, `WouldBlock` among it, with nothing taken off. `UnexpectedEof` where the file ends before
    /// the slice does: somebody outside cut the file, and the promised bytes cannot be sent.
    pub fn send_to(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        if self.len == 0 {
            return Ok(0);
        }
        let owed = usize::try_from(self.len).unwrap_or(usize::MAX);
        let sent = retry(|| {
            let mut position = self.position;
            rustix::fs::sendfile(socket, &self.file, Some(&mut position), owed)
        });
        let sent = match sent {
            Err(Errno::INVAL | Errno::NOSYS) => self.send_through_buffer(socket)?,
            other => other?,
        };
        if sent == 0 {
            return Err(self.ended_early());
        }
        self.advance(sent);
        Ok(sent)
    }

    /// Reads the first `into.len()` bytes of the slice.
    ///
    /// # Errors
    /// `InvalidInput` where `into` is longer than the slice, `UnexpectedEof` where the file is shorter than the slice.
    pub fn read_into(&self, into: &mut [u8]) -> io::Result<()> {
        if u64::try_from(into.len()).map_or(true, |wanted| wanted > u64::from(self.len)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the buffer is longer than the slice"));
        }
        self.file.read_exact_at(into, self.position).map_err(|error| error.source)
    }

    /// The first `at` bytes, and the rest. An `at` beyond the end leaves the rest empty.
    #[must_use]
    pub fn split_at(self, at: u32) -> (Self, Self) {
        let at = at.min(self.len);
        let front = Self { file: Arc::clone(&self.file), position: self.position, len: at };
        let back = Self {
            position: self.position.saturating_add(u64::from(at)),
            len: self.len - at,
            file: self.file,
        };
        (front, back)
    }

    /// One read and one write; what the write did not take is read again by the next call, so nothing is lost.
    fn send_through_buffer(&self, socket: &impl AsFd) -> io::Result<usize> {
        let wanted = usize::try_from(self.len).map_or(FALLBACK_BYTES, |owed| owed.min(FALLBACK_BYTES));
        let mut buffer = vec![0_u8; wanted];
        let read = self.file.read_at(&mut buffer, self.position).map_err(|error| error.source)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { return Ok(0) };
        match retry(|| rustix::io::write(socket, bytes))? {
            0 => Err(io::Error::from(io::ErrorKind::WriteZero)),
            written => Ok(written),
        }
    }

    fn advance(&mut self, sent: usize) {
        let sent = u32::try_from(sent).unwrap_or(u32::MAX).min(self.len);
        self.position = self.position.saturating_add(u64::from(sent));
        self.len -= sent;
    }

    fn ended_early(&self) -> io::Error {
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!(
                "{} ends at or before byte {}, {} bytes are still owed",
                self.file.path().display(),
                self.position,
                self.len
            ),
        )
    }
}

impl fmt::Debug for FileSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.position.saturating_add(u64::from(self.len));
        write!(f, "FileSlice({}, {}..{end})", self.file.path().display(), self.position)
    }
}
