//! What clients ask of a partition besides its records: offsets by time and by epoch, deleting the oldest, sizes.

use super::{
    error_code::{ErrorCode, Refusal},
    topics::{Partition, Topics},
};
use crate::{Isolation, LogReader, Offset, Timestamp};

/// Which offset `ListOffsets` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Earliest,
    /// The end: what is next for a consumer.
    Latest,
    /// Of the record with the largest time.
    MaxTimestamp,
    /// The earliest that is not in remote storage alone.
    EarliestLocal,
    /// Of remote storage, which there is none.
    Tiered,
    /// Of the first record at this time or later.
    At(Timestamp),
}

impl Wanted {
    /// What this number asks for in a request of this version; `None` where the version does not know it.
    pub(crate) fn of_wire(timestamp: i64, version: i16) -> Option<Self> {
        Some(match timestamp {
            -1 => Self::Latest,
            -2 => Self::Earliest,
            -3 if version >= 7 => Self::MaxTimestamp,
            -4 if version >= 8 => Self::EarliestLocal,
            -5 if version >= 9 => Self::Tiered,
            -6 if version >= 11 => Self::Tiered,
            0.. => Self::At(Timestamp::from_millis(timestamp)),
            _ => return None,
        })
    }
}

/// An answer to [`Wanted`]. What is not known, or not there, is -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedOffset {
    pub(crate) timestamp_ms: i64,
    pub(crate) offset: i64,
    pub(crate) leader_epoch: i32,
}

impl ListedOffset {
    const NONE: Self = Self { timestamp_ms: -1, offset: -1, leader_epoch: -1 };
}

/// The leader epoch that clients are told: that of the newest records, 0 before the first.
pub(crate) fn leader_epoch(reader: &LogReader) -> i32 {
    reader.leader_epochs().last().map_or(0, |(epoch, _)| *epoch)
}

/// The epoch of the record at an offset; -1 where it is not known.
fn epoch_at(reader: &LogReader, offset: Offset) -> i32 {
    let epochs = reader.leader_epochs();
    let after = epochs.partition_point(|(_, start)| *start <= offset);
    after.checked_sub(1).and_then(|at| epochs.get(at)).map_or(-1, |(epoch, _)| *epoch)
}

/// Refuses a client that knows another leader epoch than there is; -1 knows none.
pub(crate) fn check_leader_epoch(reader: &LogReader, known: i32) -> Result<(), Refusal> {
    let current = leader_epoch(reader);
    match known {
        ..0 => Ok(()),
        older if older < current => Err(Refusal::new(
            ErrorCode::FENCED_LEADER_EPOCH,
            format!("leader epoch {older} is over, it is {current}"),
        )),
        newer if newer > current => Err(Refusal::new(
            ErrorCode::UNKNOWN_LEADER_EPOCH,
            format!("leader epoch {newer} is not known here, it is {current}"),
        )),
        _ => Ok(()),
    }
}

/// `ListOffsets` of one partition. `is_committed`: the end of committed reads counts.
pub(crate) fn list_offset(
    partition: &Partition,
    wanted: Wanted,
    is_committed: bool,
    known_epoch: i32,
) -> Result<ListedOffset, Refusal> {
    let reader = partition.reader()?;
    check_leader_epoch(&reader, known_epoch)?;
    let end = || -> Result<Offset, Refusal> {
        let mut options = reader.options();
        if !is_committed {
            return Ok(reader.end());
        }
        options.isolation = Isolation::Committed;
        let stable = reader.clone().with_options(options).last_stable_offset()?;
        Ok(stable.min(reader.end()))
    };
    let at = |offset: Offset, timestamp_ms: i64| ListedOffset {
        timestamp_ms,
        offset: offset.value(),
        leader_epoch: epoch_at(&reader, offset),
    };
    Ok(match wanted {
        Wanted::Tiered => ListedOffset::NONE,
        Wanted::Earliest | Wanted::EarliestLocal => at(reader.start(), -1),
        Wanted::Latest => {
            ListedOffset { timestamp_ms: -1, offset: end()?.value(), leader_epoch: leader_epoch(&reader) }
        }
        Wanted::MaxTimestamp => match reader.max_timestamp()? {
            Some((timestamp, offset)) => at(offset, timestamp.millis()),
            None => ListedOffset::NONE,
        },
        Wanted::At(timestamp) => match reader.offset_for_timestamp(timestamp)? {
            Some((offset, timestamp)) if offset < end()? => at(offset, timestamp.millis()),
            _ => ListedOffset::NONE,
        },
    })
}

/// `OffsetForLeaderEpoch` of one partition: the largest epoch not above `epoch` and where it ends; (-1, -1) where that is
/// not known.
pub(crate) fn offset_for_epoch(
    partition: &Partition,
    epoch: i32,
    known_epoch: i32,
) -> Result<(i32, i64), Refusal> {
    let reader = partition.reader()?;
    check_leader_epoch(&reader, known_epoch)?;
    let found = if epoch < 0 { None } else { reader.end_offset_for_epoch(epoch) };
    // Beyond what consumers may see nothing has ended for them.
    Ok(found.map_or((-1, -1), |(epoch, end)| (epoch, end.min(reader.end()).value())))
}

