//! Batches to the partitions of a broker's topic, by a thread of its own: the next batch is made while one is on its way.

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use stratalog::{FsyncPolicy, LogConfig, Offset, Timestamp, record::ProducerStamp};

use super::{
    Job,
    acknowledge::{Total, stopped},
    options::Args,
    records::Records,
    sink::{Full, Placed, Sink, render},
};
use crate::{
    broker::{
        Acks, Client, Patience, Place, ProducerId,
        admin::{Made, NewTopic},
    },
    decode::TextStyle,
    failure::Failure,
    globals::Globals,
    output::{Output, counted},
    target::Target,
    template::Template,
    view::Ends,
};

/// Batches that wait to be sent; more make the reader of the input wait.
const WAITING: usize = 4;

/// Runs the verb on brokers.
pub(super) fn run(args: &Args, globals: &Globals, place: &Place) -> Result<ExitCode, Failure> {
    refuse_directory_options(args)?;
    let records = Records::new(args)?;
    let topic = place.topic()?;
    if args.create {
        make(place, topic, globals)?;
    }
    let targets = place.partitions(topic)?;
    let acks = args.acks.unwrap_or(Acks::All);
    let stop = globals.stop();
    // What was read before a signal is still sent, and its answer awaited for a little.
    let mut client = place.another_client(Patience::with_grace(&stop));
    let producer = if acks == Acks::None { None } else { client.producer_id()? };
    let output = args.report.is_some().then(|| globals.stdout()).transpose()?;
    let lanes = targets.len();
    let escape = output.as_ref().is_some_and(Output::is_terminal);
    let sender = Sender {
        client,
        topic: topic.to_owned(),
        targets: targets.clone(),
        acks,
        is_numbered: producer.is_some(),
        report: args.report.clone(),
        style: TextStyle { escape, ..TextStyle::default() },
        output,
        totals: vec![Total::default(); lanes],
        unplaced: Total::default(),
        reported: 0,
        outcome: Ok(()),
    };
    let sink = Sink::Broker(BrokerSink::start(sender, producer, lanes)?);
    let mut job = Job::new(args, globals, &stop, lanes, sink)?;
    let copied = job.run(records, args, false);
    let Sink::Broker(sink) = job.sink else { return copied.map(|()| ExitCode::SUCCESS) };
    let (told, sent) = sink.finish();
    tell_total(&told, topic, &targets, acks, globals);
    match sent {
        Err(failure) if !failure.is_quiet() => Err(failure),
        Err(failure) => copied.and(Err(failure)),
        Ok(()) => copied,
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Options that say how a log lies in a directory mean nothing to a broker, and must not be passed over in silence.
fn refuse_directory_options(args: &Args) -> Result<(), Failure> {
    let config = args.log_config()?;
    let plain = LogConfig::default();
    let said = [
        ("--preserve", args.preserve),
        ("--expect", args.expect.is_some()),
        ("--sync", config.fsync != FsyncPolicy::Commit),
        ("--full-sync", args.full_sync),
        ("--segment-bytes", config.segment_bytes != plain.segment_bytes),
        ("--index-interval", config.index_interval_bytes != plain.index_interval_bytes),
        ("--retention-bytes", args.retention_bytes.is_some()),
        ("--retention-age", args.retention_age.is_some()),
        ("--min-free", args.min_free != 0),
        ("--timestamp-type", config.timestamp_type != plain.timestamp_type),
        ("--refuse-damage", args.refuse_damage),
    ];
    match said.iter().find(|(_, is_said)| *is_said) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Failure::usage(format!("{option} is about a log in a directory, not a broker's topic"))
                .hint("`logctl topic alter -b` sets what a topic goes by; --acks says what is waited for"))
        }
    }
}

/// Makes the topic where it is not there, as the brokers make them.
fn make(place: &Place, topic: &str, globals: &Globals) -> Result<(), Failure> {
    let new = NewTopic { name: topic.to_owned(), partitions: None, replicas: None, settings: Vec::new() };
    match place.client().borrow_mut().create_topic(&new, false)? {
        Made::New { partitions, .. } => {
            let partitions = u64::try_from(partitions).ok().filter(|count| *count > 0);
            let of =
                partitions.map(|count| format!(" with {}", counted(count, "partition"))).unwrap_or_default();
            globals.note(format!("made topic `{topic}`{of}"));
            Ok(())
        }
        Made::WasThere => Ok(()),
        Made::Failed(failure) => Err(failure),
    }
}

