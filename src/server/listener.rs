//! Listening: taking connections within the limits, a thread for each.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{
    broker::Broker,
    connection::{Advertised, Connection},
    connections::{Connections, Seat},
    settings::Listener,
    socket,
};
use crate::{Error, Result};

/// Of address space; memory is what is touched of it, a few pages while a connection is idle.
const STACK_BYTES: usize = 512 << 10;
/// How long nothing is taken when the system has no descriptors or memory left.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// A bound address that nobody takes connections from yet.
#[derive(Debug)]
pub(super) struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

/// The thread that takes connections.
#[derive(Debug)]
pub(super) struct Listening {
    listener: Arc<TcpListener>,
    thread: JoinHandle<()>,
}

/// What a taken connection needs.
struct Taking {
    broker: Arc<Broker>,
    connections: Arc<Connections>,
    told: Listener,
}

/// Binds an address.
pub(super) fn bind(listener: &Listener, backlog: i32) -> Result<Bound> {
    let failed = |source| Error::Io { op: "listen on", path: PathBuf::from(listener.to_string()), source };
    let bound = if listener.host.is_empty() {
        // Both families, where there are both.
        TcpListener::bind(("::", listener.port)).or_else(|_| TcpListener::bind(("0.0.0.0", listener.port)))
    } else {
        TcpListener::bind((listener.host.as_str(), listener.port))
    };
    let bound = bound.map_err(failed)?;
    socket::set_backlog(&bound, backlog).map_err(failed)?;
    let address = bound.local_addr().map_err(failed)?;
    Ok(Bound { listener: bound, address })
}

impl Bound {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to take connections. `told`: what clients are told to connect to.
    pub(super) fn start(
        self,
        told: Listener,
        broker: &Arc<Broker>,
        connections: &Arc<Connections>,
    ) -> Result<Listening> {
        let told = Listener { port: if told.port == 0 { self.address.port() } else { told.port }, ..told };
        let taking = Taking { broker: Arc::clone(broker), connections: Arc::clone(connections), told };
        let listener = Arc::new(self.listener);
        let own = Arc::clone(&listener);
        let thread = thread::Builder::new().name("listener".to_owned()).spawn(move || taking.run(&own));
        let thread = thread.map_err(|source| Error::Io {
            op: "start a thread for",
            path: PathBuf::from(self.address.to_string()),
            source,
        })?;
        Ok(Listening { listener, thread })
    }
}

impl Listening {
    pub(super) fn stop(self) {
        socket::close_listener(&self.listener);
        if self.thread.join().is_err() {
            tracing::error!("the listening thread had panicked");
        }
    }
}

impl Taking {
    fn run(&self, listener: &TcpListener) {
        loop {
            let taken = listener.accept();
            if self.broker.is_draining() {
                return;
            }
            match taken {
                Ok((stream, peer)) => self.take(stream, peer),
                Err(error) if is_of_one(&error) => {
                    tracing::debug!(%error, "a connection broke before it was taken");
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken");
                    thread::sleep(EXHAUSTED);
                }
            }
        }
    }

    fn take(&self, stream: TcpStream, peer: SocketAddr) {
        let stream = Arc::new(stream);
        let seat = match self.connections.admit(&stream, peer) {
            Ok(seat) => seat,
            Err(full) => {
                tracing::warn!(%peer, reason = %full, "connection refused");
                return;
            }
        };
        let advertised = self.advertised(&stream);
        let broker = Arc::clone(&self.broker);
        let run = move || serve(broker, &stream, peer, advertised, seat);
        let name = format!("client {}", peer.port());
        if let Err(error) = thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(run) {
            tracing::warn!(%peer, %error, "connection refused: no thread for it");
        }
    }

    /// Where all addresses are listened on, and nothing else is told, clients are told the one that this client used.
    fn advertised(&self, stream: &TcpStream) -> Advertised {
        let port = self.told.port;
        if !matches!(self.told.host.as_str(), "" | "0.0.0.0" | "::") {
            return Advertised { host: self.told.host.clone(), port };
        }
        let host =
            stream.local_addr().map_or("127.0.0.1".to_owned(), |local| local.ip().to_canonical().to_string());
        Advertised { host, port }
    }
}

fn serve(broker: Arc<Broker>, stream: &TcpStream, peer: SocketAddr, advertised: Advertised, seat: Seat) {
    // A fault of ours ends this connection and no other.
    let served =
        catch_unwind(AssertUnwindSafe(|| Connection::new(&broker, stream, peer, advertised).serve()));
    if served.is_err() {
        tracing::error!(%peer, "serving a connection panicked");
    }
    // Who waits for the last seat wants the broker for himself.
    drop(broker);
    drop(seat);
}

/// Errors that are about one connection and not about the listener.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}
