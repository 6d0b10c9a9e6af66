//! LZ4 frames, one after the other to the end of the stream. The decoder by itself ends at the first frame's end, and takes
//! a stream that breaks off between two blocks for whole.

use std::io::{self, BufRead, Read};

use lz4_flex::frame::FrameDecoder;

/// Unpacks all frames; what is no whole frame is an error.
pub(super) struct Frames {
    /// One for each frame, for a decoder does not take a frame with larger blocks behind another; none between two.
    decoder: Option<FrameDecoder<Watched>>,
    /// What is read, between two frames.
    rest: Option<Watched>,
}

/// Notes whether more was wanted than there is.
struct Watched {
    from: Box<dyn BufRead>,
    ran_out: bool,
}

impl Read for Watched {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.ran_out |= count == 0 && !into.is_empty();
        Ok(count)
    }
}

impl Frames {
    pub(super) fn new(from: Box<dyn BufRead>) -> Self {
        Self { decoder: None, rest: Some(Watched { from, ran_out: false }) }
    }
}

impl Read for Frames {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(rest) = &mut self.rest
                && rest.from.fill_buf()?.is_empty()
            {
                return Ok(0);
            }
            if let Some(rest) = self.rest.take() {
                self.decoder = Some(FrameDecoder::new(rest));
            }
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let count = decoder.read(into)?;
            if count > 0 {
                return Ok(count);
            }
            if decoder.get_ref().ran_out {
                let what = "the stream ends inside of an LZ4 frame";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
            self.rest = self.decoder.take().map(FrameDecoder::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use lz4_flex::frame::{FrameEncoder, FrameInfo};

    use super::*;

    fn frame(bytes: &[u8], checksum: bool) -> Vec<u8> {
        let info = FrameInfo::new().content_checksum(checksum);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Frames::new(Box::new(Cursor::new(packed.to_vec()))).read_to_end(&mut bytes).map(|_| bytes)
    }

    #[test]
    fn all_frames_are_read_and_nothing_less_passes_for_whole() {
        let text: Vec<u8> = (0..40_000_u32).flat_map(u32::to_le_bytes).collect();
        for checksum in [true, false] {
            let (one, other) = (frame(&text, checksum), frame(b"more", checksum));
            assert_eq!(unpacked(&one).unwrap(), text);
            let both = [&one[..], &frame(b"", checksum), &other].concat();
            assert_eq!(unpacked(&both).unwrap(), [&text[..], b"more"].concat());
            for cut in (1..other.len()).map(|cut| [&one[..], &other[..cut]].concat()) {
                assert!(unpacked(&cut).is_err(), "{} of {}", cut.len(), both.len());
            }
            for cut in (1..40).chain(one.len() - 40..one.len()) {
                assert!(unpacked(&one[..cut]).is_err(), "{cut} of {}", one.len());
            }
            assert!(unpacked(&[&one[..], b"rubbish"].concat()).is_err());
            assert!(unpacked(&[&one[..], &[0; 100]].concat()).is_err());
        }
        assert_eq!(unpacked(b"").unwrap(), b"");
    }
}
