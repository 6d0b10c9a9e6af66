//! A process with two readers, which differ in what they follow and how they wait.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stratalog::{Error, Follow, LogReader, Offset, Position, ReadOptions, Wait};

use crate::record::{self, Origin};

pub(crate) fn run(place: &Path, number: u64) {
    let other = {
        let place = place.to_owned();
        std::thread::spawn(move || follow(&place, number, Follow::Durable))
    };
    follow(place, number, Follow::Written);
    other.join().unwrap();
}

/// One way to wait for more.
enum Waiting {
    Deadline,
    Task {
        woken: std::sync::mpsc::Receiver<()>,
        waker: Waker,
    },
    Event(std::os::fd::OwnedFd),
    /// Not at all, but for a pause: looks by itself, and is overtaken.
    Slowly,
}

struct Bell(Sender<()>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

impl Waiting {
    fn of(number: u64, reader: &LogReader) -> Self {
        match number % 4 {
            0 => Self::Deadline,
            1 => {
                let (send, woken) = channel();
                Self::Task { woken, waker: Waker::from(Arc::new(Bell(send))) }
            }
            2 => Self::Event(reader.event_fd().unwrap()),
            _ => Self::Slowly,
        }
    }

    /// Returns when there may be more, or after a while.
    fn wait(&self, reader: &LogReader, at: Position) -> Wait {
        let a_while = Duration::from_millis(500);
        match self {
            Self::Deadline => reader.wait_past(at, Instant::now() + a_while),
            Self::Task { woken, waker } => {
                let mut context = Context::from_waker(waker);
                let until = Instant::now() + a_while;
                loop {
                    if let Poll::Ready(told) = reader.poll_past(at, &mut context) {
                        return told;
                    }
                    let left = until.saturating_duration_since(Instant::now());
                    if woken.recv_timeout(left).is_err() {
                        return Wait::TimedOut;
                    }
                }
            }
            Self::Event(event) => {
                let timeout = Timespec::try_from(a_while).unwrap();
                let mut events = [PollFd::new(event, PollFlags::IN)];
                let _ = poll(&mut events, Some(&timeout));
                let _ = rustix::io::read(event, &mut [0; 8]);
                reader.refresh().unwrap();
                Wait::TimedOut
            }
            Self::Slowly => {
                std::thread::sleep(a_while);
                reader.refresh().unwrap();
                Wait::TimedOut
            }
        }
    }
}

/// A fault ends the process: the others are told by that.
macro_rules! fault {
    ($($said:tt)*) => {{
        eprintln!("attach: {}", format_args!($($said)*));
        std::process::exit(1);
    }};
}

fn follow(place: &Path, number: u64, follow: Follow) {
    let who = format!("reader {number} of the {follow:?} end");
    let mut options = ReadOptions::default();
    options.follow = follow;
    let reader = match LogReader::open(place.join("t-0"), options) {
        Ok(reader) => reader,
        Err(error) => fault!("{who}: {error}"),
    };
    let seen = File::create(place.join(format!("seen-{number}-{follow:?}"))).unwrap();
    let waiting = Waiting::of(number, &reader);
    let mut at = Position::from(reader.start());
    let mut durable = reader.durable_end();
    // The last record before a look that found no more.
    let mut paused_at: Option<Origin> = None;
    let mut last: Option<Origin> = None;
    let (mut cuts, mut skips, mut count) = (0, 0, 0_u64);
    loop {
        let mut records = reader.records(at);
        let mut expected = at.offset;
        let told = loop {
            match records.next_record() {
                Ok(Some(record)) => {
                    let offset = record.offset();
                    if offset != expected {
                        fault!("{who}: {offset} comes where {expected} belongs");
                    }
                    let value = record.value().unwrap_or_default();
                    let origin = match record::check(offset.value(), value) {
                        Ok(origin) => origin,
                        Err(wrong) => fault!("{who}: {wrong}"),
                    };
                    if let Some(before) = paused_at.take()
                        && !before.is_last()
                        && before.run == origin.run
                        && origin.place == before.place + 1
                    {
                        fault!("{who}: half a call was to be seen before {offset}");
                    }
                    let place = u64::try_from(offset.value()).unwrap() * 8;
                    seen.write_all_at(&record::hash(value).to_le_bytes(), place).unwrap();
                    (last, expected, count) = (Some(origin), offset.next().unwrap(), count + 1);
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // A batch is read whole, or an error came.
        at = if told.is_ok() {
            records.position()
        } else {
            Position { offset: expected, ..records.position() }
        };
        match told {
            Ok(()) => paused_at = last,
            Err(Error::Truncated { end }) if follow == Follow::Written && end <= at.offset => {
                cuts += 1;
                (at, last, paused_at) = (Position { offset: end, ..at }, None, None);
                continue;
            }
            Err(Error::OffsetOutOfRange { start, .. }) if start > at.offset => {
                skips += 1;
                (at, last, paused_at) = (Position::from(start), None, None);
                continue;
            }
            Err(error) => fault!("{who} at {}: {error:?}", at.offset),
        }
        check_durable(place, &reader, &mut durable, &who);
        if !place.join("t-0").exists() {
            fault!("{who}: whoever started it is gone");
        }
        if let Ok(end) = std::fs::read_to_string(place.join("end")) {
            let end = Offset::new(end.parse().unwrap()).unwrap();
            reader.refresh().unwrap();
            if at.offset == end {
                println!("{who}: {count} records, {cuts} cuts, overtaken {skips} times");
                return;
            }
            if reader.end() > end {
                fault!("{who}: ends at {}, the log at {end}", reader.end());
            }
        }
        if let Wait::Truncated { end } = waiting.wait(&reader, at) {
            if follow == Follow::Durable {
                fault!("{who} at {}: cut at {end}", at.offset);
            }
            cuts += 1;
            (at, last, paused_at) = (Position { offset: end, ..at }, None, None);
        }
    }
}

/// The durable end never goes back, and is never past what a sync was begun for.
fn check_durable(place: &Path, reader: &LogReader, before: &mut Offset, who: &str) {
    let durable = reader.durable_end();
    if durable < *before {
        fault!("{who}: the durable end went back from {before} to {durable}");
    }
    *before = durable;
    // Read after the end was: it can only have grown.
    if let Some(begun) = crate::begun(place).filter(|begun| *begun < durable.value()) {
        fault!("{who}: durable up to {durable}, syncs were begun up to {begun}");
    }
}
