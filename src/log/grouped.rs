//! Several callers' appends in one write.
//!
//! Each is checked as if it came alone, against the end that those before it make, and has its own outcome: it is there
//! whole or not at all, and one that is refused leaves no gap. Those that fit the active segment together are written by
//! one call and become visible together. What a producer sends waits for what it sent before to be written: whether it
//! follows depends on that. A write that fails is told to exactly those whose bytes it carried; where only
//! room was missing they are tried one by one, since a small one may fit where a large one does not.

use std::{collections::HashSet, io};

use super::{
    append::{Measured, Target},
    pending::Appended,
    request::Request,
    writer::LogWriter,
};
use crate::error::{Error, Result};

/// Requests that were placed one behind the other and are not written yet.
struct Placed {
    appends: Vec<Appended>,
    together: Measured,
    target: Target,
    /// The producers of what was placed.
    producers: HashSet<i64>,
}

/// What became of a request that nothing was placed before.
enum First {
    Placed(Placed),
    /// Batches that bring their own offsets are written at once. So were, some time ago, those that come again.
    Written(Appended),
}

impl LogWriter {
    /// Writes all requests, in order; what came of each. Nobody is woken yet.
    pub(super) fn write_group(&mut self, requests: &mut [Request]) -> Vec<Result<Appended>> {
        let mut outcomes = Vec::with_capacity(requests.len());
        let mut placed: Option<Placed> = None;
        for at in 0..requests.len() {
            if let Some(before) = &mut placed {
                if self.place_behind(before, &mut requests[at]) {
                    continue;
                }
                let from = outcomes.len();
                self.write_placed(placed.take(), &mut requests[from..at], &mut outcomes);
            }
            match self.place_first(&mut requests[at]) {
                Ok(First::Placed(first)) => placed = Some(first),
                Ok(First::Written(appended)) => outcomes.push(Ok(appended)),
                Err(error) => outcomes.push(Err(error)),
            }
        }
        let from = outcomes.len();
        self.write_placed(placed, &mut requests[from..], &mut outcomes);
        self.keeper.checkpoint_if_overdue(&self.shared, &self.syncer, &self.config);
        outcomes
    }

    fn place_first(&mut self, request: &mut Request) -> Result<First> {
        if request.workbench.keeps_offsets() {
            return self.write_batches(request.workbench.bytes(), request.options).map(First::Written);
        }
        let target = self.target(request.options)?;
        let together = request.workbench.place(&target, &self.config)?;
        let claims = &request.workbench.stage.claims;
        if together.has_producers
            && let Some(duplicate) = self.admit(claims)?
        {
            return Ok(First::Written(duplicate));
        }
        let appends = vec![self.appended(&together, &target)];
        let producers = claims.iter().map(|claim| claim.producer_id).collect();
        Ok(First::Placed(Placed { appends, together, target, producers }))
    }

    /// Places a request behind others of the same write. False where it has to come after them: it does not fit, or what
    /// it is to be told depends on whether they are really there.
    fn place_behind(&self, before: &mut Placed, request: &mut Request) -> bool {
        // The first batch of a segment decides when the segment is too old for others.
        if request.workbench.keeps_offsets() || self.active.is_empty() {
            return false;
        }
        let ahead = before.together.incoming;
        let Some(end) = ahead.last_offset.next() else { return false };
        let Ok(target) = self.target_at(end, ahead.bytes, request.options) else { return false };
        let Ok(measured) = request.workbench.place(&target, &self.config) else { return false };
        let claims = &request.workbench.stage.claims;
        if measured.has_producers
            && (claims.iter().any(|claim| before.producers.contains(&claim.producer_id))
                || !self.would_append(claims))
        {
            return false;
        }
        let mut together = measured.incoming;
        together.bytes += ahead.bytes;
        together.batches = together.batches.saturating_add(ahead.batches);
        together.max_timestamp = together.max_timestamp.max(ahead.max_timestamp);
        if self.active.must_roll(&together, &self.config) {
            return false;
        }
        before.appends.push(self.appended(&measured, &target));
        before.together.incoming = together;
        before.together.has_producers |= measured.has_producers;
        before.producers.extend(claims.iter().map(|claim| claim.producer_id));
        true
    }

    fn write_placed(
        &mut self,
        placed: Option<Placed>,
        requests: &mut [Request],
        outcomes: &mut Vec<Result<Appended>>,
    ) {
        let Some(placed) = placed else { return };
        debug_assert_eq!(placed.appends.len(), requests.len());
        match self.write_together(&placed, requests) {
            Ok(()) => outcomes.extend(placed.appends.into_iter().map(Ok)),
            Err(Error::StorageFull { .. }) if requests.len() > 1 => {
                for request in requests {
                    outcomes.push(self.write_alone(request));
                }
            }
            Err(error) => {
                outcomes.extend((1..requests.len()).map(|_| Err(told_again(&error))));
                outcomes.push(Err(error));
            }
        }
    }

    fn write_alone(&mut self, request: &mut Request) -> Result<Appended> {
        match self.place_first(request)? {
            First::Written(appended) => Ok(appended),
            First::Placed(mut placed) => {
                self.write_together(&placed, std::slice::from_ref(request))?;
                placed.appends.pop().ok_or(Error::Closed)
            }
        }
    }

    fn write_together(&mut self, placed: &Placed, requests: &[Request]) -> Result<()> {
        self.make_room(&placed.together)?;
        self.note_epoch()?;
        let (file, position) = (self.active.file(), self.active.position());
        let written = if let [alone] = requests {
            file.write_all_at(alone.workbench.bytes(), position)
        } else {
            let parts: Vec<_> = requests.iter().map(|request| request.workbench.bytes()).collect();
            file.write_all_vectored_at(&parts, position)
        };
        self.stage.headers.clear();
        self.stage.markers.clear();
        for request in requests {
            self.stage.headers.extend_from_slice(&request.workbench.stage.headers);
        }
        self.publish(written.map_err(Error::from), &placed.together, &placed.target)?;
        Ok(())
    }
}

/// The error of one write, for another of those whose bytes it carried.
fn told_again(error: &Error) -> Error {
    match error {
        Error::StorageFull { path, reason } => {
            Error::StorageFull { path: path.clone(), reason: reason.clone() }
        }
        Error::Poisoned { durable_end, reason } => {
            Error::Poisoned { durable_end: *durable_end, reason: reason.clone() }
        }
        Error::Closed => Error::Closed,
        Error::Io { op, path, source } => {
            let source = match source.raw_os_error() {
                Some(number) => io::Error::from_raw_os_error(number),
                None => io::Error::new(source.kind(), source.to_string()),
            };
            Error::Io { op, path: path.clone(), source }
        }
        other => Error::Io {
            op: "append to",
            path: "(the log)".into(),
            source: io::Error::other(other.to_string()),
        },
    }
}

#[cfg(test)]
mod tests;
