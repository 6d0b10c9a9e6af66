//! Unpacking a records area: whatever framing a broker takes from producers, never more than a limit.

use super::{BatchError, Codec};

/// How much a records area may unpack to unless a [`Scratch`] says otherwise.
const DEFAULT_LIMIT_BYTES: u64 = 128 * 1024 * 1024;
/// What is kept of an unpacked buffer from one batch to the next.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// Where compressed records are unpacked, kept from batch to batch; and the limit on how much that may be.
pub struct Scratch {
    /// The most bytes that one batch's records may unpack to.
    pub limit_bytes: u64,
    unpacked: Vec<u8>,
    /// What an old message wraps.
    wrapped: Vec<u8>,
    decompressor: Decompressor,
}

impl Scratch {
    /// With a limit of 128 MiB.
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT_BYTES)
    }

    /// With a limit in bytes on what one batch's records may unpack to.
    pub fn with_limit(limit_bytes: u64) -> Self {
        Self { limit_bytes, unpacked: Vec::new(), wrapped: Vec::new(), decompressor: Decompressor::default() }
    }

    /// What the last batch unpacked to.
    #[inline]
    pub(crate) fn unpacked(&self) -> &[u8] {
        &self.unpacked
    }

    /// Unpacks `input` here; valid until the next call.
    pub(super) fn unpack(&mut self, codec: Codec, input: &[u8]) -> Result<&[u8], BatchError> {
        self.unpacked.clear();
        if self.unpacked.capacity() > KEPT_BYTES {
            self.unpacked = Vec::new();
        }
        self.decompressor.decompress(codec, input, &mut self.unpacked, self.limit_bytes)?;
        Ok(&self.unpacked)
    }

    /// Unpacks what an old message wraps; and the memory for the records made of it, which is left as it is.
    pub(super) fn unpack_wrapped(
        &mut self,
        codec: Codec,
        input: &[u8],
    ) -> Result<(&[u8], &mut Vec<u8>), BatchError> {
        self.wrapped.clear();
        if self.wrapped.capacity() > KEPT_BYTES {
            self.wrapped = Vec::new();
        }
        self.decompressor.decompress(codec, input, &mut self.wrapped, self.limit_bytes)?;
        Ok((&self.wrapped, &mut self.unpacked))
    }

    /// The memory for records that are not unpacked but made.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        &mut self.unpacked
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").field("limit_bytes", &self.limit_bytes).finish_non_exhaustive()
    }
}

/// Appends what `input` unpacks to to `out`, at most `limit_bytes` of it.
///
/// [`BatchError::TooLargeDecompressed`] as soon as there is more, with no more than about twice the limit ever
/// allocated. Bytes after the stream's end are an error. After any error `out` ends somewhere in the middle.
pub fn decompress(codec: Codec, input: &[u8], out: &mut Vec<u8>, limit_bytes: u64) -> Result<(), BatchError> {
    Decompressor::default().decompress(codec, input, out, limit_bytes)
}

/// Unpacks, keeping what the codec needs from one call to the next.
#[derive(Default)]
struct Decompressor {
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::zstd_safe::DCtx<'static>>,
}

impl Decompressor {
    #[cfg_attr(not(feature = "zstd"), expect(clippy::unused_self, reason = "only zstd keeps something"))]
    fn decompress(
        &mut self,
        codec: Codec,
        input: &[u8],
        out: &mut Vec<u8>,
        limit_bytes: u64,
    ) -> Result<(), BatchError> {
        let mut room = Room { start: out.len(), out, limit_bytes };
        match codec {
            Codec::None => room.extend(input),
            #[cfg(feature = "gzip")]
            Codec::Gzip => gzip(input, &mut room),
            #[cfg(feature = "snappy")]
            Codec::Snappy => snappy(input, &mut room),
            #[cfg(feature = "lz4")]
            Codec::Lz4 => lz4(input, &mut room),
            #[cfg(feature = "zstd")]
            Codec::Zstd => zstd_frames(&mut self.zstd, input, &mut room),
            #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
            codec => Err(BatchError::CodecMissing { codec }),
        }
    }
}

/// The output, which grows up to a limit.
struct Room<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    limit_bytes: u64,
}

