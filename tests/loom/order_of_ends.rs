//! The order in which an append becomes visible in the writer's own process: bytes, the segment's end, the log's end.

use loom::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
};

use crate::{
    checked::{Arc, Mutex},
    ends::Ends,
    published::Published,
};

/// A segment whose records take a word each, stored and loaded without any order of their own.
struct Segment {
    base: u64,
    records: [AtomicU64; 2],
    end: Published,
}

struct Log {
    ends: Ends,
    segments: Mutex<Vec<Arc<Segment>>>,
}

fn segment(base: u64) -> Arc<Segment> {
    let records = std::array::from_fn(|_| AtomicU64::new(u64::MAX));
    Arc::new(Segment { base, records, end: Published::new(0) })
}

impl Log {
    fn new() -> Arc<Self> {
        Arc::new(Self { ends: Ends::new(0, 0, 0), segments: Mutex::new(vec![segment(0)]) })
    }

    fn active(&self) -> Arc<Segment> {
        Arc::clone(self.segments.lock().last().expect("a segment"))
    }

    fn write(&self, offset: u64) {
        let segment = self.active();
        let at = usize::try_from(offset - segment.base).expect("a place");
        segment.records[at].store(offset, Relaxed);
    }

    fn end_segment_at(&self, end: u64) {
        let segment = self.active();
        segment.end.store(end - segment.base);
    }

    fn append(&self, offset: u64) {
        self.write(offset);
        self.end_segment_at(offset + 1);
        self.ends.raise_written(offset + 1);
    }

    fn roll(&self, base: u64) {
        self.segments.lock().push(segment(base));
    }

    /// Reads all there is, as a reader does: the log's end, then the set of segments, then each one's end.
    fn read(&self) -> u64 {
        let end = self.ends.written();
        let segments = self.segments.lock().clone();
        let mut next = 0;
        for segment in segments {
            assert_eq!(segment.base, next, "a gap");
            for (offset, record) in (segment.base..segment.base + segment.end.load()).zip(&segment.records) {
                assert_eq!(record.load(Relaxed), offset, "a record that is not there yet");
                next += 1;
            }
        }
        assert!(next >= end, "an end past the segments'");
        end
    }
}

#[test]
fn a_reader_finds_all_below_the_end_also_over_a_roll() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let log = Log::new();
        let writer = {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                log.append(0);
                log.roll(1);
                log.append(1);
            })
        };
        let seen = log.read();
        assert!(log.read() >= seen, "the end goes back");
        writer.join().unwrap();
        assert_eq!(log.read(), 2);
    });
}

/// A writer in the wrong order, beside a reader that reads once. Fails, where that is asked for.
fn in_another_order(write: impl Fn(&Log) + Copy + Send + Sync + 'static) {
    if !crate::is_to_fail() {
        return;
    }
    loom::model(move || {
        let log = Log::new();
        let writer = {
            let log = Arc::clone(&log);
            thread::spawn(move || write(&log))
        };
        log.read();
        writer.join().unwrap();
    });
}

#[test]
fn the_other_orders_show_what_is_not_there() {
    let said = crate::failure_of("order_of_ends::a_segments_end_before_its_bytes");
    assert!(said.contains("a record that is not there yet"), "{said}");
    let said = crate::failure_of("order_of_ends::the_logs_end_before_its_segments");
    assert!(said.contains("an end past the segments'"), "{said}");
}

#[test]
fn a_segments_end_before_its_bytes() {
    in_another_order(|log| {
        log.end_segment_at(1);
        log.write(0);
    });
}

#[test]
fn the_logs_end_before_its_segments() {
    in_another_order(|log| {
        log.write(0);
        log.ends.raise_written(1);
        log.end_segment_at(1);
    });
}

#[test]
fn start_durable_and_written_keep_their_order_for_who_loads_them_backwards() {
    loom::model(|| {
        let ends = Arc::new(Ends::new(0, 0, 0));
        let writer = {
            let ends = Arc::clone(&ends);
            thread::spawn(move || {
                for end in 1..=2 {
                    ends.raise_written(end);
                    ends.raise_durable(end);
                    ends.raise_start(end);
                }
            })
        };
        let start = ends.start();
        let durable = ends.durable();
        let written = ends.written();
        assert!(start <= durable && durable <= written, "{start} {durable} {written}");
        writer.join().unwrap();
    });
}
