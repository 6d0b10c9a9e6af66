//! Reads input on a thread of its own, so that a pause can be noticed.

use std::{
    fs::File,
    io::{self, IsTerminal, Read},
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use crate::{failure::Failure, globals::Globals};

const BLOCK_BYTES: usize = 256 << 10;
/// Blocks on their way; with those given back this bounds the memory.
const BLOCKS: usize = 8;

/// What comes next.
pub(super) enum Event {
    Bytes(Block),
    /// A file ended: what follows is not the same line.
    EndOfFile,
    /// Nothing came for a while.
    Pause,
    /// There is no more.
    End,
    /// The input cannot be read on.
    Failed(Failure),
}

/// Bytes of the input.
pub(super) struct Block {
    buffer: Vec<u8>,
    filled: usize,
}

impl Block {
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.filled).unwrap_or_default()
    }
}

/// The reading thread's other end.
pub(super) struct Input {
    events: Receiver<Event>,
    spare: SyncSender<Vec<u8>>,
}

impl Input {
    /// Begins to read the files one after the other, or standard input where there are none.
    pub(super) fn start(files: &[PathBuf], globals: &Globals) -> Self {
        let (send, events) = sync_channel(BLOCKS);
        let (spare, spares) = sync_channel(BLOCKS);
        if files.is_empty() && io::stdin().is_terminal() {
            globals.note("reading records from the terminal, a line each; end with Ctrl-D");
        }
        let files = files.to_vec();
        // Not joined: it may be waiting for input that never comes. It ends with the process, and holds nothing.
        thread::spawn(move || {
            let sink = Sink { send, spares };
            let outcome = if files.is_empty() {
                sink.copy(&mut io::stdin().lock(), "standard input")
            } else {
                files.iter().try_for_each(|path| {
                    let name = path.display().to_string();
                    let mut file =
                        File::open(path).map_err(|e| Event::Failed(Failure::io("open", &name, &e)))?;
                    sink.copy(&mut file, &name)
                })
            };
            let last = outcome.err().unwrap_or(Event::End);
            let _ = sink.send.send(last);
        });
        Self { events, spare }
    }

    /// The next event; waits for `patience` at most.
    pub(super) fn next(&self, patience: Duration) -> Event {
        match self.events.recv_timeout(patience) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => Event::Pause,
            Err(RecvTimeoutError::Disconnected) => Event::End,
        }
    }

    /// Returns a block's memory for reading into it again.
    pub(super) fn give_back(&self, block: Block) {
        let _ = self.spare.try_send(block.buffer);
    }
}

struct Sink {
    send: SyncSender<Event>,
    spares: Receiver<Vec<u8>>,
}

impl Sink {
    /// Sends everything; the error is the last event there is.
    fn copy(&self, from: &mut dyn Read, name: &str) -> Result<(), Event> {
        loop {
            let mut buffer = self.spares.try_recv().unwrap_or_else(|_| vec![0; BLOCK_BYTES]);
            match from.read(&mut buffer) {
                Ok(0) => return self.send.send(Event::EndOfFile).map_err(|_| Event::End),
                Ok(filled) => {
                    self.send.send(Event::Bytes(Block { buffer, filled })).map_err(|_| Event::End)?;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Event::Failed(Failure::io("read", name, &e))),
            }
        }
    }
}
