//! What may stand in the file, and what is nearest to what may not.

/// A key at the top of the file or of a profile, and the option that it is the default of.
pub(super) struct GlobalKey {
    pub(super) name: &'static str,
    /// The long option; empty where there is none.
    pub(super) option: &'static str,
    /// The option says the opposite.
    pub(super) is_inverted: bool,
}

const fn key(name: &'static str) -> GlobalKey {
    GlobalKey { name, option: name, is_inverted: false }
}

/// Every one. `log` is the filter of `LOGCTL_LOG`, `brokers` the servers, which verbs take that have -b.
pub(super) const GLOBAL: &[GlobalKey] = &[
    key("dir"),
    key("topic"),
    key("partition"),
    key("output"),
    key("quiet"),
    key("verbose"),
    key("color"),
    GlobalKey { name: "progress", option: "no-progress", is_inverted: true },
    key("pager"),
    key("timeout"),
    GlobalKey { name: "log", option: "", is_inverted: false },
    GlobalKey { name: BROKERS, option: "", is_inverted: false },
];

/// Servers, as `HOST:PORT`.
pub(super) const BROKERS: &str = "brokers";
/// The table of what clients of brokers are told.
pub(super) const CONNECTION: &str = "connection";
/// The tables of the profiles, and the key that chooses one.
pub(super) const PROFILES: &str = "profiles";
pub(super) const PROFILE: &str = "profile";

/// The tables of verbs, and the options that may have a default there: how work is done, never what is worked on, and
/// never a consent.
pub(super) const VERBS: &[(&str, &[&str])] = &[
    (
        "append",
        &[
            "acks",
            "batch-size",
            "compression",
            "delim",
            "format",
            "full-sync",
            "header",
            "index-interval",
            "key-sep",
            "max-batch-bytes",
            "min-free",
            "preallocate",
            "rate",
            "refuse-damage",
            "segment-age",
            "segment-bytes",
            "sync",
            "timestamp-type",
        ],
    ),
    ("cat", &["isolation"]),
    ("get", &["isolation"]),
    ("tail", &["isolation", "lines"]),
    ("verify", &["deep", "no-indexes", "parallel"]),
    ("diff", &["by"]),
    ("ls", &["sort"]),
    ("offsets", &["time"]),
    ("copy", &["check", "no-reflink", "rate"]),
    ("snapshot", &["check", "hardlink", "no-reflink", "rate"]),
    ("import", &["batch-compression", "batch-size", "max-batch-bytes", "segment-bytes"]),
];

/// The known name that is most like a mistaken one.
pub(super) fn nearest<'k>(mistaken: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let likeness = known.into_iter().map(|name| (strsim::jaro_winkler(mistaken, name), name));
    likeness.filter(|(score, _)| *score > 0.75).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_key_is_an_option() {
        let command = crate::Cli::command();
        let has = |command: &clap::Command, option: &str| {
            command.get_arguments().any(|arg| arg.get_long() == Some(option) && !arg.is_required_set())
        };
        for key in GLOBAL.iter().filter(|key| !key.option.is_empty()) {
            assert!(has(&command, key.option), "--{}", key.option);
        }
        for (verb, options) in VERBS {
            let verb_command = command.find_subcommand(verb);
            for option in *options {
                assert!(verb_command.is_some_and(|found| has(found, option)), "{verb} --{option}");
            }
        }
    }

    #[test]
    fn every_global_option_has_a_key_or_a_reason() {
        // The profile chooses the file's part, help and version are no settings.
        let without = ["profile", "help", "version"];
        for arg in crate::Cli::command().get_arguments() {
            let Some(long) = arg.get_long() else { continue };
            assert!(GLOBAL.iter().any(|key| key.option == long) || without.contains(&long), "--{long}");
        }
    }

    #[test]
    fn the_nearest_is_near() {
        let names = ["compression", "sync", "batch-size"];
        assert_eq!(nearest("compresion", names), Some("compression"));
        assert_eq!(nearest("batchsize", names), Some("batch-size"));
        assert_eq!(nearest("zzz", names), None);
    }
}
