//! Transaction indexes, held against the markers in the log. What is wrong with one is a warning: a reader here asks the
//! batches, a broker's consumers are told of aborted transactions by it alone.

use std::collections::{HashMap, HashSet};

use super::{
    finding::{Finding, FindingKind, Severity},
    report::{Findings, SegmentReport, unreadable},
};
use crate::{
    log::{AbortedTransaction, Marker, Transactions, txn_index},
    offset::Offset,
    record::BatchHeader,
    segment::{FileKind, file_name},
    sys::Dir,
};

/// What a segment says of transactions: no more than two batches for each of them.
#[derive(Debug, Default)]
pub(super) struct Seen {
    batches: Vec<(BatchHeader, Option<Marker>)>,
    /// Producers whose batches behind their last marker are known already.
    known: HashSet<i64>,
}

impl Seen {
    /// Takes in a batch whose checksum is right.
    pub(super) fn batch(&mut self, header: &BatchHeader, marker: Option<Marker>) {
        let producer_id = header.producer_id();
        if producer_id < 0 || !(header.is_transactional() || header.is_control()) {
            return;
        }
        if header.is_control() {
            self.known.remove(&producer_id);
            self.batches.push((*header, marker));
        } else if self.known.insert(producer_id) {
            self.batches.push((*header, None));
        }
    }
}

/// Holds the transaction indexes of all segments against what the segments say.
pub(super) fn check(dir: &Dir, reports: &[SegmentReport], findings: &mut Findings) {
    // Where batches cannot be read, nobody knows what they would have said.
    let is_readable = reports.iter().all(|report| report.findings.damage_count() == 0);
    // Where some are gone, an index may know more.
    let is_whole = reports.first().is_none_or(|report| report.base == Offset::ZERO)
        && reports.iter().all(|report| report.gaps.is_none())
        && reports.windows(2).all(|pair| match pair {
            [before, after] => before.end.unwrap_or(before.base) == after.base,
            _ => true,
        });
    let mut transactions = Transactions::default();
    for (index, report) in reports.iter().enumerate() {
        let aborted: Vec<AbortedTransaction> = report
            .transactions
            .batches
            .iter()
            .filter_map(|(header, marker)| transactions.observe(header, *marker))
            .collect();
        let name = file_name(report.base, FileKind::TxnIndex);
        let warn = |detail: String| {
            Finding::new(dir.path_of(&name), FindingKind::TxnIndex, Severity::Warning, detail)
        };
        let stored = match txn_index::load(dir, report.base) {
            Ok(None) => None,
            Ok(Some(Ok(stored))) => Some(stored),
            Ok(Some(Err(flaw))) => {
                let position = flaw.entry.saturating_mul(txn_index::ENTRY_BYTES);
                findings.push(warn(flaw.to_string()).at(position as u64));
                continue;
            }
            Err(error) => {
                findings.push(Finding { severity: Severity::Warning, ..unreadable(&error.into()) });
                continue;
            }
        };
        if !is_readable {
            continue;
        }
        // A writer at work adds to the last one's.
        let end = report.end.filter(|_| index + 1 == reports.len());
        compare(stored.as_deref(), &aborted, (is_whole, end), &warn, findings);
    }
}

fn compare(
    stored: Option<&[AbortedTransaction]>,
    aborted: &[AbortedTransaction],
    (is_whole, end): (bool, Option<Offset>),
    warn: &dyn Fn(String) -> Finding,
    findings: &mut Findings,
) {
    let Some(stored) = stored else {
        if let Some(first) = aborted.first() {
            let count = aborted.len();
            let detail = format!("absent, and {count} aborted transactions end in the segment");
            findings.push(warn(detail).with_offset(Some(first.last_offset)));
        }
        return;
    };
    let by_marker = |entries: &[AbortedTransaction]| -> HashMap<Offset, AbortedTransaction> {
        entries.iter().map(|entry| (entry.last_offset, *entry)).collect()
    };
    let (named, known) = (by_marker(stored), by_marker(aborted));
    for entry in stored.iter().filter(|entry| end.is_none_or(|end| entry.last_offset < end)) {
        let AbortedTransaction { producer_id, first_offset, last_offset, last_stable_offset } = *entry;
        let wrong = match known.get(&last_offset) {
            None => is_whole.then(|| "ended there".to_owned()),
            Some(real) if real.producer_id != producer_id => {
                Some(format!("ended there, it is producer {}'s", real.producer_id))
            }
            Some(real)
                if first_offset > real.first_offset || (is_whole && first_offset < real.first_offset) =>
            {
                Some(format!("began there, it began at {}", real.first_offset))
            }
            Some(real)
                if last_stable_offset > real.last_stable_offset
                    || (is_whole && last_stable_offset < real.last_stable_offset) =>
            {
                Some(format!("left that stable, it was {}", real.last_stable_offset))
            }
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            let detail = format!(
                "names producer {producer_id}, offsets {first_offset} to {last_offset}, stable up to \
                 {last_stable_offset}: no aborted transaction {wrong}"
            );
            findings.push(warn(detail).with_offset(Some(last_offset)));
        }
    }
    for entry in aborted.iter().filter(|entry| !named.contains_key(&entry.last_offset)) {
        let detail = format!(
            "lacks the aborted transaction of producer {} from offset {} to {}",
            entry.producer_id, entry.first_offset, entry.last_offset
        );
        findings.push(warn(detail).with_offset(Some(entry.last_offset)));
    }
}
