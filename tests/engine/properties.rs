//! Random operation lists against a plain list.
//!
//! After every step the ends, all records, a long-lived walk and a view from outside are compared; at the end every
//! offset and every time. What failed once stands below as a test with a name.

mod model;
mod operations;

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use model::{Kept, Model, Walker};
use operations::{Draft, Expected, Harm, NOW_MS, Op, Settings, ops, settings};
use proptest::{prelude::*, test_runner::FileFailurePersistence};
use stratalog::{
    AppendOptions, Clock, Error, FsyncPolicy, LogConfig, LogReader, LogWriter, Offsets, OpenMode,
    ReadOptions, Retention, SegmentInfo, Timestamp,
    record::{
        BatchBuilder, BatchOptions, CRC_AT, CRC_START, Codec, Compression, EndTxnMarker, Header, Record,
        TimestampType, crc32c, end_txn_marker,
    },
};
use tempfile::TempDir;

use crate::support::{at, fast_dir};

/// Names and bytes of the files beside the log, at one moment.
type Sidecars = BTreeMap<String, Vec<u8>>;

struct Run {
    temp: TempDir,
    config: LogConfig,
    clock: Clock,
    writer: Option<LogWriter>,
    inside: Option<Walker>,
    outside: Option<Walker>,
    model: Model,
    epoch: i32,
    /// The last batch's.
    batch_epoch: i32,
    largest_start: i64,
    left: Vec<Sidecars>,
    /// A gap that indexes cannot name was appended: an older checkpoint would take it for a hole.
    has_chasm: bool,
    /// Epochs that no batch had were forgotten: an older file that names them may be another history's.
    has_lost_epochs: bool,
    value_seed: u8,
}

fn run(settings: &Settings, ops: &[Op]) {
    let mut run = Run::new(settings);
    for op in ops {
        run.step(op);
        run.check();
        // The walks fall behind in between, over rolls and retention.
        if matches!(op, Op::Look { .. } | Op::Sync) {
            run.drain();
        }
    }
    run.check_everything();
    run.step(&Op::Reopen { is_clean: true, harm: Vec::new() });
    run.check_everything();
}

impl Run {
    fn new(settings: &Settings) -> Self {
        let clock = Clock::manual(Timestamp::from_millis(NOW_MS));
        let mut config = LogConfig::default();
        config.open = OpenMode::CreateIfMissing;
        config.segment_bytes = settings.segment_bytes;
        config.index_interval_bytes = settings.index_interval_bytes;
        config.segment_index_bytes = settings.segment_index_bytes;
        config.roll_after = settings.roll_after_ms.map(Duration::from_millis);
        config.preallocate = settings.preallocate;
        config.fsync = settings.fsync;
        config.compression = Compression::new(settings.codec);
        config.clock = clock.clone();
        if settings.is_append_time {
            config.timestamp_type = TimestampType::LogAppendTime;
        }
        // Nothing here is about what a disk does.
        let temp = fast_dir();
        let mut run = Self {
            temp,
            config,
            clock,
            writer: None,
            inside: None,
            outside: None,
            model: Model::default(),
            epoch: 0,
            batch_epoch: 0,
            largest_start: 0,
            left: Vec::new(),
            has_chasm: false,
            has_lost_epochs: false,
            value_seed: 0,
        };
        run.open();
        run.outside = Some(Walker::new(&run.attach()));
        run
    }

    fn dir(&self) -> std::path::PathBuf {
        self.temp.path().join("t-0")
    }

    fn attach(&self) -> LogReader {
        LogReader::open(self.dir(), ReadOptions::default()).unwrap()
    }

    fn writer(&mut self) -> &mut LogWriter {
        self.writer.as_mut().unwrap()
    }

