//! One connection: frames in, replies out, in the order of the requests.
//!
//! Requests that have arrived are all carried out before the first of them is waited for, so that one sync serves them
//! all; only those that must see what others before them did wait for their turn. A request that waits is data in the
//! queue, with its deadline and its place among the replies.

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::{SocketAddr, TcpStream},
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use super::{
    api::{self, Call, Fault, Outcome, fetch, group_members, offset_commit, produce},
    broker::Broker,
    in_flight::Share,
    input::{Input, Limits},
    reply::{Outgoing, Reply},
    socket::{self, Doorbell, Received, Stirred},
    workers::Errand,
};
use crate::{
    Pending,
    protocol::{self, FrameFault},
};

/// Requests carried out before the first reply goes out, at most.
const PIPELINED: usize = 64;
/// How often a request that waits for its group is looked at when nothing stirs: for no reason but caution.
const GROUP_LOOK: Duration = Duration::from_secs(60);
/// A buffer larger than this is given back when nothing comes.
const IDLE_BUFFER_BYTES: usize = 16 << 10;
/// Requests up to this size are not counted: as much is there for each connection anyway.
const UNCOUNTED_BYTES: usize = 64 << 10;
/// How often who waits for a share looks after his client.
const SHARE_TURN: Duration = Duration::from_secs(1);
/// How soon.
const IDLE_AFTER: Duration = Duration::from_millis(500);

