//! The writer: appends until it is killed or told to stop, and says before each sync how far that may get.

use std::{fs::File, os::unix::fs::FileExt, path::Path, time::Duration};

use stratalog::{AppendOptions, FsyncPolicy, LogConfig, LogWriter, Offset, OpenMode, record::Record};

use crate::record::{Dice, Origin, value};

/// Beside the log: the end up to which a sync was begun, or nothing is promised (while the log is being opened).
pub(crate) const BEGUN: &str = "begun";

/// No bound: recovery makes durable whatever it finds.
const ANY: i64 = i64::MAX;

fn config() -> LogConfig {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.segment_bytes = 128 << 10;
    config.index_interval_bytes = 1024;
    config.retention.bytes = Some(2 << 20);
    // Only where it is asked for, so that what was begun is known.
    config.fsync = FsyncPolicy::Interval(Duration::from_secs(3600));
    config
}

pub(crate) fn run(place: &Path, run: u64) {
    let begun = File::options().create(true).truncate(false).write(true).open(place.join(BEGUN)).unwrap();
    let begin = |end: i64| begun.write_all_at(&end.to_le_bytes(), 0).unwrap();
    let mut dice = Dice::new(run);
    let open = || {
        begin(ANY);
        LogWriter::open(place.join("t-0"), config()).unwrap()
    };
    let mut log = open();
    begin(log.end().value());
    while !place.join("stop").exists() {
        if !place.exists() {
            // Whoever started it is gone.
            std::process::exit(1);
        }
        append(&mut log, run, 1 + dice.below(20));
        let end = log.end().value();
        match dice.below(200) {
            0..20 => {
                begin(end);
                log.sync().unwrap();
            }
            20..24 => {
                // Retention may make durable what goes.
                begin(end);
                log.maintain().unwrap();
            }
            24 => log.roll().unwrap(),
            25 => {
                begin(end);
                let start = log.start().value();
                log.advance_start(Offset::new(start + (end - start) / 8).unwrap()).unwrap();
            }
            26 => {
                begin(end);
                if dice.below(2) == 0 {
                    log.close().unwrap();
                } else {
                    drop(log);
                }
                log = open();
                begin(log.end().value());
            }
            27 => {
                let epoch = log.leader_epoch() + 1;
                log.set_leader_epoch(epoch).unwrap();
            }
            _ => {}
        }
        std::thread::sleep(Duration::from_micros(dice.below(4000)));
    }
    begin(log.end().value());
    let end = log.end();
    log.close().unwrap();
    // Told whole, or not at all.
    std::fs::write(place.join("end.new"), end.to_string()).unwrap();
    std::fs::rename(place.join("end.new"), place.join("end")).unwrap();
}

fn append(log: &mut LogWriter, run: u64, count: u64) {
    let first = log.end().value();
    let values: Vec<_> = (0..count)
        .map(|place| value(first + i64::try_from(place).unwrap(), Origin { run, place, count }))
        .collect();
    let records: Vec<_> = values.iter().map(|value| Record::value_only(value)).collect();
    let _ = log.append_records_deferred(&records, AppendOptions::default()).unwrap();
}
