//! `.stratalog-summary`: what is known of each sealed segment, so that opening and time look-ups touch few files.
//!
//! A hint of a hint: each entry counts only where the segment's length is still the one noted. Bincode (standard
//! configuration, little-endian, variable integers) over a version, a CRC-32 (IEEE) and the entries; `docs/FORMAT.md`
//! draws the bytes.

use serde::{Deserialize, Serialize};

use super::described::Described;
use crate::{
    offset::{Offset, Timestamp},
    sys::Dir,
};

/// The file's name.
pub(crate) const SUMMARY_NAME: &str = ".stratalog-summary";

const MAGIC: &[u8; 8] = b"STRTLGSM";
const VERSION: u32 = 1;
const CRC_AT: usize = MAGIC.len() + 4;
const BODY_AT: usize = CRC_AT + 4;
const MAX_BYTES: usize = 64 << 20;

/// What is known of a sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentSummary {
    base: i64,
    /// Bytes of its `.log`.
    pub(crate) length: u64,
    /// The offset after its last record.
    next: i64,
    max_timestamp: i64,
    /// -1 where the largest timestamp is not known.
    max_timestamp_offset: i64,
}

impl SegmentSummary {
    pub(crate) fn new(base: Offset, length: u64, next: Offset, largest: Option<LargestTimestamp>) -> Self {
        let (timestamp, offset) = match largest {
            Some(Some((timestamp, offset))) => (timestamp, offset.value()),
            Some(None) => (Timestamp::NONE, base.value()),
            None => (Timestamp::NONE, -1),
        };
        Self {
            base: base.value(),
            length,
            next: next.value(),
            max_timestamp: timestamp.millis(),
            max_timestamp_offset: offset,
        }
    }

    pub(crate) fn base(&self) -> Offset {
        Offset::new(self.base).unwrap_or(Offset::ZERO)
    }

    /// The offset after its last record; `None` where that makes no sense.
    pub(crate) fn next(&self) -> Option<Offset> {
        Offset::new(self.next).filter(|next| *next >= self.base())
    }

    /// What is known of the largest timestamp.
    pub(crate) fn largest(&self) -> Option<LargestTimestamp> {
        let offset = Offset::new(self.max_timestamp_offset)?;
        Some((self.max_timestamp >= 0).then_some((Timestamp::from_millis(self.max_timestamp), offset)))
    }
}

/// The largest timestamp of a segment and the last offset of the earliest batch that holds it, if any record has one.
pub(crate) type LargestTimestamp = Option<(Timestamp, Offset)>;

/// The summaries in the directory, by rising base offset; none where the file is absent, damaged or of another version.
pub(crate) fn load(dir: &Dir) -> Vec<SegmentSummary> {
    let bytes = match dir.read_small(SUMMARY_NAME, MAX_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "summary not read: segments will be looked at one by one");
            return Vec::new();
        }
    };
    decode(&bytes).unwrap_or_else(|| {
        tracing::warn!(dir = %dir.path().display(), "{SUMMARY_NAME} does not check: segments will be looked at one by one");
        Vec::new()
    })
}

/// Rewrites the directory's summaries.
pub(crate) fn store(dir: &Dir, mode: u32, segments: &[SegmentSummary]) -> crate::sys::Result<()> {
    dir.write_replace(SUMMARY_NAME, &encode(segments), mode)
}

fn encode(segments: &[SegmentSummary]) -> Vec<u8> {
    let mut out = Vec::with_capacity(BODY_AT + 8 + segments.len() * 24);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    // One number and fixed fields: encoding into memory cannot fail, and an empty body is a summary that is ignored.
    let body = bincode::serde::encode_to_vec(segments, bincode::config::standard()).unwrap_or_default();
    out.extend_from_slice(&body);
    let crc = crc32fast::hash(&body).to_le_bytes();
    out[CRC_AT..BODY_AT].copy_from_slice(&crc);
    out
}

fn decode(bytes: &[u8]) -> Option<Vec<SegmentSummary>> {
    let (head, body) = bytes.split_at_checked(BODY_AT)?;
    let (magic, rest) = head.split_first_chunk::<8>()?;
    let (version, crc) = rest.split_first_chunk::<4>()?;
    if magic != MAGIC || u32::from_le_bytes(*version) != VERSION || crc != crc32fast::hash(body).to_le_bytes()
    {
        return None;
    }
    // The limit bounds what a damaged count can make it allocate: it is taken from the length field before any element.
    let config = bincode::config::standard().with_limit::<MAX_BYTES>();
    let (segments, used): (Vec<SegmentSummary>, usize) =
        bincode::serde::decode_from_slice(body, config).ok()?;
    let ordered = segments.is_sorted_by(|left, right| left.base < right.base);
    (used == body.len() && ordered && segments.iter().all(|segment| segment.base >= 0)).then_some(segments)
}

/// What the file's bytes say, for people.
pub(super) fn describe(bytes: &[u8]) -> Described {
    let Some(segments) = decode(bytes) else {
        return Described::wrong("no summary, of another version, or its checksum does not match");
    };
    let mut found = Described::default();
    for segment in segments {
        found.push(
            "segment-summary",
            [
                ("baseOffset", segment.base.into()),
                ("size", segment.length.into()),
                ("nextOffset", segment.next.into()),
                ("maxTimestamp", segment.max_timestamp.into()),
                ("maxTimestampOffset", segment.max_timestamp_offset.into()),
            ],
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<SegmentSummary> {
        let at = |value| Offset::new(value).unwrap();
        vec![
            SegmentSummary::new(at(0), 4096, at(10), Some(Some((Timestamp::from_millis(7), at(3))))),
            SegmentSummary::new(at(10), u64::MAX, at(i64::MAX), None),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(decode(&encode(&some())), Some(some()));
        assert_eq!(decode(&encode(&[])), Some(Vec::new()));
        assert_eq!(some()[0].largest().unwrap().unwrap().0, Timestamp::from_millis(7));
        assert_eq!(some()[1].largest(), None);
    }

    #[test]
    fn the_bytes_are_those_that_the_document_draws() {
        // The example of `.stratalog-summary` in docs/FORMAT.md.
        let body = [
            0x02, 0x00, 0xfb, 0x00, 0x10, 0x14, 0x0e, 0x06, 0x14, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
            0xff, 0xff, 0xfd, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x01,
        ];
        let bytes = encode(&some());
        assert_eq!(&bytes[..CRC_AT], b"STRTLGSM\x01\0\0\0");
        assert_eq!(&bytes[BODY_AT..], body);
    }

    #[test]
    fn damage_is_noticed_and_allocates_nothing() {
        let good = encode(&some());
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            assert_eq!(decode(&bytes), None, "byte {at}");
            assert_eq!(decode(&good[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn a_length_field_that_lies_under_a_right_checksum_is_refused() {
        // Count as a u64 of all ones (bincode's tag 253 and eight bytes), then nothing.
        let mut bytes = encode(&[]);
        bytes.truncate(BODY_AT);
        bytes.extend_from_slice(&[253, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
        let crc = crc32fast::hash(&bytes[BODY_AT..]).to_le_bytes();
        bytes[CRC_AT..BODY_AT].copy_from_slice(&crc);
        assert_eq!(decode(&bytes), None);
    }
}