/// Which of several partitions a record goes to: by its key, as Kafka's own producers choose, or in turns.
pub(super) fn lane_of(key: Option<&[u8]>, lanes: usize, turn: usize) -> usize {
    match key {
        None => turn % lanes.max(1),
        Some(key) => (murmur2(key) & 0x7FFF_FFFF) as usize % lanes.max(1),
    }
}

/// The hash of Kafka's producers.
fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5BD1_E995;
    let mix = |word: u32| {
        let word = word.wrapping_mul(M);
        (word ^ (word >> 24)).wrapping_mul(M)
    };
    // A key of more bytes than that is none that fits a record.
    let mut hash = 0x9747_B28C ^ u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_mul(M) ^ mix(u32::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |last, byte| last << 8 | u32::from(*byte));
        hash = (hash ^ last).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// A batch on its way to the thread.
struct Outgoing {
    lane: usize,
    bytes: Vec<u8>,
    records: u64,
    payload_bytes: u64,
    line: u64,
}

/// The sending thread's other end.
pub(super) struct BrokerSink {
    send: SyncSender<Outgoing>,
    failed: Arc<AtomicBool>,
    thread: JoinHandle<Sender>,
    producer: Option<ProducerId>,
    /// The number of each partition's next record.
    sequences: Vec<i32>,
    /// Records that were taken over.
    taken: u64,
}

/// What was acknowledged.
struct Told {
    totals: Vec<Total>,
    /// Without offsets.
    unplaced: Total,
    /// Records that were to be sent.
    taken: u64,
}

impl BrokerSink {
    fn start(mut sender: Sender, producer: Option<ProducerId>, lanes: usize) -> Result<Self, Failure> {
        let (send, receive) = sync_channel(WAITING);
        let failed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&failed);
        let thread = thread::Builder::new()
            .spawn(move || {
                sender.run(&receive, &flag);
                sender
            })
            .map_err(|error| Failure::io("start", "a thread", &error))?;
        Ok(Self { send, failed, thread, producer, sequences: vec![0; lanes], taken: 0 })
    }

    pub(super) fn stamp(&self, lane: usize) -> Option<ProducerStamp> {
        let base_sequence = self.sequences.get(lane).copied()?;
        self.producer.map(|producer| ProducerStamp { id: producer.id, epoch: producer.epoch, base_sequence })
    }

    pub(super) fn take(&mut self, batch: &Full<'_>) -> Result<(), Failure> {
        if let Some(sequence) = self.sequences.get_mut(batch.lane) {
            // They begin again at 0 behind the largest.
            let next = (i64::from(*sequence) + i64::from(batch.count)) & i64::from(i32::MAX);
            *sequence = i32::try_from(next).unwrap_or(0);
        }
        let outgoing = Outgoing {
            lane: batch.lane,
            bytes: batch.bytes.to_vec(),
            records: u64::from(batch.count),
            payload_bytes: batch.payload_bytes,
            line: batch.line,
        };
        self.taken += outgoing.records;
        self.send.send(outgoing).map_err(|_| stopped())
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.failed.load(Ordering::Acquire) { Err(stopped()) } else { Ok(()) }
    }

    /// Waits until everything was sent and answered.
    fn finish(self) -> (Told, Result<(), Failure>) {
        drop(self.send);
        match self.thread.join() {
            Ok(sender) => {
                (Told { totals: sender.totals, unplaced: sender.unplaced, taken: self.taken }, sender.outcome)
            }
            Err(_) => (
                Told { totals: Vec::new(), unplaced: Total::default(), taken: self.taken },
                Err(Failure::other("the thread that sends has ended; check what was appended")),
            ),
        }
    }
}

/// What the thread works with.
struct Sender {
    client: Client,
    topic: String,
    targets: Vec<Target>,
    acks: Acks,
    is_numbered: bool,
    report: Option<Template>,
    style: TextStyle,
    output: Option<Output>,
    totals: Vec<Total>,
    unplaced: Total,
    reported: u64,
    outcome: Result<(), Failure>,
}

