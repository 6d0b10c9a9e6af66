//! The newest timestamp among records that are to go, for the plans of verbs that drop or cut.

use std::ops::Range;

use stratalog::{
    Offset, SegmentInfo, Timestamp,
    inspect::{LogFile, Piece},
};

use crate::{
    failure::{Code, Failure},
    grammar::Border,
    printer::time_text,
};

/// The largest timestamp of batches that begin in these offsets, by the headers; what cannot be read has none. Segments that
/// lie wholly in them are not read where theirs is known.
pub(crate) fn newest_of(
    segments: &[SegmentInfo],
    offsets: &Range<Offset>,
) -> Result<Option<Timestamp>, Failure> {
    let mut newest: Option<Timestamp> = None;
    for segment in segments {
        if segment.base_offset >= offsets.end || segment.next_offset <= offsets.start {
            continue;
        }
        let is_whole = segment.base_offset >= offsets.start && segment.next_offset <= offsets.end;
        if let Some(known) = segment.max_timestamp.filter(|_| is_whole) {
            newest = newest.max(Some(known));
            continue;
        }
        let file = LogFile::open(&segment.path)?;
        let mut pieces = file.pieces_from(0, segment.size_bytes);
        while let Some(piece) = pieces.next_piece()? {
            if let Piece::Batch(entry) = piece
                && offsets.contains(&entry.header.base_offset())
            {
                newest = newest.max(Some(entry.header.max_timestamp()));
            }
        }
    }
    Ok(newest.filter(|at| *at > Timestamp::NONE))
}

/// For the text of a plan: the time that was asked for, and what is the newest that goes.
pub(crate) fn times_text(border: Border, newest: Option<Timestamp>) -> String {
    let asked = border.time().map(|at| format!("; the time is {}", time_text(at.millis())));
    let newest = newest.map(|at| format!("; newest that goes: {}", time_text(at.millis())));
    format!("{}{}", asked.unwrap_or_default(), newest.unwrap_or_default())
}

/// Why a time that no record reaches is refused.
///
/// Of many logs one may be idle: then the others are worked on, which a mistake in the command's line would end.
pub(crate) fn beyond_newest(at: Timestamp, is_many: bool) -> Failure {
    let code = if is_many { Code::Other } else { Code::Usage };
    Failure::new(code, format!("every record is older than {}", time_text(at.millis())))
        .hint("`end` stands for the end of the log; nothing was changed")
}
