//! What a connection has received and not yet acted on: frames in one buffer.

use std::{io, net::TcpStream, ops::Range};

use super::socket::{self, Received};
use crate::protocol::{ApiKey, FRAME_LENGTH_BYTES, FrameFault, frame_length};

/// Room for what comes next, at least.
const LEAST_BYTES: usize = 4 << 10;
/// No more room is made at a time: what is only announced takes no memory.
const MOST_BYTES: usize = 1 << 20;

/// A buffer that grew beyond this for a request is given back after it.
const KEPT_BYTES: usize = 2 << 20;
/// The bytes of an API's key, which come first in a frame.
const KEY_BYTES: usize = 2;

/// How large requests may be, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) produce: u32,
    pub(super) other: u32,
}

/// The buffer. Frames lie in it one behind the other, the last one perhaps in part.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// What lies before was acted on.
    begin: usize,
}

impl Input {
    /// Where the first whole frame lies, without its length prefix.
    pub(super) fn frame(&self, limits: Limits) -> Result<Option<Range<usize>>, FrameFault> {
        let Some(needed) = self.needed(limits)? else { return Ok(None) };
        let begin = self.begin.saturating_add(FRAME_LENGTH_BYTES);
        let end = begin.saturating_add(needed);
        Ok((end <= self.bytes.len()).then_some(begin..end))
    }

    /// The length of the first frame, where its prefix is there.
    fn needed(&self, limits: Limits) -> Result<Option<usize>, FrameFault> {
        let Some(prefix) = self.bytes.get(self.begin..).and_then(<[u8]>::first_chunk) else {
            return Ok(None);
        };
        let length = frame_length(*prefix, limits.produce.max(limits.other))?;
        // What else there is to know comes with the key.
        let key_at = self.begin.saturating_add(FRAME_LENGTH_BYTES);
        let key: Option<&[u8; KEY_BYTES]> = self.bytes.get(key_at..).and_then(<[u8]>::first_chunk);
        if let Some(key) = key {
            let is_produce = i16::from_be_bytes(*key) == ApiKey::Produce.key();
            let limit = if is_produce { limits.produce } else { limits.other };
            if length > limit {
                return Err(FrameFault::TooLarge { length, limit });
            }
        }
        Ok(usize::try_from(length).ok())
    }

    /// The length of a frame that is here in part only.
    pub(super) fn unfinished(&self, limits: Limits) -> Option<usize> {
        let needed = self.needed(limits).ok().flatten()?;
        let end = self.begin.saturating_add(FRAME_LENGTH_BYTES).saturating_add(needed);
        (end > self.bytes.len()).then_some(needed)
    }

    pub(super) fn bytes(&self, frame: Range<usize>) -> &[u8] {
        self.bytes.get(frame).unwrap_or_default()
    }

    /// Drops a frame that was acted on.
    pub(super) fn consume(&mut self, frame: &Range<usize>) {
        self.begin = frame.end;
        if self.begin >= self.bytes.len() {
            self.bytes.clear();
            self.begin = 0;
            if self.bytes.capacity() > KEPT_BYTES {
                self.bytes = Vec::new();
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes of memory held.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Gives the memory back, where nothing is in it.
    pub(super) fn rest(&mut self) {
        if self.is_empty() {
            self.bytes = Vec::new();
        }
    }

    /// Takes in what the socket has. `is_patient` as in [`socket::receive`].
    pub(super) fn receive(
        &mut self,
        stream: &TcpStream,
        limits: Limits,
        is_patient: bool,
    ) -> io::Result<Received> {
        let needed = self.needed(limits).ok().flatten().unwrap_or(0).saturating_add(FRAME_LENGTH_BYTES);
        let there = self.bytes.len().saturating_sub(self.begin);
        let missing = needed.saturating_sub(there);
        if self.bytes.capacity().saturating_sub(self.bytes.len()) < missing.clamp(1, MOST_BYTES) {
            self.bytes.drain(..self.begin);
            self.begin = 0;
            // As much again as has come, so that a large frame is copied a few times at most.
            self.bytes.reserve(missing.min(there.max(MOST_BYTES)).max(LEAST_BYTES));
        }
        socket::receive(stream, &mut self.bytes, is_patient)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        net::{TcpListener, TcpStream},
    };

    use super::*;

    const LIMIT: u32 = 100 << 20;
    const LIMITS: Limits = Limits { produce: LIMIT, other: LIMIT };

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let (mut client, server) = pair();
        let frames: Vec<Vec<u8>> = [0, 1, 5, 4096, 70_000, 3]
            .iter()
            .map(|len| vec![u8::try_from(len % 251).unwrap(); *len])
            .collect();
        let mut sent = Vec::new();
        for frame in &frames {
            sent.extend(u32::try_from(frame.len()).unwrap().to_be_bytes());
            sent.extend(frame);
        }
        let mut input = Input::default();
        let mut found = Vec::new();
        for piece in sent.chunks(997) {
            client.write_all(piece).unwrap();
            let mut left = piece.len();
            while left > 0 {
                match input.receive(&server, LIMITS, true).unwrap() {
                    Received::Bytes(count) => left -= count,
                    other => panic!("{other:?}"),
                }
                while let Some(frame) = input.frame(LIMITS).unwrap() {
                    found.push(input.bytes(frame.clone()).to_vec());
                    input.consume(&frame);
                }
            }
        }
        assert_eq!(found, frames);
        assert!(input.is_empty());
        input.rest();
        assert_eq!(input.capacity(), 0);
        drop(client);
        assert_eq!(input.receive(&server, LIMITS, false).unwrap(), Received::End);
    }

    #[test]
    fn what_is_only_announced_takes_little_memory() {
        let (mut client, server) = pair();
        client.write_all(&LIMIT.to_be_bytes()).unwrap();
        let mut input = Input::default();
        input.receive(&server, LIMITS, true).unwrap();
        assert_eq!(input.receive(&server, LIMITS, false).unwrap(), Received::Nothing);
        assert!(input.capacity() <= 2 * MOST_BYTES, "{}", input.capacity());
        assert!(
            input.frame(LIMITS).unwrap().is_none()
                && input.frame(Limits { produce: LIMIT - 1, other: LIMIT - 1 }).is_err()
        );
    }

    #[test]
    fn what_is_no_produce_has_a_limit_of_its_own() {
        for (key, is_taken) in [(0_i16, true), (3, false), (18, false)] {
            let (mut client, server) = pair();
            let limits = Limits { produce: 1000, other: 100 };
            client.write_all(&[&101_u32.to_be_bytes()[..], &key.to_be_bytes()].concat()).unwrap();
            let mut input = Input::default();
            while input.bytes.len() < 6 {
                input.receive(&server, limits, true).unwrap();
            }
            assert_eq!(input.frame(limits).is_ok(), is_taken, "{key}");
            assert_eq!(input.unfinished(limits), is_taken.then_some(101));
            assert!(input.frame(Limits { produce: 1000, other: 101 }).unwrap().is_none());
        }
    }
}