/// `DeleteRecords` of one partition: everything below `before` is gone; -1: everything that consumers may see. Returns the
/// first offset that is left.
pub(crate) fn delete_records(partition: &Partition, before: i64) -> Result<i64, Refusal> {
    if partition.is_internal() {
        return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, "records of an internal topic stay"));
    }
    let settings = partition.settings();
    if settings.is_compacted && !settings.is_deleted {
        return Err(Refusal::new(
            ErrorCode::POLICY_VIOLATION,
            "records of a topic that is compacted only are not deleted by offset",
        ));
    }
    let high_watermark = partition.high_watermark()?;
    let wanted = if before == -1 { Some(high_watermark) } else { Offset::new(before) };
    let Some(wanted) = wanted.filter(|wanted| *wanted <= high_watermark) else {
        return Err(Refusal::new(
            ErrorCode::OFFSET_OUT_OF_RANGE,
            format!("offset {before} is not between 0 and the high watermark {high_watermark}"),
        ));
    };
    partition.log().advance_start(wanted)?;
    Ok(partition.log().start()?.value())
}

/// `DescribeLogDirs`: the one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogDir {
    pub(crate) path: String,
    pub(crate) total_bytes: u64,
    pub(crate) usable_bytes: u64,
    /// Topic, partition, bytes of its `.log` files.
    pub(crate) partitions: Vec<(String, i32, u64)>,
}

