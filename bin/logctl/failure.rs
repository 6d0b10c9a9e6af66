//! Why a verb did not finish, and the exit code that says so.
//!
//! Scripts depend on the codes; `logctl --help` and the table in `main.rs` list them.

use std::{borrow::Cow, fmt, io};

use stratalog::Error;

/// The exit codes of `logctl`; 2 is clap's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// Anything that has no code of its own.
    Other,
    /// The command line makes no sense.
    Usage,
    /// The target or the offset is not there.
    NotFound,
    /// Stored bytes are damaged.
    Corrupt,
    /// Another process writes to the directory.
    Locked,
    /// A broker cannot be reached, or does not answer in time.
    Unreachable,
    /// A broker refuses who asks.
    Refused,
    /// Some of several partitions failed.
    Partly,
    /// `--timeout` ran out.
    TimedOut,
    /// Ended by this signal.
    Signal(i32),
    /// Whoever read our output has gone away.
    ClosedPipe,
}

impl Code {
    /// The number that the shell sees.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Other => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Corrupt => 4,
            Self::Locked => 5,
            Self::Unreachable => 6,
            Self::Refused => 7,
            Self::Partly => 8,
            Self::TimedOut => 124,
            Self::Signal(number) => u8::try_from(number).map_or(u8::MAX, |n| 128u8.saturating_add(n)),
            Self::ClosedPipe => 141,
        }
    }
}

/// What happened, where, and what to do about it; printed by `main` and nowhere else.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: Code,
    /// What happened and where; empty for a quiet end.
    what: String,
    /// What the reader of the message can do.
    hint: Option<String>,
    /// The library's error that it comes from.
    source: Option<Box<Error>>,
}

impl Failure {
    /// A failure with its message.
    pub(crate) fn new(code: Code, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), hint: None, source: None }
    }

    /// What happened and where, without what to do about it.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// The library's error that it comes from.
    pub(crate) fn source(&self) -> Option<&Error> {
        self.source.as_deref()
    }

    /// An ordinary failure: exit code 1.
    pub(crate) fn other(what: impl Into<String>) -> Self {
        Self::new(Code::Other, what)
    }

    /// A command line that makes no sense: exit code 2.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Code::Usage, what)
    }

    /// A target or offset that is not there: exit code 3.
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::new(Code::NotFound, what)
    }

    /// A broker that cannot be reached or does not answer: exit code 6.
    pub(crate) fn unreachable(what: impl Into<String>) -> Self {
        Self::new(Code::Unreachable, what)
    }

    /// Ends with a code and without a word, because everything worth saying was said.
    pub(crate) fn quiet(code: Code) -> Self {
        Self::new(code, "")
    }

    /// Adds what to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds something that the reader should know, after the message.
    #[must_use]
    pub(crate) fn note(mut self, note: impl fmt::Display) -> Self {
        self.what = format!("{}; {note}", self.what);
        self
    }

    /// Says where it happened, in front of the message.
    #[must_use]
    pub(crate) fn at(mut self, place: impl fmt::Display) -> Self {
        let place = format!("{place}: ");
        // Many messages begin with it by themselves.
        if !self.what.is_empty() && !self.what.starts_with(&place) {
            self.what = format!("{place}{}", self.what);
        }
        self
    }

    /// A failed call on a named thing.
    pub(crate) fn io(op: &str, on: impl fmt::Display, source: &io::Error) -> Self {
        Self::other(format!("cannot {op} {on}: {source}"))
    }

    /// A failed write to standard output: a reader that went away is no failure worth a word.
    pub(crate) fn stdout(source: &io::Error) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            Self::quiet(Code::ClosedPipe)
        } else {
            Self::other(format!("cannot write standard output: {source}"))
        }
    }

    /// True for what ends a verb at once that goes over several logs: it says nothing about the one it was met at.
    pub(crate) fn ends_all(&self) -> bool {
        matches!(self.code, Code::Signal(_) | Code::TimedOut | Code::ClosedPipe | Code::Usage)
    }

    /// True where nothing is to be printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.what.is_empty()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  {hint}"),
            None => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let what = error.to_string();
        let mut failure = match &error {
            Error::NotFound { .. } => Self::not_found(what)
                .hint("name a partition directory or a .log file; `logctl append DIR --create` makes a log"),
            Error::OffsetOutOfRange { .. } => Self::not_found(what)
                .hint("`logctl info` shows the range; `-o start` reads whatever there is"),
            Error::Corrupt(_) => {
                Self::new(Code::Corrupt, what).hint("`logctl verify` lists everything that is damaged")
            }
            Error::Locked { .. } => Self::new(Code::Locked, what)
                .hint("end the other writer or wait for it; `cat`, `tail`, `get` and `info` need no lock"),
            Error::CursorInUse { .. } => {
                Self::new(Code::Locked, what).hint("end the other consumer, or take a cursor of another name")
            }
            Error::CannotLock { .. } => Self::other(what)
                .hint("writing needs a writable directory on a file system with locks; reading does not"),
            Error::UnexpectedOffset { .. } => Self::other(what)
                .hint("nothing was appended: somebody else appended, or these records are already there"),
            Error::StorageFull { .. } => Self::other(what).hint("make room on its file system"),
            Error::TooLarge { .. } => Self::other(what).hint("raise --batch-size"),
            _ => Self::other(what),
        };
        failure.source = Some(Box::new(error));
        failure
    }
}

/// A part of a message that may quote its input: its beginning, where it is long.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    const MOST_CHARS: usize = 160;
    match text.char_indices().nth(MOST_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            Cow::Owned(format!("{}... ({} bytes)", text.get(..end).unwrap_or(text), text.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_numbers() {
        let codes = [
            Code::Other,
            Code::Usage,
            Code::NotFound,
            Code::Corrupt,
            Code::Locked,
            Code::Unreachable,
            Code::Refused,
            Code::Partly,
            Code::TimedOut,
        ];
        assert_eq!(codes.map(Code::number), [1, 2, 3, 4, 5, 6, 7, 8, 124]);
        assert_eq!(Code::Signal(2).number(), 130);
        assert_eq!(Code::Signal(15).number(), 143);
        assert_eq!(Code::ClosedPipe.number(), 141);
        assert_eq!(Code::Signal(-1).number(), u8::MAX);
    }

    #[test]
    fn a_closed_pipe_is_quiet_and_a_full_device_is_not() {
        assert!(Failure::stdout(&io::Error::from(io::ErrorKind::BrokenPipe)).is_quiet());
        let full = Failure::stdout(&io::Error::from(io::ErrorKind::StorageFull));
        assert!(!full.is_quiet());
        assert_eq!(full.code, Code::Other);
    }
}
