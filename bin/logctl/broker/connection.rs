//! One connection: frames out and in, and the versions that both ends speak.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use stratalog::protocol::{
    self, ApiKey, FRAME_LENGTH_BYTES, FrameFault, Message, Request, Response, Versions,
    messages::api_versions::{ApiVersionsRequest, ApiVersionsResponse},
    wire::{Reader, Writer},
};

use super::{
    NAME,
    patience::{ANSWER, CONNECT, Patience, STEP},
};
use crate::failure::{Code, Failure};

/// No answer is longer: 32 MiB are asked for, and one batch may be larger. Greetings of other protocols read as lengths beyond it.
const MOST_FRAME_BYTES: u32 = 256 << 20;
/// Memory is taken for what has come, not for what is announced.
const READ_BYTES: usize = 256 << 10;
/// `UNSUPPORTED_VERSION`.
const UNSUPPORTED_VERSION: i16 = 35;
/// One of the names that a host has may not answer: the others get their turn.
const CONNECT_EACH: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Lost {
    /// Another broker, or the same a little later, may answer.
    Again(Failure),
    /// Nothing is to be hoped for.
    Final(Failure),
}

impl From<Failure> for Lost {
    fn from(failure: Failure) -> Self {
        Self::Final(failure)
    }
}

impl From<Lost> for Failure {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Again(failure) | Lost::Final(failure) => failure,
        }
    }
}

/// A connection to one broker.
#[derive(Debug)]
pub(super) struct Connection {
    address: String,
    stream: TcpStream,
    next_id: i32,
    versions: BTreeMap<i16, Versions>,
    /// Whether it ever answered a request that was not about versions.
    has_answered: bool,
}

/// A request that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    id: i32,
    api: ApiKey,
    version: i16,
}

/// An answer, still encoded.
#[derive(Debug)]
pub(super) struct Answer {
    address: String,
    frame: Vec<u8>,
    sent: Sent,
}

impl Answer {
    /// What it says.
    pub(super) fn read<'r, M: Response<'r>>(&'r self) -> Result<M, Failure> {
        let Sent { api, version, .. } = self.sent;
        let read = || M::decode(protocol::read_response_header(&self.frame, api, version)?.1, version);
        read().map_err(|error| {
            Failure::other(format!(
                "{}: an answer to {api} (version {version}) that makes no sense: {error}",
                self.address
            ))
            .hint("does another program listen there?")
        })
    }
}

impl Connection {
    /// Connects and asks for the versions.
    pub(super) fn open(address: &str, client_id: &str, patience: &Patience) -> Result<Self, Lost> {
        let stream = dial(address, patience)?;
        let lost = |error: io::Error| Lost::Again(Failure::unreachable(format!("{address}: {error}")));
        stream.set_nodelay(true).map_err(lost)?;
        stream.set_read_timeout(Some(STEP)).map_err(lost)?;
        stream.set_write_timeout(Some(STEP)).map_err(lost)?;
        let mut connection = Self {
            address: address.to_owned(),
            stream,
            next_id: 1,
            versions: BTreeMap::new(),
            has_answered: false,
        };
        connection.negotiate(client_id, patience)?;
        Ok(connection)
    }

    /// The newest version of the request first; what a broker does not know it answers in version 0, with what it knows.
    fn negotiate(&mut self, client_id: &str, patience: &Patience) -> Result<(), Lost> {
        let ours = ApiKey::ApiVersions.versions();
        let mut version = ours.last;
        loop {
            let request = ApiVersionsRequest {
                client_software_name: NAME,
                client_software_version: env!("CARGO_PKG_VERSION"),
                ..Default::default()
            };
            let sent = self.send(&request, version, client_id, patience)?;
            let frame = self.receive(sent, Duration::ZERO, patience)?.frame;
            let (_, body) = protocol::read_response_header(&frame, ApiKey::ApiVersions, version)
                .map_err(|error| self.nonsense(&error))?;
            let is_refused =
                body.rest().first_chunk().map(|code| i16::from_be_bytes(*code)) == Some(UNSUPPORTED_VERSION);
            let told = if is_refused { 0 } else { version };
            let mut rest = Reader::new(body.rest());
            let answer =
                ApiVersionsResponse::decode_some(&mut rest, told).map_err(|error| self.nonsense(&error))?;
            if is_refused && version > ours.first {
                let known = answer.api_keys.iter().find(|api| api.api_key == ApiKey::ApiVersions.key());
                // Those before Kafka 2.4 do not say what they know.
                version = known.map_or(0, |known| known.max_version.clamp(ours.first, version - 1));
                continue;
            }
            if answer.error_code != 0 {
                return Err(Lost::Final(super::error_code::failure(
                    answer.error_code,
                    format!("{}: ApiVersions", self.address),
                    None,
                )));
            }
            self.versions = answer
                .api_keys
                .iter()
                .map(|api| (api.api_key, Versions::new(api.min_version, api.max_version)))
                .collect();
            return Ok(());
        }
    }

    fn nonsense(&self, error: &protocol::DecodeError) -> Lost {
        let what = format!("{}: what answers there is no broker: {error}", self.address);
        Lost::Final(Failure::new(Code::Unreachable, what).hint("is it the port of Kafka's clients?"))
    }

    /// The newest version of an API that both ends speak, from `least` to `most`.
    pub(super) fn version(&self, api: ApiKey, least: i16, most: i16) -> Result<i16, Failure> {
        let ours = Versions::new(api.versions().first.max(least), api.versions().last.min(most));
        let Some(theirs) = self.versions.get(&api.key()) else {
            return Err(Failure::other(format!("{}: this broker knows no {api}", self.address)));
        };
        let version = ours.last.min(theirs.last);
        if version < ours.first.max(theirs.first) {
            return Err(Failure::other(format!(
                "{}: no common version of {api}: the broker speaks {theirs}, logctl {ours}",
                self.address
            )));
        }
        Ok(version)
    }

