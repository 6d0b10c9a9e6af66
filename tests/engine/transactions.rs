//! Transactions as readers see them: what a broker's consumer was given, and what a plain list of batches says.

mod committed;
#[cfg(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd"))]
mod consumed;
mod elsewhere;
mod model;
mod random;
mod verified;

use stratalog::{
    AppendOptions, Follow, Isolation, LogReader, LogWriter, Offset, Offsets, ReadOptions, Timestamp,
    record::{BatchBuilder, BatchOptions, EndTxnMarker, ProducerStamp, Record, end_txn_marker},
};

use model::Model;

/// Read committed, up to the written end.
fn committed() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.isolation = Isolation::Committed;
    options
}

/// The same up to the durable end.
fn committed_durable() -> ReadOptions {
    let mut options = committed();
    options.follow = Follow::Durable;
    options
}

/// The offsets of the records that a reader is given from its start on.
fn offsets(reader: &LogReader) -> Vec<i64> {
    let records = reader.owned_records(reader.start());
    records.map(|record| record.unwrap().offset.value()).collect()
}

/// What a Kafka client makes of the raw bytes: it drops records of the transactions that were listed as aborted
/// (`CompletedFetch.nextFetchedRecord`).
fn filtered_as_by_a_client(reader: &LogReader) -> Vec<i64> {
    let mut at = reader.start();
    let mut seen = Vec::new();
    let mut bytes = Vec::new();
    let mut scratch = stratalog::record::Scratch::new();
    loop {
        let read = reader.read(at, 700, &mut bytes).unwrap();
        if read.bytes == 0 {
            return seen;
        }
        let mut listed = reader.aborted_transactions(at..read.next).unwrap();
        listed.sort_by_key(|aborted| aborted.first_offset);
        let mut listed = listed.into_iter().peekable();
        let mut aborted = std::collections::HashSet::new();
        for batch in stratalog::record::Batches::new(&bytes) {
            let batch = batch.unwrap();
            while let Some(begun) = listed.next_if(|aborted| aborted.first_offset <= batch.last_offset()) {
                aborted.insert(begun.producer_id);
            }
            if batch.is_control() {
                aborted.remove(&batch.producer_id());
                continue;
            }
            if batch.is_transactional() && aborted.contains(&batch.producer_id()) {
                continue;
            }
            let records = batch.records(&mut scratch).unwrap().map(|record| record.unwrap().offset());
            seen.extend(records.filter(|offset| *offset >= at).map(Offset::value));
        }
        at = read.next;
    }
}

/// A writer, and the plain list of what was written.
struct Written {
    log: LogWriter,
    model: Model,
    sequences: std::collections::HashMap<i64, i32>,
}

impl Written {
    fn new(log: LogWriter) -> Self {
        Self { log, model: Model::default(), sequences: std::collections::HashMap::new() }
    }

    /// A batch of so many records; of the producer's transaction where there is one.
    fn data(&mut self, producer: Option<i64>, records: usize) -> Offset {
        let base = self.log.end();
        let stamp = producer.map(|id| {
            let sequence = self.sequences.entry(id).or_default();
            let stamp = ProducerStamp { id, epoch: 0, base_sequence: *sequence };
            *sequence += records as i32;
            stamp
        });
        let mut builder = BatchBuilder::new(BatchOptions {
            base_offset: base,
            leader_epoch: self.log.leader_epoch(),
            producer: stamp,
            transactional: producer.is_some(),
            ..BatchOptions::default()
        });
        for _ in 0..records {
            builder
                .push(Record::value_only(b"some value").timestamp(Timestamp::from_millis(1_700_000_000_000)))
                .unwrap();
        }
        let bytes = builder.finish().unwrap().to_vec();
        self.append(&bytes);
        self.model.data(producer, records as i64);
        base
    }

    /// The marker that ends a producer's transaction.
    fn end(&mut self, producer: i64, commit: bool) -> Offset {
        let base = self.log.end();
        let marker = EndTxnMarker { coordinator_epoch: 0 };
        let now = Timestamp::from_millis(1_700_000_000_000);
        self.append(&end_txn_marker(base, self.log.leader_epoch(), (producer, 0), commit, marker, now));
        self.model.end(producer, commit);
        base
    }

    /// Markers are not let in otherwise: they are the coordinator's.
    fn append(&mut self, batch: &[u8]) {
        let options = AppendOptions { offsets: Offsets::Preserve, ..AppendOptions::default() };
        self.log.append(batch, options).unwrap();
    }

    /// Compares everything that a reader says with the plain list.
    fn check(&self, reader: &LogReader) {
        let (start, hw) = (
            reader.start().value(),
            match reader.options().follow {
                Follow::Durable => reader.durable_end().value(),
                Follow::Written => reader.written_end().value(),
            },
        );
        self.model.check(reader, start, hw);
    }

    /// Compares what the writer knows of open transactions with the plain list.
    fn check_producers(&self) {
        let start = self.log.start().value();
        let open = self.model.open(start);
        let known: Vec<(i64, i64)> = self
            .log
            .producers()
            .iter()
            .filter_map(|info| Some((info.transaction_start?.value(), info.id)))
            .collect();
        for one in known.iter().filter(|one| one.0 >= start) {
            assert!(open.contains(one), "{one:?} of {known:?}, from {start}: {:?}", self.model);
        }
        for (first, id) in &open {
            let is_known = known.iter().any(|one| one.1 == *id && (one.0 == *first || one.0 < start));
            assert!(is_known, "{first} of {id} in {known:?}, from {start}: {:?}", self.model);
        }
    }
}