impl Room<'_> {
    /// How many bytes may still come.
    fn left(&self) -> u64 {
        let filled = (self.out.len() - self.start) as u64;
        self.limit_bytes.saturating_sub(filled)
    }

    fn too_large(&self) -> BatchError {
        BatchError::TooLargeDecompressed { limit: self.limit_bytes }
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), BatchError> {
        if bytes.len() as u64 > self.left() {
            return Err(self.too_large());
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(any(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
fn broken(codec: Codec, reason: impl std::fmt::Display) -> BatchError {
    BatchError::Decompress { codec, reason: reason.to_string() }
}

/// One or more gzip members.
#[cfg(feature = "gzip")]
fn gzip(input: &[u8], room: &mut Room<'_>) -> Result<(), BatchError> {
    use std::io::Read as _;

    if input.is_empty() {
        return Err(broken(Codec::Gzip, "it is empty"));
    }
    let mut decoder = flate2::bufread::MultiGzDecoder::new(input);
    let left = room.left();
    let taken = decoder.by_ref().take(left.saturating_add(1)).read_to_end(room.out);
    let taken = taken.map_err(|error| broken(Codec::Gzip, error))?;
    if taken as u64 > left { Err(room.too_large()) } else { Ok(()) }
}

/// Framed blocks as Kafka's clients write them, or one bare block.
#[cfg(feature = "snappy")]
fn snappy(input: &[u8], room: &mut Room<'_>) -> Result<(), BatchError> {
    use super::compress::XERIAL_HEADER;

    let (magic, _versions) = XERIAL_HEADER.split_at(8);
    if !input.starts_with(magic) {
        return snappy_block(input, room);
    }
    let mut rest = input;
    while !rest.is_empty() {
        // Streams written one after the other each begin with the magic, which no length equals.
        if rest.starts_with(magic) {
            let Some((_, after)) = rest.split_at_checked(XERIAL_HEADER.len()) else {
                return Err(broken(Codec::Snappy, "its header is cut"));
            };
            rest = after;
            continue;
        }
        let block = rest.split_first_chunk().and_then(|(length, after)| {
            let length = usize::try_from(i32::from_be_bytes(*length)).ok()?;
            after.split_at_checked(length)
        });
        let Some((block, after)) = block else {
            return Err(broken(Codec::Snappy, "a block's length runs past the end"));
        };
        snappy_block(block, room)?;
        rest = after;
    }
    Ok(())
}

#[cfg(feature = "snappy")]
fn snappy_block(block: &[u8], room: &mut Room<'_>) -> Result<(), BatchError> {
    let declared = snap::raw::decompress_len(block).map_err(|error| broken(Codec::Snappy, error))?;
    // A copy of 64 bytes takes 3, so no block grows further than this; what declares more is refused unallocated.
    if declared > block.len().saturating_mul(22).saturating_add(64) {
        return Err(broken(Codec::Snappy, "a block declares more than it can hold"));
    }
    if declared as u64 > room.left() {
        return Err(room.too_large());
    }
    let at = room.out.len();
    room.out.resize(at + declared, 0);
    let to = room.out.get_mut(at..).unwrap_or_default();
    let written =
        snap::raw::Decoder::new().decompress(block, to).map_err(|error| broken(Codec::Snappy, error))?;
    if written == declared {
        Ok(())
    } else {
        Err(broken(Codec::Snappy, "a block holds less than it declares"))
    }
}

/// One or more LZ4 frames.
#[cfg(feature = "lz4")]
fn lz4(input: &[u8], room: &mut Room<'_>) -> Result<(), BatchError> {
    use std::io::BufRead as _;

    let mut rest = Source { rest: input, ran_out: false };
    loop {
        // A decoder for each frame: one decoder's buffers are made for one block size.
        let mut decoder = lz4_flex::frame::FrameDecoder::new(&mut rest);
        loop {
            let block = decoder.fill_buf().map_err(|error| broken(Codec::Lz4, error))?;
            if block.is_empty() {
                break;
            }
            room.extend(block)?;
            let length = block.len();
            decoder.consume(length);
        }
        // The decoder takes the end of its input for the end of a frame.
        if rest.ran_out {
            return Err(broken(Codec::Lz4, "it ends inside a frame"));
        }
        if rest.rest.is_empty() {
            return Ok(());
        }
    }
}

/// Bytes to read that remember whether more was asked for than there was.
#[cfg(feature = "lz4")]
struct Source<'i> {
    rest: &'i [u8],
    ran_out: bool,
}

#[cfg(feature = "lz4")]
impl std::io::Read for Source<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.ran_out |= into.len() > self.rest.len();
        self.rest.read(into)
    }
}

/// One or more Zstandard frames.
#[cfg(feature = "zstd")]
fn zstd_frames(
    context: &mut Option<zstd::zstd_safe::DCtx<'static>>,
    input: &[u8],
    room: &mut Room<'_>,
) -> Result<(), BatchError> {
    use zstd::zstd_safe::{DCtx, InBuffer, OutBuffer, ResetDirective, get_error_name};

    let broken_code = |code| broken(Codec::Zstd, get_error_name(code));
    let context = match context {
        Some(context) => context,
        None => context.insert(DCtx::try_create().ok_or_else(|| broken(Codec::Zstd, "out of memory"))?),
    };
    context.reset(ResetDirective::SessionOnly).map_err(broken_code)?;
    let mut from = InBuffer::around(input);
    let mut step = input.len().saturating_mul(4).clamp(16 * 1024, 1024 * 1024);
    loop {
        // One byte beyond the limit tells that there is more.
        let most = usize::try_from(room.left().saturating_add(1)).unwrap_or(usize::MAX);
        room.out.reserve_exact(step.min(most));
        let at = room.out.len();
        let mut to = OutBuffer::around_pos(room.out, at);
        let before = from.pos();
        let hint = context.decompress_stream(&mut to, &mut from).map_err(broken_code)?;
        let filled = room.out.len();
        if (filled - room.start) as u64 > room.limit_bytes {
            return Err(room.too_large());
        }
        if hint == 0 && from.pos() == input.len() {
            return Ok(());
        }
        if filled == at && from.pos() == before {
            return Err(broken(Codec::Zstd, "it ends inside a frame"));
        }
        step = step.max(filled - room.start);
    }
}