/// What lies in the data directory: of the topics and partitions that `wanted` names, or of all.
pub(crate) fn describe_log_dir(
    topics: &Topics,
    wanted: Option<&[(&str, &[i32])]>,
) -> Result<LogDir, Refusal> {
    let store = topics.store();
    let (total_bytes, usable_bytes) = store.space_bytes()?;
    let mut partitions = Vec::new();
    for topic in topics.all() {
        let numbers = wanted.map(|wanted| wanted.iter().find(|(name, _)| *name == topic.name()));
        if numbers == Some(None) {
            continue;
        }
        for (number, partition) in topic.partitions() {
            if numbers.flatten().is_some_and(|(_, numbers)| !numbers.contains(&number)) {
                continue;
            }
            // One that is being deleted meanwhile is left out.
            if let Ok(bytes) = partition.log().size_bytes() {
                partitions.push((topic.name().to_owned(), number, bytes));
            }
        }
    }
    let path = store.path().to_string_lossy().into_owned();
    Ok(LogDir { path, total_bytes, usable_bytes, partitions })
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::*;
    use crate::{
        AppendOptions, Store,
        record::Record,
        server::{settings::Layers, topics::NewTopic},
    };

    fn open(dir: &Path) -> Topics {
        let mut layers = Layers::new();
        layers.flag("--dir", "log.dirs", dir.to_str().unwrap());
        let settings = Arc::new(layers.resolve().unwrap());
        Topics::open(Store::open(dir, settings.store_config()).unwrap(), settings).unwrap()
    }

    fn make(topics: &Topics, name: &str, settings: &[(&str, &str)]) -> Arc<Partition> {
        let settings = settings.iter().map(|(name, value)| (*name, Some(*value))).collect();
        let new = NewTopic { name, partition_count: 2, replication_factor: 1, settings };
        topics.create(&new, false).unwrap().topic.unwrap().partition(0).unwrap()
    }

    fn append(partition: &Partition, timestamp_ms: i64, is_durable: bool) {
        let record = [Record::value_only(b"v").timestamp(Timestamp::from_millis(timestamp_ms))];
        let pending = partition.log().append_records_deferred(&record, AppendOptions::default()).unwrap();
        if is_durable {
            pending.wait().unwrap();
        }
    }

    fn list(partition: &Partition, wanted: i64) -> (i64, i64, i32) {
        let wanted = Wanted::of_wire(wanted, 11).unwrap();
        let found = list_offset(partition, wanted, false, -1).unwrap();
        (found.timestamp_ms, found.offset, found.leader_epoch)
    }

    #[test]
    fn offsets_are_found_by_time_up_to_what_consumers_see() {
        let temp = tempfile::tempdir().unwrap();
        let topics = open(temp.path());
        let partition = make(&topics, "t", &[]);
        let now = leader_epoch(&partition.reader().unwrap());
        assert_eq!(list(&partition, -1), (-1, 0, now));
        assert_eq!(list(&partition, -2), (-1, 0, now));
        assert_eq!((list(&partition, -3), list(&partition, 0)), ((-1, -1, -1), (-1, -1, -1)));
        for timestamp in [100, 300, 200] {
            append(&partition, timestamp, true);
        }
        assert_eq!(list(&partition, -1), (-1, 3, now));
        assert_eq!(list(&partition, -3), (300, 1, now));
        assert_eq!(list(&partition, -4), (-1, 0, now));
        assert_eq!(list(&partition, -5), (-1, -1, -1));
        assert_eq!(list(&partition, 101), (300, 1, now));
        assert_eq!(list(&partition, 301), (-1, -1, -1));
        // Written, and not yet for consumers.
        append(&partition, 400, false);
        assert_eq!(list(&partition, -1), (-1, 3, now));
        assert_eq!(list(&partition, 400), (-1, -1, -1));
        partition.log().sync().unwrap();
        assert_eq!(list(&partition, 400), (400, 3, now));
        let written = make(&topics, "w", &[("stratalog.acknowledge.at", "written")]);
        append(&written, 100, false);
        assert_eq!(list(&written, -1), (-1, 1, now));
        let stable = list_offset(&written, Wanted::Latest, true, -1).unwrap();
        assert_eq!(stable.offset, 1);
    }

    #[test]
    fn each_version_knows_its_questions() {
        for (number, first) in [(-3, 7), (-4, 8), (-5, 9), (-6, 11)] {
            assert_eq!(Wanted::of_wire(number, first - 1), None);
            assert!(Wanted::of_wire(number, first).is_some());
        }
        assert_eq!(Wanted::of_wire(-7, 11), None);
        assert_eq!(Wanted::of_wire(-1, 1), Some(Wanted::Latest));
    }

    #[test]
    fn epochs_are_told_and_others_refused() {
        let temp = tempfile::tempdir().unwrap();
        let topics = open(temp.path());
        let partition = make(&topics, "t", &[]);
        let first = leader_epoch(&partition.reader().unwrap());
        append(&partition, 1, true);
        partition.log().set_leader_epoch(first + 4).unwrap();
        append(&partition, 2, true);
        append(&partition, 3, true);
        assert_eq!(offset_for_epoch(&partition, first, first + 4), Ok((first, 1)));
        assert_eq!(offset_for_epoch(&partition, first + 4, -1), Ok((first + 4, 3)));
        assert_eq!(offset_for_epoch(&partition, first + 3, -1), Ok((first, 1)));
        assert_eq!(offset_for_epoch(&partition, first + 5, -1), Ok((-1, -1)));
        assert_eq!(offset_for_epoch(&partition, -1, -1), Ok((-1, -1)));
        assert_eq!(list(&partition, -1), (-1, 3, first + 4));
        assert_eq!(list(&partition, 1), (1, 0, first));
        let refused = |known| offset_for_epoch(&partition, first, known).unwrap_err().code;
        assert_eq!(refused(first + 3), ErrorCode::FENCED_LEADER_EPOCH);
        assert_eq!(refused(first + 5), ErrorCode::UNKNOWN_LEADER_EPOCH);
    }

    #[test]
    fn records_are_deleted_up_to_what_consumers_see() {
        let temp = tempfile::tempdir().unwrap();
        let topics = open(temp.path());
        let partition = make(&topics, "t", &[]);
        for timestamp in 0..5 {
            append(&partition, timestamp, true);
        }
        append(&partition, 5, false);
        assert_eq!(delete_records(&partition, 2), Ok(2));
        assert_eq!(delete_records(&partition, 1), Ok(2), "gone already");
        for wrong in [-2, 6] {
            assert_eq!(
                delete_records(&partition, wrong).unwrap_err().code,
                ErrorCode::OFFSET_OUT_OF_RANGE,
                "{wrong}"
            );
        }
        assert_eq!(delete_records(&partition, -1), Ok(5));
        let compacted = make(&topics, "c", &[("cleanup.policy", "compact")]);
        assert_eq!(delete_records(&compacted, -1).unwrap_err().code, ErrorCode::POLICY_VIOLATION);
        let both = make(&topics, "b", &[("cleanup.policy", "compact,delete")]);
        assert_eq!(delete_records(&both, -1), Ok(0));
    }

    #[test]
    fn a_log_dir_has_the_sizes_of_its_logs_open_or_not() {
        let temp = tempfile::tempdir().unwrap();
        let topics = open(temp.path());
        let partition = make(&topics, "t", &[]);
        append(&partition, 1, true);
        let open_dir = describe_log_dir(&topics, None).unwrap();
        assert!(open_dir.total_bytes >= open_dir.usable_bytes && open_dir.total_bytes > 0);
        assert_eq!(open_dir.partitions.len(), 2);
        assert!(open_dir.partitions[0].2 > 61 && open_dir.partitions[1].2 == 0, "{open_dir:?}");
        partition.log().rest().unwrap();
        assert_eq!(describe_log_dir(&topics, None).unwrap().partitions, open_dir.partitions);
        assert!(!partition.log().is_open());
        let wanted: &[(&str, &[i32])] = &[("t", &[1, 7]), ("absent", &[0])];
        let some = describe_log_dir(&topics, Some(wanted)).unwrap();
        assert_eq!(some.partitions, [("t".to_owned(), 1, 0)]);
    }
}
