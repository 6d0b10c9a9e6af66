//! The calls on sockets that std does not have.

use std::{
    io,
    net::{TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Wake,
    time::Duration,
};

use rustix::{
    buffer::spare_capacity,
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown, recv, send, sockopt},
};

/// What came of a look at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// So many bytes, at least one.
    Bytes(usize),
    /// The peer sends no more.
    End,
    /// Nothing is there (yet).
    Nothing,
}

/// Takes what is there into the spare capacity of `into`, which must have some. `is_patient`: sleeps until there is something,
/// or the socket's read timeout.
pub(super) fn receive(stream: &TcpStream, into: &mut Vec<u8>, is_patient: bool) -> io::Result<Received> {
    let flags = if is_patient { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
    loop {
        return match recv(stream, spare_capacity(into), flags) {
            Ok((_, 0)) => Ok(Received::End),
            Ok((_, count)) => Ok(Received::Bytes(count)),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Ok(Received::Nothing),
            Err(error) => Err(error.into()),
        };
    }
}

/// Sends all of `bytes`. `is_more`: what follows at once may go into the same packets.
pub(super) fn send_all(stream: &TcpStream, mut bytes: &[u8], is_more: bool) -> io::Result<()> {
    let flags = if is_more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
    while !bytes.is_empty() {
        match send(stream, bytes, flags) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Wakes a thread that waits for a socket as well.
#[derive(Debug)]
pub(super) struct Doorbell {
    event: OwnedFd,
    has_rung: AtomicBool,
}

impl Doorbell {
    pub(super) fn new() -> io::Result<Arc<Self>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self { event, has_rung: AtomicBool::new(false) }))
    }

    /// Forgets that it rang. A look at what is waited for has to follow.
    ///
    /// The event goes before the mark: a ring in between writes nothing, and is one that the look takes in. The other way
    /// round that ring's event would go and its mark stay, and nobody could ring any more.
    pub(super) fn silence(&self) {
        if self.has_rung.load(Ordering::Acquire) {
            self.drain();
        }
        self.has_rung.swap(false, Ordering::AcqRel);
    }

    fn drain(&self) {
        // Whose ring is between its mark and its event finds nothing to read here: no fault.
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
    }
}

impl Wake for Doorbell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.has_rung.swap(true, Ordering::AcqRel) {
            // Any number above 0 is as good as another.
            let _ = rustix::io::write(&self.event, &[1_u8; 8]);
        }
    }
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stirred {
    Bell,
    /// The peer has closed, or its side of the connection is broken.
    Gone,
    TimedOut,
}

/// Waits for the bell, the peer's end, or the time. What the peer sends meanwhile is no reason to wake.
pub(super) fn wait(stream: &TcpStream, bell: &Doorbell, timeout: Duration) -> io::Result<Stirred> {
    let mut watched = [PollFd::new(&bell.event, PollFlags::IN), PollFd::new(stream, PollFlags::RDHUP)];
    match poll(&mut watched, Some(&timespec(timeout))) {
        Ok(0) => Ok(Stirred::TimedOut),
        Ok(_) if !watched[1].revents().is_empty() => Ok(Stirred::Gone),
        Ok(_) => {
            // Here too, for an event may come later than its mark was taken away.
            bell.drain();
            Ok(Stirred::Bell)
        }
        // A signal's handler ran: as good as the bell.
        Err(Errno::INTR) => Ok(Stirred::Bell),
        Err(error) => Err(error.into()),
    }
}

/// True where the peer has closed, or its side of the connection is broken.
pub(super) fn has_gone(stream: &TcpStream) -> io::Result<bool> {
    let mut watched = [PollFd::new(stream, PollFlags::RDHUP)];
    match poll(&mut watched, Some(&timespec(Duration::ZERO))) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn timespec(timeout: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    }
}

/// How many connections may wait to be taken.
pub(super) fn set_backlog(listener: &TcpListener, backlog: i32) -> io::Result<()> {
    // A second `listen` changes only this.
    rustix::net::listen(listener, backlog).map_err(io::Error::from)
}

/// Ends `accept`, in whichever thread it waits.
pub(super) fn close_listener(listener: &TcpListener) {
    // One that is closed already ends `accept` as well.
    let _ = rustix::net::shutdown(listener, Shutdown::Both);
}

/// The kernel's buffers of a socket, where they are given.
pub(super) fn set_buffers(
    stream: &TcpStream,
    send_bytes: Option<u32>,
    receive_bytes: Option<u32>,
) -> io::Result<()> {
    if let Some(bytes) = send_bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        sockopt::set_socket_send_buffer_size(stream, bytes)?;
    }
    if let Some(bytes) = receive_bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
        sockopt::set_socket_recv_buffer_size(stream, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, sync::atomic::AtomicU64, thread};

    use super::*;

    const RINGS: u64 = 200_000;
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn every_ring_is_heard_also_those_that_come_while_it_is_silenced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = listener.accept().unwrap().0;
        let bell = Doorbell::new().unwrap();
        let news = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..=RINGS {
                    news.store(number, Ordering::Release);
                    bell.wake_by_ref();
                }
            });
            loop {
                bell.silence();
                let seen = news.load(Ordering::Acquire);
                if seen == RINGS {
                    break;
                }
                let stirred = wait(&stream, &bell, LONG).unwrap();
                assert_ne!(stirred, Stirred::TimedOut, "nothing was heard after {seen}");
            }
        });
    }
}
