//! The files of a log that has nothing in it yet, made ahead of its first opening: that one then finds all of it durable,
//! and the first append has only its own bytes to sync.

use std::sync::Arc;

use super::{
    checkpoint::{Checkpoint, Point},
    control::ControlPage,
    epochs::Epochs,
    keeper,
};
use crate::{
    config::LogConfig,
    error::Result,
    offset::Offset,
    segment::SegmentWriter,
    sys::{Dir, LOCK_NAME, Open},
};

/// Makes the files in an empty directory that nobody else can know yet. Their names are durable once the directory is
/// synced.
pub(crate) fn make_empty_log(dir: &Arc<Dir>, config: &LogConfig) -> Result<()> {
    // So that the first opening makes no names either.
    dir.open_file(LOCK_NAME, Open::CreateNew { mode: config.file_mode })?;
    drop(ControlPage::open(dir, config.file_mode));
    let start = Offset::ZERO;
    let mut epochs = Epochs::default();
    keeper::first_epoch(&mut epochs, start);
    epochs.store_unsynced(dir, config.file_mode)?;
    SegmentWriter::create(dir, start, config)?;
    let mut checkpoint = Checkpoint::empty(start);
    checkpoint.point = Some(Point { offset: start, base: start, position: 0, batch: None });
    checkpoint.store_unsynced(dir, config.file_mode)
}