/// Where clients are told to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advertised {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A reply's place in the order.
#[derive(Debug)]
enum Slot {
    Ready(Reply),
    Produce(produce::Parked),
    Fetch(fetch::Parked),
    Commit(offset_commit::Parked),
    Group(group_members::Parked),
}

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// The peer closed, or was idle for too long, or the server stops.
    Quiet(&'static str),
    /// The peer sent what cannot be gone on from.
    Fault(String),
    Io(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<FrameFault> for End {
    fn from(fault: FrameFault) -> Self {
        Self::Fault(fault.to_string())
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault.to_string())
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection<'b> {
    broker: &'b Broker,
    stream: &'b TcpStream,
    peer: SocketAddr,
    advertised: Advertised,
    input: Input,
    queue: VecDeque<Slot>,
    outgoing: Outgoing,
    /// Made when first something is waited for.
    bell: Option<Arc<Doorbell>>,
    patience: Patience,
    /// Of a large request that is being received or carried out.
    share: Option<Share>,
    /// The peer sends no more.
    is_over: bool,
}

/// How long a receive sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// `connections.max.idle.ms`.
    Long,
    /// Until the buffer is given back.
    Short,
}

impl<'b> Connection<'b> {
    pub(super) fn new(
        broker: &'b Broker,
        stream: &'b TcpStream,
        peer: SocketAddr,
        advertised: Advertised,
    ) -> Self {
        Self {
            broker,
            stream,
            peer,
            advertised,
            input: Input::default(),
            queue: VecDeque::new(),
            outgoing: Outgoing::default(),
            bell: None,
            patience: Patience::Long,
            share: None,
            is_over: false,
        }
    }

    /// Serves it to its end, and says so in one line.
    pub(super) fn serve(mut self) {
        let end = self.prepare().and_then(|()| self.run());
        // What was appended and nobody waits for any more.
        for slot in self.queue.drain(..) {
            if let Slot::Produce(parked) = slot {
                parked.abandon(self.broker);
            }
        }
        let peer = self.peer;
        match end {
            Ok(()) => tracing::debug!(%peer, "connection closed by its client"),
            Err(End::Quiet(reason)) => tracing::debug!(%peer, reason, "connection closed"),
            Err(End::Fault(reason)) => tracing::warn!(%peer, reason, "connection closed"),
            Err(End::Io(error)) if is_everyday(&error) => tracing::debug!(%peer, %error, "connection broken"),
            Err(End::Io(error)) => tracing::warn!(%peer, %error, "connection closed"),
        }
    }

    fn prepare(&self) -> Result<(), End> {
        let settings = self.broker.settings();
        self.stream.set_nodelay(true)?;
        let timeout = self.idle_timeout();
        self.stream.set_read_timeout(timeout)?;
        self.stream.set_write_timeout(timeout)?;
        socket::set_buffers(self.stream, settings.send_buffer_bytes, settings.receive_buffer_bytes)?;
        Ok(())
    }

    fn limits(&self) -> Limits {
        let settings = self.broker.settings();
        Limits { produce: settings.request_max_bytes, other: settings.other_request_max_bytes }
    }

    fn run(&mut self) -> Result<(), End> {
        loop {
            if let Err(end) = self.carry_out() {
                // What was asked before is answered: its client need not wonder what became of it.
                self.settle()?;
                self.send_ready()?;
                return Err(end);
            }
            self.send_ready()?;
            match self.queue.front() {
                None if self.input.frame(self.limits())?.is_some() => {}
                None if self.is_over => return Ok(()),
                None => self.await_input()?,
                Some(Slot::Produce(_) | Slot::Commit(_)) => {
                    // What has come meanwhile shares the sync.
                    if self.queue.len() >= PIPELINED || self.is_over || !self.receive(false)? {
                        self.settle()?;
                    }
                }
                Some(Slot::Fetch(_) | Slot::Group(_)) => self.park()?,
                Some(Slot::Ready(_)) => {}
            }
        }
    }

    /// Carries out the requests that are here, as far as none has to wait for its turn.
    fn carry_out(&mut self) -> Result<(), End> {
        while self.queue.len() < PIPELINED {
            let Some(frame) = self.input.frame(self.limits())? else { return Ok(()) };
            let (header, body) =
                protocol::read_request_header(self.input.bytes(frame.clone())).map_err(Fault::from)?;
            let must_wait = match self.queue.iter().find(|slot| !matches!(slot, Slot::Ready(_))) {
                None => false,
                Some(Slot::Fetch(_) | Slot::Group(_)) => true,
                Some(_) => api::sees_what_was_appended(header.api_key),
            };
            if must_wait {
                return Ok(());
            }
            let call =
                Call { broker: self.broker, header, advertised: &self.advertised, peer: self.peer.ip() };
            match api::carry_out(&call, body)? {
                Outcome::Reply(reply) => self.queue.push_back(Slot::Ready(reply)),
                Outcome::Produce(parked) => self.queue.push_back(Slot::Produce(parked)),
                Outcome::Commit(parked) => self.queue.push_back(Slot::Commit(parked)),
                Outcome::Fetch(parked) => self.queue.push_back(Slot::Fetch(parked)),
                Outcome::Group(parked) => self.queue.push_back(Slot::Group(parked)),
                Outcome::Nothing => {}
            }
            self.input.consume(&frame);
            self.share = None;
        }
        Ok(())
    }

    fn send_ready(&mut self) -> Result<(), End> {
        while let Some(Slot::Ready(_)) = self.queue.front() {
            if let Some(Slot::Ready(reply)) = self.queue.pop_front() {
                self.outgoing.push(self.stream, reply)?;
            }
        }
        self.outgoing.flush(self.stream)?;
        Ok(())
    }

    /// Waits until all that was appended is durable.
    fn settle(&mut self) -> Result<(), End> {
        self.sync_side_by_side();
        for slot in &mut self.queue {
            let reply = match slot {
                Slot::Produce(parked) => parked.settle(),
                Slot::Commit(parked) => parked.settle(),
                Slot::Ready(_) | Slot::Fetch(_) | Slot::Group(_) => continue,
            };
            *slot = Slot::Ready(reply.map_err(Fault::from)?);
        }
        Ok(())
    }

    /// Where several logs are waited for, has them synced at the same time. What came of it each append is told by its own
    /// wait.
    fn sync_side_by_side(&self) {
        // Of each log the last append: its sync covers those before it.
        let mut last = HashMap::new();
        let mut waits: Vec<&Pending> = Vec::new();
        for slot in &self.queue {
            match slot {
                Slot::Produce(parked) => {
                    last.extend(parked.pendings().map(|(log, pending)| (Arc::as_ptr(log), pending)));
                }
                Slot::Commit(parked) => waits.extend(parked.pending()),
                Slot::Ready(_) | Slot::Fetch(_) | Slot::Group(_) => {}
            }
        }
        waits.extend(last.into_values());
        if waits.len() < 2 {
            return;
        }
        let errand = |pending: &Pending| -> Errand {
            let pending = pending.clone();
            Box::new(move || drop(pending.wait()))
        };
        self.broker.workers.run_all(waits.into_iter().map(errand).collect());
    }

    /// Waits for more, for the first in the queue.
    fn park(&mut self) -> Result<(), End> {
        self.input.rest();
        let bell = match &self.bell {
            Some(bell) => Arc::clone(bell),
            None => Arc::clone(self.bell.insert(Doorbell::new()?)),
        };
        let waker = Waker::from(Arc::clone(&bell));
        let Some(slot) = self.queue.front_mut() else { return Ok(()) };
        let reply = loop {
            bell.silence();
            let mut context = Context::from_waker(&waker);
            let is_draining = self.broker.is_draining();
            let (reply, left) = match slot {
                Slot::Fetch(parked) => {
                    parked.register(&mut context);
                    let left = parked.deadline().saturating_sub(self.broker.monotonic());
                    (parked.answer(self.broker, left.is_zero() || is_draining), left)
                }
                // Its group sees to it that it is answered in time.
                Slot::Group(parked) => {
                    parked.register(&context);
                    (parked.answer(is_draining), GROUP_LOOK)
                }
                _ => return Ok(()),
            };
            if let Some(reply) = reply.map_err(Fault::from)? {
                break reply;
            }
            if socket::wait(self.stream, &bell, left)? == Stirred::Gone && !self.broker.is_draining() {
                return Err(End::Quiet("the client is gone while its request waited"));
            }
        };
        *slot = Slot::Ready(reply);
        Ok(())
    }

    /// Waits until the client sends something.
    fn await_input(&mut self) -> Result<(), End> {
        if self.input.capacity() > IDLE_BUFFER_BYTES && self.input.is_empty() {
            self.set_patience(Patience::Short)?;
            if self.receive(true)? || self.is_over {
                return Ok(());
            }
            self.input.rest();
        }
        self.set_patience(Patience::Long)?;
        if self.receive(true)? || self.is_over {
            return Ok(());
        }
        Err(End::Quiet("idle for longer than connections.max.idle.ms"))
    }

    /// How long a receive sleeps. Told to the socket only where it changes: a busy connection keeps its own.
    fn set_patience(&mut self, patience: Patience) -> Result<(), End> {
        if self.patience == patience {
            return Ok(());
        }
        let idle = self.idle_timeout();
        self.stream.set_read_timeout(match patience {
            Patience::Long => idle,
            Patience::Short => Some(idle.map_or(IDLE_AFTER, |idle| idle.min(IDLE_AFTER))),
        })?;
        self.patience = patience;
        Ok(())
    }

    fn idle_timeout(&self) -> Option<Duration> {
        self.broker.settings().idle_timeout.filter(|timeout| !timeout.is_zero())
    }

    /// Where a large request has begun to come, its share of what all connections may have. False where there is none and
    /// nobody wants to wait for it.
    fn take_share(&mut self, is_patient: bool) -> Result<bool, End> {
        if self.share.is_some() {
            return Ok(true);
        }
        let unfinished = self.input.unfinished(self.limits()).filter(|length| *length > UNCOUNTED_BYTES);
        let Some(bytes) = unfinished.and_then(|length| u64::try_from(length).ok()) else { return Ok(true) };
        loop {
            let patience = if is_patient { SHARE_TURN } else { Duration::ZERO };
            self.share = self.broker.in_flight.take(bytes, patience);
            if self.share.is_some() || !is_patient {
                return Ok(self.share.is_some());
            }
            if self.broker.is_draining() || socket::has_gone(self.stream)? {
                return Err(End::Quiet("it waited for room for its request (queued.max.request.bytes)"));
            }
        }
    }

    /// True where something was received.
    fn receive(&mut self, is_patient: bool) -> Result<bool, End> {
        if !self.take_share(is_patient)? {
            return Ok(false);
        }
        let limits = self.limits();
        match self.input.receive(self.stream, limits, is_patient)? {
            Received::Bytes(_) => return Ok(true),
            Received::End => self.is_over = true,
            Received::Nothing => {}
        }
        Ok(false)
    }
}

/// What clients do to connections every day.
fn is_everyday(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, WouldBlock};
    matches!(
        error.kind(),
        BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut | WouldBlock
    )
}
