//! Records out of bytes: lines, JSON lines, or the whole input.

use memchr::{memchr_iter, memmem};
use stratalog::{
    Offset, Timestamp,
    record::{Header, Record},
};

use super::options::{Args, InputFormat};
use crate::{failure::Failure, json::JsonLine};

/// A record with the offset that it brought, if it is to keep it.
pub(super) type Placed<'r> = (Record<'r>, Option<Offset>);

/// Takes a record and the number of the line that it came from.
pub(super) type Push<'p> = dyn FnMut(Placed<'_>, u64) -> Result<(), Failure> + 'p;

/// Cuts input into records.
pub(super) struct Records {
    format: InputFormat,
    delim: Vec<u8>,
    /// What has come and is not a whole line yet.
    partial: Vec<u8>,
    /// So much of it has been searched for the delimiter.
    searched: usize,
    limit_bytes: usize,
    line_number: u64,
    shape: Shape,
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
        let is_lines = args.format == InputFormat::Lines;
        if args.format == InputFormat::Jsonl && (args.key_sep.is_some() || args.key.is_some() || args.null) {
            return Err(Failure::usage(
                "--key-sep, --key and --null belong to lines: JSON lines bring their own keys",
            ));
        }
        if args.preserve && args.format != InputFormat::Jsonl {
            return Err(Failure::usage("--preserve needs --format jsonl: only JSON lines bring offsets"));
        }
        // A byte of a record takes six of JSON at most (`\u0001`); names and numbers come on top.
        let limit = usize::try_from(args.batch_limit()).unwrap_or(usize::MAX);
        let limit_bytes = if is_lines || args.format == InputFormat::Raw {
            limit
        } else {
            limit.saturating_mul(6).saturating_add(64 << 10)
        };
        Ok(Self {
            format: args.format,
            delim: if is_lines { args.delim.0.clone() } else { b"\n".to_vec() },
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
        if self.format == InputFormat::Raw {
            self.partial.extend_from_slice(block);
            return self.check_length();
        }
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
                self.shape.push(self.format, line, self.line_number, push)?;
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
            self.shape.push(self.format, line, self.line_number, push)?;
        }
        self.partial = lines;
        self.partial.drain(..begin);
        self.searched = self.partial.len();
        self.check_length()
    }

    /// A file ended: what is left is its last record.
    pub(super) fn end_of_file(&mut self, push: &mut Push<'_>) -> Result<(), Failure> {
        if self.partial.is_empty() && self.format != InputFormat::Raw {
            return Ok(());
        }
        self.searched = 0;
        self.take_partial(push)
    }

    fn take_partial(&mut self, push: &mut Push<'_>) -> Result<(), Failure> {
        self.line_number += 1;
        let pushed = self.shape.push(self.format, &self.partial, self.line_number, push);
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
            InputFormat::Raw => "the record".to_owned(),
            _ => format!("line {}", self.line_number + 1),
        };
        Err(Failure::other(format!(
            "{what} is longer than {} bytes, the most that a batch may have",
            self.limit_bytes
        ))
        .hint("raise --max-batch-bytes, or say with -D what ends a record"))
    }
}

impl Shape {
    #[inline]
    fn push(
        &self,
        format: InputFormat,
        line: &[u8],
        number: u64,
        push: &mut Push<'_>,
    ) -> Result<(), Failure> {
        if format == InputFormat::Jsonl {
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
        let offset = match (self.preserve, json.offset.map(Offset::new)) {
            (false, _) => None,
            // The last of all offsets is no record's: a log's end lies behind its last record.
            (true, Some(Some(offset))) if offset < Offset::MAX => Some(offset),
            (true, _) => {
                return Err(wrong(&"column 1: --preserve needs an `offset` from 0 to 9223372036854775806"));
            }
        };
        push((record, offset), number)
    }

    fn fixed_headers(&self) -> impl Iterator<Item = Header<'_>> {
        self.headers.iter().map(|(key, value)| Header { key, value: Some(value) })
    }
}

#[cfg(test)]
mod tests;
