//! What a `--where` expression is once it was read, and whether it holds for a record.

use std::cmp::Ordering;

use regex::bytes::Regex;

use super::parse;
use crate::view::View;

/// A checked expression. How deep it nests is bounded where it is read.
#[derive(Debug, Clone)]
pub(crate) enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    IsNull(Bytes),
    Number(Number, Comparison, i64),
    /// A text field and a number.
    Parsed(Bytes, Comparison, Literal),
    Text(Bytes, Comparison, Vec<u8>),
    Matches(Bytes, Regex),
}

/// A number as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Literal {
    Whole(i64),
    Decimal(f64),
}

/// A field that is a number, of every record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Offset,
    Timestamp,
    Partition,
    Epoch,
    ProducerId,
    ProducerEpoch,
    Size,
    KeySize,
    ValueSize,
    HeaderCount,
}

/// A field of bytes, which may be null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bytes {
    Topic,
    Key,
    Value,
    Header(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Expression {
    /// Reads an expression; a mistake is shown where it is.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::parse(text)
    }

    /// Whether it holds.
    pub(super) fn holds(&self, view: &View<'_>) -> bool {
        match self {
            Self::All(terms) => terms.iter().all(|term| term.holds(view)),
            Self::Any(terms) => terms.iter().any(|term| term.holds(view)),
            Self::Not(term) => !term.holds(view),
            Self::IsNull(field) => field.of(view).is_none(),
            Self::Number(field, comparison, number) => comparison.holds(field.of(view).cmp(number)),
            Self::Text(field, comparison, text) => match field.of(view) {
                Some(bytes) => comparison.holds(bytes.cmp(text.as_slice())),
                None => *comparison == Comparison::Unequal,
            },
            Self::Parsed(field, comparison, number) => match field.of(view).and_then(|b| order(b, *number)) {
                Some(order) => comparison.holds(order),
                None => *comparison == Comparison::Unequal,
            },
            Self::Matches(field, regex) => field.of(view).is_some_and(|bytes| regex.is_match(bytes)),
        }
    }
}

/// How the number that the bytes are stands to another; `None` where they are none.
fn order(bytes: &[u8], literal: Literal) -> Option<Ordering> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    if let (Ok(number), Literal::Whole(whole)) = (text.parse::<i64>(), literal) {
        return Some(number.cmp(&whole));
    }
    decimal(text)?.partial_cmp(&match literal {
        #[expect(clippy::cast_precision_loss, reason = "a number with a point is not exact anyway")]
        Literal::Whole(whole) => whole as f64,
        Literal::Decimal(decimal) => decimal,
    })
}

/// A number of digits, point and exponent: names such as `inf` are none.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    text.parse().ok().filter(|_| is_number)
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }

    /// The same with the sides exchanged.
    pub(super) fn turned(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            same => same,
        }
    }
}

impl Number {
    fn of(self, view: &View<'_>) -> i64 {
        let length = |bytes: Option<&[u8]>| bytes.map_or(0, |b| i64::try_from(b.len()).unwrap_or(i64::MAX));
        match self {
            Self::Offset => view.offset.value(),
            Self::Timestamp => view.timestamp.millis(),
            Self::Partition => view.partition.map_or(-1, i64::from),
            Self::Epoch => i64::from(view.batch.leader_epoch),
            Self::ProducerId => view.batch.producer_id,
            Self::ProducerEpoch => i64::from(view.batch.producer_epoch),
            Self::Size => length(view.key).saturating_add(length(view.value)),
            Self::KeySize => length(view.key),
            Self::ValueSize => length(view.value),
            Self::HeaderCount => i64::try_from(view.header_count).unwrap_or(i64::MAX),
        }
    }
}

impl Bytes {
    fn of<'a>(&self, view: &View<'a>) -> Option<&'a [u8]> {
        match self {
            Self::Topic => view.topic.map(str::as_bytes),
            Self::Key => view.key,
            Self::Value => view.value,
            Self::Header(name) => {
                view.headers.clone().filter(|header| header.key == name.as_slice()).last()?.value
            }
        }
    }
}
