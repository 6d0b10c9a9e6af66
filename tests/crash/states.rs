//! Every disk that a crash of a run may leave, and what must hold of each.

use std::{
    collections::BTreeMap,
    fmt, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use stratalog::{
    FsyncPolicy, LogConfig, LogWriter, RecoveryReport,
    sim::{Chance, Effect, Event, Everything, Fate, FileId, Nothing, Survival},
};

use super::{
    model::{Contents, offsets, read_all},
    run::{Run, log_dir, put, scratch},
};

/// What of the unsynced effects reaches the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Nothing,
    /// The process dies, the machine lives.
    Kill,
    /// Everything reached the disk, then the power went.
    Everything,
    Names,
    Data,
    Lengths,
    Chance {
        seed: u64,
        keep: u64,
        ordered: bool,
    },
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chance { seed, keep, ordered } => {
                write!(f, "chance:{seed}:{keep}:{}", if *ordered { "ordered" } else { "any" })
            }
            other => write!(f, "{}", format!("{other:?}").to_lowercase()),
        }
    }
}

struct All {
    fate: Fate,
    names: bool,
}

impl Survival for All {
    fn effect(&mut self, _: FileId, _: &Effect) -> Fate {
        self.fate
    }
    fn names(&mut self, _: &Path, pending: usize) -> Vec<bool> {
        vec![self.names; pending]
    }
}

impl How {
    pub(crate) fn survival(self) -> Box<dyn Survival> {
        match self {
            Self::Nothing => Box::new(Nothing),
            Self::Kill | Self::Everything => Box::new(Everything),
            Self::Names => Box::new(All { fate: Fate::Lost, names: true }),
            Self::Data => Box::new(All { fate: Fate::Kept, names: false }),
            Self::Lengths => Box::new(All { fate: Fate::LengthOnly, names: true }),
            Self::Chance { seed, keep, ordered } => Box::new(Chance::new(seed, keep, ordered)),
        }
    }

    fn is_power_cut(self) -> bool {
        self != Self::Kill
    }
}

/// The plain survivals, and `chances` by lot whose seeds follow from the prefix.
pub(crate) fn survivals(prefix: usize, chances: u64) -> Vec<How> {
    let mut all = vec![How::Nothing, How::Kill, How::Everything, How::Names, How::Data, How::Lengths];
    for nth in 0..chances {
        let keep = [50, 85, 15, 95][usize::try_from(nth % 4).unwrap()];
        let seed = (prefix as u64) * 1000 + nth;
        all.push(How::Chance { seed, keep, ordered: nth % 3 != 2 });
    }
    all
}

/// A state that broke a rule.
struct Failure {
    label: String,
    what: String,
    kept: PathBuf,
}

/// Where recovery had to cut: the beginning of another run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CutState {
    pub(crate) prefix: usize,
    pub(crate) how: How,
}

/// How many states there were, and those whose recovery cut something.
#[derive(Default)]
pub(crate) struct Swept {
    pub(crate) states: usize,
    pub(crate) cuts: Vec<CutState>,
}

/// Checks the states of a finished run. Panics with all that failed.
pub(crate) fn sweep(run: &Run, chances: u64) -> Swept {
    let only = std::env::var("STRATALOG_CRASH_STATE").ok();
    let events = run.recording.events();
    let mut image = run.recording.image(0);
    let mut swept = Swept::default();
    let mut failures: Vec<Failure> = Vec::new();
    for prefix in 0..=events.len() {
        if let Some(event) = prefix.checked_sub(1).map(|last| &events[last]) {
            image.advance(event);
            // Stores into mapped hints are many and alike.
            if matches!(event, Event::Store { .. }) && prefix % 8 != 0 {
                continue;
            }
        }
        for how in survivals(prefix, chances) {
            let label = format!("{} {prefix} {how}", run.name);
            if only.as_ref().is_some_and(|only| *only != label) {
                continue;
            }
            swept.states += 1;
            let root = scratch();
            image.materialize(&mut *how.survival(), root.path()).unwrap();
            if how.is_power_cut() {
                forget_boot(&log_dir(root.path()));
            }
            let checked =
                catch_unwind(AssertUnwindSafe(|| check(root.path(), run, (prefix, how.is_power_cut()))));
            let what = match checked {
                Ok(Ok(true)) => {
                    swept.cuts.push(CutState { prefix, how });
                    continue;
                }
                Ok(Ok(false)) => continue,
                Ok(Err(what)) => what,
                Err(_) => "panicked".to_owned(),
            };
            let kept =
                std::env::temp_dir().join(format!("stratalog-crash-{}", label.replace([' ', ':'], "-")));
            let _ = fs::remove_dir_all(&kept);
            materialize(run, CutState { prefix, how }, &kept);
            failures.push(Failure { label, what, kept });
            if failures.len() >= 30 {
                report(&failures, swept.states);
            }
        }
    }
    report(&failures, swept.states);
    assert!(only.is_some() || swept.states > 0);
    swept
}

