//! An answer on its way out: bytes that were made, and bytes of files between them.

use std::{io, net::TcpStream};

use super::socket;
use crate::{
    FileSlice,
    protocol::{
        self, EncodeError, Response,
        wire::{Gap, Piece, Writer, pieces},
    },
};

/// From here on the kernel sends from the file; smaller pieces are cheaper read and sent with their neighbours.
const SENDFILE_BYTES: u32 = 32 << 10;
/// Bytes collected before they are sent.
const COLLECT_BYTES: usize = 128 << 10;

/// A whole frame.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
    /// What goes into the gaps, one each.
    slices: Vec<FileSlice>,
}

impl Reply {
    /// Writes the frame. Its gaps are as many as `slices`, and as long.
    pub(crate) fn new<'r, R: Response<'r>>(
        correlation_id: i32,
        version: i16,
        response: &R,
        slices: Vec<FileSlice>,
    ) -> Result<Self, EncodeError> {
        let mut writer = Writer::new();
        protocol::write_response(&mut writer, correlation_id, version, response)?;
        let (bytes, gaps) = writer.into_parts();
        debug_assert!(gaps.iter().map(|gap| gap.len_bytes).eq(slices.iter().map(FileSlice::len)));
        Ok(Self { bytes, gaps, slices })
    }
}

/// Sends replies, small ones together.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    collected: Vec<u8>,
}

impl Outgoing {
    /// Sends a reply, or keeps it until [`Outgoing::flush`]. After an error the connection is of no use: a part of a frame
    /// may have gone.
    pub(super) fn push(&mut self, stream: &TcpStream, reply: Reply) -> io::Result<()> {
        let Reply { bytes, gaps, slices } = reply;
        if self.collected.is_empty() && gaps.is_empty() {
            self.collected = bytes;
            return Ok(());
        }
        let mut slices = slices.into_iter();
        for piece in pieces(&bytes, &gaps) {
            match piece {
                Piece::Bytes(bytes) => self.collected.extend_from_slice(bytes),
                Piece::Gap { len_bytes, .. } => {
                    let slice = slices.next().filter(|slice| slice.len() == len_bytes);
                    let slice = slice
                        .ok_or_else(|| io::Error::other("a gap of a reply has nothing to go into it"))?;
                    self.put_slice(stream, slice)?;
                }
            }
            if self.collected.len() >= COLLECT_BYTES {
                self.send(stream, true)?;
            }
        }
        Ok(())
    }

    fn put_slice(&mut self, stream: &TcpStream, mut slice: FileSlice) -> io::Result<()> {
        if slice.len() >= SENDFILE_BYTES {
            self.send(stream, true)?;
            while !slice.is_empty() {
                slice.send_to(stream)?;
            }
            return Ok(());
        }
        let at = self.collected.len();
        self.collected.resize(at.saturating_add(usize::try_from(slice.len()).unwrap_or(usize::MAX)), 0);
        slice.read_into(self.collected.get_mut(at..).unwrap_or_default())
    }

    /// Sends what was kept.
    pub(super) fn flush(&mut self, stream: &TcpStream) -> io::Result<()> {
        self.send(stream, false)
    }

    fn send(&mut self, stream: &TcpStream, is_more: bool) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.collected);
        socket::send_all(stream, &bytes, is_more)
    }
}
