//! Records out of bytes: lines, JSON lines, rows, what a template says, or the whole input.

use memchr::{memchr_iter, memmem};
use stratalog::{
    Offset, Timestamp,
    record::{Header, Record},
};

use super::{
    layout::{Found, Layout, Outcome},
    options::{Args, InputFormat},
};
use crate::{
    csv::{CsvReader, Row},
    failure::Failure,
    json::JsonLine,
};

/// A record with the offset that it brought, if it is to keep it.
pub(super) type Placed<'r> = (Record<'r>, Option<Offset>);

/// Takes a record and the number of the line that it came from.
pub(super) type Push<'p> = dyn FnMut(Placed<'_>, u64) -> Result<(), Failure> + 'p;

/// Cuts input into records.
pub(super) struct Records {
    format: Format,
    delim: Vec<u8>,
    /// What has come and is not a whole line yet.
    partial: Vec<u8>,
    /// So much of it has been searched for the delimiter.
    searched: usize,
    limit_bytes: usize,
    line_number: u64,
    shape: Shape,
}

/// What the input is made of.
enum Format {
    Lines,
    Jsonl,
    Raw,
    /// Whether what was searched so far ends inside of quotes.
    Csv(CsvReader, bool),
    Layout(Box<Layout>),
}

/// How a line becomes a record.
struct Shape {
    key_sep: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
    headers: Vec<(String, Vec<u8>)>,
    null: bool,
    timestamp: Option<Timestamp>,
    preserve: bool,
}

