//! Values that were given, and by whom.

use std::{collections::BTreeMap, fmt};

/// Who said so. Later ones win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a settings file.
    File {
        /// The file's name, as it was given.
        name: String,
        /// The line, from 1; 0 where it is not known.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        name: String,
    },
    /// An argument of the command line, or of a program's call.
    Flag {
        /// What it is called.
        name: String,
    },
    /// `--override KEY=VALUE`.
    Override,
}

impl Origin {
    /// The larger wins.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::File { .. } => 1,
            Self::Environment { .. } => 2,
            Self::Flag { .. } => 3,
            Self::Override => 4,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line } if *line > 0 => write!(f, "{name}:{line}"),
            Self::Environment { name } => write!(f, "environment {name}"),
            Self::File { name, .. } | Self::Flag { name } => f.write_str(name),
            Self::Override => f.write_str("--override"),
        }
    }
}

/// A value that was given, checked and in its one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

/// All that were given, by key.
pub(crate) type Values = BTreeMap<&'static str, Given>;
