//! One partition: listed, copied file by file, listed anew where the log changed under it.

use std::path::Path;

use stratalog::{Error, LogConfig, LogReader, LogWriter, Offset, ReadOptions};

use super::{
    Flow, How, check,
    files::{Copied, Destination, Linked, Settling, gone},
    listing::{EPOCHS, Item, Listing},
};
use crate::failure::{Code, Failure};

/// How often a listing is begun anew though nothing was copied since the one before.
const LISTINGS: usize = 20;
/// And how often at all.
const ALL_LISTINGS: usize = 2000;

/// What to do once the reason for an end is gone.
pub(super) const GO_ON: &str = "the copy is not finished: --resume goes on with it";

/// What was done so far.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Done {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) copied: u64,
    pub(super) linked: u64,
    /// Copied by sharing blocks.
    pub(super) shared: u64,
    /// Found whole from a copy before.
    pub(super) kept: u64,
    /// Read back and compared.
    pub(super) checked: u64,
    /// Nothing was to be done: there is a finished copy.
    pub(super) was_finished: bool,
}

impl Done {
    pub(super) fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.copied += other.copied;
        self.linked += other.linked;
        self.shared += other.shared;
        self.kept += other.kept;
        self.checked += other.checked;
    }

    pub(super) fn add_small_files(&mut self, listing: &Listing) {
        for (_, bytes) in listing.small_files() {
            self.files += 1;
            self.bytes += bytes;
        }
    }
}

/// Copies the log in `source` to a destination that was begun. What it gives is what was copied.
pub(super) fn copy(
    source: &Path,
    destination: Destination,
    how: &How,
    flow: &mut Flow,
) -> Result<(Listing, Done), Failure> {
    let begun_at = flow.done_bytes;
    let (mut tries, mut all_tries) = (0, 0);
    let (listing, done) = loop {
        let mut listing = Listing::of(source, how.links)?;
        destination.begin(EPOCHS, listing.epochs())?;
        let mut done = Done::default();
        flow.done_bytes = begun_at;
        let outcome = copy_all(source, &mut listing, &destination, how, flow, &mut done);
        all_tries += 1;
        tries = if done.copied > 0 { 1 } else { tries + 1 };
        let may_try = tries < LISTINGS && all_tries < ALL_LISTINGS;
        match outcome {
            Ok(()) if !listing.is_outdated(source)? => break (listing, done),
            Ok(()) if may_try => destination.clear()?,
            Ok(()) => {
                let what = format!("{} was cut again and again meanwhile", source.display());
                return Err(Failure::other(what));
            }
            // Retention took all of it, or the log was cut: what is there now is listed again.
            Err(failure) if is_gone(&failure) && may_try => {}
            Err(failure) if failure.is_quiet() => return Err(failure),
            Err(failure) => return Err(failure.hint(GO_ON)),
        }
    };
    let mut done = done;
    done.add_small_files(&listing);
    if how.check {
        let compared = check::compare(source, destination.path(), &listing, flow);
        done.checked = match compared {
            Err(failure) if failure.code == Code::Corrupt && listing.is_outdated(source)? => {
                let what = format!("{} was cut while it was compared with its copy", source.display());
                return Err(Failure::other(what).hint(GO_ON));
            }
            compared => compared?,
        };
    }
    destination.finish(&listing.beside)?;
    Ok((listing, done))
}

/// A broker keeps the start of its logs beside them, where it does not come along.
pub(super) fn carry_start(destination: &Path, start: Offset) -> Result<(), Failure> {
    let copied = LogReader::open(destination, ReadOptions::default())?.start();
    if copied >= start {
        return Ok(());
    }
    let mut writer = LogWriter::open(destination, LogConfig::default())?;
    writer.advance_start(start)?;
    Ok(writer.close()?)
}

/// The newest segment first: retention takes the oldest, and what it takes meanwhile the copy begins after, however fast
/// that goes.
fn copy_all(
    source: &Path,
    listing: &mut Listing,
    destination: &Destination,
    how: &How,
    flow: &mut Flow,
    done: &mut Done,
) -> Result<(), Failure> {
    destination.remove_all_but(&names_of(listing))?;
    let mut work = Work { source, destination, how, flow, done, settling: Settling::default() };
    let mut first = None;
    let mut is_shorter = false;
    for files in listing.segments().rev() {
        let Some(item) = files.first() else { continue };
        for file in files {
            if !work.file(file)? {
                is_shorter = true;
                break;
            }
        }
        if is_shorter {
            break;
        }
        first = item.segment;
    }
    match first {
        Some(base) if is_shorter => listing.begin_at(base),
        None if is_shorter => return Err(gone(source)),
        _ => {}
    }
    let mut taken = Vec::new();
    for file in listing.numbered() {
        if !work.file(file)? {
            taken.push(file.name.clone());
        }
    }
    work.settling.finish()?;
    listing.items.retain(|item| !taken.contains(&item.name));
    if is_shorter {
        destination.remove_all_but(&names_of(listing))?;
    }
    done.files = listing.items.len() as u64;
    done.bytes = listing.total_bytes();
    Ok(())
}

fn names_of(listing: &Listing) -> Vec<&str> {
    listing.items.iter().map(|item| item.name.as_str()).chain([EPOCHS]).collect()
}

struct Work<'w> {
    source: &'w Path,
    destination: &'w Destination,
    how: &'w How,
    flow: &'w mut Flow,
    done: &'w mut Done,
    /// One file is being synced while the next is being copied.
    settling: Settling,
}

impl Work<'_> {
    /// Sees to it that this file is there. False: the source does not have it any more.
    fn file(&mut self, item: &Item) -> Result<bool, Failure> {
        self.flow.stop.check()?;
        if self.destination.has(&item.name, item.bytes)? {
            self.done.kept += 1;
            self.flow.pass(item.bytes);
            return Ok(true);
        }
        let from = self.source.join(&item.name);
        let linked = if item.may_link { self.destination.link(&from, &item.name)? } else { Linked::No };
        match linked {
            Linked::Yes => {
                self.done.linked += 1;
                self.flow.pass(item.bytes);
                return Ok(true);
            }
            Linked::Gone => return Ok(false),
            Linked::No => {}
        }
        match self.destination.copy(&from, item, self.how.may_share, self.flow)? {
            Copied::Whole(file, is_shared) => {
                self.settling.next(file)?;
                self.done.copied += 1;
                self.done.shared += u64::from(is_shared);
                self.flow.pass_copied(item.bytes);
                Ok(true)
            }
            Copied::Stopped => {
                self.settling.finish()?;
                self.flow.stop.check()?;
                Ok(true)
            }
            Copied::Gone => Ok(false),
        }
    }
}

pub(super) fn is_gone(failure: &Failure) -> bool {
    failure.code == Code::NotFound || matches!(failure.source(), Some(Error::Truncated { .. }))
}
