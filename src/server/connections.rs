//! The connections that are open: how many there may be, and how to end them.

use std::{
    collections::HashMap,
    net::{IpAddr, Shutdown, SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

/// All of them.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    most_per_address: usize,
    open: Mutex<Open>,
    gone: Condvar,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    streams: HashMap<u64, Arc<TcpStream>>,
    addresses: HashMap<IpAddr, usize>,
}

/// A connection's place among the open ones, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    connections: Arc<Connections>,
    number: u64,
    address: IpAddr,
}

/// Why a connection is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    Total(usize),
    Address(usize),
}

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Total(most) => write!(f, "{most} connections are open (max.connections)"),
            Self::Address(most) => {
                write!(f, "{most} connections of its address are open (max.connections.per.ip)")
            }
        }
    }
}

impl Connections {
    pub(super) fn new(most: usize, most_per_address: usize) -> Arc<Self> {
        Arc::new(Self { most, most_per_address, open: Mutex::default(), gone: Condvar::new() })
    }

    pub(super) fn admit(self: &Arc<Self>, stream: &Arc<TcpStream>, peer: SocketAddr) -> Result<Seat, Full> {
        let address = peer.ip().to_canonical();
        let mut open = self.open.lock();
        if open.streams.len() >= self.most {
            return Err(Full::Total(self.most));
        }
        let count = open.addresses.get(&address).copied().unwrap_or(0);
        if count >= self.most_per_address {
            return Err(Full::Address(self.most_per_address));
        }
        open.addresses.insert(address, count.saturating_add(1));
        let number = open.next;
        open.next = open.next.wrapping_add(1);
        open.streams.insert(number, Arc::clone(stream));
        Ok(Seat { connections: Arc::clone(self), number, address })
    }

    pub(super) fn count(&self) -> usize {
        self.open.lock().streams.len()
    }

    /// Shuts one or both sides of all connections.
    pub(super) fn shut(&self, how: Shutdown) {
        // Not under the lock: a peer's state is no reason to keep others waiting.
        let streams: Vec<_> = self.open.lock().streams.values().cloned().collect();
        for stream in streams {
            // One that has ended meanwhile needs no shutting.
            let _ = stream.shutdown(how);
        }
    }

    /// Waits until none is left. False where some are after this time.
    pub(super) fn wait_until_none(&self, timeout: Duration) -> bool {
        let mut open = self.open.lock();
        !self.gone.wait_while_for(&mut open, |open| !open.streams.is_empty(), timeout).timed_out()
            || open.streams.is_empty()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.streams.remove(&self.number);
        match open.addresses.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                open.addresses.remove(&self.address);
            }
        }
        if open.streams.is_empty() {
            self.connections.gone.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn limits_hold_and_seats_come_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let connections = Connections::new(2, 1);
        let admit = |peer: &str| connections.admit(&stream, peer.parse().unwrap());
        let first = admit("10.0.0.1:1").unwrap();
        assert_eq!(admit("[::ffff:10.0.0.1]:2").unwrap_err(), Full::Address(1));
        let second = admit("10.0.0.2:1").unwrap();
        assert_eq!(admit("10.0.0.3:1").unwrap_err(), Full::Total(2));
        assert!(!connections.wait_until_none(Duration::ZERO));
        drop(first);
        drop(admit("10.0.0.1:3").unwrap());
        drop(second);
        assert_eq!(connections.count(), 0);
        assert!(connections.wait_until_none(Duration::ZERO));
    }
}
