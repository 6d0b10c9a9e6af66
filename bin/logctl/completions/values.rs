//! What fits where a value is wanted: by the name of the value in the help (`TARGET`, `RANGE`, ..).

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    sync::{OnceLock, mpsc},
    thread,
    time::Duration,
};

use clap::{Arg, Command};
use clap_complete::engine::ArgValueCompleter;
use stratalog::{Cursor, LogReader, ReadOptions};

use super::words::{
    Candidates, TIMES, candidate, codecs, columns, conditions, count_fields, durations, policies, queries,
    sizes, starts_with, times, words,
};
use crate::{
    manual,
    target::{Target, topic_partition},
};

/// How long a directory may take to answer: at a key's press a late answer is worse than none.
const LIMIT: Duration = Duration::from_millis(250);

/// At most so many names of one directory: nobody chooses from more.
const MOST: usize = 10_000;

/// `--dir` where the line has none: from the environment or the configuration file.
pub(super) static DATA_DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();

/// The command line, with completers where the disk or the grammar tells what fits. Fixed values have theirs by clap.
pub(super) fn with_values(command: Command) -> Command {
    let command = command.mut_args(with_value);
    command.mut_subcommands(with_values)
}

fn with_value(arg: Arg) -> Arg {
    match completer(&arg) {
        Some(completer) => arg.add(ArgValueCompleter::new(completer)),
        None => arg,
    }
}

/// What completes an argument; `None` where clap knows, or where only the user does.
fn completer(arg: &Arg) -> Option<fn(&OsStr) -> Candidates> {
    let name = arg.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
    let id = arg.get_id().as_str();
    Some(match (id, name) {
        ("partition", _) => partitions,
        (_, "TARGET" | "SRC" | "A" | "B") => targets,
        (_, "TOPIC") => topics,
        (_, "DIR" | "DST") => directories,
        (_, "FILE" | "FILE,..." | "PATH") => files,
        (_, "RANGE") => ranges,
        ("offset", _) if arg.is_positional() => places,
        (_, "OFFSET") => offsets,
        (_, "TIME") => times,
        ("time", "WHEN") => queries,
        (_, "CODEC") => codecs,
        (_, "POLICY") => policies,
        (_, "DURATION") => durations,
        (_, "SIZE" | "BYTES") => sizes,
        ("cursor", _) => cursors,
        ("profile", _) => profiles,
        ("columns", _) => columns,
        ("count_by", _) => count_fields,
        ("condition", _) => conditions,
        (_, "VERB|TOPIC") => verbs_and_topics,
        (_, "VERB|TOPIC|DIR") => pages,
        _ => return None,
    })
}

fn profiles(current: &OsStr) -> Candidates {
    let names = crate::config::profile_names();
    names
        .into_iter()
        .filter(|name| starts_with(OsStr::new(name), current))
        .map(|name| candidate(name, ""))
        .collect()
}

/// Where there is a record: of `get`.
fn places(current: &OsStr) -> Candidates {
    let mut found =
        words(current, &[("start", "the first"), ("end", "the last"), ("@", "the first since a time")]);
    let end = of_log(current).and_then(|log| log.range).map(|(_, end)| end.to_string());
    found.extend(
        offsets(current).into_iter().filter(|word| end.as_deref().map(OsStr::new) != Some(word.get_value())),
    );
    found
}

fn verbs_and_topics(current: &OsStr) -> Candidates {
    let command = <crate::Cli as clap::CommandFactory>::command();
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let verbs =
        verbs.map(|verb| (verb.get_name(), verb.get_about().map(ToString::to_string).unwrap_or_default()));
    let topics = manual::TOPICS.iter().map(|topic| (topic.name, topic.summary.to_owned()));
    let all: Vec<_> = verbs.chain(topics).collect();
    words(current, &all.iter().map(|(name, help)| (*name, help.as_str())).collect::<Vec<_>>())
}

fn pages(current: &OsStr) -> Candidates {
    let mut found = verbs_and_topics(current);
    found.extend(directories(current));
    found
}

// ---- what the disk tells ---------------------------------------------------------------------------------------------

/// What `read` finds, if it finds it soon.
fn within<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::sync_channel(1);
    thread::Builder::new().spawn(move || tell.send(read())).ok()?;
    told.recv_timeout(LIMIT).ok()
}

/// What the other words of the line say about the place.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Place {
    dir: Option<PathBuf>,
    topic: Option<String>,
    partition: Option<u32>,
    /// Brokers, which have topics too.
    brokers: Option<String>,
    /// Words that are no options, the verb first.
    plain: Vec<OsString>,
}