/// Checks the moment at which a run ended. Panics with what is wrong.
pub(crate) fn check_last(run: &Run) {
    let prefix = run.now();
    for how in survivals(prefix, 2) {
        let root = scratch();
        materialize(run, CutState { prefix, how }, root.path());
        let checked = check(root.path(), run, (prefix, how.is_power_cut()));
        if let Err(what) = checked {
            let kept = root.keep();
            panic!("{} at its end, {how}: {what} (opened in {})", run.name, kept.display());
        }
    }
}

/// The disk of one state, as it is before the open.
pub(crate) fn materialize(run: &Run, state: CutState, into: &Path) {
    run.recording.image(state.prefix).materialize(&mut *state.how.survival(), into).unwrap();
    if state.how.is_power_cut() {
        forget_boot(&log_dir(into));
    }
}

fn report(failures: &[Failure], states: usize) {
    if failures.is_empty() {
        return;
    }
    // One example of each kind, numbers left out, says enough.
    let mut kinds: BTreeMap<String, (usize, &Failure)> = BTreeMap::new();
    for failure in failures {
        let kind: String = failure.what.chars().filter(|char| !char.is_ascii_digit()).take(160).collect();
        kinds.entry(kind).or_insert((0, failure)).0 += 1;
    }
    let line = |(count, failure): &(usize, &Failure)| {
        let Failure { label, what, kept } = failure;
        format!("{count} like {label}: {what} (kept in {})", kept.display())
    };
    let lines: Vec<_> = kinds.values().map(line).collect();
    panic!("{} of {states} states:\n{}", failures.len(), lines.join("\n"));
}

/// After a power cut the machine starts again under another boot id.
fn forget_boot(dir: &Path) {
    let path = dir.join(".stratalog-control");
    if let Ok(mut page) = fs::read(&path)
        && let Some(boot) = page.get_mut(16..32)
    {
        boot.fill(0);
        fs::write(&path, &page).unwrap();
    }
}

