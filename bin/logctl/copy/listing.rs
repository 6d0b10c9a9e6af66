//! What there is to be copied of a log, at one moment.

use std::{io::ErrorKind, path::Path};

use stratalog::{
    LogReader, Offset, ReadOptions, SegmentInfo,
    inspect::{IndexEntry, IndexFile, OffsetIndexEntry, TimeIndexEntry},
    transfer::UNFINISHED_COPY,
};

use crate::failure::Failure;

pub(super) const EPOCHS: &str = "leader-epoch-checkpoint";
/// Small files beside the segments that belong to a log. Our checkpoint has the start offset, `quorum-state` is a Kafka
/// controller's vote.
const BESIDE: [&str; 4] = [EPOCHS, "partition.metadata", "quorum-state", ".stratalog-checkpoint"];
/// Consumers' places: who moves a log moves them too.
const CURSOR: &str = ".stratalog-cursor-";
/// More than this is none of the files that are meant.
const BESIDE_BYTES: u64 = 16 << 20;

/// A file to be copied.
pub(super) struct Item {
    pub(super) name: String,
    /// The segment it belongs to, by its base offset.
    pub(super) segment: Option<Offset>,
    /// How much of it: the published part.
    pub(super) bytes: u64,
    /// It cannot change any more: a link is as good as a copy.
    pub(super) may_link: bool,
}

/// The log at one moment.
pub(super) struct Listing {
    pub(super) items: Vec<Item>,
    pub(super) start: Offset,
    pub(super) end: Offset,
    clean: bool,
    /// Read before the segments were listed, so that it knows of nothing that is not copied.
    pub(super) beside: Vec<(String, Vec<u8>)>,
}

impl Listing {
    /// The files of the log in `source` and how much of each, at one moment. `links`: see whether any may be linked.
    pub(super) fn of(source: &Path, links: bool) -> Result<Self, Failure> {
        if source.join(UNFINISHED_COPY).exists() {
            let what = format!("{} is itself a copy that is not finished", source.display());
            return Err(Failure::other(what).hint("finish it with --resume, or copy what it was copied from"));
        }
        let beside = beside(source)?;
        let reader = LogReader::open(source, ReadOptions::default())?;
        let stats = reader.stats();
        let segments = reader.segments();
        let mut items = Vec::new();
        for segment in &segments {
            // Below the recovery point nothing is ever cut or trimmed in place.
            let is_settled =
                segment.sealed && stats.recovery_point.is_some_and(|point| segment.next_offset <= point);
            let may_link = links && is_settled;
            items.push(Item {
                name: file_name(segment),
                segment: Some(segment.base_offset),
                bytes: segment.size_bytes,
                may_link,
            });
            if segment.sealed || stats.clean || is_at_rest(segment) {
                items.extend(sidecars(segment, may_link)?);
            }
        }
        items.extend(numbered(source, stats.end)?);
        Ok(Self { items, start: stats.start, end: stats.end, clean: stats.clean, beside })
    }

    /// The files of each segment, the oldest segment first.
    pub(super) fn segments(&self) -> impl DoubleEndedIterator<Item = &[Item]> {
        let count = self.items.partition_point(|item| item.segment.is_some());
        self.items.get(..count).unwrap_or_default().chunk_by(|a, b| a.segment == b.segment)
    }

    /// The files that belong to no segment.
    pub(super) fn numbered(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.segment.is_none())
    }

    /// The log begins at this segment now: retention took what was before it.
    pub(super) fn begin_at(&mut self, base: Offset) {
        self.items.retain(|item| item.segment.is_none_or(|segment| segment >= base));
        self.start = self.start.max(base);
    }

    pub(super) fn epochs(&self) -> &[u8] {
        self.beside.iter().find(|(name, _)| name == EPOCHS).map_or(&[], |(_, bytes)| bytes)
    }

    /// The small files that belong to the log for others too, with their sizes: what is private to this program is not
    /// counted, as `diff` does not.
    pub(super) fn small_files(&self) -> impl Iterator<Item = (&str, u64)> {
        let public = self.beside.iter().filter(|(name, _)| !name.starts_with(".stratalog-"));
        public.map(|(name, bytes)| (name.as_str(), bytes.len() as u64))
    }

    pub(super) fn total_bytes(&self) -> u64 {
        self.items.iter().map(|item| item.bytes).sum()
    }

    /// True where files of one name may have had other bytes when they were copied than when they were listed: the log
    /// was cut, which begins a leader epoch, or a writer opened one that was closed.
    pub(super) fn is_outdated(&self, source: &Path) -> Result<bool, Failure> {
        let now = Self::of(source, false)?;
        Ok(now.epochs() != self.epochs() || (self.clean && !now.clean))
    }
}

