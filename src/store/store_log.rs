//! One log of a store, in the hands of whoever uses it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Inner,
    slots::{Slot, Slots, State},
};
use crate::{
    config::{LogConfig, OpenMode},
    error::{Error, Result},
    log::{
        AppendOptions, Appended, Lag, LogReader, Maintenance, Pending, ProducerInfo, RecoveryReport,
        SharedWriter,
        epochs::{EPOCHS_NAME, Epochs},
    },
    offset::Offset,
    record::Record,
};

/// A log of a [`Store`](crate::Store), for any number of threads. Cheap to clone.
///
/// The log is opened, and where need be recovered, by the first call that needs it. When other logs need its descriptors
/// the store closes it, and the next call opens it again; only a reader made by [`StoreLog::reader`], or a
/// [`Pending`], keeps it open. After [`Store::delete_topic`](crate::Store::delete_topic) calls fail with
/// [`Error::NotFound`](crate::Error::NotFound), after [`Store::close`](crate::Store::close) with
/// [`Error::Closed`](crate::Error::Closed).
#[derive(Clone, Debug)]
pub struct StoreLog {
    pub(super) store: Arc<Inner>,
    pub(super) slot: Arc<Slot>,
}

impl StoreLog {
    fn with<T>(&self, use_it: impl FnOnce(&SharedWriter) -> Result<T>) -> Result<T> {
        self.store.slots.with(&self.slot, use_it)
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.slot.topic
    }

    /// The partition's number.
    pub fn partition(&self) -> i32 {
        self.slot.partition
    }

    /// The partition's directory.
    pub fn path(&self) -> PathBuf {
        self.store.dir.path_of(self.slot.dir_name())
    }

    /// Appends whole batches: [`SharedWriter::append`](crate::SharedWriter::append).
    pub fn append(&self, batches: &[u8], options: AppendOptions) -> Result<Appended> {
        self.with(|writer| writer.append(batches, options))
    }

