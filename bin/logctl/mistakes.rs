//! What to say to who types the words of another tool, where clap would guess from the spelling.

use std::ffi::OsString;

use clap::{
    Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// A mistaken word in a verb (empty: in any) and what was meant.
struct Mistake {
    verb: &'static str,
    words: &'static [&'static str],
    tip: &'static str,
}

const fn of(verb: &'static str, words: &'static [&'static str], tip: &'static str) -> Mistake {
    Mistake { verb, words, tip }
}

/// The first that fits is told.
const OPTIONS: &[Mistake] = &[
    of(
        "trim",
        &["--to", "--until", "--offset", "-o"],
        "trim drops the oldest records: the first that stays is --before OFFSET (`truncate` --to cuts the newest)",
    ),
    of(
        "truncate",
        &["--before", "--from", "--offset", "-o"],
        "truncate cuts the newest records: the first that goes is --to OFFSET (`trim` --before drops the oldest)",
    ),
    of(
        "cat",
        &["-n", "--num", "--max-messages", "--lines", "--limit"],
        "-c N stops after N records; `tail` -n N prints the last N",
    ),
    of(
        "cat",
        &["--from-beginning"],
        "`cat` begins at the first record by itself, and ends at the last: `tail` -f follows",
    ),
    of(
        "tail",
        &["--from-beginning"],
        "`cat` prints from the first record on; `tail` -n N begins N records before the end",
    ),
    of("cat", &["--follow", "-F"], "`cat` ends at the last record: `tail` -f follows"),
    of("cat", &["-K", "--key-delimiter"], "write the key with a template: -f '%k:%v\\n'"),
    of(
        "cat",
        &["--property", "--formatter"],
        "choose what is printed with a template, as in -f '%k %v\\n', or with -J",
    ),
    of("tail", &["-c", "--num", "--max-messages", "--limit"], "-n N prints the last N records"),
    of(
        "append",
        &["-C", "--codec", "--compression-codec", "--compression-type"],
        "choose the codec with --compression (-z)",
    ),
    of(
        "append",
        &["--parse-key", "--key-separator", "--property", "--reader-property"],
        "split keys off with -K SEP; --format says what the input is",
    ),
    of(
        "append",
        &["--producer-property", "--request-required-acks"],
        "--sync says when records of a directory are acknowledged, --acks those of a broker",
    ),
    of(
        "verify",
        &["--fix", "--repair", "--yes", "-y"],
        "`verify` changes nothing: `repair` does, and shows its plan first",
    ),
    of("repair", &["--fix", "--force", "--execute"], "--yes does what the plan says"),
    of(
        "",
        &["-b", "--brokers", "--bootstrap-server", "--broker-list", "--bootstrap-servers"],
        "`append`, `cat`, `tail`, `offsets` and `topic` work on brokers with -b; this verb works on directories",
    ),
    of(
        "",
        &["--execute", "--no-confirm", "--force", "--confirm"],
        "a verb that destroys prints its plan, and does it with --yes",
    ),
    of("", &["--dry"], "--dry-run prints the plan alone"),
    of("", &["--timeout-ms"], "--timeout takes a time with its unit: --timeout 5s"),
    of("", &["--json-lines", "--jsonl", "--ndjson"], "-J prints JSON lines"),
    of(
        "",
        &["--group", "-G", "--consumer-group"],
        "no verb of this version is a member of a group: a reader keeps its place with `tail` --cursor NAME",
    ),
    of(
        "",
        &["-C", "-P", "-L", "-Q"],
        "kcat's modes are verbs: -C is `cat` (`tail` -f follows), -P is `append`, -L is `ls`, -Q is `offsets`",
    ),
    of(
        "",
        &["--command-config", "--consumer.config", "--producer.config", "--config"],
        "settings are in one file, which LOGCTL_CONFIG may name: `config show` prints what holds",
    ),
    of(
        "",
        &["-X", "-F"],
        "settings of connections are for verbs with -b; `config show` checks and prints them",
    ),
];

const VERBS: &[Mistake] = &[
    of("", &["list", "partitions"], "`ls` lists the partitions of a data directory"),
    of("", &["topics"], "`topic ls` lists the topics of brokers, or of a data directory"),
    of("", &["describe", "show", "status"], "`info` shows what a log holds"),
    of("", &["check", "validate"], "`verify` checks a log"),
    of("", &["fix", "recover"], "`repair` puts right what is damaged"),
    of(
        "",
        &["delete", "rm", "remove", "purge"],
        "`trim` drops the oldest records of a log, `truncate` the newest, `retain` what is too old or too much",
    ),
    of("", &["head", "first", "print"], "`cat` prints records from the first on; -c N stops after N"),
    of("", &["follow", "subscribe", "watch"], "`tail` -f follows a log"),
    of("", &["write", "put", "publish", "pub", "send"], "`append` appends records"),
    of("", &["cp", "mirror", "backup"], "`copy` copies a log, `snapshot` makes a copy quickly"),
    of("", &["compare", "cmp"], "`diff` compares two logs"),
    of(
        "",
        &["dump-log", "kafka-dump-log"],
        "`dump` prints what stands in the files of a log, with the options of kafka-dump-log",
    ),
    of("", &["get-offsets", "offset", "query-offsets"], "`offsets` prints the offset at a time"),
    of("", &["server", "broker", "start"], "`serve` serves a data directory to Kafka's clients"),
    of(
        "",
        &["group", "groups", "acl", "user", "cluster"],
        "this version has no verb for groups, users and clusters; `topic` is about topics",
    ),
];

/// A word like `-3d` or `-5` where no option takes one: clap sees an option called `-3`.
fn number_tip(error: &Error, verb: Option<&str>, line: &[OsString]) -> Option<String> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let is_number =
        option.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if !is_number {
        return None;
    }
    let word = line.iter().filter_map(|word| word.to_str()).find(|word| word.starts_with(option.as_str()))?;
    if crate::grammar::time(word).is_ok() {
        return Some(format!("did you mean @{word}?"));
    }
    crate::grammar::offset_range(word).ok()?;
    Some(match verb {
        Some("cat" | "export") => format!("did you mean -o {word}?"),
        Some("tail") => format!("the last records are -n {}", word.trim_start_matches('-')),
        _ => format!("no option takes {word}: `logctl cat DIR -o {word}` counts from the end"),
    })
}

