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
            Op::Check => {
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_that_of_the_plain_list(ops in proptest::collection::vec(op(), 0..60)) {
        run(&ops);
    }
}
