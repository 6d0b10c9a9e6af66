//! Producers and consumers at work while the server is killed by SIGKILL and started again.
//!
//! Nothing that was acknowledged may be lost, come twice or out of order; nothing that was shown may be taken back.

use std::{
    collections::BTreeSet,
    env,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    thread,
    time::Duration,
};

use crate::{
    connection::{Connection, Wanted},
    consumer::{Consumer, records},
    history::{History, Told},
    is_full,
    producer::{Lane, Producer},
    served::{Served, logctl},
};

pub(crate) const TOPIC: &str = "load";

/// How hard, how long.
#[derive(Clone, Debug)]
struct Plan {
    producers: u16,
    consumers: u16,
    partitions: u16,
    seconds: f64,
    kills: u32,
    topic: Vec<(&'static str, &'static str)>,
    server: Vec<&'static str>,
}

/// What producers and consumers know of the run.
pub(crate) struct Run {
    pub(crate) partitions: u16,
    /// A pause behind each batch, so that the disk is not filled for nothing.
    pub(crate) pace: Duration,
    address: Mutex<SocketAddr>,
    is_over: AtomicBool,
    /// Somebody panicked: the others end as well, so that it is told.
    has_failed: AtomicBool,
    /// Of each partition, once nothing more comes.
    ends: Vec<AtomicI64>,
    producer_ids: Mutex<BTreeSet<i64>>,
}

impl Run {
    pub(crate) fn address(&self) -> SocketAddr {
        *self.address.lock().unwrap()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.has_failed()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Does one client's work, and tells the others when it fails.
    fn do_work<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Alarm<'a>(&'a AtomicBool);
        impl Drop for Alarm<'_> {
            fn drop(&mut self) {
                self.0.fetch_or(thread::panicking(), Ordering::Relaxed);
            }
        }
        let _alarm = Alarm(&self.has_failed);
        work()
    }

    pub(crate) fn end(&self, partition: u16) -> Option<i64> {
        let end = self.ends[usize::from(partition)].load(Ordering::Relaxed);
        (end >= 0).then_some(end)
    }

    pub(crate) fn take_producer_id(&self, id: i64) {
        assert!(self.producer_ids.lock().unwrap().insert(id), "producer id {id} was given twice");
    }
}

