//! What a verb works on: a partition directory, or one segment file.

use std::{
    ffi::OsStr,
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{
    failure::Failure,
    globals::Globals,
    scope::{list, partitions_of, reachable},
};

/// A place named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The directory or file.
    pub(crate) path: PathBuf,
    /// True for a single file.
    pub(crate) is_file: bool,
    /// The topic and partition that the directory's name tells, by Kafka's rule `TOPIC-N`.
    pub(crate) partition: Option<(String, u32)>,
}

impl Target {
    /// Finds the target of a verb that reads: it must exist.
    pub(crate) fn existing(globals: &Globals, target: Option<&Path>) -> Result<Self, Failure> {
        let path = place(globals, target, false)?;
        reachable(&path)?;
        let metadata = fs::metadata(&path).map_err(|e| missing(&path, &e))?;
        if !metadata.is_dir() && !metadata.is_file() {
            return Err(Failure::other(format!("{}: neither a directory nor a file", path.display())));
        }
        let is_file = metadata.is_file();
        if !is_file && globals.topic.is_none() {
            refuse_data_directory(&path)?;
        }
        Ok(Self::new(path, is_file))
    }

    /// Finds the target of a verb that writes: a directory, which need not exist.
    pub(crate) fn directory(globals: &Globals, target: Option<&Path>) -> Result<Self, Failure> {
        let path = place(globals, target, true)?;
        match fs::metadata(&path) {
            Ok(metadata) if !metadata.is_dir() => {
                Err(Failure::usage(format!("{}: not a directory", path.display()))
                    .hint("records are appended to a partition directory, never to a single segment file"))
            }
            Ok(_) => {
                if globals.topic.is_none() {
                    refuse_data_directory(&path)?;
                }
                Ok(Self::new(path, false))
            }
            Err(_) => Ok(Self::new(path, false)),
        }
    }

    /// Refuses a single file.
    pub(crate) fn must_be_directory(&self) -> Result<(), Failure> {
        if self.is_file {
            return Err(Failure::usage(format!("{}: a file", self.path.display()))
                .hint("a log is changed as a whole: name its directory"));
        }
        Ok(())
    }

    /// Refuses a directory that was chosen by its topic and is not there: no log was to be made.
    pub(crate) fn must_exist(&self, globals: &Globals) -> Result<(), Failure> {
        match (&globals.topic, self.path.parent()) {
            (Some(topic), Some(base)) if !self.path.exists() => {
                let failure = no_such_partition(base, topic, globals.partition);
                Err(failure.note("--create makes it"))
            }
            _ => Ok(()),
        }
    }

    /// Describes a path without looking at the disk.
    pub(crate) fn new(path: PathBuf, is_file: bool) -> Self {
        let dir = if is_file { path.parent().map(Path::to_path_buf) } else { Some(path.clone()) };
        // `.` and `data/..` have a name too, though not a written one.
        let name = dir.and_then(|dir| match dir.file_name() {
            Some(name) => Some(name.to_owned()),
            None => fs::canonicalize(if dir.as_os_str().is_empty() { Path::new(".") } else { &dir })
                .ok()
                .and_then(|full| full.file_name().map(OsStr::to_owned)),
        });
        let partition = name.as_deref().and_then(OsStr::to_str).and_then(topic_partition);
        Self { path, is_file, partition }
    }

    /// The topic, where the name of the directory tells one.
    pub(crate) fn topic(&self) -> Option<&str> {
        self.partition.as_ref().map(|(topic, _)| topic.as_str())
    }

    /// The partition, where the name of the directory tells one.
    pub(crate) fn partition_number(&self) -> Option<u32> {
        self.partition.as_ref().map(|(_, number)| *number)
    }
}

/// Kafka's directory name `TOPIC-N`: N without leading zeros, TOPIC of letters, digits, `.`, `_` and `-`.
pub(crate) fn topic_partition(name: &str) -> Option<(String, u32)> {
    let (topic, number) = name.rsplit_once('-')?;
    let plain = number.bytes().all(|b| b.is_ascii_digit()) && (number == "0" || !number.starts_with('0'));
    let legal = topic.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if topic.is_empty() || topic == "." || topic == ".." || topic.len() > 249 || !plain || !legal {
        return None;
    }
    // Kafka's partition numbers are i32.
    number.parse::<i32>().ok().and_then(|n| u32::try_from(n).ok()).map(|n| (topic.to_owned(), n))
}

