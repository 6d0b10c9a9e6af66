//! A stream packed as a whole, in the form that the codec's own command reads (`gzip`, `zstd`, `lz4`, `snzip`).

use std::io::{self, BufRead, BufReader, BufWriter, Write};

use stratalog::record::{Codec, Compression};

use super::lz4::Frames;

const BUFFER_BYTES: usize = 256 << 10;

/// What packed streams begin with.
const MAGICS: [(Codec, &[u8]); 4] = [
    (Codec::Gzip, b"\x1f\x8b"),
    (Codec::Zstd, b"\x28\xb5\x2f\xfd"),
    (Codec::Lz4, b"\x04\x22\x4d\x18"),
    (Codec::Snappy, b"\xff\x06\x00\x00sNaPpY"),
];

/// So many bytes tell.
pub(super) const HEAD_BYTES: usize = 10;

/// The codec of a stream that begins so.
pub(super) fn codec_of(head: &[u8]) -> Codec {
    MAGICS.iter().find(|(_, magic)| head.starts_with(magic)).map_or(Codec::None, |(codec, _)| *codec)
}

/// Packs what is written to it. Only [`Packer::finish`] makes it whole.
pub(crate) enum Packer<W: Write> {
    Plain(BufWriter<W>),
    Gzip(flate2::write::GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Lz4(Box<lz4_flex::frame::FrameEncoder<W>>),
    Snappy(Box<snap::write::FrameEncoder<W>>),
}

impl<W: Write> Packer<W> {
    pub(crate) fn new(into: W, compression: Compression) -> io::Result<Self> {
        let level = compression.level();
        Ok(match compression.codec() {
            Codec::None => Self::Plain(BufWriter::with_capacity(BUFFER_BYTES, into)),
            Codec::Gzip => {
                let level = level.and_then(|level| u32::try_from(level).ok());
                let level = level.map_or_else(flate2::Compression::default, flate2::Compression::new);
                Self::Gzip(flate2::write::GzEncoder::new(into, level))
            }
            Codec::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(into, level.unwrap_or(0))?;
                // So that a stream that was changed on its way is noticed.
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
            Codec::Lz4 => {
                let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
                Self::Lz4(Box::new(lz4_flex::frame::FrameEncoder::with_frame_info(info, into)))
            }
            Codec::Snappy => Self::Snappy(Box::new(snap::write::FrameEncoder::new(into))),
        })
    }

    /// Ends the stream; gives back what it was written to.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(out) => out.into_inner().map_err(io::IntoInnerError::into_error),
            Self::Gzip(out) => out.finish(),
            Self::Zstd(out) => out.finish(),
            Self::Lz4(out) => out.finish().map_err(io::Error::other),
            Self::Snappy(out) => out.into_inner().map_err(|error| io::Error::from(error.error().kind())),
        }
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
            Self::Lz4(out) => out.write(bytes),
            Self::Snappy(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
            Self::Lz4(out) => out.flush(),
            Self::Snappy(out) => out.flush(),
        }
    }
}

/// Unpacks a stream as it is read.
pub(super) fn unpack(from: Box<dyn BufRead>, codec: Codec) -> io::Result<Box<dyn BufRead>> {
    Ok(match codec {
        Codec::None => from,
        Codec::Gzip => buffered(flate2::bufread::MultiGzDecoder::new(from)),
        Codec::Zstd => buffered(zstd::stream::read::Decoder::with_buffer(from)?),
        Codec::Lz4 => buffered(Frames::new(from)),
        Codec::Snappy => buffered(snap::read::FrameDecoder::new(from)),
    })
}

fn buffered(from: impl io::Read + 'static) -> Box<dyn BufRead> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, from))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn every_codec_is_known_by_its_first_bytes_and_unpacks_to_what_was_packed() {
        let bytes: Vec<u8> = (0..200_000_u32).flat_map(|n| (n / 7).to_be_bytes()).collect();
        for codec in Codec::ALL {
            let mut packer = Packer::new(Vec::new(), Compression::new(codec)).unwrap();
            packer.write_all(&bytes).unwrap();
            let packed = packer.finish().unwrap();
            assert_eq!(codec_of(&packed), codec);
            assert!(codec == Codec::None || packed.len() < bytes.len(), "{codec:?} packs");
            let mut read = Vec::new();
            let from = Box::new(io::Cursor::new(packed.clone()));
            unpack(from, codec).unwrap().read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{codec:?}");
            // Cut short it does not pass for whole.
            if codec != Codec::None {
                let cut = io::Cursor::new(packed[..packed.len() / 2].to_vec());
                let outcome = unpack(Box::new(cut), codec).and_then(|mut from| from.read_to_end(&mut read));
                assert!(outcome.is_err() || codec == Codec::Snappy, "{codec:?}");
            }
        }
    }
}
