//! Templates: how `--format` and `--report` print a record, in the percent grammar of `rpk` (franz-go's record
//! formatter), with kcat's `%s %S %R` as synonyms.
//!
//! Lives here: the grammar and the printing of one record. Not here: which records. Holds always: a template is
//! checked whole before the first record is printed, and printing cannot fail.

mod number;
mod parse;

use stratalog::record::{Codec, TimestampType};

use crate::{
    json,
    output::{push_decimal, push_foreign},
    view::{BatchView, View},
};
use number::NumberFormat;

/// A parsed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Text(Text, TextFormat),
    Number(Number, NumberFormat),
    /// A timestamp by strftime, in UTC.
    Time(String),
    Headers(Vec<HeaderPart>),
    /// kcat's `%h`: `name=value,name=value`.
    HeaderList,
    Codec(Option<NumberFormat>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HeaderPart {
    Literal(Vec<u8>),
    Key(TextFormat),
    Value(TextFormat),
    KeyLength(NumberFormat),
    ValueLength(NumberFormat),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Topic,
    Key,
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextFormat {
    Plain,
    Hex,
    Base64,
    Base64Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    TopicLength,
    KeyLength,
    ValueLength,
    /// kcat's length: -1 for null.
    ValueLengthOrNull,
    HeaderCount,
    Partition,
    Offset,
    LeaderEpoch,
    Timestamp,
    ProducerId,
    ProducerEpoch,
    Iteration,
    TimestampType,
    Transactional,
    Control,
}

impl Template {
    /// Reads a template; for clap.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::parse(text).map(Self)
    }

    /// Appends the `iteration`-th record (counted from 1). `escape`: see [`push_foreign`].
    pub(crate) fn render(&self, view: &View<'_>, iteration: u64, escape: bool, out: &mut Vec<u8>) {
        for part in &self.0 {
            match part {
                Part::Literal(bytes) => out.extend_from_slice(bytes),
                Part::Text(text, format) => {
                    let bytes = match text {
                        Text::Topic => view.topic.map(str::as_bytes),
                        Text::Key => view.key,
                        Text::Value => view.value,
                    };
                    format.push(out, bytes.unwrap_or_default(), escape);
                }
                Part::Number(number, format) => format.push(out, number.of(view, iteration)),
                Part::Time(strftime) => push_time(out, view.timestamp.millis(), strftime),
                Part::Headers(parts) => push_headers(out, view, parts, escape),
                Part::HeaderList => push_header_list(out, view, escape),
                Part::Codec(None) => {
                    out.extend_from_slice(view.batch.codec.map_or("unknown", Codec::name).as_bytes());
                }
                Part::Codec(Some(format)) => {
                    format.push(out, view.batch.codec.map_or(-1, |c| i64::from(c.id())));
                }
            }
        }
    }
}

fn push_headers(out: &mut Vec<u8>, view: &View<'_>, parts: &[HeaderPart], escape: bool) {
    for header in view.headers.clone() {
        let value = header.value.unwrap_or_default();
        for part in parts {
            match part {
                HeaderPart::Literal(bytes) => out.extend_from_slice(bytes),
                HeaderPart::Key(format) => format.push(out, header.key, escape),
                HeaderPart::Value(format) => format.push(out, value, escape),
                HeaderPart::KeyLength(format) => format.push(out, length(Some(header.key))),
                HeaderPart::ValueLength(format) => format.push(out, length(Some(value))),
            }
        }
    }
}

fn push_header_list(out: &mut Vec<u8>, view: &View<'_>, escape: bool) {
    for (index, header) in view.headers.clone().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_foreign(out, header.key, escape);
        out.push(b'=');
        push_foreign(out, header.value.unwrap_or(b"NULL"), escape);
    }
}

fn push_time(out: &mut Vec<u8>, millis: i64, strftime: &str) {
    let text = jiff::Timestamp::from_millisecond(millis)
        .and_then(|at| jiff::fmt::strtime::format(strftime, &at.to_zoned_datetime(jiff::tz::TimeZone::UTC)));
    match text {
        Ok(text) => out.extend_from_slice(text.as_bytes()),
        // Timestamps are any i64; years past 9999 have no calendar here.
        Err(_) => push_decimal(out, millis),
    }
}

fn length(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(0, |b| i64::try_from(b.len()).unwrap_or(i64::MAX))
}

impl Number {
    fn of(self, view: &View<'_>, iteration: u64) -> i64 {
        let BatchView {
            leader_epoch,
            timestamp_type,
            producer_id,
            producer_epoch,
            is_transactional,
            is_control,
            ..
        } = view.batch;
        match self {
            Self::TopicLength => length(view.topic.map(str::as_bytes)),
            Self::KeyLength => length(view.key),
            Self::ValueLength => length(view.value),
            Self::ValueLengthOrNull => view.value.map_or(-1, |v| length(Some(v))),
            Self::HeaderCount => i64::try_from(view.header_count).unwrap_or(i64::MAX),
            Self::Partition => view.partition.map_or(-1, i64::from),
            Self::Offset => view.offset.value(),
            Self::LeaderEpoch => i64::from(leader_epoch),
            Self::Timestamp => view.timestamp.millis(),
            Self::ProducerId => producer_id,
            Self::ProducerEpoch => i64::from(producer_epoch),
            Self::Iteration => i64::try_from(iteration).unwrap_or(i64::MAX),
            Self::TimestampType => i64::from(timestamp_type == TimestampType::LogAppendTime),
            Self::Transactional => i64::from(is_transactional),
            Self::Control => i64::from(is_control),
        }
    }
}

impl TextFormat {
    fn push(self, out: &mut Vec<u8>, bytes: &[u8], escape: bool) {
        match self {
            Self::Plain => push_foreign(out, bytes, escape),
            Self::Hex => {
                for byte in bytes {
                    out.extend([byte >> 4, byte & 15].map(|n| b"0123456789abcdef"[usize::from(n)]));
                }
            }
            Self::Base64 => json::base64_encode(bytes, out),
            Self::Base64Raw => {
                json::base64_encode(bytes, out);
                // What was there before cannot end in padding that is ours: cut at most the two that may be.
                let padding = (3 - bytes.len() % 3) % 3;
                out.truncate(out.len() - padding);
            }
        }
    }
}

#[cfg(test)]
mod tests;
