//! What lies in a partition directory: names, lengths and nothing of the contents.

use std::collections::BTreeSet;

use super::epochs::EPOCHS_NAME;
use crate::{
    error::{Corruption, Error, Result},
    offset::Offset,
    segment::{Fate, FileKind, SegmentFileName, file_name, newest_log},
    sys::{Dir, EntryKind},
};

/// What every private file's name begins with. None ends in a suffix that Kafka gives a meaning to.
pub(crate) const PRIVATE_PREFIX: &str = ".stratalog-";
/// What a file that was being written ends in: one to be renamed over another, and an index.
const TEMPORARY_SUFFIXES: [&str; 2] = [".tmp", ".new"];

/// One `.log` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogFile {
    pub(crate) base: Offset,
    pub(crate) len: u64,
    /// When it was last changed, in milliseconds since the epoch: what is known of a segment without timestamps.
    pub(crate) mtime_ms: i64,
}

/// The files of a partition directory.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// By rising base offset.
    pub(crate) logs: Vec<LogFile>,
    /// The other live files of segments.
    pub(crate) sidecars: BTreeSet<(Offset, FileKind)>,
    /// Names that an earlier writer meant to remove.
    pub(crate) leftovers: Vec<String>,
    /// What is odd and harmless.
    pub(crate) warnings: Vec<String>,
}

impl Survey {
    /// Lists the directory. Entries that are not ours are not opened, followed or counted.
    pub(crate) fn take(dir: &Dir) -> Result<Self> {
        let mut survey = Self::default();
        for entry in dir.list()? {
            let Some(name) = SegmentFileName::parse(&entry.name) else {
                survey.note_private(&entry.name.to_string_lossy());
                continue;
            };
            let text = name.to_string();
            match entry.kind {
                EntryKind::File => {}
                EntryKind::Symlink if name.kind == FileKind::Log && name.fate.is_none() => {
                    let reason = "a symbolic link stands where a segment belongs; put the file itself there"
                        .to_owned();
                    return Err(Corruption {
                        path: dir.path_of(&text),
                        position: 0,
                        offset: Some(name.base),
                        reason,
                    }
                    .into());
                }
                EntryKind::Symlink | EntryKind::Dir | EntryKind::Other => {
                    survey
                        .warnings
                        .push(format!("{}: not a regular file, left alone", dir.path_of(&text).display()));
                    continue;
                }
            }
            survey.note_segment_file(dir, name)?;
        }
        survey.logs.sort_unstable_by_key(|log| log.base);
        Ok(survey)
    }

    /// Lists a directory that another process may be writing. A listing that runs while segments begin may miss one of
    /// them and name a later one, and whoever believed it would pass over a whole segment. It is complete up to the
    /// newest segment that was there before it began, and ends there: later ones are seen at the next look.
    pub(crate) fn take_while_written(dir: &Dir) -> Result<Self> {
        let newest = newest_log(dir)?;
        let mut survey = Self::take(dir)?;
        survey.logs.retain(|log| Some(log.base) <= newest);
        Ok(survey)
    }

    fn note_segment_file(&mut self, dir: &Dir, name: SegmentFileName) -> Result<()> {
        match (name.fate, name.kind) {
            (Some(Fate::Deleted | Fate::Cleaned), _) => self.leftovers.push(name.to_string()),
            (Some(Fate::Swap), FileKind::Log) => {
                let what =
                    "a compaction's result that is not yet in its place (`.swap`; a Kafka broker takes it in at its next start)".to_owned();
                return Err(Error::UnsupportedVersion { path: dir.path_of(name.to_string()), what });
            }
            (Some(Fate::Swap), _) => {}
            (None, FileKind::Log) => {
                let text = file_name(name.base, FileKind::Log);
                let Some(stat) = dir.stat(&text)? else { return Ok(()) };
                if stat.len > u64::from(i32::MAX.unsigned_abs()) {
                    let reason = format!(
                        "{} bytes: a segment holds at most {} (positions have 31 bits)",
                        stat.len,
                        i32::MAX
                    );
                    return Err(Corruption {
                        path: dir.path_of(&text),
                        position: 0,
                        offset: Some(name.base),
                        reason,
                    }
                    .into());
                }
                self.logs.push(LogFile { base: name.base, len: stat.len, mtime_ms: stat.mtime_ms });
            }
            (None, kind) => {
                self.sidecars.insert((name.base, kind));
            }
        }
        Ok(())
    }

    fn note_private(&mut self, name: &str) {
        let of = TEMPORARY_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix));
        if of.is_some_and(|of| of.starts_with(PRIVATE_PREFIX) || of == EPOCHS_NAME) {
            self.leftovers.push(name.to_owned());
        }
    }

    /// True where the `.log` files are exactly `expected`: base offsets and lengths.
    pub(crate) fn is_exactly(&self, expected: impl Iterator<Item = (Offset, u64)>) -> bool {
        self.logs.iter().map(|log| (log.base, log.len)).eq(expected)
    }

    /// The place in `logs` of the segment that would hold `offset`: the last that begins at or before it, or the first.
    pub(crate) fn holder_of(&self, offset: Offset) -> usize {
        self.logs.partition_point(|log| log.base <= offset).saturating_sub(1)
    }

    /// Index files, and the like, of segments whose `.log` is gone.
    pub(crate) fn orphans(&self) -> Vec<String> {
        let has_log = |base: &Offset| self.logs.binary_search_by_key(base, |log| log.base).is_ok();
        let is_index = |kind: &FileKind| FileKind::SIDECARS.contains(kind);
        let orphans = self.sidecars.iter().filter(|(base, kind)| is_index(kind) && !has_log(base));
        orphans.map(|(base, kind)| file_name(*base, *kind)).collect()
    }
}
