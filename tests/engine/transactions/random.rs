//! Random interleavings against the plain list.

use proptest::prelude::*;
use stratalog::{
    FsyncPolicy, LogReader, ReadOptions,
    inspect::{Severity, VerifyOptions, verify},
};

use super::{Written, committed, committed_durable};
use crate::support::{TempLog, at};

#[derive(Clone, Debug)]
enum Op {
    Data(Option<i64>, usize),
    End(i64, bool),
    Roll,
    Sync,
    /// To so many 256ths of what is durable.
    AdvanceStart(u8),
    Reopen,
    /// The writer dies.
    Crash,
    /// It dies, and of what was not durable one of so many 256ths is torn: the log is cut there.
    Cut(u8),
    /// The page by which readers go is lost.
    LosePage,
    /// Everything is compared; else readers fall behind.
    Check,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (proptest::option::weighted(0.8, 0_i64..4), 1_usize..4).prop_map(|(of, records)| Op::Data(of, records)),
        4 => (0_i64..4, any::<bool>()).prop_map(|(of, commit)| Op::End(of, commit)),
        1 => Just(Op::Roll),
        2 => Just(Op::Sync),
        1 => any::<u8>().prop_map(Op::AdvanceStart),
        1 => Just(Op::Reopen),
        1 => Just(Op::Crash),
        1 => any::<u8>().prop_map(Op::Cut),
        1 => Just(Op::LosePage),
        3 => Just(Op::Check),
    ]
}

fn run(ops: &[Op]) {
    let log = TempLog::in_memory(|config| {
        config.fsync = FsyncPolicy::EveryBytes(1 << 40);
        config.segment_bytes = 1024;
    });
    let mut written = Written::new(log.open());
    let options = [ReadOptions::default(), committed(), committed_durable()];
    let outside = options.map(|options| LogReader::open(log.path(), options).unwrap());
    for op in ops.iter().chain([&Op::Check, &Op::Reopen, &Op::Check]) {
        match op {
            Op::Data(producer, records) => drop(written.data(*producer, *records)),
            Op::End(producer, commit) => drop(written.end(*producer, *commit)),
            Op::Roll => written.log.roll().unwrap(),
            Op::Sync => drop(written.log.sync().unwrap()),
            Op::AdvanceStart(share) => {
                let durable = written.log.reader().durable_end().value();
                let start = written.log.start().value();
                let to = start + (durable - start) * i64::from(*share) / 256;
                written.log.advance_start(at(to)).unwrap();
            }
            Op::Reopen => {
                let Written { log: writer, model, sequences } = written;
                writer.close().unwrap();
                written = Written { log: log.open(), model, sequences };
            }
            Op::Crash => written = restart(written, &log, None),
            Op::Cut(share) => written = restart(written, &log, Some(*share)),
            Op::LosePage => drop(std::fs::remove_file(log.path().join(".stratalog-control"))),
            Op::Check => {
                written.check_producers();
                let inside = written.log.reader();
                let fresh = LogReader::open(log.path(), ReadOptions::default()).unwrap();
                for options in options {
                    written.check(&inside.clone().with_options(options));
                    written.check(&fresh.clone().with_options(options));
                }
                for reader in &outside {
                    reader.refresh().unwrap();
                    written.check(reader);
                }
            }
        }
    }
    // What the writer wrote of it beside the log says the same.
    let report = verify(log.path(), &VerifyOptions::default(), &mut |_| {}).unwrap();
    let wrong: Vec<_> = report.findings.iter().filter(|finding| finding.severity > Severity::Note).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The writer dies, perhaps with a batch torn that was not durable.
fn restart(written: Written, log: &TempLog, torn: Option<u8>) -> Written {
    let Written { log: writer, mut model, sequences } = written;
    let reader = writer.reader();
    let candidates = model.bases_from(reader.durable_end().value());
    if let Some(share) = torn.filter(|_| !candidates.is_empty()) {
        let base = candidates[candidates.len() * usize::from(share) / 256];
        let mut batches = reader.batches(at(base)).include_control(true);
        batches.next_batch().unwrap().unwrap();
        let (segment, position) = batches.position_of_last().unwrap();
        let path = log.path().join(format!("{:020}.log", segment.value()));
        let file = std::fs::File::options().write(true).open(path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0xAA; 2], position + 61).unwrap();
        model.truncate(base);
    }
    drop(writer);
    let writer = log.open();
    assert_eq!(writer.end().value(), model.end_offset());
    Written { log: writer, model, sequences }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_that_of_the_plain_list(ops in proptest::collection::vec(op(), 0..60)) {
        run(&ops);
    }
}

/// The marker stands alone in the last segment, and its producer has expired by the time of the second crash: what the
/// first recovery knew is not in its checkpoint any more.
#[test]
fn an_abort_stays_in_the_index_though_its_producer_expired() {
    use Op::{Crash, Data, End, Sync};
    let lone = || Data(None, 1);
    run(&[
        lone(),
        lone(),
        lone(),
        End(0, false),
        lone(),
        Data(None, 3),
        lone(),
        Sync,
        Data(Some(2), 3),
        Data(None, 3),
        lone(),
        lone(),
        End(2, false),
        Crash,
        Crash,
    ]);
}

/// Nobody looked while the log was cut, written to again and given another page.
#[test]
fn a_new_page_is_not_taken_for_the_one_before() {
    use Op::{Check, Cut, Data, LosePage, Reopen};
    run(&[
        LosePage,
        Reopen,
        Data(Some(0), 1),
        Check,
        Cut(0),
        Data(None, 1),
        Data(None, 1),
        LosePage,
        Reopen,
        Check,
    ]);
}
