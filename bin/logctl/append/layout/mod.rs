//! Templates that read: `append -f TEMPLATE`, in the percent grammar of `rpk topic produce` (franz-go's record reader).
//!
//! Lives here: the grammar, and one record out of bytes. Not here: where bytes come from; templates that print
//! (`template`). Holds always: a template is checked whole before anything is read; what comes out does not depend on
//! how the input was cut into blocks; nothing is allocated for a size before it is known to be allowed.

mod parse;
mod pattern;
mod read;

use std::borrow::Cow;

use pattern::Pattern;

/// A parsed template.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    steps: Vec<Step>,
    limit_bytes: usize,
}

#[derive(Debug, Clone)]
enum Step {
    /// These bytes, and no others.
    Exact(Vec<u8>),
    Number(NumberForm, Target),
    Text(Field, Extent, Encoding),
    /// So many times as `%H` said.
    Headers(Vec<Step>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberForm {
    /// Digits, up to what is none.
    Decimal,
    HexDigits(usize),
    BigEndian(usize),
    LittleEndian(usize),
    /// `true` or `false`.
    Bool,
    /// Nothing is read: it is always this one.
    Always(u64),
}

/// What a number is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Size(Field),
    HeaderCount,
    Timestamp,
    Offset,
    /// Read and left: the log gives records these itself.
    Unused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Topic,
    Key,
    Value,
}

/// Where a text ends.
#[derive(Debug, Clone)]
enum Extent {
    /// Before these bytes, which are taken too.
    Delimited(Vec<u8>),
    /// Where the input does.
    Rest,
    /// As its size says.
    Sized,
    Matched(Box<Pattern>),
    /// With the JSON value that it is.
    Json,
}

/// What a text has to be decoded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Plain,
    Hex,
    Base64,
    /// Without the space between its signs.
    Json,
}

/// A record that was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found<'b> {
    pub(crate) key: Option<Cow<'b, [u8]>>,
    pub(crate) value: Option<Cow<'b, [u8]>>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) timestamp: Option<i64>,
    pub(crate) offset: Option<i64>,
}

/// What the bytes begin with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome<'b> {
    /// A record, and how many bytes it takes.
    Record(Box<Found<'b>>, usize),
    /// The beginning of one.
    More,
    /// There is no other.
    End,
}

impl Layout {
    /// Reads a template; for clap.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::parse(text).map(|steps| Self { steps, limit_bytes: usize::MAX })
    }

    /// Nothing larger is read.
    pub(crate) fn limit(&mut self, limit_bytes: usize) {
        self.limit_bytes = limit_bytes;
    }

    /// True where records bring offsets.
    pub(crate) fn has_offsets(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Number(_, Target::Offset)))
    }

    /// Reads the record at the front of `bytes`; `is_all`: nothing comes behind them. The error says what is wrong, at
    /// which byte.
    pub(crate) fn read<'b>(&mut self, bytes: &'b [u8], is_all: bool) -> Result<Outcome<'b>, String> {
        read::record(self, bytes, is_all)
    }
}

#[cfg(test)]
mod tests;