/// Puts the tip in place of clap's own. `verb`: as it was written.
pub(crate) fn explain(error: &mut Error, verb: Option<&str>, line: &[OsString]) {
    if let Some(tip) = number_tip(error, verb, line) {
        let _ = error.remove(ContextKind::SuggestedArg);
        let _ = error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
        return;
    }
    let (kind, table) = match error.kind() {
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, OPTIONS),
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, VERBS),
        _ => return,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return };
    // `--option=value` is told as it stands.
    let word = word.split('=').next().unwrap_or_default().to_owned();
    // The likeliest first.
    if let Some(ContextValue::Strings(verbs)) = error.get(ContextKind::SuggestedSubcommand) {
        let mut verbs = verbs.clone();
        verbs.sort_by_key(|verb| strsim::damerau_levenshtein(verb, &word));
        let _ = error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(verbs));
    }
    let fits = |mistake: &&Mistake| {
        mistake.words.contains(&word.as_str()) && (mistake.verb.is_empty() || Some(mistake.verb) == verb)
    };
    // That a mistyped option might be passed as a value is never what was meant.
    let _ = error.remove(ContextKind::Suggested);
    if let Some(mistake) = table.iter().find(fits) {
        for guess in
            [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedCommand]
        {
            let _ = error.remove(guess);
        }
        let tip = ContextValue::StyledStrs(vec![StyledStr::from(mistake.tip)]);
        let _ = error.insert(ContextKind::Suggested, tip);
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;

    /// An option in a tip, behind the verb's name in backticks or of the mistake's own verb, is one.
    #[test]
    fn tips_name_what_there_is() {
        let command = crate::Cli::command();
        let all: Vec<&Command> = std::iter::once(&command).chain(command.get_subcommands()).collect();
        let has = |command: &Command, option: &str| {
            command.get_arguments().any(|arg| {
                arg.get_long().is_some_and(|long| option == format!("--{long}"))
                    || arg.get_short().is_some_and(|short| option == format!("-{short}"))
            })
        };
        for mistake in OPTIONS.iter().chain(VERBS) {
            let mut verb = mistake.verb.to_owned();
            for word in mistake.tip.split_whitespace() {
                let word = word.trim_matches(|c: char| "(),:;".contains(c));
                if let Some(named) = word.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
                    assert!(command.find_subcommand(named).is_some(), "`{named}`: {}", mistake.tip);
                    verb = named.to_owned();
                } else if word.len() > 1 && word.starts_with('-') && !mistake.words.contains(&word) {
                    let known = has(&command, word)
                        || all
                            .iter()
                            .any(|found| (verb.is_empty() || found.get_name() == verb) && has(found, word));
                    assert!(known, "{verb} {word}: {}", mistake.tip);
                }
            }
            // Where the mistaken word is an option of the verb after all, the tip is never shown.
            if let Some(found) = command.find_subcommand(mistake.verb) {
                for word in mistake.words {
                    assert!(!has(found, word), "{} has {word}", mistake.verb);
                }
            }
        }
    }
}
