//! What a verb works on: a partition directory, or one segment file.

use std::{
    ffi::OsStr,
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{
    failure::{Code, Failure},
    globals::Globals,
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
        let path = place(globals, target)?;
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
        let path = place(globals, target)?;
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

fn place(globals: &Globals, target: Option<&Path>) -> Result<PathBuf, Failure> {
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
    let partition = globals.partition.unwrap_or(0);
    let name = format!("{topic}-{partition}");
    if topic_partition(&name).is_none_or(|(t, n)| t != *topic || n != partition) {
        return Err(Failure::usage(format!("invalid topic name {topic:?}"))
            .hint("up to 249 letters, digits, `.`, `_` and `-`, and neither `.` nor `..`"));
    }
    Ok(base.join(name))
}

fn is_bare_name(path: &Path) -> bool {
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
    let Ok(entries) = fs::read_dir(path) else { return Ok(()) };
    let mut partitions = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        if Path::new(&name).extension().is_some_and(|e| e == "log") {
            return Ok(());
        }
        if let Some(name) = name.to_str()
            && topic_partition(name).is_some()
            && entry.file_type().is_ok_and(|t| t.is_dir())
        {
            partitions.push(name.to_owned());
        }
    }
    if partitions.is_empty() {
        return Ok(());
    }
    partitions.sort();
    let shown = partitions.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    let more =
        if partitions.len() > 5 { format!(" and {} more", partitions.len() - 5) } else { String::new() };
    Err(Failure::new(Code::NotFound, format!("{} holds partitions and is none itself", path.display()))
        .hint(format!("choose one with --topic and --partition: {shown}{more}")))
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
