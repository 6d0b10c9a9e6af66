//! Which partitions a verb goes over: one, all of a topic, or all of a data directory; and the frame for going over them.
//!
//! Holds always: one that fails hides none of the others; what ends the whole verb (a signal, `--timeout`, a reader of
//! the output that went away) ends it at once.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    failure::{Code, Failure},
    globals::Globals,
    target::{Target, is_bare_name, topic_partition},
};

/// A partition of a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) topic: String,
    pub(crate) partition: u32,
}

/// The partitions that lie in a directory, sorted by topic and number; and whether there is a log of its own beside them.
pub(crate) fn list(dir: &Path) -> io::Result<(Vec<Found>, bool)> {
    let (mut found, mut has_log) = (Vec::new(), false);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        has_log |= path.extension().is_some_and(|suffix| suffix == "log") && path.is_file();
        if let Some((topic, partition)) = entry.file_name().to_str().and_then(topic_partition)
            && is_directory_or_unknown(&path)
        {
            found.push(Found { path, topic, partition });
        }
    }
    found.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    Ok((found, has_log))
}

/// True for a directory, and for what may be one and cannot be looked at: to leave it out without a word would be to say
/// that nothing is wrong with it.
fn is_directory_or_unknown(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(found) => found.is_dir(),
        // A name that was removed meanwhile is gone; a link that leads nowhere still has its own.
        Err(_) => fs::symlink_metadata(path).map_or_else(|e| e.kind() != io::ErrorKind::NotFound, |_| true),
    }
}

/// A failure where a partition stands by its name and its directory cannot be come to: most likely its disk is not there.
pub(crate) fn reachable(path: &Path) -> Result<(), Failure> {
    let Err(error) = fs::metadata(path) else { return Ok(()) };
    match fs::read_link(path) {
        Ok(to) => Err(Failure::not_found(format!(
            "{}: a symbolic link that leads nowhere: {}: {error}",
            path.display(),
            to.display()
        ))
        .hint("is the disk mounted?")),
        Err(_) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) => Err(Failure::io("look at", path.display(), &error)),
    }
}

/// The partitions in a directory that holds some and no log of its own: in a data directory.
pub(crate) fn partitions_of(dir: &Path) -> Option<Vec<Found>> {
    list(dir).ok().filter(|(found, has_log)| !found.is_empty() && !has_log).map(|(found, _)| found)
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
        // As `Target` does: a bare name is looked up in the data directory.
        let directory = match (target, &globals.dir) {
            (Some(target), Some(dir)) if is_bare_name(target) => Some(dir.join(target)),
            (target, dir) => target.or(dir.as_deref()).map(Path::to_path_buf),
        };
        let many = match (&globals.topic, globals.partition, directory) {
            (_, Some(_), _) | (_, _, None) => None,
            (None, None, Some(directory)) => partitions_of(&directory).map(|found| (found, directory)),
            (Some(topic), None, Some(directory)) => {
                let found = list(&directory).map(|(found, _)| found).unwrap_or_default();
                let found: Vec<Found> = found.into_iter().filter(|found| found.topic == *topic).collect();
                // Where there is none, who looks for one says what there is.
                (!found.is_empty()).then_some((found, directory))
            }
        };
        if let Some((found, directory)) = many {
            let targets = found.into_iter().map(|found| Target::new(found.path, false)).collect();
            return Ok(Self { targets, directory: Some(directory) });
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
            let Err(failure) = reachable(&target.path).and_then(|()| visit(target)) else { continue };
            match failure.code {
                _ if failure.ends_all() => return Err(failure),
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