    fn open(&mut self) {
        let writer = LogWriter::open(self.dir(), self.config.clone()).unwrap();
        let report = writer.recovery();
        assert_eq!((&report.cut, &report.lost, report.corrupt.len()), (&None, &None, 0), "{report:?}");
        self.inside = Some(Walker::new(&writer.reader()));
        self.writer = Some(writer);
        self.model.durable = self.model.end;
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Append { records, expected, is_deferred } => self.append(records, *expected, *is_deferred),
            Op::Batches { batches, codec, expected } => self.append_batches(batches, *codec, *expected),
            Op::Preserve { batches, epochs_on } => self.preserve(batches, *epochs_on),
            Op::Control { gap } => self.append_control(*gap),
            Op::Roll => self.writer().roll().unwrap(),
            Op::Sync => {
                self.writer().sync().unwrap();
                self.model.durable = self.model.end;
            }
            Op::Retain { bytes, age_ms } => {
                self.config.retention = Retention { bytes: *bytes, age: age_ms.map(Duration::from_millis) };
                let config = self.config.clone();
                self.writer().set_config(config).unwrap();
            }
            Op::Maintain { advance_ms } => {
                self.clock.advance(Duration::from_millis(*advance_ms));
                self.maintain();
            }
            Op::AdvanceStart(to) => self.advance_start(*to),
            Op::NextEpoch => {
                self.epoch += 1;
                let epoch = self.epoch;
                self.writer().set_leader_epoch(epoch).unwrap();
            }
            Op::Attach => self.outside = Some(Walker::new(&self.attach())),
            Op::Reopen { is_clean, harm } => self.reopen(*is_clean, harm),
            Op::Look { at, time, last, max_bytes } => self.look(*at, *time, *last, *max_bytes),
        }
    }

    fn options(&self, expected: Expected) -> AppendOptions {
        let end = self.model.end;
        let expected = match expected {
            Expected::Nothing => None,
            Expected::Right => Some(at(end)),
            Expected::Wrong => Some(at(end + 1)),
        };
        AppendOptions { expected, ..AppendOptions::default() }
    }

    fn append(&mut self, drafts: &[Draft], expected: Expected, is_deferred: bool) {
        let options = self.options(expected);
        let material = self.material(drafts);
        let headers: Vec<_> = material.iter().map(Material::headers).collect();
        let records: Vec<_> =
            material.iter().zip(&headers).map(|(record, headers)| record.record(headers)).collect();
        let result = if is_deferred {
            self.writer().append_records_deferred(&records, options).map(|pending| {
                let base = pending.base_offset();
                drop(pending);
                base
            })
        } else {
            self.writer().append_records(&records, options).map(|appended| appended.base_offset)
        };
        let bytes: usize = material.iter().map(Material::size).sum();
        if self.is_accepted(result, expected, bytes) {
            let base = self.model.end;
            self.keep(base, &material, true);
            self.grown(!is_deferred);
        }
    }

    fn append_batches(&mut self, batches: &[Vec<Draft>], codec: Codec, expected: Expected) {
        let options = self.options(expected);
        let materials: Vec<_> = batches.iter().map(|drafts| self.material(drafts)).collect();
        let mut bytes = Vec::new();
        for material in &materials {
            // A wrong base on purpose: the log stamps its own.
            bytes.extend_from_slice(&batch_of(material, 77, -1, codec));
        }
        let result = self.writer().append(&bytes, options).map(|appended| appended.base_offset);
        if self.is_accepted(result, expected, bytes.len()) {
            for material in &materials {
                let base = self.model.end;
                self.keep(base, material, true);
            }
            self.grown(true);
        }
    }

    fn preserve(&mut self, batches: &[(u64, u8, Vec<Draft>)], epochs_on: u8) {
        let mut next = self.model.end;
        let (mut bytes, mut placed) = (Vec::new(), Vec::new());
        let epoch = self.epoch + i32::from(epochs_on);
        for (gap, hidden, drafts) in batches {
            let material = self.material(drafts);
            let base = next + i64::try_from(*gap).unwrap();
            let batch = stretch(batch_of(&material, base, epoch, Codec::None), *hidden);
            next = base + i64::try_from(drafts.len()).unwrap() + i64::from(*hidden);
            bytes.extend_from_slice(&batch);
            placed.push((base, next, material));
        }
        let options = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
        let span = next - placed[0].0;
        let result = self.writer().append(&bytes, options).map(|appended| appended.base_offset);
        match result {
            Err(Error::TooLarge { .. }) => assert!(bytes.len() > 900, "{} bytes refused", bytes.len()),
            // One append lies in one segment, whose indexes name 31 bits.
            Err(Error::InvalidBatch(_)) => assert!(span > i64::from(i32::MAX), "a span of {span} refused"),
            Err(error) => panic!("{error}"),
            Ok(base) => {
                assert_eq!(base, at(placed[0].0));
                self.has_chasm |= next - self.model.end > 1 << 30;
                for (base, next, material) in placed {
                    self.keep(base, &material, false);
                    self.model.end = next;
                }
                self.model.last_batch_end = self.model.end;
                // Where nothing was there before, the log begins with the segment that could name the batch.
                let first = self.writer().reader().segments()[0].base_offset.value();
                self.model.start = self.model.start.max(first);
                self.epoch = epoch;
                self.grown(true);
            }
        }
    }

    fn append_control(&mut self, gap: u8) {
        let base = self.model.end + i64::from(gap);
        let marker = EndTxnMarker { coordinator_epoch: 1 };
        let time = Timestamp::from_millis(NOW_MS);
        let batch = end_txn_marker(at(base), self.epoch, (7, 0), true, marker, time);
        let options = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
        self.writer().append(&batch, options).unwrap();
        let record = Kept {
            offset: base,
            timestamp: NOW_MS,
            key: Some(vec![0, 0, 0, 1]),
            value: Some(marker.to_bytes().to_vec()),
            headers: Vec::new(),
            is_control: true,
        };
        self.model.records.insert(base, record);
        self.model.end = base + 1;
        self.model.last_batch_end = self.model.end;
        self.grown(true);
    }

    /// What an append said, checked. True where it was done.
    fn is_accepted(
        &self,
        result: Result<stratalog::Offset, Error>,
        expected: Expected,
        bytes: usize,
    ) -> bool {
        match result {
            Ok(base) => {
                assert_ne!(expected, Expected::Wrong);
                assert_eq!(base, at(self.model.end));
                true
            }
            Err(Error::UnexpectedOffset { .. }) => {
                assert_eq!(expected, Expected::Wrong);
                false
            }
            Err(Error::TooLarge { .. }) => {
                assert!(bytes > 900, "{bytes} bytes refused");
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn keep(&mut self, base: i64, material: &[Material], is_stamped: bool) {
        let stamps_time = is_stamped && self.config.timestamp_type == TimestampType::LogAppendTime;
        let now = self.clock.now().millis();
        for (index, record) in material.iter().enumerate() {
            let offset = base + i64::try_from(index).unwrap();
            let timestamp = if stamps_time { now } else { record.timestamp };
            let kept = Kept {
                offset,
                timestamp,
                key: record.key.clone(),
                value: record.value.clone(),
                headers: record.headers.iter().map(|(k, v)| (k.clone().into_bytes(), v.clone())).collect(),
                is_control: false,
            };
            self.model.records.insert(offset, kept);
        }
        self.model.end = base + i64::try_from(material.len()).unwrap();
        self.model.last_batch_end = self.model.end;
    }

    /// Records came: what is durable now is what the writer says, within what the policy promises.
    fn grown(&mut self, is_acknowledged: bool) {
        self.batch_epoch = self.epoch;
        let durable = self.writer().durable_end().value();
        assert!(durable >= self.model.durable && durable <= self.model.end, "durable end {durable}");
        if is_acknowledged {
            let lag = self.writer().lag();
            match self.config.fsync {
                FsyncPolicy::Commit => assert_eq!(durable, self.model.end),
                FsyncPolicy::EveryBytes(most) => assert!(lag.bytes < most, "{lag:?}"),
                FsyncPolicy::EveryRecords(most) => assert!(lag.records < most, "{lag:?}"),
                FsyncPolicy::Interval(most) => assert!(lag.age < most, "{lag:?}"),
                FsyncPolicy::Never => {}
            }
        }
        self.model.durable = durable;
    }

    fn maintain(&mut self) {
        let segments = self.writer().reader().segments();
        let gone = self.expired(&segments);
        let end = self.model.end;
        let done = self.writer().maintain().unwrap();
        assert_eq!(done.dropped_segments, gone, "dropped of {segments:?}");
        assert!(!done.clock_jumped);
        let first = segments.get(gone).map_or(end, |segment| segment.base_offset.value());
        self.model.start = self.model.start.max(first);
        self.model.durable = self.writer().durable_end().value();
        assert_eq!(done.start, at(self.model.start));
    }

    /// How many of the oldest segments retention takes, by the words of the settings.
    fn expired(&self, segments: &[SegmentInfo]) -> usize {
        let Retention { bytes, age } = self.config.retention;
        let below =
            segments.windows(2).take_while(|pair| pair[1].base_offset.value() <= self.model.start).count();
        let rest = &segments[below..];
        let mut left: u64 = rest.iter().map(|segment| segment.size_bytes).sum();
        let mut by_size = 0;
        if let Some(limit) = bytes {
            for segment in &rest[..rest.len() - 1] {
                if left - segment.size_bytes < limit {
                    break;
                }
                left -= segment.size_bytes;
                by_size += 1;
            }
        }
        let mut by_age = 0;
        if let Some(age) = age {
            let oldest = self.clock.now().millis() - i64::try_from(age.as_millis()).unwrap();
            for segment in rest {
                let range = segment.base_offset.value()..segment.next_offset.value();
                let newest = self.model.records.range(range).map(|(_, kept)| kept.timestamp).max();
                // Without any timestamp the file's time counts, and that is now, long after the clock of this test.
                let is_old = newest.is_some_and(|newest| newest >= 0 && newest < oldest);
                if !is_old {
                    break;
                }
                by_age += 1;
            }
            // All of them: the active one goes too, unless it is empty.
            if by_age == rest.len() && rest[rest.len() - 1].size_bytes == 0 {
                by_age -= 1;
            }
        }
        below + by_size.max(by_age)
    }

    fn advance_start(&mut self, to: u8) {
        let (start, end) = (self.model.start, self.model.end);
        let to = start + (end - start) / 255 * i64::from(to) + (end - start) % 255 * i64::from(to) / 255;
        self.writer().advance_start(at(to)).unwrap();
        let refused = self.writer().advance_start(at(end + 1));
        assert!(matches!(refused, Err(Error::OffsetOutOfRange { .. })), "{refused:?}");
        self.model.start = to;
        self.model.durable = self.writer().durable_end().value();
        assert!(self.model.durable >= to);
    }

    fn reopen(&mut self, is_clean: bool, harm: &[(u8, Harm)]) {
        let writer = self.writer.take().unwrap();
        self.inside = None;
        if is_clean {
            writer.close().unwrap();
        } else {
            drop(writer);
        }
        let dir = self.dir();
        let now = sidecars(&dir);
        self.largest_start = self.largest_start.max(self.model.start);
        let mut lost_start = false;
        for (pick, harm) in harm {
            lost_start |= self.damage(&now, *pick, *harm);
        }
        self.left.push(now);
        self.open();
        let start = self.writer().start().value();
        if lost_start {
            let first = self.writer().reader().segments()[0].base_offset.value();
            // An older checkpoint may know one that was lost in between.
            assert!(start >= first && start <= self.largest_start, "start {start}");
            self.model.start = start;
        }
        assert_eq!(start, self.model.start);
        // An epoch that no batch has yet may be forgotten with the file that named it.
        let least = if self.has_records() { self.batch_epoch } else { 0 };
        assert!(self.writer().leader_epoch() >= least, "epochs go back");
        self.epoch = self.writer().leader_epoch();
    }

    /// True where some segment holds a record.
    fn has_records(&self) -> bool {
        self.writer.as_ref().unwrap().reader().segments().iter().any(|segment| segment.size_bytes > 0)
    }

    /// True where the file that was damaged is the one that knows the start offset.
    fn damage(&mut self, now: &Sidecars, pick: u8, harm: Harm) -> bool {
        let Some((name, bytes)) = now.iter().nth(usize::from(pick) % now.len().max(1)) else { return false };
        let is_checkpoint = name == ".stratalog-checkpoint";
        let is_epochs = name == "leader-epoch-checkpoint";
        self.has_lost_epochs |= is_epochs && !matches!(harm, Harm::Stale(_)) && self.epoch > self.batch_epoch;
        let path = self.dir().join(name);
        let damaged = match harm {
            Harm::Delete => {
                let _ = fs::remove_file(&path);
                return is_checkpoint;
            }
            Harm::Truncate(to) => bytes[..bytes.len() * usize::from(to) / 256].to_vec(),
            Harm::Zero => vec![0; bytes.len()],
            Harm::Garbage(seed) => (0..bytes.len()).map(|at| noise(at, seed)).collect(),
            Harm::Stale(which) => {
                let old: Vec<_> = self.left.iter().filter_map(|then| then.get(name)).collect();
                let is_doubted = (is_checkpoint && self.has_chasm) || (is_epochs && self.has_lost_epochs);
                if old.is_empty() || is_doubted {
                    return false;
                }
                old[usize::from(which) % old.len()].clone()
            }
            Harm::Odd(more) => {
                let mut longer = bytes.clone();
                longer.extend((0..usize::from(more)).map(|at| noise(at, more)));
                longer
            }
            Harm::ExtendZeros(more) => {
                let mut longer = bytes.clone();
                longer.resize(bytes.len() + usize::from(more), 0);
                longer
            }
        };
        // A new file under the old name: shortening one that a reader has mapped is nobody's right.
        let _ = fs::remove_file(&path);
        fs::write(&path, damaged).unwrap();
        is_checkpoint
    }

    fn look(&self, place: u16, time: u16, last: u8, max_bytes: u32) {
        let from = self.model.start - 1;
        let span = self.model.end + 1 - from;
        let offset = (from + i64::try_from(i128::from(span) * i128::from(place) / 65535).unwrap()).max(0);
        let times = self.model.times();
        let time = times[usize::from(time) * (times.len() - 1) / 65535];
        for reader in self.readers() {
            self.model.check_offset(&reader, offset, max_bytes);
            self.model.check_time(&reader, time);
            self.model.check_last(&reader, u64::from(last));
            self.model.check_max_timestamp(&reader);
        }
    }

    fn readers(&self) -> [LogReader; 2] {
        let outside = self.outside.as_ref().unwrap().reader().clone();
        outside.refresh().unwrap();
        [self.writer.as_ref().unwrap().reader(), outside]
    }

    fn check(&mut self) {
        let writer = self.writer.as_ref().unwrap();
        assert_eq!((writer.start(), writer.end()), (at(self.model.start), at(self.model.end)));
        for reader in self.readers() {
            self.model.check_ends(&reader);
        }
    }

    fn drain(&mut self) {
        self.inside.as_mut().unwrap().drain(&self.model);
        self.outside.as_mut().unwrap().drain(&self.model);
    }

    fn check_everything(&mut self) {
        let fresh = self.attach();
        for reader in self.readers().into_iter().chain([fresh]) {
            self.model.check_ends(&reader);
            self.model.check_all(&reader);
            for time in self.model.times() {
                self.model.check_time(&reader, time);
            }
            self.model.check_max_timestamp(&reader);
            for last in [0, 1, 2, 10, 1000] {
                self.model.check_last(&reader, last);
            }
            let mut offsets: Vec<i64> = self
                .model
                .readable()
                .flat_map(|kept| [kept.offset - 1, kept.offset, kept.offset + 1])
                .collect();
            offsets.extend([self.model.start, self.model.start - 1, self.model.end, self.model.end + 1]);
            offsets.sort_unstable();
            offsets.dedup();
            for offset in offsets.into_iter().filter(|offset| *offset >= 0) {
                self.model.check_offset(&reader, offset, 500);
            }
        }
        self.check();
        self.drain();
    }

    fn material(&mut self, drafts: &[Draft]) -> Vec<Material> {
        let now = self.clock.now().millis();
        let mut material = Vec::new();
        for draft in drafts {
            self.value_seed = self.value_seed.wrapping_add(1);
            let seed = self.value_seed;
            material.push(Material {
                timestamp: draft.timestamp.unwrap_or(now),
                key: draft.key.map(|key| vec![key; usize::from(key % 5)]),
                value: draft.value.map(|len| (0..len).map(|at| noise(at, seed)).collect()),
                headers: (0..draft.headers)
                    .map(|index| (format!("h{index}"), (index == 0).then(|| vec![seed])))
                    .collect(),
            });
        }
        material
    }
}

/// What a record is made from, owned.
struct Material {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Material {
    fn headers(&self) -> Vec<Header<'_>> {
        self.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect()
    }

    fn record<'a>(&'a self, headers: &'a [Header<'a>]) -> Record<'a> {
        let mut record = Record::new().timestamp(Timestamp::from_millis(self.timestamp)).headers(headers);
        record.key = self.key.as_deref();
        record.value = self.value.as_deref();
        record
    }

    fn size(&self) -> usize {
        100 + self.value.as_ref().map_or(0, Vec::len)
    }
}

