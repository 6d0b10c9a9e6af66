//! Where a `tail` begins that has no place kept: the last records, those since a time, or the last that a filter lets
//! through.

use std::collections::VecDeque;

use stratalog::{Offset, record::Scratch};

use super::Args;
use crate::{
    damage::Damage,
    failure::Failure,
    printer::{Printer, Window},
    source::Source,
    stop::Stop,
};

/// The first offset.
pub(super) fn begin(
    args: &Args,
    source: &Source,
    printer: &Printer<'_>,
    stop: &Stop,
) -> Result<Offset, Failure> {
    let since = match args.since {
        None => None,
        Some(at) => Some(source.first_not_before(at)?.unwrap_or_else(|| source.end())),
    };
    let last = match (args.lines, since) {
        (None, Some(_)) | (Some(u64::MAX), _) => None,
        (lines, _) if printer.is_filtered() => {
            Some(last_passing_from(source, printer, lines.unwrap_or(10), stop)?)
        }
        (lines, _) => Some(source.last_records_from(lines.unwrap_or(10), stop)?),
    };
    Ok(since.max(last).unwrap_or_else(|| source.start()))
}

/// Where the last `count` records begin that the filter lets through: looked for in more and more of the log's end.
fn last_passing_from(
    source: &Source,
    printer: &Printer<'_>,
    count: u64,
    stop: &Stop,
) -> Result<Offset, Failure> {
    let kept = usize::try_from(count).unwrap_or(usize::MAX);
    let mut looked_at = count.max(1000);
    let mut scratch = Scratch::new();
    loop {
        let from = source.last_records_from(looked_at, stop)?;
        let mut last = VecDeque::new();
        let window = Window { from, to: Offset::MAX, most: u64::MAX };
        // What is damaged is met again when it is printed.
        source.visit_over(&mut Damage::ignored(), from, stop, &mut |batch| {
            printer.visit(batch, window, &mut scratch, &mut |view| {
                last.push_back(view.offset);
                if last.len() > kept {
                    last.pop_front();
                }
                Ok(())
            })?;
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        if last.len() >= kept || from <= source.start() {
            return Ok(last.front().copied().unwrap_or_else(|| source.end()));
        }
        looked_at = looked_at.saturating_mul(8);
    }
}
