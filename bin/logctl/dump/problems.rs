//! What a dump found wrong: told on standard error at the end, in Kafka's words where it has some, and in the exit code.

use std::{collections::BTreeMap, path::Path, process::ExitCode};

use stratalog::Error;

use crate::{
    failure::{Code, Failure},
    globals::{Globals, eprint},
};

/// The most complaints of one kind printed of one file.
const MAX_SHOWN: usize = 1000;

/// Everything wrong so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// Per heading, its lines.
    groups: BTreeMap<(u8, String), Vec<String>>,
    is_corrupt: bool,
    failure: Option<Code>,
    dumped: u64,
    not_dumped: u64,
}

impl Problems {
    /// A file was dumped, whatever was found in it.
    pub(super) const fn dumped(&mut self) {
        self.dumped += 1;
    }

    /// Damage, in our words.
    pub(super) fn damage(&mut self, path: &Path, text: &str) {
        self.corrupt(4, format!("Damage in {}", super::absolute(path).display()), format!("  {text}"));
    }

    /// An index entry that does not fit its batch.
    pub(super) fn index_mismatch(&mut self, path: &Path, index_offset: i64, log_offset: i64) {
        let line = format!("  Index offset: {index_offset}, log offset: {log_offset}");
        self.corrupt(0, format!("Mismatches in :{}", super::absolute(path).display()), line);
    }

    /// A time index entry with another timestamp than its batch.
    pub(super) fn time_mismatch(&mut self, path: &Path, index: i64, log: i64) {
        let line = format!("  Index timestamp: {index}, log timestamp: {log}");
        self.corrupt(1, format!("Found timestamp mismatch in :{}", super::absolute(path).display()), line);
    }

    /// A time index entry that is not later than the one before it.
    pub(super) fn time_order(&mut self, path: &Path, index: i64, previous: i64) {
        let line = format!("  Index timestamp: {index}, Previously indexed timestamp: {previous}");
        self.corrupt(
            2,
            format!("Found out of order timestamp in :{}", super::absolute(path).display()),
            line,
        );
    }

    /// A time index entry whose offset ends no batch.
    pub(super) fn offset_not_found(&mut self, path: &Path, indexed: i64, found: i64) {
        let line = format!("Indexed offset: {indexed}, found log offset: {found}");
        let heading =
            format!("The following indexed offsets are not found in :{}", super::absolute(path).display());
        self.corrupt(3, heading, line);
    }

    fn corrupt(&mut self, rank: u8, heading: String, line: String) {
        self.is_corrupt = true;
        self.groups.entry((rank, heading)).or_default().push(line);
    }

    /// Damage that the dump shows by itself.
    pub(super) const fn shown_damage(&mut self) {
        self.is_corrupt = true;
    }

    /// Kafka's words for a file that is none of a log's, and what it looks like.
    pub(super) fn unknown(&mut self, path: &Path, looks: &str) {
        eprint(&format!("Ignoring unknown file {}: {looks}", path.display()));
        self.not_dumped += 1;
    }

    /// Records that were not unpacked.
    pub(super) fn unread(&mut self, path: &Path, what: &str) {
        eprint(&format!("{}: {what}", path.display()));
        self.failure = self.failure.or(Some(Code::Other));
    }

    /// A file that cannot be opened or read.
    pub(super) fn unreadable(&mut self, path: &Path, error: &Error, globals: &Globals) {
        let place = path.display().to_string();
        // Not the library's word for it, which is of a whole log.
        let text = match error {
            Error::NotFound { .. } => format!("no file {place}"),
            error if super::code_of(error) == Code::NotFound => format!("no file {place}"),
            error => error.to_string(),
        };
        let text = if text.contains(&place) { text } else { format!("{place}: {text}") };
        globals.complain(&Failure::other(text));
        self.failure = self.failure.or(Some(super::code_of(error)));
    }

    /// All complaints, at the end as Kafka's tool has them.
    pub(super) fn print(&self) {
        for ((_, heading), lines) in &self.groups {
            eprint(heading);
            for line in lines.iter().take(MAX_SHOWN) {
                eprint(line);
            }
            if let Some(more) = lines.len().checked_sub(MAX_SHOWN).filter(|&more| more > 0) {
                eprint(&format!("  and {more} more"));
            }
        }
    }

    /// Damage counts most; files that are not read here count only when nothing else was asked for.
    pub(super) fn outcome(&self) -> Result<ExitCode, Failure> {
        match (self.is_corrupt, self.failure) {
            (true, _) => Err(Failure::quiet(Code::Corrupt)),
            (false, Some(code)) => Err(Failure::quiet(code)),
            (false, None) if self.dumped == 0 && self.not_dumped > 0 => Err(Failure::quiet(Code::Other)),
            (false, None) => Ok(ExitCode::SUCCESS),
        }
    }
}

/// The path of a file for a JSON line; a name that is not UTF-8 is shown with replacements.
pub(super) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
