//! The power is cut while a writer runs: whatever it was told is durable is on the disk, and nothing else than what it
//! appended.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    time::{Duration, Instant},
};

use super::{
    disks::Disk,
    observed::open_and_read,
    writer::{Order, POLICIES, Told, Writer, forget_boot},
};

pub(crate) fn run() -> Result<(), String> {
    let cuts: usize = match std::env::var("STRATALOG_POWER_CUTS") {
        Ok(count) => count.parse().unwrap_or_else(|_| panic!("STRATALOG_POWER_CUTS={count} is no number")),
        Err(_) => 10,
    };
    let disk = Disk::new()?;
    let (mut done, mut torn, mut behind) = (0, 0, 0);
    for (nth, policy) in POLICIES.iter().enumerate() {
        let count = cuts / POLICIES.len() + usize::from(nth < cuts % POLICIES.len());
        let dir = disk.live.path().join(policy).join("t-0");
        let order = Order { dir, policy: (*policy).to_owned(), seed: 99 + nth as u64 };
        let mut writer = Writer::start(&order, &[]);
        for cut in 0..count {
            let what = format!("{policy}, cut {cut}");
            pause(&mut writer, 20 + (cut as u64 * 53) % 170, &what);
            let told = writer.told();
            let clone = disk.cut()?;
            let looked = catch_unwind(AssertUnwindSafe(|| look(&disk, &clone, policy, &told, &what)));
            let (end, was_cut) = looked.unwrap_or_else(|panic| {
                eprintln!("{what}: the disk is kept in {}; {told:?}", Disk::keep(&clone).display());
                resume_unwind(panic)
            });
            // Whatever is there had been begun; the word of it may still be on its way.
            wait_until(&writer, end, &what);
            done += 1;
            torn += usize::from(was_cut);
            behind += usize::from(end < told.written);
        }
    }
    println!("power-cuts: {done} cuts, {torn} with a tail to be cut off, {behind} behind what was written");
    assert_eq!(done, cuts);
    Ok(())
}

/// Looks at the cut disk. Where the log ends on it, and whether opening had to cut.
fn look(disk: &Disk, clone: &Path, policy: &str, told: &Told, what: &str) -> (i64, bool) {
    let after = disk.after(clone).unwrap_or_else(|error| panic!("{what}: {error}"));
    let dir = after.path().join(policy).join("t-0");
    forget_boot(&dir);
    let found = open_and_read(&dir, what);
    let end = found.end - 1;
    assert!(end >= told.durable, "{what}: ends at {end}, {} was durable", told.durable);
    assert!(found.start >= told.start, "{what}: starts at {}, {} was told", found.start, told.start);
    assert!(found.start <= told.durable.max(end), "{what}: starts at {}", found.start);
    (end, found.report.cut.is_some())
}

fn pause(writer: &mut Writer, ms: u64, what: &str) {
    let begun = writer.told().lines;
    let patience = Instant::now() + Duration::from_secs(60);
    std::thread::sleep(Duration::from_millis(ms));
    while writer.told().lines < begun + 5 {
        assert!(writer.is_running(), "{what}: the writer ended: {:?}", writer.told());
        assert!(Instant::now() < patience, "{what}: the writer stands still: {:?}", writer.told());
        std::thread::sleep(Duration::from_millis(2));
    }
    let told = writer.told();
    assert!(!told.failed && !told.unopened && !told.after_failure, "{what}: {told:?}");
}

fn wait_until(writer: &Writer, end: i64, what: &str) {
    let patience = Instant::now() + Duration::from_secs(60);
    while writer.told().tried < end {
        assert!(Instant::now() < patience, "{what}: {end} on the disk, never tried: {:?}", writer.told());
        std::thread::sleep(Duration::from_millis(2));
    }
}