impl Sender {
    fn run(&mut self, batches: &Receiver<Outgoing>, failed: &AtomicBool) {
        while let Ok(first) = batches.recv() {
            let mut next = Some(first);
            while let Some(batch) = next {
                if let Err(failure) = self.one(&batch) {
                    self.outcome = Err(failure);
                    failed.store(true, Ordering::Release);
                    return;
                }
                next = batches.try_recv().ok();
            }
            if let Some(Err(failure)) = self.output.as_mut().map(Output::flush) {
                // Nobody reads reports any more: what was taken over is sent all the same.
                self.output = None;
                self.outcome = Err(failure);
                failed.store(true, Ordering::Release);
            }
        }
        if self.acks == Acks::None
            && let Err(failure) = self.client.settle()
        {
            self.outcome = Err(failure);
        }
    }

    fn one(&mut self, batch: &Outgoing) -> Result<(), Failure> {
        let Some(target) = self.targets.get(batch.lane) else { return Ok(()) };
        let number = target.partition_number().and_then(|number| i32::try_from(number).ok()).unwrap_or(0);
        let produced = self
            .client
            .produce(&self.topic, number, &batch.bytes, self.acks, self.is_numbered)
            .map_err(|failure| {
                if self.targets.len() > 1 {
                    return failure;
                }
                failure.at(format_args!("line {} and on were not appended", batch.line))
            })?;
        let Some(base) = Offset::new(produced.base_offset) else {
            self.unplaced.add(Offset::ZERO, batch.records, batch.payload_bytes);
            return Ok(());
        };
        if let Some(total) = self.totals.get_mut(batch.lane) {
            total.add(base, batch.records, batch.payload_bytes);
        }
        let (Some(template), Some(output)) = (&self.report, &mut self.output) else { return Ok(()) };
        let end = base.checked_add(batch.records).map_or(-1, Offset::value);
        let ends = Ends { start: produced.log_start_offset, stable: -1, end };
        let mut report = Vec::new();
        let style = (template, &self.style);
        let append_time = Some(produced.append_time_ms).filter(|at| *at >= 0).map(Timestamp::from_millis);
        let placed = Placed { base, leader_epoch: -1, ends, append_time };
        render(style, target, &batch.bytes, placed, &mut self.reported, &mut report)
            .map_err(|e| Failure::other(e.to_string()))?;
        output.bytes(&report)
    }
}

fn tell_total(told: &Told, topic: &str, targets: &[Target], acks: Acks, globals: &Globals) {
    let sum = |of: fn(&Total) -> u64| told.totals.iter().chain([&told.unplaced]).map(of).sum::<u64>();
    let records = sum(|total| total.records);
    if told.taken > records {
        let count = counted(told.taken - records, "record");
        globals.note(format!("{count} of the input without an answer: in part they may have arrived"));
    }
    if records == 0 {
        return globals.note("appended nothing");
    }
    let places: Vec<String> = told
        .totals
        .iter()
        .zip(targets)
        .filter(|(total, _)| total.first.is_some())
        .map(|(total, target)| {
            let number = target.partition_number().unwrap_or(0);
            format!("{topic}/{number} {}", total.offsets())
        })
        .collect();
    let mut places = match places.len().saturating_sub(8) {
        0 => places.join("; "),
        more => format!("{}; and {more} partitions more", places.get(..8).unwrap_or_default().join("; ")),
    };
    if places.is_empty() {
        places = format!("{topic}, offsets not told");
    }
    let (count, bytes) = (counted(records, "record"), counted(sum(|total| total.bytes), "byte"));
    globals.note(format!("appended {count}, {bytes} of keys and values, {places}, acks={}", acks.name()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Kafka's own tests (`UtilsTest`).
    #[test]
    fn the_hash_of_producers() {
        let cases: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, hash) in cases {
            assert_eq!(murmur2(key).cast_signed(), hash, "{}", String::from_utf8_lossy(key));
        }
    }

    #[test]
    fn records_without_keys_take_turns() {
        assert_eq!(lane_of(None, 3, 5), 2);
        assert_eq!(lane_of(Some(b"abc"), 1, 5), 0);
    }
}