/// Where TARGET, `--dir`, `--topic` and `--partition` point to. A partition that is chosen by its topic must be there,
/// unless `makes` says that it may be made.
fn place(globals: &Globals, target: Option<&Path>, makes: bool) -> Result<PathBuf, Failure> {
    let base = match (target, &globals.dir) {
        (Some(target), Some(dir)) if is_bare_name(target) => dir.join(target),
        (Some(target), _) => target.to_path_buf(),
        (None, Some(dir)) => dir.clone(),
        (None, None) => {
            return Err(Failure::usage("no target given")
                .hint("name a partition directory, or a data directory with --dir and --topic"));
        }
    };
    let Some(topic) = &globals.topic else { return Ok(base) };
    let name_of = |partition: u32| format!("{topic}-{partition}");
    if topic_partition(&name_of(0)).is_none_or(|(t, _)| t != *topic) {
        return Err(Failure::usage(format!("invalid topic name {topic:?}"))
            .hint("up to 249 letters, digits, `.`, `_` and `-`, and neither `.` nor `..`"));
    }
    let there = |partition: u32| {
        let path = base.join(name_of(partition));
        // One whose disk is not there is met when it is opened.
        (path.is_dir() || reachable(&path).is_err()).then_some(path)
    };
    if let Some(partition) = globals.partition {
        if topic_partition(&name_of(partition)).is_none() {
            return Err(Failure::usage(format!(
                "invalid partition {partition}: the largest is {}",
                i32::MAX
            )));
        }
        return match there(partition) {
            None if makes => Ok(base.join(name_of(partition))),
            None => Err(no_such_partition(&base, topic, Some(partition))),
            Some(path) => Ok(path),
        };
    }
    let found = match list(&base) {
        Ok((found, _)) => found,
        Err(error) if makes && error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(missing(&base, &error)),
    };
    let partitions: Vec<u32> =
        found.into_iter().filter(|found| found.topic == *topic).map(|found| found.partition).collect();
    match partitions.as_slice() {
        [0] => Ok(base.join(name_of(0))),
        [] if makes => Ok(base.join(name_of(0))),
        [] => Err(no_such_partition(&base, topic, None)),
        some => {
            Err(Failure::not_found(format!("topic `{topic}` has {} in {}", numbered(some), base.display()))
                .hint("choose one with --partition"))
        }
    }
}

/// What there is instead.
fn no_such_partition(base: &Path, topic: &str, partition: Option<u32>) -> Failure {
    let found = match list(base) {
        Ok((found, _)) => found,
        Err(error) => return missing(base, &error),
    };
    let of_topic: Vec<u32> =
        found.iter().filter(|found| found.topic == topic).map(|found| found.partition).collect();
    let place = base.display();
    if let (Some(partition), false) = (partition, of_topic.is_empty()) {
        return Failure::not_found(format!("topic `{topic}` has no partition {partition} in {place}"))
            .hint(format!("it has {}", numbered(&of_topic)));
    }
    let failure = Failure::not_found(format!("no topic `{topic}` in {place}"));
    let mut topics: Vec<&str> = found.iter().map(|found| found.topic.as_str()).collect();
    topics.dedup();
    match topics.as_slice() {
        [] => failure.hint("there is no partition in it: name the directory that holds TOPIC-N"),
        [one] => failure.hint(format!("the only topic there is `{one}`")),
        some => failure.hint(format!("topics there: {}", listed(some))),
    }
}

/// `partition 3`, `partitions 0, 1 and 5 more`.
fn numbered(partitions: &[u32]) -> String {
    let noun = if partitions.len() == 1 { "partition" } else { "partitions" };
    format!("{noun} {}", listed(partitions))
}

/// Not more of them than fit a line.
fn listed<T: ToString>(names: &[T]) -> String {
    const MOST: usize = 12;
    let shown: Vec<String> = names.iter().take(MOST).map(T::to_string).collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

pub(crate) fn is_bare_name(path: &Path) -> bool {
    let mut components = path.components();
    matches!((components.next(), components.next()), (Some(Component::Normal(_)), None))
}

fn missing(path: &Path, error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            Failure::not_found(format!("no such file or directory: {}", path.display()))
                .hint("name a partition directory or a .log file; `logctl ls DIR` lists partitions, `logctl append DIR --create` makes a log")
        }
        _ => Failure::io("open", path.display(), error),
    }
}

/// A directory that holds partitions and no log of its own is most likely a data directory.
fn refuse_data_directory(path: &Path) -> Result<(), Failure> {
    let Some(found) = partitions_of(path) else { return Ok(()) };
    let names: Vec<String> =
        found.iter().map(|found| format!("{}-{}", found.topic, found.partition)).collect();
    Err(Failure::not_found(format!("{} holds partitions and is none itself", path.display()))
        .hint(format!("choose one with --topic and --partition: {}", listed(&names))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_names_tell_topic_and_partition() {
        assert_eq!(topic_partition("orders-0"), Some(("orders".into(), 0)));
        assert_eq!(topic_partition("a-b.c_d-12"), Some(("a-b.c_d".into(), 12)));
        for name in [
            "orders",
            "-0",
            "orders-",
            "orders-01",
            "orders-+1",
            "orders--",
            "or ders-0",
            "..-0",
            "x-2147483648",
        ] {
            assert_eq!(topic_partition(name), None, "{name}");
        }
        assert!(topic_partition(&format!("{}-0", "x".repeat(249))).is_some());
        assert!(topic_partition(&format!("{}-0", "x".repeat(250))).is_none());
    }

    #[test]
    fn bare_names_are_looked_up_in_the_data_directory() {
        assert!(is_bare_name(Path::new("orders-0")));
        for path in ["./orders-0", "/orders-0", "data/orders-0", "..", ""] {
            assert!(!is_bare_name(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_segment_file_takes_the_name_of_its_directory() {
        let target = Target::new("data/orders-3/00000000000000000000.log".into(), true);
        assert_eq!(target.topic(), Some("orders"));
        assert_eq!(target.partition_number(), Some(3));
    }
}
