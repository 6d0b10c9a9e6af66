//! The server: a data directory for Kafka's clients.
//!
//! Lives here: listening, connections and the order of replies, what each API does, settings, topics and what they were
//! told, and what the answers to clients are made of.
//! Not here: the bytes of requests and answers (protocol), the logs (the engine, by its public names only), printing and the
//! environment (`logctl`).
//! Holds always: whatever this room can do an embedder can do too; nothing is acknowledged before it is what the topic's
//! settings say it must be; a connection's faults are its own.
#![cfg_attr(not(test), expect(unused_imports, reason = "tests use them"))]
#![expect(dead_code, reason = "transactions are not built yet")]

mod api;
mod broker;
mod committed_offsets;
mod connection;
mod connections;
mod error_code;
mod groups;
mod housekeeping;
mod in_flight;
mod input;
mod listener;
mod partition_offsets;
mod producer_ids;
mod reply;
mod settings;
mod socket;
mod topics;
mod value;
mod workers;

use std::{
    net::{Shutdown, SocketAddr},
    sync::Arc,
    time::Duration,
};

use broker::Broker;
use connections::Connections;
use listener::Listening;

pub use error_code::error_name;
pub use settings::{Layers, Listener, Origin, Settings, SettingsError};

use crate::{Error, Result};

/// Checks what a topic is to be told: each key is one that Kafka's topics have, or one of ours, each value one that it may
/// have, and all together make sense. Gives them in their one form, for [`Store::set_topic_settings`](crate::Store); the
/// error is a sentence.
pub fn check_topic_settings<'a>(
    settings: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> std::result::Result<std::collections::BTreeMap<String, String>, String> {
    topics::checked(settings.into_iter().map(|(name, value)| (name, Some(value))))
}

/// How long connections that were cut off may take to notice.
const CUT_OFF: Duration = Duration::from_secs(5);

/// A server of Kafka's protocol over a data directory, in threads of this process: one for each listener and connection, and
/// one that looks after the logs.
///
/// ```
/// use stratalog::server::Server;
///
/// let server = Server::ephemeral()?;
/// let address = server.address();      // for any client of Kafka
/// # assert_ne!(address.port(), 0);
/// assert!(server.shutdown()?);
/// # Ok::<(), stratalog::Error>(())
/// ```
///
/// Dropping it is the same as [`Server::shutdown`], but for what that says.
#[derive(Debug)]
pub struct Server {
    running: Option<Running>,
    addresses: Vec<SocketAddr>,
    /// Removed when the server is dropped, after it has stopped.
    ephemeral_dir: Option<tempfile::TempDir>,
}

#[derive(Debug)]
struct Running {
    broker: Arc<Broker>,
    connections: Arc<Connections>,
    listening: Vec<Listening>,
}

impl Server {
    /// Opens the data directory that the settings name, takes its lock and listens. Clients are served when it returns.
    /// After a kill all logs are recovered first; else each is opened by the first request for it.
    ///
    /// # Errors
    /// [`Error::Locked`] where a broker or another server has the directory; [`Error::Io`] where an address cannot be
    /// listened on; and what [`Store::open`](crate::Store::open) says.
    pub fn bind(settings: Settings) -> Result<Self> {
        let settings = Arc::new(settings);
        for warning in settings.warnings() {
            tracing::warn!("{warning}");
        }
        // First: a port that is taken is found out before anything on the disk is touched.
        let bound = settings
            .listeners
            .iter()
            .map(|listener| listener::bind(listener, settings.backlog))
            .collect::<Result<Vec<_>>>()?;
        let broker = Arc::new(Broker::open(Arc::clone(&settings))?);
        let connections = Connections::new(settings.max_connections, settings.max_connections_per_ip);
        let mut running = Running { broker, connections, listening: Vec::new() };
        let mut addresses = Vec::new();
        for (listener, bound) in settings.listeners.iter().zip(bound) {
            addresses.push(bound.address());
            tracing::info!(listener = listener.name, address = %bound.address(), "listening");
            let told = settings.advertised.iter().find(|advertised| advertised.name == listener.name);
            let told = told.unwrap_or(listener).clone();
            match bound.start(told, &running.broker, &running.connections) {
                Ok(listening) => running.listening.push(listening),
                Err(error) => {
                    running.stop(Duration::ZERO)?;
                    return Err(error);
                }
            }
        }
        Ok(Self { running: Some(running), addresses, ephemeral_dir: None })
    }

    /// A server over a new, empty directory that goes away with it, on a free port of 127.0.0.1: for tests.
    pub fn ephemeral() -> Result<Self> {
        let failed =
            |source| Error::Io { op: "make a directory for", path: "an ephemeral server".into(), source };
        let dir = tempfile::tempdir().map_err(failed)?;
        let settings = Settings::for_dir(dir.path())
            .map_err(|error| Error::InvalidConfig { name: "settings", reason: error.to_string() })?;
        let mut server = Self::bind(settings)?;
        server.ephemeral_dir = Some(dir);
        Ok(server)
    }

    /// Where it listens, in the order of the settings, with the ports that port 0 came to.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The first of them.
    pub fn address(&self) -> SocketAddr {
        self.addresses.first().copied().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// How many connections are open.
    pub fn connection_count(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.connections.count())
    }

    /// Stops: takes no more connections and requests, answers those that are here, at most for
    /// `stratalog.shutdown.timeout.ms`, makes everything durable and closes the directory.
    ///
    /// True where all of it could be done and the directory has the marker of a clean stop; false where the next opening has
    /// to look through its logs.
    pub fn shutdown(mut self) -> Result<bool> {
        match self.running.take() {
            Some(running) => {
                let timeout = running.broker.settings().shutdown_timeout;
                running.stop(timeout)
            }
            None => Ok(true),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            let timeout = running.broker.settings().shutdown_timeout;
            if let Err(error) = running.stop(timeout) {
                tracing::error!(%error, "the server did not stop cleanly");
            }
        }
    }
}

impl Running {
    fn stop(self, timeout: Duration) -> Result<bool> {
        self.broker.drain();
        for listening in self.listening {
            listening.stop();
        }
        // Whoever waits for input has come to its end; what is here already is answered.
        self.connections.shut(Shutdown::Read);
        if !self.connections.wait_until_none(timeout) {
            tracing::warn!(connections = self.connections.count(), "connections are cut off");
            self.connections.shut(Shutdown::Both);
            self.connections.wait_until_none(CUT_OFF);
        }
        let Ok(broker) = Arc::try_unwrap(self.broker) else {
            tracing::error!("a connection does not end: the directory is left as by a crash");
            return Ok(false);
        };
        let is_clean = broker.close()?;
        tracing::info!(clean = is_clean, "stopped");
        Ok(is_clean)
    }
}