fn number<N: std::str::FromStr>(name: &str, default: N) -> N {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

impl Plan {
    /// As short as it may be, or as long as it is asked for.
    fn new() -> Self {
        let (clients, partitions, seconds, kills) =
            if is_full() { (64, 16, 60.0, 5) } else { (16, 8, 1.5, 1) };
        Self {
            producers: number("STRATALOG_LOAD_CLIENTS", clients),
            consumers: number("STRATALOG_LOAD_CLIENTS", clients),
            partitions: number("STRATALOG_LOAD_PARTITIONS", partitions),
            seconds: number("STRATALOG_LOAD_SECONDS", seconds),
            kills: number("STRATALOG_LOAD_KILLS", kills),
            topic: Vec::new(),
            server: Vec::new(),
        }
    }

    fn run(&self) {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        let mut served = Served::start(&dir, &self.server);
        let partitions = self.partitions.into();
        Connection::new(served.address).unwrap().create_topic(TOPIC, partitions, &self.topic).unwrap();
        let run = Run {
            partitions: self.partitions,
            pace: Duration::from_millis(u64::from(self.producers) / 16),
            address: Mutex::new(served.address),
            is_over: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            ends: (0..self.partitions).map(|_| AtomicI64::new(-1)).collect(),
            producer_ids: Mutex::default(),
        };
        let (lanes, told): (Vec<Lane>, Vec<Vec<Told>>) = thread::scope(|scope| {
            let run = &run;
            let producers: Vec<_> = (0..self.producers)
                .map(|n| scope.spawn(move || run.do_work(|| Producer::new(run, n).work())))
                .collect();
            let consumers: Vec<_> = (0..self.consumers)
                .map(|n| scope.spawn(move || run.do_work(|| Consumer::new(run, n).work())))
                .collect();
            let leg = Duration::from_secs_f64(self.seconds / f64::from(self.kills + 1));
            for _ in 0..self.kills {
                thread::sleep(leg);
                served.kill();
                // Somewhere else: who is still on the way to the old address finds nobody.
                served = Served::start(&dir, &self.server);
                *run.address.lock().unwrap() = served.address;
            }
            thread::sleep(leg);
            run.is_over.store(true, Ordering::Relaxed);
            let lanes: Vec<_> = producers.into_iter().flat_map(|producer| producer.join().unwrap()).collect();
            let mut ends = vec![0; usize::from(self.partitions)];
            for lane in &lanes {
                let end = &mut ends[usize::from(lane.partition)];
                *end = lane.acknowledged.iter().map(|(offset, _)| offset + 1).fold(*end, i64::max);
            }
            for (end, found) in run.ends.iter().zip(ends) {
                end.store(found, Ordering::Relaxed);
            }
            (lanes, consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect())
        });
        self.check(&served, lanes, told);
        assert_eq!(served.stop(), Some(0), "a clean stop");
        let verified = logctl().arg("verify").arg(&dir).output().unwrap();
        assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    }

    /// Finds no fault with any partition.
    fn check(&self, served: &Served, lanes: Vec<Lane>, told: Vec<Vec<Told>>) {
        let mut histories: Vec<_> = (0..self.partitions).map(|_| History::default()).collect();
        for lane in lanes {
            let history = &mut histories[usize::from(lane.partition)];
            let producer = lane.acknowledged.first().map(|(_, sent)| sent.producer);
            history.sent.extend(producer.map(|producer| (producer, lane.count)));
            assert_eq!(lane.acknowledged.len(), usize::try_from(lane.count).unwrap());
            history.acknowledged.extend(lane.acknowledged);
        }
        for (number, told) in told.into_iter().enumerate() {
            histories[number % usize::from(self.partitions)].consumers.push(told);
        }
        let mut connection = Connection::new(served.address).unwrap();
        let (mut acknowledged, mut found, mut deleted) = (0, 0, 0);
        for (partition, history) in (0..).zip(&mut histories) {
            read_all(&mut connection, partition, history);
            let faults = history.faults();
            assert!(
                faults.is_empty(),
                "partition {partition}: {} faults: {:?}",
                faults.len(),
                &faults[..faults.len().min(20)]
            );
            let counts = history.counts();
            acknowledged += counts.0;
            found += counts.1;
            deleted += history.start;
        }
        println!(
            "{} producers, {} consumers, {} kills: {acknowledged} records acknowledged, {found} of them found, {deleted} deleted by now",
            self.producers, self.consumers, self.kills
        );
        assert!(acknowledged > 100, "{acknowledged}");
        if deleted == 0 {
            assert_eq!(found, acknowledged);
        }
    }
}

/// What is in the log now.
fn read_all(connection: &mut Connection, partition: u16, history: &mut History) {
    // Retention may take the beginning away meanwhile: then from the new one.
    'anew: loop {
        history.stored.clear();
        history.start = connection.start(TOPIC, partition.into()).unwrap();
        let mut offset = history.start;
        loop {
            let wanted = Wanted {
                topic: TOPIC,
                partition: partition.into(),
                offset,
                max_bytes: 4 << 20,
                max_wait_ms: 0,
                is_committed: false,
            };
            let fetched = connection.fetch(&wanted).unwrap();
            if fetched.code == 1 {
                continue 'anew;
            }
            assert_eq!(fetched.code, 0);
            let records = records(partition, &fetched.bytes);
            history.stored.extend(records.into_iter().filter(|(at, _)| *at >= offset));
            if offset == fetched.high_watermark {
                return;
            }
            let last = history.stored.last().unwrap().0;
            assert!(last >= offset, "nothing at {offset} below {}", fetched.high_watermark);
            offset = last + 1;
        }
    }
}

#[test]
fn nothing_is_lost_doubled_reordered_or_taken_back() {
    Plan::new().run();
}

#[test]
fn nor_where_the_written_end_is_acknowledged() {
    Plan { topic: vec![("stratalog.acknowledge.at", "written")], ..Plan::new() }.run();
}

#[test]
fn nor_while_segments_roll_and_go() {
    let topic = vec![
        ("segment.bytes", "1048576"),
        ("retention.bytes", "3145728"),
        ("file.delete.delay.ms", "500"),
        ("index.interval.bytes", "512"),
    ];
    let server = vec!["log.retention.check.interval.ms=200", "log.initial.task.delay.ms=0"];
    Plan { topic, server, ..Plan::new() }.run();
}
