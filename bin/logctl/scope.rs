//! Which partitions a verb goes over: one, all of a topic, or all of a data directory; and the frame for going over them.
//!
//! Holds always: one that fails hides none of the others; what ends the whole verb (a signal, `--timeout`, a reader of
//! the output that went away) ends it at once.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    failure::{Code, Failure},
    globals::Globals,
    target::{Target, topic_partition},
};

/// A partition of a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) topic: String,
    pub(crate) partition: u32,
}

/// The partitions in a directory that holds some and no log of its own; sorted by topic and number.
pub(crate) fn partitions_of(dir: &Path) -> Option<Vec<Found>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).ok()?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|suffix| suffix == "log") && path.is_file() {
            return None;
        }
        if let Some((topic, partition)) = entry.file_name().to_str().and_then(topic_partition)
            && path.is_dir()
        {
            found.push(Found { path, topic, partition });
        }
    }
    found.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    (!found.is_empty()).then_some(found)
}

/// The partitions that a verb was pointed at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Sorted by topic and number; never empty.
    pub(crate) targets: Vec<Target>,
    /// The data directory that they lie in, where one was named with no partition of it; then what is told names each of
    /// them, even where there is only one.
    pub(crate) directory: Option<PathBuf>,
}

impl Scope {
    /// Finds them: of TARGET or `--dir`, a partition directory or file is one; `--topic` and `--partition` choose one;
    /// `--topic` alone chooses all of that topic; a data directory alone is all that it holds.
    pub(crate) fn find(globals: &Globals, target: Option<&Path>) -> Result<Self, Failure> {
        let directory = target.or(globals.dir.as_deref());
        if globals.partition.is_none()
            && let Some(directory) = directory
            && let Some(mut partitions) = partitions_of(directory)
        {
            if let Some(topic) = &globals.topic {
                partitions.retain(|found| found.topic == *topic);
            }
            if !partitions.is_empty() {
                let targets = partitions.into_iter().map(|found| Target::new(found.path, false)).collect();
                return Ok(Self { targets, directory: Some(directory.to_path_buf()) });
            }
        }
        Target::existing(globals, target).map(|target| Self { targets: vec![target], directory: None })
    }

    /// True where each partition must be told by its name.
    pub(crate) fn is_many(&self) -> bool {
        self.directory.is_some()
    }

    /// Calls `visit` for each. Of a single target the outcome is the verb's. Of many, a failure is told on standard error
    /// and the others go on; in the end the outcome is damage where a check found some (a quiet [`Code::Corrupt`]), else
    /// [`Code::Partly`] where any failed.
    pub(crate) fn each<'s>(
        &'s self,
        globals: &Globals,
        mut visit: impl FnMut(&'s Target) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if !self.is_many() {
            return self.targets.iter().try_for_each(visit);
        }
        let (mut is_damaged, mut has_failed) = (false, false);
        for target in &self.targets {
            let Err(failure) = visit(target) else { continue };
            match failure.code {
                Code::Signal(_) | Code::TimedOut | Code::ClosedPipe | Code::Usage => return Err(failure),
                Code::Corrupt if failure.is_quiet() => is_damaged = true,
                _ => {
                    has_failed = true;
                    globals.complain(&failure.at(target.path.display()));
                }
            }
        }
        match (is_damaged, has_failed) {
            (true, _) => Err(Failure::quiet(Code::Corrupt)),
            (_, true) => Err(Failure::quiet(Code::Partly)),
            _ => Ok(()),
        }
    }
}
