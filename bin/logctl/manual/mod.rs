//! What `logctl help TOPIC` prints, and the pages of `logctl man`.
//!
//! Lives here: the texts that belong to no single verb (a file each in `topics/`), the table of exit codes, and how a
//! text becomes a manual page.
//! Not here: the verbs `help` and `man`; a verb's own description, options and examples, which stand beside its options
//! and reach its page from there.
//! Holds always: a text has one source, whether `help` prints it, `--help`, or a page. A short line that ends with a
//! colon is a heading; what is indented is printed as it stands. Each command in an indented line is run by a test.

pub(crate) mod exit_codes;
pub(crate) mod roff;

use std::borrow::Cow;

/// A text about something that several verbs share.
pub(crate) struct Topic {
    /// What it is asked for by: `logctl help NAME`, `logctl-NAME(7)`.
    pub(crate) name: &'static str,
    /// What it is about, in half a line.
    pub(crate) summary: &'static str,
    text: Text,
}

enum Text {
    Written(&'static str),
    /// Put together from a table of the code.
    Made(fn() -> String),
}

/// Every topic, in the order in which they are listed.
pub(crate) const TOPICS: &[Topic] = &[
    Topic {
        name: "recipes",
        summary: "common tasks, and the commands for them",
        text: Text::Written(include_str!("topics/recipes.txt")),
    },
    Topic {
        name: "offsets",
        summary: "how to say which records",
        text: Text::Written(include_str!("topics/offsets.txt")),
    },
    Topic {
        name: "time",
        summary: "how to write points and spans of time, and sizes",
        text: Text::Written(include_str!("topics/time.txt")),
    },
    Topic {
        name: "templates",
        summary: "how to print records in a form of your own",
        text: Text::Written(include_str!("topics/templates.txt")),
    },
    Topic {
        name: "formats",
        summary: "what is read and written: lines, JSON, raw bytes, tables",
        text: Text::Written(include_str!("topics/formats.txt")),
    },
    Topic {
        name: "brokers",
        summary: "how to work on brokers, instead of directories",
        text: Text::Written(include_str!("topics/brokers.txt")),
    },
    Topic { name: "exit-codes", summary: "what the exit codes mean", text: Text::Made(exit_codes::topic) },
    Topic {
        name: "files",
        summary: "what lies in a data directory and in a partition",
        text: Text::Written(include_str!("topics/files.txt")),
    },
];

impl Topic {
    /// The topic of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        TOPICS.iter().find(|topic| topic.name == name)
    }

    /// Its text, which ends with a newline.
    pub(crate) fn text(&self) -> Cow<'static, str> {
        match self.text {
            Text::Written(text) => Cow::Borrowed(text),
            Text::Made(make) => Cow::Owned(make()),
        }
    }
}

/// A line for each topic, as help lists them.
pub(crate) fn topic_list() -> String {
    let width = TOPICS.iter().map(|topic| topic.name.len()).max().unwrap_or(0);
    let lines = TOPICS.iter().map(|topic| format!("  {:width$}  {}\n", topic.name, topic.summary));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_a_terminal() {
        for topic in TOPICS {
            let text = topic.text();
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{}", topic.name);
            for line in text.lines() {
                assert!(line.len() <= 100, "{}: {line}", topic.name);
                assert_eq!(line, line.trim_end(), "{}", topic.name);
                assert!(!line.contains('\t'), "{}: {line}", topic.name);
            }
        }
    }
}