fn batch_of(material: &[Material], base: i64, epoch: i32, codec: Codec) -> Vec<u8> {
    let options = BatchOptions {
        base_offset: at(base),
        leader_epoch: epoch,
        compression: Compression::new(codec),
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    for record in material {
        builder.push(record.record(&record.headers())).unwrap();
    }
    builder.finish().unwrap().to_vec()
}

/// Adds offsets without records to the end of a batch, as compaction leaves them.
fn stretch(mut batch: Vec<u8>, hidden: u8) -> Vec<u8> {
    let delta = 23..27;
    let last = i32::from_be_bytes(batch[delta.clone()].try_into().unwrap()) + i32::from(hidden);
    batch[delta].copy_from_slice(&last.to_be_bytes());
    let crc = crc32c(&batch[CRC_START..]);
    batch[CRC_AT..CRC_START].copy_from_slice(&crc.to_be_bytes());
    batch
}

fn noise(at: usize, seed: u8) -> u8 {
    let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(u64::from(seed) << 32);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9).to_be_bytes()[0]
}

/// Every file but `.log` and what a cut kept.
fn sidecars(dir: &Path) -> Sidecars {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = entries.filter(|name| !name.ends_with(".log"));
    names.map(|name| (name.clone(), fs::read(dir.join(name)).unwrap())).collect()
}

