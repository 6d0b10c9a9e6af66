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
    format!(
        "{} bytes from offset {} on did not check and were cut; they are kept in {kept}: {}{readable}",
        cut.bytes, cut.offset, cut.reason
    )
}
