//! What opening a log for writing found and did, told on standard error by every verb that opens one.
//!
//! Holds always: what was cut, what is gone and what is damaged is told, with --quiet too: that is no chatter.

use stratalog::{Cut, RecoveryReport};

use crate::{
    globals::{Globals, warn},
    output::counted,
};

/// Tells it.
pub(crate) fn tell_recovery(report: &RecoveryReport, globals: &Globals) {
    tell_warnings(report);
    if let Some(cut) = &report.cut {
        warn(&cut_text(cut));
    }
    tell_loss(report, globals);
}

/// What is odd.
pub(crate) fn tell_warnings(report: &RecoveryReport) {
    for warning in &report.warnings {
        warn(warning);
    }
}

/// The same, of an open that was asked to cut.
pub(crate) fn tell_loss(report: &RecoveryReport, globals: &Globals) {
    if let Some(lost) = &report.lost {
        warn(&format!(
            "offsets {} up to {} were durable and are gone: the files end before them",
            lost.start, lost.end
        ));
    }
    for damage in &report.corrupt {
        warn(&format!("damaged: {damage}"));
    }
    if globals.verbose > 0 {
        for path in &report.rebuilt {
            globals.note(format!("rebuilt {}", path.display()));
        }
    }
}

fn cut_text(cut: &Cut) -> String {
    let kept = cut.kept_in.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let readable = match &cut.readable {
        Some(readable) => format!(
            "; among them {} in {} that can be read, offsets {} up to {}, which `logctl repair` before this would have \
             kept",
            counted(readable.records, "record"),
            counted(readable.batches, "batch"),
            readable.offsets.start,
            readable.offsets.end
        ),
        None => String::new(),
    };
    let kept = if kept.is_empty() { String::new() } else { format!("; they are kept in {kept}") };
    let (bytes, offset, reason) = (counted(cut.bytes, "byte"), cut.offset, &cut.reason);
    if cut.was_asked_for {
        return format!("{bytes} from offset {offset} on were cut{kept}: {reason} was finished");
    }
    if cut.bytes == 0 {
        return format!("an empty segment behind offset {offset} was removed: {reason}");
    }
    format!("{bytes} from offset {offset} on did not check and were cut{kept}: {reason}{readable}")
}