/// As many as `PROPTEST_CASES` says, else so many that both tests end within a minute.
fn cases() -> ProptestConfig {
    let count = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(128);
    let persistence = FileFailurePersistence::Direct("tests/engine/properties.regressions");
    ProptestConfig { failure_persistence: Some(Box::new(persistence)), ..ProptestConfig::with_cases(count) }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_log_is_like_a_list(settings in settings(), ops in prop::collection::vec(ops(), 1..40)) {
        run(&settings, &ops);
    }

    #[test]
    fn a_small_log_is_like_a_list(ops in prop::collection::vec(ops(), 1..40)) {
        run(&Settings::default(), &ops);
    }
}

// ---- what failed once ------------------------------------------------------------------------------------------------

fn draft(timestamp: i64) -> Draft {
    Draft { timestamp: Some(timestamp), key: None, value: Some(3), headers: 0 }
}

fn append(timestamps: &[i64]) -> Op {
    let records = timestamps.iter().map(|at| draft(*at)).collect();
    Op::Append { records, expected: Expected::Nothing, is_deferred: false }
}

fn preserve(gaps: &[u64]) -> Op {
    Op::Preserve { batches: gaps.iter().map(|gap| (*gap, 0, vec![draft(NOW_MS)])).collect(), epochs_on: 0 }
}

