//! Waits until what was appended is durable, counts it, and prints the report: on a thread of its own, so that the
//! next batch is made while the last one is being synced, and one sync covers all that came in the meantime.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use stratalog::{Offset, Pending};

use super::sink::go_on_from;
use crate::{failure::Failure, output::Output};

/// Batches whose acknowledgement is awaited; more make the writer wait.
const AWAITED: usize = 64;

/// What the log owes for a batch.
pub(super) enum Promise {
    /// Durability is still to come.
    Pending(Pending),
    /// What the policy promises was done within the append.
    Kept,
}

/// A batch that is in the log.
pub(super) struct Handed {
    pub(super) promise: Promise,
    /// The line of its first record.
    pub(super) line: u64,
    pub(super) base: Offset,
    pub(super) records: u64,
    /// Bytes of keys and values.
    pub(super) bytes: u64,
    /// What to print once it is acknowledged.
    pub(super) report: Vec<u8>,
}

/// Everything acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) first: Option<Offset>,
    /// The offset after the last.
    pub(super) end: Offset,
}

impl Total {
    /// Counts a batch that is acknowledged.
    pub(super) fn add(&mut self, base: Offset, records: u64, bytes: u64) {
        self.records += records;
        self.bytes += bytes;
        self.first = self.first.or(Some(base));
        self.end = base.checked_add(records).unwrap_or(Offset::MAX);
    }

    /// `offset 3`, `offsets 3 to 7`.
    pub(super) fn offsets(&self) -> String {
        let first = self.first.unwrap_or_default();
        match self.end.saturating_sub(1) {
            last if last == first => format!("offset {first}"),
            last => format!("offsets {first} to {last}"),
        }
    }
}

/// The waiting thread's other end.
pub(super) struct Acknowledger {
    send: SyncSender<Handed>,
    failed: Arc<AtomicBool>,
    thread: JoinHandle<(Total, Result<(), Failure>)>,
}

impl Acknowledger {
    /// `output`: where reports go.
    pub(super) fn start(output: Option<Output>) -> Self {
        let (send, receive) = sync_channel(AWAITED);
        let failed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&failed);
        let thread = thread::spawn(move || {
            let mut total = Total::default();
            let outcome = acknowledge(&receive, output, &flag, &mut total);
            flag.store(outcome.is_err(), Ordering::Release);
            (total, outcome)
        });
        Self { send, failed, thread }
    }

    /// Takes a batch over.
    pub(super) fn hand(&self, batch: Handed) -> Result<(), Failure> {
        self.send.send(batch).map_err(|_| stopped())
    }

    /// `Err` once the thread has ended; why is told by [`Acknowledger::finish`].
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.failed.load(Ordering::Acquire) { Err(stopped()) } else { Ok(()) }
    }

    /// Waits for everything.
    pub(super) fn finish(self) -> (Total, Result<(), Failure>) {
        drop(self.send);
        self.thread.join().unwrap_or_else(|_| {
            (
                Total::default(),
                Err(Failure::other("the thread that acknowledges has ended; check what was appended")),
            )
        })
    }
}

/// Stands for the failure that the thread itself gives: a broken report ends in this code, a failed sync in its own.
pub(super) fn stopped() -> Failure {
    Failure::quiet(crate::failure::Code::ClosedPipe)
}

fn acknowledge(
    batches: &Receiver<Handed>,
    mut output: Option<Output>,
    failed: &AtomicBool,
    total: &mut Total,
) -> Result<(), Failure> {
    let mut reported = Ok(());
    let mut settle = |output: &mut Option<Output>, outcome: Result<(), Failure>| {
        if outcome.is_err() {
            // No more is to be appended; what was by then is waited for and counted all the same.
            failed.store(true, Ordering::Release);
            *output = None;
            reported = outcome;
        }
    };
    while let Ok(first) = batches.recv() {
        let mut next = Some(first);
        while let Some(batch) = next {
            if let Promise::Pending(pending) = batch.promise {
                pending.wait().map_err(|e| go_on_from(batch.line, e))?;
            }
            total.add(batch.base, batch.records, batch.bytes);
            if let Some(outcome) = output.as_mut().map(|output| output.bytes(&batch.report)) {
                settle(&mut output, outcome);
            }
            next = batches.try_recv().ok();
        }
        if let Some(outcome) = output.as_mut().map(Output::flush) {
            settle(&mut output, outcome);
        }
    }
    reported
}