impl Place {
    /// As this process was asked: the words of the line after `--`, without the one that is being written, which is no
    /// whole word yet.
    fn asked(current: &OsStr) -> Self {
        let mut words = env::args_os().skip_while(|word| word != "--").skip(2).collect::<Vec<_>>();
        if let Some(at) = words.iter().rposition(|word| word == current) {
            words.remove(at);
        }
        let mut place = Self::of(&words);
        place.dir = place.dir.or_else(|| DATA_DIRECTORY.get().cloned().flatten());
        if place.dir.is_none() {
            let told = || env::var("LOGCTL_BROKERS").ok().filter(|list| !list.is_empty());
            place.brokers = place.brokers.or_else(told);
        }
        place
    }

    fn of(words: &[OsString]) -> Self {
        let mut place = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some(text) = word.to_str() else {
                place.plain.push(word.clone());
                continue;
            };
            let mut value = |short: &str, long: &str| {
                if text == short || text == long {
                    return words.next().cloned();
                }
                let rest = text.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
                rest.or_else(|| text.strip_prefix(short)).map(OsString::from)
            };
            if text.starts_with("--") || text.starts_with('-') {
                if let Some(dir) = value("-d", "--dir") {
                    place.dir = Some(dir.into());
                } else if let Some(brokers) = value("-b", "--brokers") {
                    place.brokers = brokers.into_string().ok();
                } else if let Some(topic) = value("-t", "--topic") {
                    place.topic = topic.into_string().ok();
                } else if let Some(partition) = value("-p", "--partition") {
                    place.partition = partition.to_str().and_then(|number| number.parse().ok());
                }
            } else {
                place.plain.push(word.clone());
            }
        }
        place
    }

    /// Data directories that may be meant.
    fn data_directories(&self) -> Vec<PathBuf> {
        let named = self.plain.iter().skip(1).map(PathBuf::from).filter(|path| path.is_dir());
        self.dir.iter().cloned().chain(named).collect()
    }

    /// The partition directory or segment file that is meant: the first word that is one.
    fn target(&self) -> Option<PathBuf> {
        if let Some(topic) = &self.topic {
            let name = format!("{topic}-{}", self.partition.unwrap_or(0));
            return self.data_directories().into_iter().map(|dir| dir.join(&name)).find(|path| path.is_dir());
        }
        let under =
            |word: &OsString| self.dir.as_ref().map(|dir| dir.join(word)).filter(|path| path.exists());
        let named = self.plain.iter().skip(1).map(|word| under(word).unwrap_or_else(|| PathBuf::from(word)));
        named.chain(self.dir.clone()).find(|path| is_log(path))
    }
}

fn is_log(path: &Path) -> bool {
    if path.is_file() {
        return path.extension().is_some_and(|suffix| suffix == "log");
    }
    fs::read_dir(path).is_ok_and(|entries| {
        entries.take(MOST).flatten().any(|entry| base_offset(&entry.file_name()).is_some())
    })
}

