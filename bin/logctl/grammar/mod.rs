//! The small languages of the command line: sizes, durations, times, offset ranges, escapes, policies.
//!
//! Lives here: text in, values out, with errors that show what would be right. Not here: templates (`template`) and
//! JSON lines (`json`). Holds always: no function here looks at a log, a clock (but for `now`) or the environment.

mod border;
mod offsets;
mod quantity;
mod time;

pub(crate) use border::{Border, border, past_border};
pub(crate) use offsets::{OffsetRange, offset_range};
pub(crate) use quantity::{duration, escape, escapes, offset, size, size_u32};
pub(crate) use time::{signed_time, signed_time_with, time, time_or_ago};