    /// Whether the broker speaks an API in a version that we do too.
    pub(super) fn speaks(&self, api: ApiKey) -> bool {
        self.version(api, 0, i16::MAX).is_ok()
    }

    /// Sends a request.
    pub(super) fn send<'a, R: Request<'a>>(
        &mut self,
        request: &R,
        version: i16,
        client_id: &str,
        patience: &Patience,
    ) -> Result<Sent, Lost> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let mut writer = Writer::new();
        protocol::write_request(&mut writer, id, Some(client_id), version, request)
            .map_err(|error| Failure::other(format!("{} cannot be written: {error}", R::API)))?;
        let begun = Instant::now();
        let mut rest = writer.bytes();
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(self.closed(R::API)),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if is_pause(&error) => {
                    patience.within(ANSWER, begun, || format!("{}: takes no more bytes", self.address))?;
                }
                Err(error) => return Err(self.broken(&error, R::API)),
            }
        }
        Ok(Sent { id, api: R::API, version })
    }

    /// Waits for the answer to the oldest request that has none. `held`: for so long the broker may hold it back.
    pub(super) fn receive(
        &mut self,
        sent: Sent,
        held: Duration,
        patience: &Patience,
    ) -> Result<Answer, Lost> {
        let begun = Instant::now();
        let mut length = [0; FRAME_LENGTH_BYTES];
        self.fill(&mut length, sent.api, (begun, held), patience)?;
        let length = protocol::frame_length(length, MOST_FRAME_BYTES).map_err(|fault| {
            // An alert, which is how a server of TLS refuses what is none.
            let is_tls = fault == FrameFault::Tls || matches!(length, [0x15, 3, ..]);
            let what = format!("{}: what answers there speaks another protocol: {fault}", self.address);
            Lost::Final(if is_tls {
                Failure::new(Code::Refused, format!("{}: this listener speaks TLS", self.address))
                    .hint("this version of logctl has no TLS: name a PLAINTEXT listener")
            } else {
                Failure::unreachable(what).hint("is it the port of Kafka's clients?")
            })
        })?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let mut frame = Vec::new();
        while frame.len() < length {
            let at = frame.len();
            frame.resize(at.saturating_add(READ_BYTES).min(length), 0);
            let room = frame.get_mut(at..).unwrap_or_default();
            self.fill(room, sent.api, (begun, held), patience)?;
        }
        let (header, _) = protocol::read_response_header(&frame, sent.api, sent.version)
            .map_err(|error| self.nonsense(&error))?;
        if header.correlation_id != sent.id {
            return Err(Lost::Again(Failure::unreachable(format!(
                "{}: answered request {} where {} was due",
                self.address, header.correlation_id, sent.id
            ))));
        }
        self.has_answered |= sent.api != ApiKey::ApiVersions;
        Ok(Answer { address: self.address.clone(), frame, sent })
    }

    fn fill(
        &mut self,
        mut room: &mut [u8],
        api: ApiKey,
        (mut begun, held): (Instant, Duration),
        patience: &Patience,
    ) -> Result<(), Lost> {
        while !room.is_empty() {
            match self.stream.read(room) {
                Ok(0) => return Err(self.closed(api)),
                Ok(count) => {
                    // As long as something comes, more may.
                    begun = Instant::now();
                    room = room.get_mut(count..).unwrap_or_default();
                }
                Err(error) if is_pause(&error) => {
                    let limit = ANSWER.saturating_add(held);
                    patience.within(limit, begun, || {
                        format!("{}: no answer to {api} within {} s", self.address, limit.as_secs())
                    })?;
                }
                Err(error) => return Err(self.broken(&error, api)),
            }
        }
        Ok(())
    }

    fn closed(&self, api: ApiKey) -> Lost {
        let failure = Failure::unreachable(format!("{}: closed the connection at {api}", self.address));
        Lost::Again(if self.has_answered {
            failure
        } else {
            failure.hint(
                "a listener that wants TLS or SASL does so: this version of logctl has neither, name a PLAINTEXT listener",
            )
        })
    }

    fn broken(&self, error: &io::Error, api: ApiKey) -> Lost {
        Lost::Again(Failure::unreachable(format!("{}: the connection broke at {api}: {error}", self.address)))
    }
}

/// A wait that came to nothing, and may go on.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Connects. On a thread of its own, so that a signal ends the wait: who resolves names does not look for any.
fn dial(address: &str, patience: &Patience) -> Result<TcpStream, Lost> {
    let (tell, told) = sync_channel(1);
    let name = address.to_owned();
    thread::Builder::new()
        .spawn(move || {
            // Whoever asked may be gone by now.
            let _ = tell.send(connect(&name));
        })
        .map_err(|error| Failure::io("start", "a thread", &error))?;
    let begun = Instant::now();
    loop {
        match told.recv_timeout(STEP) {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => {
                return Err(Lost::Again(
                    Failure::unreachable(format!("cannot connect to {address}: {error}"))
                        .hint("is a broker running there? -b takes HOST:PORT, with commas between several"),
                ));
            }
            Err(RecvTimeoutError::Timeout) => patience.within(CONNECT, begun, || {
                format!("cannot connect to {address}: no answer within {} s", CONNECT.as_secs())
            })?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Lost::Again(Failure::unreachable(format!("cannot connect to {address}"))));
            }
        }
    }
}

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name stands for no address");
    for place in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, CONNECT_EACH) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