/// The base offset that a segment's name tells.
fn base_offset(name: &OsStr) -> Option<i64> {
    let digits = name.to_str()?.strip_suffix(".log")?;
    (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

fn topics(current: &OsStr) -> Candidates {
    of_topics(current, |topic, _| Some((topic.to_owned(), String::new())))
}

fn partitions(current: &OsStr) -> Candidates {
    let asked = Place::asked(current);
    // Of brokers the topic is a plain word behind the verb.
    let named = asked.brokers.as_ref().and_then(|_| asked.plain.get(1)?.to_str().map(str::to_owned));
    let wanted = asked.topic.or(named);
    of_topics(current, move |topic, number| {
        wanted
            .as_ref()
            .is_none_or(|wanted| wanted == topic)
            .then(|| (number.to_string(), format!("{topic}-{number}")))
    })
}

fn of_topics(
    current: &OsStr,
    word: impl Fn(&str, u32) -> Option<(String, String)> + Send + 'static,
) -> Candidates {
    let current = current.to_owned();
    let read = move || {
        let mut place = Place::asked(&current);
        if let Some(brokers) = &place.brokers {
            let numbers = crate::broker::names(brokers, LIMIT);
            let mut found: Vec<_> =
                numbers.iter().filter_map(|(topic, number)| word(topic, *number)).collect();
            found.retain(|(word, _)| starts_with(OsStr::new(word), &current));
            found.dedup_by(|a, b| a.0 == b.0);
            return found;
        }
        if place.dir.is_none() && place.plain.len() < 2 {
            place.dir = Some(".".into());
        }
        let mut found = Vec::new();
        for dir in place.data_directories() {
            let Ok(entries) = fs::read_dir(dir) else { continue };
            let names =
                entries.take(MOST).flatten().filter_map(|entry| topic_partition(entry.file_name().to_str()?));
            found.extend(names.filter_map(|(topic, number)| word(&topic, number)));
        }
        found.retain(|(word, _)| starts_with(OsStr::new(word), &current));
        found.sort_by_key(|(word, _)| (word.parse::<u32>().unwrap_or(0), word.clone()));
        found.dedup_by(|a, b| a.0 == b.0);
        found
    };
    within(read).unwrap_or_default().into_iter().map(|(word, help)| candidate(word, &help)).collect()
}

/// Partition and data directories and segment files: as paths, and by their names in `--dir`.
fn targets(current: &OsStr) -> Candidates {
    if Place::asked(current).brokers.is_some() {
        return topics(current);
    }
    let mut found =
        paths(current, |name| base_offset(name).is_some() || name.as_encoded_bytes().ends_with(b".log"));
    let current = current.to_owned();
    if !current.as_encoded_bytes().contains(&b'/') {
        let read = move || {
            let Some(dir) = Place::asked(&current).dir else { return Vec::new() };
            let names =
                fs::read_dir(dir).into_iter().flatten().take(MOST).flatten().map(|entry| entry.file_name());
            let mut names: Vec<_> = names
                .filter(|name| name.to_str().is_some_and(|name| topic_partition(name).is_some()))
                .filter(|name| starts_with(name, &current))
                .collect();
            names.sort();
            names
        };
        found.extend(within(read).unwrap_or_default().into_iter().map(|name| candidate(name, "")));
    }
    found
}

fn directories(current: &OsStr) -> Candidates {
    paths(current, |_| false)
}

fn files(current: &OsStr) -> Candidates {
    paths(current, |_| true)
}

/// Directories, and the files that are wanted. Hidden ones only where the word begins with a dot.
fn paths(current: &OsStr, wanted: fn(&OsStr) -> bool) -> Candidates {
    let text = current.as_encoded_bytes();
    let cut = text.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let (Some(folder), Some(begun)) = (slice(current, 0, cut), slice(current, cut, text.len())) else {
        return Vec::new();
    };
    let (prefix, begun) = (folder.clone(), begun.clone());
    let read = move || {
        let place = if folder.is_empty() { PathBuf::from(".") } else { expand_home(&folder) };
        let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
        let mut found = Vec::new();
        for entry in fs::read_dir(place).into_iter().flatten().take(MOST).flatten() {
            let name = entry.file_name();
            if !starts_with(&name, &begun) || (is_hidden(&name) && !is_hidden(&begun)) {
                continue;
            }
            // Through links too, as every verb sees it.
            if entry.path().is_dir() {
                found.push([&*prefix, &*name, OsStr::new("/")].concat_os());
            } else if wanted(&name) {
                found.push([&*prefix, &*name].concat_os());
            }
        }
        found.sort();
        found
    };
    within(read).unwrap_or_default().into_iter().map(|path| candidate(path, "")).collect()
}

/// A part of a path; the cuts are at slashes, so both sides are whole.
fn slice(text: &OsStr, from: usize, to: usize) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt as _;
    text.as_bytes().get(from..to).map(|bytes| OsStr::from_bytes(bytes).to_owned())
}

/// A shell hands `~` over as it was written.
fn expand_home(folder: &OsStr) -> PathBuf {
    match (Path::new(folder).strip_prefix("~"), env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Path::new(&home).join(rest),
        _ => folder.into(),
    }
}

trait ConcatOs {
    fn concat_os(&self) -> OsString;
}

impl<const N: usize> ConcatOs for [&OsStr; N] {
    fn concat_os(&self) -> OsString {
        self.iter().fold(OsString::new(), |mut all, part| {
            all.push(part);
            all
        })
    }
}

/// The offsets of the log that is meant.
struct Offsets {
    /// `None` where opening it failed.
    range: Option<(i64, i64)>,
    bases: Vec<i64>,
}

fn of_log(current: &OsStr) -> Option<Offsets> {
    let current = current.to_owned();
    let target = within(move || Place::asked(&current).target())??;
    let path = target.clone();
    let bases = within(move || {
        let names = fs::read_dir(path).into_iter().flatten().take(MOST).flatten();
        let mut bases: Vec<_> = names.filter_map(|entry| base_offset(&entry.file_name())).collect();
        bases.sort_unstable();
        bases
    });
    // Opening may mean to read a whole segment without an index: its names are known anyhow.
    let range = within(move || {
        let reader = LogReader::open(&target, ReadOptions::default()).ok()?;
        Some((reader.start().value(), reader.end().value()))
    });
    Some(Offsets { range: range.flatten(), bases: bases? })
}

/// The numbers of a log that one would name: its start, its end, where segments begin.
fn numbers(current: &OsStr) -> Vec<(String, String)> {
    let Some(log) = of_log(current) else { return Vec::new() };
    let mut found = Vec::new();
    if let Some((start, end)) = log.range {
        found.push((start.to_string(), "the first".to_owned()));
        found.extend(
            log.bases
                .iter()
                .filter(|base| **base > start && **base < end)
                .map(|base| (base.to_string(), "a segment begins".to_owned())),
        );
        found.push((end.to_string(), "the next to be written".to_owned()));
    } else {
        found.extend(log.bases.iter().map(|base| (base.to_string(), "a segment begins".to_owned())));
    }
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

fn offsets(current: &OsStr) -> Candidates {
    let mut found = numbers(current);
    found.retain(|(word, _)| starts_with(OsStr::new(word), current));
    found.into_iter().map(|(word, help)| candidate(word, &help)).collect()
}

/// Both bounds of a range: what stands before the colon stays.
fn ranges(current: &OsStr) -> Candidates {
    let Some(text) = current.to_str() else { return Vec::new() };
    if text.starts_with('@') {
        let times = TIMES.iter().map(|(time, help)| (format!("@{time}"), *help));
        return times
            .filter(|(word, _)| word.starts_with(text))
            .map(|(word, help)| candidate(word, help))
            .collect();
    }
    let (kept, begun) = text.rsplit_once(':').map_or(("", text), |(from, to)| (from, to));
    let kept = if text.contains(':') { format!("{kept}:") } else { String::new() };
    let mut found = vec![("end".to_owned(), "the next to be written".to_owned())];
    if kept.is_empty() {
        found.insert(0, ("start".to_owned(), "the first".to_owned()));
        found.extend(["-10", "@"].map(|word| (word.to_owned(), String::new())));
    }
    found.extend(numbers(current));
    let fits = found.into_iter().filter(|(word, _)| word.starts_with(begun));
    fits.map(|(word, help)| candidate(format!("{kept}{word}"), &help)).collect()
}

fn cursors(current: &OsStr) -> Candidates {
    let current = current.to_owned();
    let read = move || {
        let target = Place::asked(&current).target()?;
        let cursors = Cursor::list(Target::new(target, false).path).ok()?;
        let names = cursors.into_iter().map(|cursor| cursor.name);
        Some(names.filter(|name| starts_with(OsStr::new(name), &current)).collect::<Vec<_>>())
    };
    within(read).flatten().unwrap_or_default().into_iter().map(|name| candidate(name, "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: &str) -> Place {
        Place::of(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_other_words_tell_the_place() {
        let told = |line| {
            let place = place(line);
            (place.dir, place.topic, place.partition)
        };
        let whole = (Some(PathBuf::from("data")), Some("t".to_owned()), Some(3));
        assert_eq!(told("cat -d data -t t -p 3"), whole);
        assert_eq!(told("--dir=data cat -tt --partition=3"), whole);
        assert_eq!(told("--dir data --topic t --partition 3 cat x"), whole);
        assert_eq!(told("cat data -o 3 -p x"), (None, None, None));
        assert_eq!(place("cat a -o 3").plain, ["cat", "a", "3"]);
    }

    #[test]
    fn a_disk_that_does_not_answer_is_left() {
        let (_kept, never) = mpsc::channel::<()>();
        assert_eq!(within(move || never.recv().is_ok()), None);
        assert_eq!(within(|| 1), Some(1));
    }

    #[test]
    fn only_names_of_segments_tell_offsets() {
        assert_eq!(base_offset(OsStr::new("00000000000000001455.log")), Some(1455));
        for name in
            ["1455.log", "00000000000000001455.index", "0000000000000000145x.log", "99999999999999999999.log"]
        {
            assert_eq!(base_offset(OsStr::new(name)), None, "{name}");
        }
    }

    #[test]
    fn numbers_are_given_units() {
        let words = |current: &str| -> Vec<OsString> {
            durations(OsStr::new(current)).iter().map(|word| word.get_value().to_owned()).collect()
        };
        assert_eq!(words("15"), ["15ms", "15s", "15m", "15h", "15d"]);
        assert_eq!(words("15m"), ["15ms", "15m"]);
        assert!(words("").is_empty() && words("x").is_empty());
    }
}
