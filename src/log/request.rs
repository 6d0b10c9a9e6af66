//! An append made ready outside the writer: checked, encoded, compressed and summed before its turn comes.
//!
//! Base offset and leader epoch lie outside a batch's CRC, so its turn only stamps them. The time of the append, where the
//! log stamps its own, lies inside: the batch gets the time at which it was made ready, and is summed once more only
//! where the clock has gone on to another millisecond since.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{
    append::{AppendOptions, Measured, Offsets, Stage, Target, stamp},
    buffer::AppendBuffer,
    quota::Share,
};
use crate::{
    config::LogConfig,
    error::Result,
    offset::{Offset, Timestamp},
    record::{Codec, Record, TimestampType, batch_size_bound},
    sys::PagePool,
};

/// What a caller appends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input<'a> {
    Batches(&'a [u8]),
    Records(&'a [Record<'a>]),
}

impl Input<'_> {
    /// No less than the bytes that it takes.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Batches(batches) => batches.len() as u64,
            Self::Records(records) => batch_size_bound(records),
        }
    }
}

/// One caller's append, ready to be written.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) options: AppendOptions,
    /// Answered once it is written, whatever the policy.
    pub(super) is_deferred: bool,
    /// Its part of the memory that all requests together may take.
    pub(super) share: Share,
    pub(super) workbench: Workbench,
}

/// What it takes to make an append ready, and what became of it. Used again and again.
#[derive(Debug)]
pub(super) struct Workbench {
    pub(super) stage: Stage,
    buffer: Option<AppendBuffer>,
}

impl Workbench {
    fn new() -> Self {
        // Its stage only measures and encodes; the buffer is its own.
        Self { stage: Stage::new(Arc::new(PagePool::new(0))), buffer: None }
    }

    /// The bytes that are to be written.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.as_ref().map(AppendBuffer::pending).unwrap_or_default()
    }

    /// Checks and encodes. Batches that keep their offsets are only copied: what is right for them depends on where the
    /// log ends.
    fn make_ready(&mut self, input: Input<'_>, options: AppendOptions, config: &LogConfig) -> Result<()> {
        let target = Target {
            end: Offset::ZERO,
            epoch: -1,
            offsets: options.offsets,
            producer: options.producer,
            now: config.clock.now(),
            room_bytes: u64::MAX,
        };
        self.stage.headers.clear();
        self.stage.claims.clear();
        match input {
            Input::Batches(batches) => {
                options.check_for_batches()?;
                if options.offsets == Offsets::Assign {
                    self.stage.measure_batches(batches, &target, config)?;
                }
                self.copy(batches)
            }
            Input::Records(records) => {
                options.check_for_records()?;
                let measured = self.stage.measure_records(records, &target, config)?;
                if config.compression.codec() != Codec::None {
                    let made = std::mem::take(&mut self.stage.made);
                    let copied = self.copy(&made);
                    self.stage.made = made;
                    self.stage.made.clear();
                    return copied;
                }
                let mut buffer =
                    self.room_for(usize::try_from(measured.incoming.bytes).unwrap_or(usize::MAX))?;
                let encoded = self.stage.encode_records(records, &target, (None, &mut buffer), config);
                self.buffer = Some(buffer);
                encoded
            }
        }
    }

    fn copy(&mut self, bytes: &[u8]) -> Result<()> {
        let mut buffer = self.room_for(bytes.len())?;
        buffer.spare()[..bytes.len()].copy_from_slice(bytes);
        buffer.advance(bytes.len());
        self.buffer = Some(buffer);
        Ok(())
    }

    fn room_for(&mut self, bytes: usize) -> Result<AppendBuffer> {
        if let Some(mut buffer) = self.buffer.take() {
            buffer.begin(0);
            if buffer.spare().len() >= bytes {
                return Ok(buffer);
            }
        }
        Ok(AppendBuffer::take(&PagePool::new(0), 0, bytes)?)
    }

    /// Puts the batches where their turn has come: offsets, epoch and the log's own time.
    pub(super) fn place(&mut self, target: &Target, config: &LogConfig) -> Result<Measured> {
        let append_time = (config.timestamp_type == TimestampType::LogAppendTime).then_some(target.now);
        let mut rest = self.buffer.as_mut().map(AppendBuffer::pending_mut).unwrap_or_default();
        let bytes = rest.len() as u64;
        let mut next = target.end;
        let mut max_timestamp = Timestamp::NONE;
        for header in &mut self.stage.headers {
            *header = header.placed(next, target.epoch)?;
            let size = usize::try_from(header.size_bytes()).unwrap_or(usize::MAX).min(rest.len());
            let (batch, after) = rest.split_at_mut(size);
            stamp(batch, header, append_time)?;
            rest = after;
            max_timestamp = max_timestamp.max(header.max_timestamp());
            next = header.next_offset().unwrap_or(Offset::MAX);
        }
        self.stage.measured(bytes, target.end, max_timestamp, config)
    }

    /// True for batches that bring their own offsets: nothing is known of them yet.
    pub(super) fn keeps_offsets(&self) -> bool {
        self.stage.headers.is_empty()
    }

    fn held_bytes(&self) -> usize {
        self.buffer.as_ref().map_or(0, AppendBuffer::capacity) + self.stage.made.capacity()
    }
}

/// Workbenches that are not in use: never more than so many, nor more than so many bytes of them.
#[derive(Debug)]
pub(super) struct Workshop {
    keep_bytes: usize,
    free: Mutex<(Vec<Workbench>, usize)>,
}

/// No more of them: each may hold a compressor.
const KEEP_COUNT: usize = 64;

impl Workshop {
    pub(super) fn new(config: &LogConfig) -> Self {
        let keep_bytes = 2 * usize::try_from(config.append_buffer_bytes).unwrap_or(0);
        Self { keep_bytes, free: Mutex::new((Vec::new(), 0)) }
    }

    pub(super) fn make_ready(
        &self,
        input: Input<'_>,
        options: AppendOptions,
        config: &LogConfig,
    ) -> Result<Workbench> {
        let mut workbench = self.take().unwrap_or_else(Workbench::new);
        match workbench.make_ready(input, options, config) {
            Ok(()) => Ok(workbench),
            Err(error) => {
                self.give([workbench]);
                Err(error)
            }
        }
    }

    fn take(&self) -> Option<Workbench> {
        let mut free = self.free.lock();
        let workbench = free.0.pop()?;
        free.1 = free.1.saturating_sub(workbench.held_bytes());
        Some(workbench)
    }

    pub(super) fn give(&self, workbenches: impl IntoIterator<Item = Workbench>) {
        let mut free = self.free.lock();
        for workbench in workbenches {
            let bytes = workbench.held_bytes();
            if free.0.len() < KEEP_COUNT && free.1.saturating_add(bytes) <= self.keep_bytes {
                free.1 += bytes;
                free.0.push(workbench);
            }
        }
    }

    /// How much memory is kept for later.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.free.lock().1
    }

    /// Frees what an idle log does not need.
    pub(super) fn rest(&self) {
        drop(std::mem::take(&mut *self.free.lock()));
    }
}
