//! Compressing a records area, in the framings that Kafka's own clients write.

use super::{BatchError, Codec, Compression};

/// What comes before the blocks of a snappy stream: the magic, version 1, readable from version 1.
#[cfg(feature = "snappy")]
pub(super) const XERIAL_HEADER: [u8; 16] =
    [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
/// How much of the input goes into one snappy block.
#[cfg(feature = "snappy")]
const XERIAL_BLOCK_BYTES: usize = 32 * 1024;

/// Compresses, keeping what the codec needs from one call to the next.
#[derive(Default)]
pub struct Compressor {
    #[cfg(feature = "snappy")]
    snappy: Option<snap::raw::Encoder>,
    #[cfg(feature = "zstd")]
    zstd: Option<zstd::zstd_safe::CCtx<'static>>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    /// Appends the compressed form of `input` to `out`. After an error `out` ends somewhere in the middle.
    pub fn compress(
        &mut self,
        compression: Compression,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), BatchError> {
        match compression.codec() {
            Codec::None => {
                out.extend_from_slice(input);
                Ok(())
            }
            #[cfg(feature = "gzip")]
            Codec::Gzip => gzip(compression.level(), input, out),
            #[cfg(feature = "snappy")]
            Codec::Snappy => snappy(self.snappy.get_or_insert_with(snap::raw::Encoder::new), input, out),
            #[cfg(feature = "lz4")]
            Codec::Lz4 => lz4(input, out),
            #[cfg(feature = "zstd")]
            Codec::Zstd => zstd_frame(&mut self.zstd, compression.level(), input, out),
            #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
            codec => Err(BatchError::CodecMissing { codec }),
        }
    }
}

/// Appends the compressed form of `input` to `out`; a [`Compressor`] does the same and is faster the second time.
pub fn compress(compression: Compression, input: &[u8], out: &mut Vec<u8>) -> Result<(), BatchError> {
    Compressor::default().compress(compression, input, out)
}

#[cfg(any(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
fn failed(codec: Codec, reason: impl std::fmt::Display) -> BatchError {
    BatchError::Compress { codec, reason: reason.to_string() }
}

#[cfg(feature = "gzip")]
fn gzip(level: Option<i32>, input: &[u8], out: &mut Vec<u8>) -> Result<(), BatchError> {
    use std::io::Write as _;

    let level = level.map_or_else(flate2::Compression::default, |level| {
        flate2::Compression::new(level.clamp(0, 9).unsigned_abs())
    });
    let mut encoder = flate2::write::GzEncoder::new(out, level);
    encoder.write_all(input).and_then(|()| encoder.finish()).map_err(|error| failed(Codec::Gzip, error))?;
    Ok(())
}

#[cfg(feature = "snappy")]
fn snappy(encoder: &mut snap::raw::Encoder, input: &[u8], out: &mut Vec<u8>) -> Result<(), BatchError> {
    out.extend_from_slice(&XERIAL_HEADER);
    for block in input.chunks(XERIAL_BLOCK_BYTES) {
        let most = snap::raw::max_compress_len(block.len());
        let length_at = out.len();
        let block_at = length_at + size_of::<i32>();
        out.resize(block_at + most, 0);
        let room = out.get_mut(block_at..).unwrap_or_default();
        let length = encoder.compress(block, room).map_err(|error| failed(Codec::Snappy, error))?;
        out.truncate(block_at + length);
        let length = i32::try_from(length).map_err(|error| failed(Codec::Snappy, error))?;
        if let Some(field) = out.get_mut(length_at..).and_then(|tail| tail.first_chunk_mut::<4>()) {
            *field = length.to_be_bytes();
        }
    }
    Ok(())
}

#[cfg(feature = "lz4")]
fn lz4(input: &[u8], out: &mut Vec<u8>) -> Result<(), BatchError> {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write as _;

    // Kafka's own reader takes independent blocks only.
    let info = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder.write_all(input).map_err(|error| failed(Codec::Lz4, error))?;
    encoder.finish().map_err(|error| failed(Codec::Lz4, error))?;
    Ok(())
}

#[cfg(feature = "zstd")]
fn zstd_frame(
    context: &mut Option<zstd::zstd_safe::CCtx<'static>>,
    level: Option<i32>,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), BatchError> {
    use zstd::zstd_safe::{
        CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, compress_bound, get_error_name,
        zstd_sys::ZSTD_EndDirective,
    };
    let failed = |code| failed(Codec::Zstd, get_error_name(code));
    let context = match context {
        Some(context) => context,
        None => context.insert(
            CCtx::try_create()
                .ok_or_else(|| BatchError::Compress { codec: Codec::Zstd, reason: "out of memory".into() })?,
        ),
    };
    context.reset(ResetDirective::SessionAndParameters).map_err(failed)?;
    let level = level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
    context.set_parameter(CParameter::CompressionLevel(level)).map_err(failed)?;
    out.reserve(compress_bound(input.len()));
    let mut from = InBuffer::around(input);
    // Input first, end after it: so the frame declares the level's whole window and no content size, as Kafka's
    // clients write it. One call that does both would shrink the window to the input.
    for directive in [ZSTD_EndDirective::ZSTD_e_continue, ZSTD_EndDirective::ZSTD_e_end] {
        loop {
            let at = out.len();
            let mut to = OutBuffer::around_pos(out, at);
            let left = context.compress_stream2(&mut to, &mut from, directive).map_err(failed)?;
            let done = match directive {
                ZSTD_EndDirective::ZSTD_e_continue => from.pos() == input.len(),
                _ => left == 0,
            };
            if done {
                break;
            }
            out.reserve(left.max(64 * 1024));
        }
    }
    Ok(())
}
