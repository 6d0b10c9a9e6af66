//! Templates: how `--format` and `--report` print a record, in the percent grammar of `rpk` (franz-go's record
//! formatter), with kcat's `%s %S %R` as synonyms.
//!
//! Lives here: the grammar and the printing of one record. Not here: which records; templates that read input
//! (`append/layout`). Holds always: a template is checked whole before the first record is printed, and printing cannot
//! fail.

mod go_time;
mod number;
mod parse;
mod unpack;

use stratalog::record::{Codec, TimestampType};

use crate::{
    decode::{Form, TextStyle, push_hex},
    json,
    output::{push_decimal, push_foreign},
    view::{BatchView, View},
};
use go_time::GoLayout;
use number::NumberFormat;
pub(crate) use parse::between;
pub(crate) use unpack::{Unpack, push_integer};

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
    GoTime(GoLayout),
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

#[derive(Debug, Clone, PartialEq, Eq)]
enum TextFormat {
    /// As `--decode` says, or as it is.
    Plain,
    Hex,
    Base64,
    Base64Raw,
    Unpack(Unpack),
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
    LogStart,
    StableEnd,
    LogEnd,
    TimestampType,
    Transactional,
    Control,
}

impl Template {
    /// Reads a template; for clap.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::parse(text).map(Self)
    }

    /// True where it prints the end of what is decided, which has to be looked for.
    pub(crate) fn wants_stable_end(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Number(Number::StableEnd, _)))
    }

    /// Appends the `iteration`-th record (counted from 1).
    pub(crate) fn render(&self, view: &View<'_>, iteration: u64, style: &TextStyle, out: &mut Vec<u8>) {
        let number = |out: &mut Vec<u8>, format: &NumberFormat, number: i64| {
            if style.escape && format.is_raw() {
                let mut raw = Vec::new();
                format.push(&mut raw, number);
                push_foreign(out, &raw, true);
            } else {
                format.push(out, number);
            }
        };
        for part in &self.0 {
            match part {
                Part::Literal(bytes) => out.extend_from_slice(bytes),
                Part::Text(Text::Topic, format) => {
                    format.push(out, view.topic.map(str::as_bytes), &Form::Plain, style);
                }
                Part::Text(Text::Key, format) => format.push(out, view.key, &style.decode.key, style),
                Part::Text(Text::Value, format) => format.push(out, view.value, &style.decode.value, style),
                Part::Number(field, format) => number(out, format, field.of(view, iteration)),
                Part::Time(strftime) => push_time(out, view.timestamp.millis(), strftime),
                Part::GoTime(layout) => push_go_time(out, view.timestamp.millis(), layout),
                Part::Headers(parts) => push_headers(out, view, parts, style, number),
                Part::HeaderList => push_header_list(out, view, style),
                Part::Codec(None) => {
                    out.extend_from_slice(view.batch.codec.map_or("unknown", Codec::name).as_bytes());
                }
                Part::Codec(Some(format)) => {
                    number(out, format, view.batch.codec.map_or(-1, |c| i64::from(c.id())));
                }
            }
        }
    }
}

fn push_headers(
    out: &mut Vec<u8>,
    view: &View<'_>,
    parts: &[HeaderPart],
    style: &TextStyle,
    number: impl Fn(&mut Vec<u8>, &NumberFormat, i64),
) {
    for header in view.headers.clone() {
        for part in parts {
            match part {
                HeaderPart::Literal(bytes) => out.extend_from_slice(bytes),
                HeaderPart::Key(format) => format.push(out, Some(header.key), &Form::Plain, style),
                HeaderPart::Value(format) => format.push(out, header.value, &style.decode.header, style),
                HeaderPart::KeyLength(format) => number(out, format, length(Some(header.key))),
                HeaderPart::ValueLength(format) => number(out, format, length(header.value)),
            }
        }
    }
}

fn push_header_list(out: &mut Vec<u8>, view: &View<'_>, style: &TextStyle) {
    for (index, header) in view.headers.clone().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_foreign(out, header.key, style.escape);
        out.push(b'=');
        match header.value {
            None => out.extend_from_slice(b"NULL"),
            Some(value) => style.decode.header.push_text(out, value, style.escape),
        }
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

fn push_go_time(out: &mut Vec<u8>, millis: i64, layout: &GoLayout) {
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(at) => layout.push(out, jiff::tz::TimeZone::UTC.to_datetime(at)),
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
            Self::LogStart => view.ends.start,
            Self::StableEnd => view.ends.stable,
            Self::LogEnd => view.ends.end,
            Self::Iteration => i64::try_from(iteration).unwrap_or(i64::MAX),
            Self::TimestampType => i64::from(timestamp_type == TimestampType::LogAppendTime),
            Self::Transactional => i64::from(is_transactional),
            Self::Control => i64::from(is_control),
        }
    }
}

impl TextFormat {
    /// `decoded`: what [`TextFormat::Plain`] means for this field.
    fn push(&self, out: &mut Vec<u8>, bytes: Option<&[u8]>, decoded: &Form, style: &TextStyle) {
        let Some(bytes) = bytes else {
            out.extend_from_slice(style.null);
            return;
        };
        match self {
            Self::Plain => decoded.push_text(out, bytes, style.escape),
            Self::Hex => push_hex(out, bytes),
            Self::Base64 => json::base64_encode(bytes, out),
            Self::Base64Raw => {
                json::base64_encode(bytes, out);
                // What was there before cannot end in padding that is ours: cut at most the two that may be.
                let padding = (3 - bytes.len() % 3) % 3;
                out.truncate(out.len() - padding);
            }
            Self::Unpack(unpack) => unpack.push(out, bytes, style.escape),
        }
    }
}

#[cfg(test)]
mod tests;
