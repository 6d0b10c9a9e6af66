//! A request of a group's member that waits for others.

use std::{
    sync::Arc,
    task::{Context, Waker},
};

use parking_lot::Mutex;

use super::{Coordinator, group::Answer, group::Ticket};

/// Where the answer to one request is put.
#[derive(Debug, Default)]
pub(super) struct Tray {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

impl Tray {
    pub(super) fn put(&self, answer: Answer) {
        let mut inner = self.inner.lock();
        inner.answer = Some(answer);
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn take(&self) -> Option<Answer> {
        self.inner.lock().answer.take()
    }
}

/// A request that waits. Dropped before it is answered, it is none any more.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(super) coordinator: Arc<Coordinator>,
    pub(super) group: String,
    pub(super) ticket: Ticket,
    pub(super) tray: Arc<Tray>,
    pub(super) is_answered: bool,
}

impl Waiting {
    /// Has the task woken when the answer is there.
    pub(crate) fn register(&self, context: &Context<'_>) {
        self.tray.inner.lock().waker = Some(context.waker().clone());
    }

    /// The answer, once.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        let answer = self.tray.take();
        self.is_answered |= answer.is_some();
        answer
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_answered {
            self.coordinator.abandon(&self.group, self.ticket);
        }
    }
}