fn log_files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if Path::new(&name).extension().is_some_and(|extension| extension == "log") {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

fn open(dir: &Path, config: &LogConfig, when: &str) -> Result<LogWriter, String> {
    LogWriter::open(dir, config.clone()).map_err(|error| format!("{when} fails: {error}"))
}

fn says_nothing(report: &RecoveryReport, when: &str) -> Result<(), String> {
    let quiet = report.cut.is_none()
        && report.lost.is_none()
        && report.corrupt.is_empty()
        && report.rebuilt.is_empty()
        && report.warnings.is_empty();
    if quiet { Ok(()) } else { Err(format!("{when} reports {report:?}")) }
}

/// Opens, looks, opens again, appends, closes, opens again. True where the first open cut something.
fn check(root: &Path, run: &Run, (moment, is_power_cut): (usize, bool)) -> Result<bool, String> {
    let dir = log_dir(root);
    let mut config = run.config.clone();
    config.fsync = FsyncPolicy::Commit;
    let first = open(&dir, &config, "the open")?;
    let report = first.recovery().clone();
    // After a kill within a sync it tells that it read the disk, where that is no memory.
    let warns = is_power_cut && !report.warnings.is_empty();
    if report.lost.is_some() || !report.corrupt.is_empty() || warns {
        return Err(format!("the open reports {report:?}"));
    }
    let contents = run.model.fault(&first, moment, is_power_cut)?;
    let (end, epoch) = (first.end(), first.leader_epoch());
    if epoch < run.least_epoch {
        return Err(format!("epoch {epoch} after a cut that began epoch {}", run.least_epoch));
    }
    if first.durable_end() != end {
        return Err(format!("durable end {} after an open, not {end}", first.durable_end()));
    }
    if let Some(cut) = &report.cut {
        let epochs = first.reader().leader_epochs();
        if epochs.last() != Some(&(epoch, cut.offset)) || cut.offset != end {
            return Err(format!("a cut without a new epoch: {epochs:?} after {cut:?}"));
        }
        if let Some(gone) = cut.kept_in.iter().find(|kept| !kept.is_file()) {
            return Err(format!("what was cut is not kept in {}", gone.display()));
        }
        if cut.bytes > 0 && cut.kept_in.is_empty() {
            return Err(format!("what was cut is kept nowhere: {cut:?}"));
        }
    }
    // It is killed right away: the second open finds nothing to do.
    drop(first);
    let files = log_files(&dir);
    let mut second = open(&dir, &config, "the second open")?;
    says_nothing(second.recovery(), "the second open")?;
    same(&second, &contents, "after the second open")?;
    if files != log_files(&dir) {
        return Err("the second open changed a .log file".to_owned());
    }
    if (second.end(), second.leader_epoch()) != (end, epoch) {
        return Err(format!("the second open ends at {}, epoch {}", second.end(), second.leader_epoch()));
    }
    put(&mut second, "new").map_err(|error| format!("the next append fails: {error}"))?;
    let grown = read_all(&second.reader())?;
    let is_right = grown.split_last().is_some_and(|(last, rest)| last.0 == end.value() && rest == contents);
    if !is_right {
        return Err(format!(
            "after the append it holds {:?}, before {:?}",
            offsets(&grown),
            offsets(&contents)
        ));
    }
    second.close().map_err(|error| format!("close fails: {error}"))?;
    let files = log_files(&dir);
    let third = open(&dir, &config, "the third open")?;
    says_nothing(third.recovery(), "the third open")?;
    if !third.recovery().clean || third.recovery().scanned_bytes > 0 {
        return Err(format!("not clean after a close: {:?}", third.recovery()));
    }
    same(&third, &grown, "after the third open")?;
    drop(third);
    if files != log_files(&dir) {
        return Err("the third open changed a .log file".to_owned());
    }
    if let Some(odd) = leftover(&dir) {
        return Err(format!("{odd} is left behind"));
    }
    Ok(report.cut.is_some())
}

fn same(writer: &LogWriter, contents: &Contents, when: &str) -> Result<(), String> {
    let found = read_all(&writer.reader())?;
    if found == *contents {
        return Ok(());
    }
    Err(format!("{when} it holds {:?}, before {:?}", offsets(&found), offsets(contents)))
}

/// A temporary file, or a sidecar without its segment.
fn leftover(dir: &Path) -> Option<String> {
    let names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let is_odd = |name: &&String| {
        let orphan = name.strip_suffix(".index").or_else(|| name.strip_suffix(".timeindex"));
        let has_no_log = orphan.is_some_and(|base| !names.contains(&format!("{base}.log")));
        name.contains(".tmp") || name.contains(".new") || has_no_log
    };
    names.iter().find(is_odd).cloned()
}

/// Crashes of the recoveries that had to cut, and of theirs, `depth` deep: a few of each, spread over the run.
pub(crate) fn sweep_recoveries(
    run: &Run,
    cuts: &[CutState],
    count: usize,
    chances: u64,
    depth: usize,
) -> usize {
    if depth == 0 || cuts.is_empty() {
        return 0;
    }
    let mut states = 0;
    let step = (cuts.len() / count).max(1);
    for state in cuts.iter().step_by(step).take(count) {
        let root = scratch();
        materialize(run, *state, root.path());
        let model = run.model.at(state.prefix, state.how.is_power_cut());
        let name = format!("{}/{}-{}", run.name, state.prefix, state.how);
        let mut again = Run::over(&name.replace([' ', '/'], "_"), root, model, run.config.clone());
        again.open();
        // Whatever crash comes: the torn tail is still there and will be cut, or it is gone and the epoch is stored.
        again.least_epoch = again.log().leader_epoch();
        again.append(1);
        again.append(2);
        again.kill();
        let swept = sweep(&again, chances);
        states += swept.states;
        states += sweep_recoveries(&again, &swept.cuts, 1, chances, depth - 1);
    }
    states
}
