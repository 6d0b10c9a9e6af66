//! What lies behind the last sound batch of a segment, judged.

use super::{
    super::{
        finding::{Finding, FindingKind, Severity},
        pieces::Tail,
    },
    Check, shown,
};

impl Check<'_> {
    pub(super) fn judge_tail(&mut self, tail: &Tail) {
        let sealed = self.files.next_base.is_some();
        let offset = self.expected();
        let finding = match tail {
            Tail::Clean => return,
            Tail::Zeros { position, size_bytes } => {
                // Room that a crash left: the batches must reach the next segment for nothing to be missing.
                if sealed && offset != self.files.next_base {
                    let detail = format!(
                        "{size_bytes} bytes of zeros to the end of a sealed segment, and the next begins at offset {}",
                        shown(self.files.next_base)
                    );
                    self.damage(FindingKind::ZeroedBytes, *position, offset, detail)
                } else {
                    let detail = format!("{size_bytes} bytes of zeros behind the last batch");
                    Finding::new(&self.files.log, FindingKind::Untrimmed, Severity::Warning, detail)
                        .at(*position)
                }
            }
            Tail::Partial { position, size_bytes } => {
                let kind = if sealed { FindingKind::BadTail } else { FindingKind::TornTail };
                let detail =
                    format!("the last {size_bytes} bytes begin a batch that the file does not complete");
                self.damage(kind, *position, offset, detail)
            }
            Tail::Bad { position, size_bytes, reason } => {
                let detail = format!("{reason}; no batch begins in the last {size_bytes} bytes");
                self.damage(reason.kind(), *position, offset, detail)
            }
        };
        self.found(Finding { repairable: finding.repairable || !sealed, ..finding });
    }
}