const LOOK: Op = Op::Look { at: 65535, time: 65535, last: 3, max_bytes: 100 };

#[test]
fn a_reader_asked_for_what_is_past_the_end_is_not_told_of_a_cut() {
    run(&Settings::default(), &[append(&[1]), LOOK]);
}

#[test]
fn a_view_from_outside_learns_of_later_timestamps_in_the_active_segment() {
    run(&Settings::default(), &[append(&[5]), LOOK, append(&[NOW_MS]), LOOK]);
}

#[test]
fn a_record_without_timestamp_is_never_the_answer_to_a_time() {
    run(&Settings::default(), &[append(&[-1, 7]), Op::Roll, append(&[-1]), LOOK]);
}

#[test]
fn a_log_that_begins_with_a_far_offset_starts_there() {
    run(&Settings::default(), &[preserve(&[3 << 30])]);
}

#[test]
fn one_append_does_not_span_more_than_a_segment_can_name() {
    run(&Settings::default(), &[preserve(&[0, 3 << 30]), append(&[1])]);
}

#[test]
fn the_largest_timestamp_is_that_of_readable_records() {
    run(&Settings::default(), &[append(&[NOW_MS, 0]), Op::AdvanceStart(128), Op::Roll, LOOK]);
}

#[test]
fn lost_or_old_epochs_are_restored_from_the_batches() {
    for harm in [Harm::Delete, Harm::Zero, Harm::Stale(0)] {
        // Every file is tried: the one of epochs is among them.
        for pick in 0..8 {
            let reopen = |harm| Op::Reopen { is_clean: true, harm };
            let ops = [
                append(&[1]),
                reopen(vec![]),
                Op::NextEpoch,
                append(&[2]),
                reopen(vec![(pick, harm)]),
                append(&[3]),
            ];
            run(&Settings::default(), &ops);
        }
    }
}