impl Records {
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        let is_lines = matches!(args.format, InputFormat::Lines);
        if matches!(args.format, InputFormat::Jsonl) && (args.key.is_some() || args.null) {
            return Err(Failure::usage(
                "--key and --null are not for JSON lines, which bring their own keys and nulls",
            ));
        }
        if !is_lines && args.key_sep.is_some() {
            return Err(Failure::usage("--key-sep splits lines: it goes with --format lines alone"));
        }
        if !is_lines && args.delim.is_some() {
            return Err(Failure::usage("--delim ends lines: it goes with --format lines alone"));
        }
        let brings_offsets = match &args.format {
            InputFormat::Jsonl | InputFormat::Csv => true,
            InputFormat::Lines | InputFormat::Raw => false,
            InputFormat::Layout(layout) => layout.has_offsets(),
        };
        if args.preserve && !brings_offsets {
            return Err(Failure::usage(
                "--preserve needs input that brings offsets: --format jsonl or csv, or a template with %o",
            ));
        }
        // A byte of a record takes six of JSON at most (`\u0001`), fewer elsewhere; names and numbers come on top.
        let limit = usize::try_from(args.batch_limit()).unwrap_or(usize::MAX);
        let encoded_limit = limit.saturating_mul(6).saturating_add(64 << 10);
        let (format, limit_bytes) = match &args.format {
            InputFormat::Lines => (Format::Lines, limit),
            InputFormat::Raw => (Format::Raw, limit),
            InputFormat::Jsonl => (Format::Jsonl, encoded_limit),
            InputFormat::Csv => (Format::Csv(CsvReader::default(), false), encoded_limit),
            InputFormat::Layout(layout) => {
                let mut layout = layout.clone();
                layout.limit(encoded_limit);
                (Format::Layout(layout), encoded_limit)
            }
        };
        let delim = args.delim.as_ref().map_or_else(|| b"\n".to_vec(), |delim| delim.0.clone());
        Ok(Self {
            format,
            delim,
            partial: Vec::new(),
            searched: 0,
            limit_bytes,
            line_number: 0,
            shape: Shape {
                key_sep: args.key_sep.as_ref().map(|sep| sep.0.clone()),
                key: args.key.as_ref().map(|key| key.as_bytes().to_vec()),
                headers: args.header.iter().map(|(n, v)| (n.clone(), v.as_bytes().to_vec())).collect(),
                null: args.null,
                timestamp: args.timestamp,
                preserve: args.preserve,
            },
        })
    }

    /// Takes bytes; gives every record that is whole now.
    pub(super) fn feed(&mut self, block: &[u8], push: &mut Push<'_>) -> Result<(), Failure> {
        match self.format {
            Format::Lines | Format::Jsonl => {}
            Format::Raw => {
                self.partial.extend_from_slice(block);
                return self.check_length();
            }
            Format::Csv(..) => return self.feed_rows(block, push),
            Format::Layout(_) => {
                self.partial.extend_from_slice(block);
                return self.take_found(false, push);
            }
        }
        let is_json = matches!(self.format, Format::Jsonl);
        let mut rest = block;
        if let [delim] = *self.delim {
            // One byte ends a line, so only the first line can have begun in an earlier block.
            if !self.partial.is_empty() {
                let Some(end) = memchr::memchr(delim, rest) else { return self.keep(rest) };
                let (head, tail) = rest.split_at(end);
                self.partial.extend_from_slice(head);
                self.take_partial(push)?;
                rest = tail.get(1..).unwrap_or_default();
            }
            let mut begin = 0;
            for end in memchr_iter(delim, rest) {
                self.line_number += 1;
                let line = rest.get(begin..end).unwrap_or_default();
                begin = end + 1;
                self.shape.push(is_json, line, self.line_number, push)?;
            }
            return self.keep(rest.get(begin..).unwrap_or_default());
        }
        self.keep_unchecked(rest);
        let lines = std::mem::take(&mut self.partial);
        let mut begin = 0;
        let mut from = self.searched.saturating_sub(self.delim.len() - 1);
        while let Some(found) = memmem::find(lines.get(from..).unwrap_or_default(), &self.delim) {
            let line = lines.get(begin..from + found).unwrap_or_default();
            begin = from + found + self.delim.len();
            from = begin;
            self.line_number += 1;
            self.shape.push(is_json, line, self.line_number, push)?;
        }
        self.partial = lines;
        self.partial.drain(..begin);
        self.searched = self.partial.len();
        self.check_length()
    }

    /// Rows may hold newlines, in quotes.
    fn feed_rows(&mut self, block: &[u8], push: &mut Push<'_>) -> Result<(), Failure> {
        self.partial.extend_from_slice(block);
        let Format::Csv(reader, in_quotes) = &mut self.format else { return Ok(()) };
        let rows = std::mem::take(&mut self.partial);
        let mut begin = 0;
        while let Some(end) = CsvReader::row_end(&rows, self.searched, in_quotes) {
            self.line_number += 1;
            self.shape.push_row(reader, rows.get(begin..end).unwrap_or_default(), self.line_number, push)?;
            begin = end + 1;
            self.searched = begin;
        }
        self.partial = rows;
        self.partial.drain(..begin);
        self.searched = self.partial.len();
        self.check_length()
    }

    /// Gives what the template finds.
    fn take_found(&mut self, is_all: bool, push: &mut Push<'_>) -> Result<(), Failure> {
        let Format::Layout(layout) = &mut self.format else { return Ok(()) };
        let bytes = std::mem::take(&mut self.partial);
        let mut begin = 0;
        loop {
            let number = self.line_number + 1;
            match layout.read(bytes.get(begin..).unwrap_or_default(), is_all) {
                Ok(Outcome::Record(found, taken)) => {
                    self.line_number = number;
                    self.shape.push_found(&found, number, push)?;
                    begin += taken;
                }
                Ok(Outcome::More | Outcome::End) => break,
                Err(what) => {
                    return Err(Failure::other(format!("record {number}, {what}")).hint(
                        "bytes are counted from where the record begins; the records before it are appended",
                    ));
                }
            }
        }
        self.partial = bytes;
        self.partial.drain(..begin);
        self.check_length()
    }

    /// A file ended: what is left is its last record.
    pub(super) fn end_of_file(&mut self, push: &mut Push<'_>) -> Result<(), Failure> {
        if let Format::Layout(_) = self.format {
            self.take_found(true, push)?;
            self.partial.clear();
            return Ok(());
        }
        if !self.partial.is_empty() || matches!(self.format, Format::Raw) {
            self.searched = 0;
            self.take_partial(push)?;
        }
        if let Format::Csv(reader, in_quotes) = &mut self.format {
            // The next file has names of its own.
            (*reader, *in_quotes) = (CsvReader::default(), false);
        }
        Ok(())
    }

    fn take_partial(&mut self, push: &mut Push<'_>) -> Result<(), Failure> {
        self.line_number += 1;
        let pushed = match &mut self.format {
            Format::Csv(reader, _) => self.shape.push_row(reader, &self.partial, self.line_number, push),
            format => {
                let is_json = matches!(format, Format::Jsonl);
                self.shape.push(is_json, &self.partial, self.line_number, push)
            }
        };
        self.partial.clear();
        self.partial.shrink_to(1 << 20);
        pushed
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.keep_unchecked(bytes);
        self.check_length()
    }

    fn keep_unchecked(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
    }

    fn check_length(&self) -> Result<(), Failure> {
        if self.partial.len() <= self.limit_bytes {
            return Ok(());
        }
        let what = match self.format {
            Format::Raw => "the record".to_owned(),
            Format::Layout(_) => format!("record {}", self.line_number + 1),
            Format::Csv(..) => format!("row {}", self.line_number + 1),
            _ => format!("line {}", self.line_number + 1),
        };
        Err(Failure::other(format!(
            "{what} is longer than {} bytes, the most that a batch may have",
            self.limit_bytes
        ))
        .hint("raise --max-batch-bytes, or say with -D or a template what ends a record"))
    }
}

