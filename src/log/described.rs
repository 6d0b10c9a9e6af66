//! What small files hold, line by line, for people and scripts that look at them from outside.

use std::path::Path;

use super::{checkpoint, control, cursor, producers, summary, txn_index, waiters_page};
use crate::{offset::Offset, segment::FileKind, segment::SegmentFileName};

/// What a small file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Described {
    /// What could be read, in the order of the file.
    pub lines: Vec<Line>,
    /// Why the file, or what follows the lines, cannot be read.
    pub wrong: Option<String>,
}

/// An entry of a small file, or what the file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// What it is: `epoch`, `aborted-transaction`.
    pub kind: &'static str,
    /// Its fields by name, in Kafka's spelling: `startOffset`.
    pub fields: Vec<(&'static str, Fact)>,
}

/// What a field says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fact {
    /// A number.
    Number(i64),
    /// A number without a sign.
    Size(u64),
    /// Yes or no.
    Flag(bool),
    /// Text.
    Text(String),
    /// Nothing, where there might be something.
    None,
    /// A number that need not be there, where Kafka's tool prints it as Java does: `OptionalLong[7]`.
    Optional(Option<i64>),
}

impl From<Offset> for Fact {
    fn from(offset: Offset) -> Self {
        Self::Number(offset.value())
    }
}

impl From<i64> for Fact {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Fact {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Fact {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u64> for Fact {
    fn from(number: u64) -> Self {
        Self::Size(number)
    }
}

impl From<bool> for Fact {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Fact {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl Described {
    /// A file that cannot be read.
    pub(crate) fn wrong(what: impl Into<String>) -> Self {
        Self { lines: Vec::new(), wrong: Some(what.into()) }
    }

    pub(crate) fn push<const N: usize>(&mut self, kind: &'static str, fields: [(&'static str, Fact); N]) {
        self.lines.push(Line { kind, fields: fields.into() });
    }
}

/// The bytes of a file of this name, one of ours or of Kafka's beside the segments; `None` where the name is none of these.
pub(crate) fn describe(path: &Path, bytes: &[u8]) -> Option<Described> {
    let name = path.file_name()?;
    match SegmentFileName::parse(name) {
        Some(SegmentFileName { base, kind: FileKind::TxnIndex, .. }) => {
            return Some(txn_index::describe(bytes, base));
        }
        Some(SegmentFileName { kind: FileKind::Snapshot, .. }) => {
            return Some(producers::describe_snapshot(bytes));
        }
        _ => {}
    }
    Some(match name.to_str()? {
        checkpoint::CHECKPOINT_NAME => checkpoint::describe(bytes),
        summary::SUMMARY_NAME => summary::describe(bytes),
        control::CONTROL_NAME => control::describe(bytes),
        waiters_page::WAITERS_NAME => waiters_page::describe(bytes),
        name if name.starts_with(cursor::NAME_PREFIX) => cursor::describe(bytes),
        _ => return None,
    })
}
