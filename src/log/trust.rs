//! What an open may believe: a clean mark, a recovery point, the page cache.

use super::{
    checkpoint::{Checkpoint, Point},
    control::ControlView,
    cut,
    recovery::{Known, Recovery, mark_of},
    survey::Survey,
};
use crate::{
    error::Result,
    offset::Offset,
    record::{BatchHeader, HEADER_BYTES},
    segment::{FileKind, file_name},
    sys::{Dir, FileSystem, Open},
};

impl Recovery<'_> {
    /// The end, where our clean flag counts: the files are exactly those it speaks of.
    pub(super) fn clean_end(&self) -> Result<Option<Point>> {
        let (true, Some(point)) = (self.checkpoint.clean, self.checkpoint.point) else { return Ok(None) };
        let exact = is_exact(&self.checkpoint, &self.survey) && self.survey.orphans().is_empty();
        Ok((exact && stands(self.dir, point)?).then_some(point))
    }

    /// After a sync that failed, or was not seen to succeed, the page cache may hold as clean what the disk does not
    /// have. What can be written back is; what remains is dropped, so that the scan reads the disk.
    pub(super) fn doubt_page_cache(&mut self) -> Result<()> {
        let Some(view) = self.previous.filter(ControlView::doubts_page_cache) else { return Ok(()) };
        if self.dir.file_system()? == FileSystem::Tmpfs {
            return Ok(());
        }
        let first = self.survey.holder_of(view.durable);
        for log in &self.survey.logs[first..] {
            let file = self.dir.open_file(file_name(log.base, FileKind::Log), Open::ReadWrite)?;
            file.sync_data()?;
            cut::drop_from_cache(&file, log.len)?;
        }
        self.report.warnings.push(format!(
            "the last sync was not seen to succeed: everything from offset {} on was read from the disk itself",
            view.durable
        ));
        Ok(())
    }

    pub(super) fn what_counts(&self, kafka: Option<Offset>) -> Result<Known> {
        let own = point_that_counts(self.dir, &self.checkpoint, &self.survey)?;
        let last = self.survey.logs.last().map_or(Offset::ZERO, |log| log.base);
        let floor = match (own, kafka) {
            (None, None) => last,
            (own, kafka) => own.map_or(Offset::ZERO, |point| point.offset).max(kafka.unwrap_or(Offset::ZERO)),
        };
        let scan_from = match (own, kafka) {
            _ if self.lacks_epochs => 0,
            (None, None) => 0,
            (Some(point), None) => self.survey.holder_of(point.base),
            (None, Some(offset)) => self.survey.holder_of(offset),
            (Some(point), Some(offset)) => self.survey.holder_of(point.base.min(offset)),
        };
        Ok(Known { own, floor, scan_from })
    }

    /// Our recovery point does not count. A broker that compacts or drops does that to it, and so does loss: say which
    /// of the files it names are gone or shorter.
    pub(super) fn warn_of_changed_segments(&mut self) {
        let Some(point) = self.checkpoint.point else { return };
        let start = self.checkpoint.start;
        let ends = self.checkpoint.sealed.iter().skip(1).map(|(base, _)| *base).chain([point.base]);
        for ((base, length), end) in self.checkpoint.sealed.iter().zip(ends) {
            let now = self.survey.logs.iter().find(|log| log.base == *base).map(|log| log.len);
            let what = match now {
                _ if end <= start => continue,
                Some(now) if now >= *length => continue,
                Some(now) => format!("has {now} bytes"),
                None => "is not there".to_owned(),
            };
            let name = file_name(*base, FileKind::Log);
            self.report
                .warnings
                .push(format!("{name} had {length} bytes when it was made durable, and {what}"));
        }
    }
}

/// True where the log's files are those that the checkpoint names, no longer and no shorter.
fn is_exact(checkpoint: &Checkpoint, survey: &Survey) -> bool {
    let Some(point) = checkpoint.point else { return false };
    survey.is_exactly(checkpoint.sealed.iter().copied().chain([(point.base, point.position)]))
}

/// Our recovery point, where it counts: from the start offset on, the segments below it are the ones it names, and its
/// batch stands at its position.
fn point_that_counts(dir: &Dir, checkpoint: &Checkpoint, survey: &Survey) -> Result<Option<Point>> {
    let Some(point) = checkpoint.point else { return Ok(None) };
    let start = checkpoint.start;
    let sealed = &checkpoint.sealed;
    // A listed segment ends where the next one begins.
    let ends = sealed.iter().skip(1).map(|(base, _)| *base).chain([point.base]);
    let needed = sealed.iter().zip(ends).filter(|(_, end)| *end > start).map(|(listed, _)| *listed);
    let needed_from = needed.clone().next().map_or(point.base, |(base, _)| base);
    let below = survey.logs.iter().filter(|log| log.base >= needed_from && log.base < point.base);
    let holder = survey.logs.iter().find(|log| log.base == point.base);
    let names_match = below.map(|log| (log.base, log.len)).eq(needed);
    let counts = names_match && holder.is_some_and(|log| log.len >= point.position) && stands(dir, point)?;
    Ok(counts.then_some(point))
}

/// True where the batch that a point names ends at its position.
fn stands(dir: &Dir, point: Point) -> Result<bool> {
    let Some(mark) = point.batch else { return Ok(point.position == 0 && point.offset == point.base) };
    let Some(at) = point.position.checked_sub(u64::from(mark.size)) else { return Ok(false) };
    let file = dir.open_file(file_name(point.base, FileKind::Log), Open::Read)?;
    let mut head = [0; HEADER_BYTES];
    if file.read_at(&mut head, at)? < HEADER_BYTES {
        return Ok(false);
    }
    let header = BatchHeader::parse(&head);
    Ok(header.is_ok_and(|header| mark_of(&header) == mark && header.next_offset() == Some(point.offset)))
}

/// The place that the log surely reaches, for somebody who only reads: our recovery point, where it counts. After a clean
/// close the sizes of the files are enough: what is not right in them was right once.
pub(super) fn least_end(dir: &Dir, checkpoint: &Checkpoint, survey: &Survey) -> Result<Option<Point>> {
    if let Some(point) = checkpoint.point.filter(|_| checkpoint.clean && is_exact(checkpoint, survey)) {
        let batch = if stands(dir, point)? { point.batch } else { None };
        return Ok(Some(Point { batch, ..point }));
    }
    point_that_counts(dir, checkpoint, survey)
}