#[test]
fn a_longer_control_page_is_read_all_the_same() {
    for pick in 0..8 {
        let reopen = Op::Reopen { is_clean: true, harm: vec![(pick, Harm::Odd(1))] };
        run(&Settings::default(), &[reopen, append(&[1]), Op::Sync]);
    }
}

#[test]
fn a_time_index_cut_short_is_noticed() {
    let ops: Vec<Op> = (0..9).map(|at| append(&[at * 10])).collect();
    for pick in 0..8 {
        for keep in [60, 128, 200] {
            let mut ops = ops.clone();
            ops.push(Op::Roll);
            let harm = vec![(pick, Harm::Truncate(keep)), (2, Harm::Delete)];
            ops.extend([Op::Reopen { is_clean: true, harm }, LOOK, append(&[5]), LOOK]);
            run(&Settings::default(), &ops);
        }
    }
}

#[test]
fn an_epoch_whose_offset_was_cut_short_is_not_believed() {
    for pick in 0..10 {
        for keep in (130..=255).step_by(5) {
            let reopen = Op::Reopen { is_clean: false, harm: vec![(pick, Harm::Truncate(keep))] };
            let ops = [
                preserve(&[70_000]),
                append(&[1, 2]),
                Op::Roll,
                Op::NextEpoch,
                append(&[3]),
                LOOK,
                reopen,
                LOOK,
            ];
            run(&Settings::default(), &ops);
        }
    }
}
