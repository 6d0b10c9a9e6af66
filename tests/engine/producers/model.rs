//! A few producers that retry, jump ahead, come back late and raise their epochs, against a model that remembers all.

use std::{collections::BTreeMap, fs};

use proptest::prelude::*;
use stratalog::{Error, LogWriter};

use super::{producers_log, send, snapshots};
use crate::support::{TempLog, fill, pairs};

#[derive(Clone, Debug)]
enum Op {
    /// The producer's next batch, so many records.
    Next {
        id: i64,
        count: i32,
    },
    /// One of its earlier batches again, counted back from the last.
    Again {
        id: i64,
        back: usize,
    },
    /// A batch that leaves some out, or begins inside what was sent.
    Astray {
        id: i64,
        by: i32,
    },
    NewEpoch {
        id: i64,
    },
    OldEpoch {
        id: i64,
    },
    Plain {
        count: u64,
    },
    Roll,
    Sync,
    Restart {
        is_clean: bool,
        harm: u8,
    },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let id = 0..3_i64;
    let op = prop_oneof![
        6 => (id.clone(), 1..4).prop_map(|(id, count)| Op::Next { id, count }),
        4 => (id.clone(), 0..8_usize).prop_map(|(id, back)| Op::Again { id, back }),
        1 => (id.clone(), -3..4).prop_map(|(id, by)| Op::Astray { id, by }),
        1 => id.clone().prop_map(|id| Op::NewEpoch { id }),
        1 => id.prop_map(|id| Op::OldEpoch { id }),
        2 => (1..20_u64).prop_map(|count| Op::Plain { count }),
        1 => Just(Op::Roll),
        1 => Just(Op::Sync),
        2 => (any::<bool>(), 0..4_u8).prop_map(|(is_clean, harm)| Op::Restart { is_clean, harm }),
    ];
    proptest::collection::vec(op, 1..60)
}

#[derive(Debug, Default)]
struct Known {
    epoch: i16,
    next: i32,
    /// First sequence, count and first offset of the epoch's batches.
    sent: Vec<(i32, i32, i64)>,
}

fn run(ops: &[Op], start: i32) {
    let log = producers_log();
    let mut writer = log.open();
    let mut all: BTreeMap<i64, Known> = BTreeMap::new();
    for op in ops {
        let before = writer.end().value();
        match *op {
            Op::Next { id, count } => {
                let known = all.entry(id).or_insert(Known { next: start, ..Known::default() });
                let appended = send(&mut writer, (id, known.epoch, known.next), count).unwrap();
                assert_eq!((appended.base_offset.value(), appended.duplicate), (before, false));
                known.sent.push((known.next, count, before));
                known.next = known.next.wrapping_add(count) & i32::MAX;
            }
            Op::Again { id, back } => {
                let Some(known) = all.get(&id).filter(|known| back < known.sent.len()) else { continue };
                let (sequence, count, offset) = known.sent[known.sent.len() - 1 - back];
                let answer = send(&mut writer, (id, known.epoch, sequence), count);
                if back < 5 {
                    let appended = answer.unwrap();
                    assert_eq!((appended.base_offset.value(), appended.duplicate), (offset, true), "{op:?}");
                    assert_eq!(appended.last_offset.value(), offset + i64::from(count) - 1);
                } else {
                    assert!(matches!(answer, Err(Error::OutOfOrderSequence { .. })), "{op:?}: {answer:?}");
                }
            }
            Op::Astray { id, by } => {
                let Some(known) = all.get(&id).filter(|_| by != 0) else { continue };
                let sequence = known.next.wrapping_add(by) & i32::MAX;
                // Larger than any that was sent, so it is none of them.
                let answer = send(&mut writer, (id, known.epoch, sequence), 9);
                let Err(Error::OutOfOrderSequence { expected, found, .. }) = answer else {
                    panic!("{op:?}: {answer:?}")
                };
                assert_eq!((expected, found), (known.next, sequence));
            }
            Op::NewEpoch { id } => {
                let Some(known) = all.get_mut(&id) else { continue };
                known.epoch += 1;
                assert!(send(&mut writer, (id, known.epoch, 7), 1).is_err(), "a new epoch begins at 0");
                send(&mut writer, (id, known.epoch, 0), 1).unwrap();
                (known.next, known.sent) = (1, vec![(0, 1, before)]);
            }
            Op::OldEpoch { id } => {
                let Some(known) = all.get(&id).filter(|known| known.epoch > 0) else { continue };
                let answer = send(&mut writer, (id, known.epoch - 1, 0), 1);
                assert!(matches!(answer, Err(Error::ProducerFenced { .. })), "{answer:?}");
            }
            Op::Plain { count } => fill(&mut writer, count),
            Op::Roll => writer.roll().unwrap(),
            Op::Sync => {
                writer.sync().unwrap();
                log.config.clock.advance(std::time::Duration::from_secs(2));
                writer.maintain().unwrap();
            }
            Op::Restart { is_clean, harm } => {
                let records = pairs(&writer.reader());
                writer = restart(&log, writer, is_clean, harm);
                assert_eq!(pairs(&writer.reader()), records);
            }
        }
        let told: Vec<_> =
            writer.producers().iter().map(|info| (info.id, info.epoch, info.last_sequence)).collect();
        let expected: Vec<_> =
            all.iter().map(|(id, known)| (*id, known.epoch, known.next.wrapping_sub(1) & i32::MAX)).collect();
        assert_eq!(told, expected, "after {op:?}");
    }
}

fn restart(log: &TempLog, writer: LogWriter, is_clean: bool, harm: u8) -> LogWriter {
    if is_clean {
        writer.close().unwrap();
    } else {
        drop(writer);
    }
    let files = snapshots(log).into_iter().map(|at| log.path().join(format!("{at:020}.snapshot")));
    for path in files {
        match harm {
            1 => fs::remove_file(path).unwrap(),
            2 => fs::write(path, b"\0\x01\0\0").unwrap(),
            _ => {}
        }
    }
    if harm == 3 {
        let _ = fs::remove_file(log.path().join(".stratalog-checkpoint"));
    }
    log.open()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_retries_and_restarts(ops in ops(), at_the_end in any::<bool>()) {
        run(&ops, if at_the_end { i32::MAX - 20 } else { 0 });
    }
}