fn beside(source: &Path) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut names: Vec<_> = BESIDE.iter().map(|name| (*name).to_owned()).collect();
    let fail = |error: std::io::Error| Failure::io("list", source.display(), &error);
    for entry in std::fs::read_dir(source).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name().to_string_lossy().into_owned();
        // What ends so is being made.
        if name.starts_with(CURSOR) && Path::new(&name).extension().is_none_or(|suffix| suffix != "new") {
            names.push(name);
        }
    }
    let mut files = Vec::new();
    for name in names {
        let path = source.join(&name);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() && found.len() <= BESIDE_BYTES => {}
            Ok(_) => continue,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(Failure::io("look at", path.display(), &error)),
        }
        match std::fs::read(&path) {
            Ok(bytes) => files.push((name, bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io("read", path.display(), &error)),
        }
    }
    Ok(files)
}

fn file_name(segment: &SegmentInfo) -> String {
    segment.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// True where nobody seems to write to the last segment: whoever does has reserved room in its indexes, which a close
/// takes back. What is found then is a prefix of whatever the files become, so it is right also where somebody begins.
fn is_at_rest(segment: &SegmentInfo) -> bool {
    let is_trimmed = |suffix| match suffix {
        "index" => used_whole::<OffsetIndexEntry>(&segment.path.with_extension(suffix)),
        _ => used_whole::<TimeIndexEntry>(&segment.path.with_extension(suffix)),
    };
    let is_whole = std::fs::metadata(&segment.path).is_ok_and(|found| found.len() == segment.size_bytes);
    is_whole && is_trimmed("index") && is_trimmed("timeindex") && points_within(segment)
}

fn used_whole<E: IndexEntry>(path: &Path) -> bool {
    let Ok(file) = IndexFile::open(path) else { return false };
    file.used_bytes::<E>().is_ok_and(|used| used == file.len_bytes())
}

/// The last entries of the indexes speak of what is copied.
fn points_within(segment: &SegmentInfo) -> bool {
    let next = segment.next_offset.since(segment.base_offset);
    let is_below = |relative: i32| u64::try_from(relative).is_ok_and(|relative| relative < next);
    let last_in_index = IndexFile::open(segment.path.with_extension("index")).ok().and_then(|file| {
        let at = file.len_bytes().saturating_sub(8);
        file.entries_from::<OffsetIndexEntry>(at).next().and_then(Result::ok)
    });
    let last_in_times = IndexFile::open(segment.path.with_extension("timeindex")).ok().and_then(|file| {
        let at = file.len_bytes().saturating_sub(12);
        file.entries_from::<TimeIndexEntry>(at).next().and_then(Result::ok)
    });
    last_in_index.is_none_or(|entry| {
        is_below(entry.relative_offset)
            && u64::try_from(entry.log_position).is_ok_and(|position| position < segment.size_bytes)
    }) && last_in_times.is_none_or(|entry| is_below(entry.relative_offset))
}

/// The indexes of a segment that is not written to any more. Those of the last one are built by the next writer.
fn sidecars(segment: &SegmentInfo, may_link: bool) -> Result<Vec<Item>, Failure> {
    let mut items = Vec::new();
    for suffix in ["index", "timeindex", "txnindex"] {
        let path = segment.path.with_extension(suffix);
        match std::fs::metadata(&path) {
            Ok(found) if found.is_file() => {
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                items.push(Item { name, segment: Some(segment.base_offset), bytes: found.len(), may_link });
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io("look at", path.display(), &error)),
        }
    }
    Ok(items)
}

/// States of producers (`N.snapshot`) and of a controller (`N-EPOCH.checkpoint`), up to the end that is copied: later ones
/// speak of batches that are not.
fn numbered(source: &Path, end: Offset) -> Result<Vec<Item>, Failure> {
    let fail = |error: std::io::Error| Failure::io("list", source.display(), &error);
    let mut items = Vec::new();
    for entry in std::fs::read_dir(source).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(offset) = numbered_offset(&name) else { continue };
        match entry.metadata() {
            Ok(found) if offset <= end && found.is_file() => {
                items.push(Item { name, segment: None, bytes: found.len(), may_link: false });
            }
            _ => {}
        }
    }
    items.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(items)
}

fn numbered_offset(name: &str) -> Option<Offset> {
    let digits = match (name.strip_suffix(".snapshot"), name.strip_suffix(".checkpoint")) {
        (Some(digits), _) => digits,
        (_, Some(both)) => both.split_once('-').filter(|(_, epoch)| is_digits(epoch, 10))?.0,
        _ => return None,
    };
    if !is_digits(digits, 20) {
        return None;
    }
    digits.parse().ok().and_then(Offset::new)
}

fn is_digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_files_are_known_by_their_names() {
        let at = |name: &str| numbered_offset(name).map(Offset::value);
        assert_eq!(at("00000000000000000042.snapshot"), Some(42));
        assert_eq!(at("00000000000000000042-0000000003.checkpoint"), Some(42));
        for name in
            ["42.snapshot", "leader-epoch-checkpoint", "00000000000000000042.checkpoint", "x-1.checkpoint"]
        {
            assert_eq!(at(name), None, "{name}");
        }
    }
}