    /// Appends records: [`SharedWriter::append_records`](crate::SharedWriter::append_records).
    pub fn append_records(&self, records: &[Record<'_>], options: AppendOptions) -> Result<Appended> {
        self.with(|writer| writer.append_records(records, options))
    }

    /// Appends whole batches without waiting: [`SharedWriter::append_deferred`](crate::SharedWriter::append_deferred).
    pub fn append_deferred(&self, batches: &[u8], options: AppendOptions) -> Result<Pending> {
        self.with(|writer| writer.append_deferred(batches, options))
    }

    /// Appends records without waiting:
    /// [`SharedWriter::append_records_deferred`](crate::SharedWriter::append_records_deferred).
    pub fn append_records_deferred(&self, records: &[Record<'_>], options: AppendOptions) -> Result<Pending> {
        self.with(|writer| writer.append_records_deferred(records, options))
    }

    /// Makes everything durable that was appended so far. Returns the durable end.
    pub fn sync(&self) -> Result<Offset> {
        self.with(SharedWriter::sync)
    }

    /// What the log needs from time to time, like [`Store::maintain`](crate::Store::maintain) for all of them.
    pub fn maintain(&self) -> Result<Maintenance> {
        self.with(SharedWriter::maintain)
    }

    /// The same without retention, like [`Store::tend`](crate::Store::tend).
    pub fn tend(&self) -> Result<Maintenance> {
        self.with(SharedWriter::tend)
    }

    /// True where the log is open for writing now.
    pub fn is_open(&self) -> bool {
        Slots::if_open(&self.slot, |_| ()).is_some()
    }

    /// The bytes of its `.log` files. A log that is not open is not opened: then what a killed process had reserved counts.
    pub fn size_bytes(&self) -> Result<u64> {
        let open = Slots::if_open(&self.slot, |writer| {
            writer.reader().segments().iter().map(|segment| segment.size_bytes).sum()
        });
        if let Some(bytes) = open {
            return Ok(bytes);
        }
        let dir = self.store.dir.subdir(self.slot.dir_name())?;
        let mut bytes = 0_u64;
        for entry in dir.list()? {
            if Path::new(&entry.name).extension().is_some_and(|extension| extension == "log") {
                bytes = bytes.saturating_add(dir.stat(&entry.name)?.map_or(0, |stat| stat.len));
            }
        }
        Ok(bytes)
    }

    /// Closes the log cleanly if it is open and nobody has a hand on it: no reader of this process, no pending append.
    /// True where it was closed.
    pub fn rest_if_unused(&self) -> Result<bool> {
        let Some(mut state) = self.slot.state.try_write() else { return Ok(false) };
        match &*state {
            State::Open(writer) if !writer.is_in_use() => {}
            _ => return Ok(false),
        }
        self.store.slots.close(&self.slot, &mut state, State::Idle)?;
        Ok(true)
    }

    /// Makes `start` the first readable offset: [`SharedWriter::advance_start`](crate::SharedWriter::advance_start).
    pub fn advance_start(&self, start: Offset) -> Result<()> {
        self.with(|writer| writer.advance_start(start))
    }

    /// Begins a new segment at the log's end.
    pub fn roll(&self) -> Result<()> {
        self.with(SharedWriter::roll)
    }

    /// Begins a new leader epoch with the next batch: [`SharedWriter::set_leader_epoch`](crate::SharedWriter::set_leader_epoch).
    pub fn set_leader_epoch(&self, epoch: i32) -> Result<()> {
        self.with(|writer| writer.set_leader_epoch(epoch))
    }

    /// Gives the log settings of its own, for as long as the store is open. Where the log is open they hold from the next
    /// append on ([`SharedWriter::set_config`](crate::SharedWriter::set_config)); else the next use opens it with them.
    pub fn set_config(&self, config: LogConfig) -> Result<()> {
        config.validate()?;
        let config = LogConfig { open: OpenMode::MustExist, ..config };
        // The slot's first: a log that is being opened right now gets them there or below.
        *self.slot.config.lock() = Some(config.clone());
        Slots::if_open(&self.slot, |writer| writer.set_config(config)).unwrap_or(Ok(()))
    }

    /// A reader that shares this process's view of the log: it sees what is appended at once. As long as it, or a clone
    /// of it, is there the log stays open; [`Store::reader`](crate::Store::reader) gives one that does not mind.
    pub fn reader(&self) -> Result<LogReader> {
        self.with(|writer| Ok(writer.reader()))
    }

    /// The leader epoch of the newest records; `None` before the first. A log that is not open is not opened: its
    /// `leader-epoch-checkpoint` says, which may lag behind after a kill until the log is recovered.
    ///
    /// # Errors
    /// As all calls where the log is gone, and [`Error::Io`] where that file cannot be read.
    pub fn leader_epoch(&self) -> Result<Option<i32>> {
        let newest = |epochs: &[(i32, Offset)]| epochs.last().map(|(epoch, _)| *epoch);
        // Under it nobody opens the log, so that what is kept is of the log as it was left.
        let state = self.slot.state.read();
        match &*state {
            State::Open(writer) => Ok(newest(&writer.reader().leader_epochs())),
            State::Idle => {
                let mut known = self.slot.known_epoch.lock();
                if let Some(epoch) = *known {
                    return Ok(Some(epoch));
                }
                let path = || self.store.dir.path_of(self.slot.dir_name()).join(EPOCHS_NAME);
                let unreadable =
                    |reason| Error::Io { op: "read", path: path(), source: std::io::Error::other(reason) };
                let dir = self.store.dir.subdir(self.slot.dir_name())?;
                *known = newest(Epochs::load(&dir).map_err(unreadable)?.entries());
                Ok(*known)
            }
            State::Deleted => Err(Error::NotFound { path: self.path() }),
            State::Over => Err(Error::Closed),
        }
    }

    /// How much is written and not durable.
    pub fn lag(&self) -> Result<Lag> {
        self.with(|writer| Ok(writer.lag()))
    }

    /// What the last opening of the log found and did.
    pub fn recovery(&self) -> Result<RecoveryReport> {
        self.with(|writer| Ok(writer.recovery().clone()))
    }

    /// The first readable offset.
    pub fn start(&self) -> Result<Offset> {
        self.with(|writer| Ok(writer.start()))
    }

    /// The offset that the next record gets.
    pub fn end(&self) -> Result<Offset> {
        self.with(|writer| Ok(writer.end()))
    }

    /// Everything below it survives a power cut.
    pub fn durable_end(&self) -> Result<Offset> {
        self.with(|writer| Ok(writer.durable_end()))
    }

    /// What the log knows of its producers: see [`SharedWriter::producers`].
    pub fn producers(&self) -> Result<Vec<ProducerInfo>> {
        self.with(SharedWriter::producers)
    }

    /// Closes the log cleanly, if it is open; the next use opens it again. Its readers are told that it was closed.
    pub fn rest(&self) -> Result<()> {
        let mut state = self.slot.state.write();
        if !matches!(*state, State::Open(_)) {
            return Ok(());
        }
        self.store.slots.close(&self.slot, &mut state, State::Idle)
    }

    /// Opens the log, with recovery where need be, and closes it cleanly: [`Store::recover_all`](crate::Store::recover_all)
    /// for one.
    pub fn recover_and_rest(&self) -> Result<()> {
        self.end()?;
        self.rest()
    }

    /// Gives up the log as it is and opens it anew, with recovery: the way on after
    /// [`Error::Poisoned`](crate::Error::Poisoned).
    pub fn reopen(&self) -> Result<RecoveryReport> {
        {
            let mut state = self.slot.state.write();
            if matches!(*state, State::Open(_)) {
                *state = State::Idle;
            }
        }
        self.recovery()
    }
}