impl Shape {
    #[inline]
    fn push(&self, is_json: bool, line: &[u8], number: u64, push: &mut Push<'_>) -> Result<(), Failure> {
        if is_json {
            return self.push_json(line, number, push);
        }
        let (key, value) = match &self.key_sep {
            None => (None, line),
            Some(sep) => match memmem::find(line, sep) {
                None => (None, line),
                Some(at) => {
                    let (key, rest) = line.split_at(at);
                    (Some(key), rest.get(sep.len()..).unwrap_or_default())
                }
            },
        };
        let mut record = Record::new();
        record.key = key.or(self.key.as_deref());
        record.value = Some(value).filter(|value| !(self.null && value.is_empty()));
        record.timestamp = self.timestamp;
        if self.headers.is_empty() {
            return push((record, None), number);
        }
        let headers: Vec<Header<'_>> = self.fixed_headers().collect();
        push((record.headers(&headers), None), number)
    }

    #[inline(never)]
    fn push_json(&self, line: &[u8], number: u64, push: &mut Push<'_>) -> Result<(), Failure> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let wrong = |reason: &dyn std::fmt::Display| {
            Failure::other(format!("line {number}, {reason}")).hint(
                "each line is a record as `logctl cat -J` prints it; the lines before this one are appended",
            )
        };
        let json = JsonLine::parse(line).map_err(|e| wrong(&e))?;
        let mut headers: Vec<Header<'_>> =
            json.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect();
        headers.extend(self.fixed_headers());
        let mut record = Record::new().headers(&headers);
        record.key = json.key.as_deref();
        record.value = json.value.as_deref();
        record.timestamp = json.timestamp.map(Timestamp::from_millis).or(self.timestamp);
        let offset = self.offset(json.offset).map_err(|e| wrong(&format!("column 1: {e}")))?;
        push((record, offset), number)
    }

    /// The offset that a record is to keep.
    fn offset(&self, brought: Option<i64>) -> Result<Option<Offset>, &'static str> {
        match brought.and_then(Offset::new) {
            _ if !self.preserve => Ok(None),
            // The last of all offsets is no record's: a log's end lies behind its last record.
            Some(offset) if offset < Offset::MAX => Ok(Some(offset)),
            _ => Err("--preserve needs an `offset` from 0 to 9223372036854775806"),
        }
    }

    #[inline(never)]
    fn push_row(
        &self,
        reader: &mut CsvReader,
        line: &[u8],
        number: u64,
        push: &mut Push<'_>,
    ) -> Result<(), Failure> {
        let wrong = |reason: &str| {
            Failure::other(format!("row {number}: {reason}"))
                .hint("the first row names the columns, as `logctl cat --csv` prints them; the rows before this one are appended")
        };
        let Some(row) = reader.row(line).map_err(|e| wrong(&e))? else { return Ok(()) };
        let Row { offset, timestamp, key, value, headers } = row;
        let offset = self.offset(offset).map_err(wrong)?;
        let brought = headers.iter().map(|(key, value)| Header { key, value: value.as_deref() });
        let headers: Vec<Header<'_>> = brought.chain(self.fixed_headers()).collect();
        push((self.record(key.as_deref(), value.as_deref(), timestamp).headers(&headers), offset), number)
    }

    #[inline(never)]
    fn push_found(&self, found: &Found<'_>, number: u64, push: &mut Push<'_>) -> Result<(), Failure> {
        let offset =
            self.offset(found.offset).map_err(|e| Failure::other(format!("record {number}: {e}")))?;
        let brought = found.headers.iter().map(|(key, value)| Header { key, value: Some(value) });
        let headers: Vec<Header<'_>> = brought.chain(self.fixed_headers()).collect();
        // A template without a value reads keys of empty values.
        let value = found.value.as_deref().unwrap_or_default();
        push(
            (self.record(found.key.as_deref(), Some(value), found.timestamp).headers(&headers), offset),
            number,
        )
    }

    fn record<'r>(
        &'r self,
        key: Option<&'r [u8]>,
        value: Option<&'r [u8]>,
        timestamp: Option<i64>,
    ) -> Record<'r> {
        let mut record = Record::new();
        record.key = key.or(self.key.as_deref());
        record.value = value.filter(|value| !(self.null && value.is_empty()));
        record.timestamp = timestamp.map(Timestamp::from_millis).or(self.timestamp);
        record
    }

    fn fixed_headers(&self) -> impl Iterator<Item = Header<'_>> {
        self.headers.iter().map(|(key, value)| Header { key, value: Some(value) })
    }
}

#[cfg(test)]
mod tests;
