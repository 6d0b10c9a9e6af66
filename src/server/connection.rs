//! One connection: frames in, replies out, in the order of the requests.
//!
//! Requests that have arrived are all carried out before the first of them is waited for, so that one sync serves them
//! all; only those that must see what others before them did wait for their turn. A request that waits is data in the
//! queue, with its deadline and its place among the replies.

use std::{
    collections::VecDeque,
    io,
    net::{SocketAddr, TcpStream},
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use super::{
    api::{self, Call, Fault, Outcome, fetch, offset_commit, produce},
    broker::Broker,
    input::Input,
    reply::{Outgoing, Reply},
    socket::{self, Doorbell, Received, Stirred},
};
use crate::protocol::{self, FrameFault};

/// Requests carried out before the first reply goes out, at most.
const PIPELINED: usize = 64;
/// A buffer larger than this is given back when nothing comes.
const IDLE_BUFFER_BYTES: usize = 16 << 10;
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
    /// The peer sends no more.
    is_over: bool,
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
        let timeout = settings.idle_timeout.filter(|timeout| !timeout.is_zero());
        self.stream.set_read_timeout(timeout)?;
        self.stream.set_write_timeout(timeout)?;
        socket::set_buffers(self.stream, settings.send_buffer_bytes, settings.receive_buffer_bytes)?;
        Ok(())
    }

    fn limit(&self) -> u32 {
        self.broker.settings().request_max_bytes
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
                None if self.input.frame(self.limit())?.is_some() => {}
                None if self.is_over => return Ok(()),
                None => self.await_input()?,
                Some(Slot::Produce(_) | Slot::Commit(_)) => {
                    // What has come meanwhile shares the sync.
                    if self.queue.len() >= PIPELINED || self.is_over || !self.receive(false)? {
                        self.settle()?;
                    }
                }
                Some(Slot::Fetch(_)) => self.park()?,
                Some(Slot::Ready(_)) => {}
            }
        }
    }

    /// Carries out the requests that are here, as far as none has to wait for its turn.
    fn carry_out(&mut self) -> Result<(), End> {
        while self.queue.len() < PIPELINED {
            let Some(frame) = self.input.frame(self.limit())? else { return Ok(()) };
            let (header, body) =
                protocol::read_request_header(self.input.bytes(frame.clone())).map_err(Fault::from)?;
            let must_wait = match self.queue.iter().find(|slot| !matches!(slot, Slot::Ready(_))) {
                None => false,
                Some(Slot::Fetch(_)) => true,
                Some(_) => api::sees_what_was_appended(header.api_key),
            };
            if must_wait {
                return Ok(());
            }
            let call = Call { broker: self.broker, header, advertised: &self.advertised };
            match api::carry_out(&call, body)? {
                Outcome::Reply(reply) => self.queue.push_back(Slot::Ready(reply)),
                Outcome::Produce(parked) => self.queue.push_back(Slot::Produce(parked)),
                Outcome::Commit(parked) => self.queue.push_back(Slot::Commit(parked)),
                Outcome::Fetch(parked) => self.queue.push_back(Slot::Fetch(parked)),
                Outcome::Nothing => {}
            }
            self.input.consume(&frame);
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
        for slot in &mut self.queue {
            let reply = match slot {
                Slot::Produce(parked) => parked.settle(),
                Slot::Commit(parked) => parked.settle(),
                Slot::Ready(_) | Slot::Fetch(_) => continue,
            };
            *slot = Slot::Ready(reply.map_err(Fault::from)?);
        }
        Ok(())
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
        let Slot::Fetch(parked) = slot else { return Ok(()) };
        let reply = loop {
            bell.silence();
            parked.register(&mut Context::from_waker(&waker));
            let left = parked.deadline().saturating_sub(self.broker.monotonic());
            let is_last = left.is_zero() || self.broker.is_draining();
            if let Some(reply) = parked.answer(self.broker, is_last).map_err(Fault::from)? {
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
        if self.input.capacity() > IDLE_BUFFER_BYTES
            && self.input.is_empty()
            && !socket::wait_for_input(self.stream, IDLE_AFTER)?
        {
            self.input.rest();
        }
        if self.receive(true)? || self.is_over {
            return Ok(());
        }
        Err(End::Quiet("idle for longer than connections.max.idle.ms"))
    }

    /// True where something was received.
    fn receive(&mut self, is_patient: bool) -> Result<bool, End> {
        let limit = self.limit();
        match self.input.receive(self.stream, limit, is_patient)? {
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
