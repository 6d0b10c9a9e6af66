//! Measuring two loops that do the same work side by side, in one process and in turns, so that what the machine does
//! meanwhile falls on both; and printing the ratio beside its goal.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// What a row is held against.
pub(crate) enum Goal {
    /// Ours does at least this share of what the bare loop does in the same time.
    Share(f64),
    /// Ours takes at most this many times as long, plus so much.
    Times(f64, Duration),
    /// Ours takes at most so much.
    AtMost(Duration),
}

/// Runs both in turns, `rounds` times after one that does not count, and prints a row of the table.
pub(crate) fn pair(
    work: &str,
    goal: &Goal,
    rounds: usize,
    mut bare: impl FnMut() -> Duration,
    mut ours: impl FnMut() -> Duration,
) {
    bare();
    ours();
    let (mut bares, mut all_ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (one, other) = (bare(), ours());
        bares.push(one.as_secs_f64());
        all_ours.push(other.as_secs_f64());
        ratios.push(match goal {
            Goal::Share(_) => one.as_secs_f64() / other.as_secs_f64(),
            Goal::Times(_, plus) => (other.as_secs_f64() - plus.as_secs_f64()).max(0.0) / one.as_secs_f64(),
            Goal::AtMost(_) => other.as_secs_f64(),
        });
    }
    let shown = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let (low, middle, high) = (values[0], values[values.len() / 2], values[values.len() - 1]);
        format!("{} [{}..{}]", time(middle), time(low), time(high))
    };
    let (bares, all_ours) = (shown(&mut bares), shown(&mut all_ours));
    ratios.sort_by(f64::total_cmp);
    let (low, middle, high) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    let (goal, met) = match goal {
        Goal::Share(least) => (format!(">= {least}"), middle >= *least),
        Goal::Times(most, plus) => (format!("<= {most}x + {}", time(plus.as_secs_f64())), middle <= *most),
        Goal::AtMost(most) => (format!("<= {}", time(most.as_secs_f64())), middle <= most.as_secs_f64()),
    };
    let sign = if met { "met" } else { "MISSED" };
    println!("| {work} | {bares} | {all_ours} | {middle:.3} [{low:.3}..{high:.3}] | {goal} | {sign} |");
}

/// The heading of the table that [`pair`] fills.
pub(crate) fn heading(title: &str) {
    println!(
        "\n## {title}\n\n| work | bare loop | ours | ratio | goal | |\n| --- | --- | --- | --- | --- | --- |"
    );
}

/// Seconds for people.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.2} us", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}

/// How long it takes.
pub(crate) fn timed(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

/// The value at a share of the sorted values.
pub(crate) fn quantile(values: &mut [Duration], share: f64) -> Duration {
    values.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index, rounded"
    )]
    let at = ((values.len() - 1) as f64 * share).round() as usize;
    values[at]
}

/// Touches memory and gives it back, so that page-cache pages to come are warm on a machine that lends memory.
pub(crate) fn warm(mebibytes: usize) {
    let mut memory = vec![0_u8; mebibytes << 20];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&memory);
}

/// A directory on a real file system, beside the build: `STRATALOG_BENCH_DIR`, or the target directory.
pub(crate) fn workspace() -> TempDir {
    let place = std::env::var_os("STRATALOG_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    tempfile::tempdir_in(place).expect("a place to measure in")
}

/// A file with blocks reserved, as a segment has them.
pub(crate) fn reserved(path: &Path, bytes: u64) -> io::Result<File> {
    let file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes)?;
    Ok(file)
}

/// One positioned write.
pub(crate) fn write_at(file: &File, bytes: &[u8], position: u64) {
    file.write_all_at(bytes, position).expect("room to measure in");
}
