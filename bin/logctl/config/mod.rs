//! Settings that are not on the command line: the file `config.toml` with its profiles, the environment.
//!
//! Lives here: which file is read, which profile is taken, and what the verb `config` prints. Not here: what may stand
//! in the file (`keys.rs`), how it is read (`file.rs`), how it becomes the default of an option (`defaults.rs`), what
//! clients of brokers are told (`connection.rs`). Holds always: an option on the command line beats the environment,
//! which beats the profile, which beats the rest of the file, which beats what is built in; and nothing in the file can
//! consent to what destroys.

mod connection;
mod defaults;
mod file;
mod keys;
mod show;

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

pub(crate) use connection::{SERVERS, pair, servers};
pub(crate) use defaults::with_defaults;
pub(crate) use show::{Args, run};

use crate::failure::Failure;
use file::Setting;

/// Names the file; empty: there is none.
const CONFIG_VAR: &str = "LOGCTL_CONFIG";
/// Names the profile.
const PROFILE_VAR: &str = "LOGCTL_PROFILE";

/// More is no file of settings.
const MOST_BYTES: u64 = 1 << 20;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// The file that is read if it is there; `None` where nothing tells of a home.
    path: Option<PathBuf>,
    /// The profile, and who chose it.
    profile: Option<(String, String)>,
    /// One for each key: the profile's where it has one.
    settings: Vec<Setting>,
}

impl Config {
    /// Reads the file. `profile`: what `--profile` says.
    pub(crate) fn load(profile: Option<String>) -> Result<Self, Failure> {
        let (path, is_named) = place();
        let Some(path) = path else {
            return match choose(profile, None) {
                Some((name, _)) => {
                    Err(Failure::usage(format!("no profile `{name}`: there is no configuration file"))
                        .hint("`logctl config path` prints where it is looked for"))
                }
                None => Ok(Self::default()),
            };
        };
        let name = path.display().to_string();
        let text = match read(&path) {
            Ok(text) => Some(text),
            Err(error)
                if !is_named
                    && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                None
            }
            Err(error) => {
                let failure = Failure::usage(format!("cannot read {name}: {error}"));
                return Err(if is_named {
                    failure.hint(format!("{CONFIG_VAR} names it; empty, it stands for no file"))
                } else {
                    failure
                });
            }
        };
        let parsed = file::parse(text.as_deref().unwrap_or_default(), &path)?;
        let profile = choose(profile, parsed.profile.clone().map(|name| (name, "the file".to_owned())));
        let settings = match &profile {
            None => parsed.common,
            Some((wanted, _)) => {
                let known: Vec<&str> = parsed.profiles.iter().map(|(name, _)| name.as_str()).collect();
                let Some((_, own)) = parsed.profiles.iter().find(|(name, _)| name == wanted) else {
                    let failure = Failure::usage(format!("no profile `{wanted}` in {name}"));
                    return Err(failure.hint(match known.as_slice() {
                        [] => format!("it has none; a table [profiles.{wanted}] would be one"),
                        some => format!("it has: {}", some.join(", ")),
                    }));
                };
                let is_own = |setting: &Setting| own.iter().any(|mine| mine.is_same_key(setting));
                let common = parsed.common.into_iter().filter(|setting| !is_own(setting));
                common.chain(own.iter().cloned()).collect()
            }
        };
        Ok(Self { path: Some(path), profile, settings })
    }

    /// What clients of brokers are told: keys of librdkafka, and their values.
    pub(crate) fn connection(&self) -> BTreeMap<&'static str, String> {
        let mut found = BTreeMap::new();
        for setting in self.settings.iter().filter(|setting| setting.section == Some(keys::CONNECTION)) {
            found.insert(setting.key, setting.values.join(","));
        }
        // The key of the same meaning in the table is the weaker one.
        let brokers =
            self.settings.iter().find(|setting| setting.section.is_none() && setting.key == keys::BROKERS);
        found.extend(brokers.map(|setting| (SERVERS, setting.values.join(","))));
        found
    }

    /// The filter of messages, which is no option.
    pub(crate) fn log_filter(&self) -> Option<&str> {
        let found = self.settings.iter().find(|setting| setting.section.is_none() && setting.key == "log");
        found.and_then(|setting| setting.values.first()).map(String::as_str)
    }
}

/// True where somebody asks for the file, or for a profile in it. One that only lies at its place is left out, and that is
/// told, where it cannot be read: it may be another user's, and is no reason to do nothing.
pub(crate) fn is_asked_for(profile: Option<String>) -> bool {
    place().1 || choose(profile, None).is_some()
}

/// The text of a regular file: any other might have no end.
fn read(path: &Path) -> io::Result<String> {
    if path == Path::new("/dev/null") {
        return Ok(String::new());
    }
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    fs::File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", MOST_BYTES >> 20)));
    }
    Ok(text)
}

/// The file's place, and whether the environment names it.
fn place() -> (Option<PathBuf>, bool) {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    match env::var_os(CONFIG_VAR) {
        Some(none) if none.is_empty() => return (None, true),
        Some(path) => return (Some(path.into()), true),
        None => {}
    }
    // The standard of base directories: a relative path there is to be ignored.
    let base = set("XDG_CONFIG_HOME").map(PathBuf::from).filter(|base| base.is_absolute());
    let base = base.or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")));
    (base.map(|base| base.join("logctl").join("config.toml")), false)
}

/// The profile that is taken: `--profile`, then the environment, then the file's own word.
fn choose(flag: Option<String>, file: Option<(String, String)>) -> Option<(String, String)> {
    let named = env::var(PROFILE_VAR).ok().filter(|name| !name.is_empty());
    let flag = flag.map(|name| (name, "--profile".to_owned()));
    flag.or_else(|| named.map(|name| (name, PROFILE_VAR.to_owned()))).or(file)
}

/// The known keys of a client's file.
pub(crate) fn client_file(path: &Path) -> Result<BTreeMap<&'static str, String>, Failure> {
    connection::ClientFile::read(path).map(|file| file.keys)
}

/// The profiles of the file, if it can be read.
pub(crate) fn profile_names() -> Vec<String> {
    let Some(path) = place().0 else { return Vec::new() };
    let text = read(&path).unwrap_or_default();
    let parsed = file::parse(&text, &path).unwrap_or_default();
    parsed.profiles.into_iter().map(|(name, _)| name).collect()
}
