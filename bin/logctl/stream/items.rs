//! What a stream holds, one thing after the other: batches, messages of old formats, records of lines and rows.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, BufRead, BufReader, Cursor, Read},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use stratalog::record::{BatchError, BatchRef, Codec, OldMessage, PROBE_BYTES, probe};

use super::{Format, pack};
use crate::{
    csv::CsvReader,
    failure::{Code, Failure},
    json::JsonLine,
};

const BUFFER_BYTES: usize = 256 << 10;
/// What is kept of the buffer from one thing to the next.
const KEPT_BYTES: usize = 4 << 20;

/// One thing of a stream.
pub(crate) enum Item<'a> {
    /// Whole and with a CRC that fits.
    Batch(BatchRef<'a>),
    /// Of format 0 or 1, with a CRC that fits. It may wrap others.
    Old(OldMessage<'a>),
    Record(JsonLine<'a>),
}

/// A stream whose first bytes were looked at.
pub(crate) struct Opened {
    name: String,
    from: Box<dyn BufRead>,
    format: Format,
    limits: Limits,
    read_bytes: Arc<AtomicU64>,
}

/// How much of a stream is held at a time: what it claims, or does not end, takes no more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Of a batch.
    pub(crate) batch_bytes: u32,
    /// Of a line, or of a row.
    pub(crate) line_bytes: usize,
}

impl Opened {
    /// Opens a file, or standard input where there is none; `format` and `codec` are found out where they are not given.
    /// `read_bytes` counts what is read, packed as it is.
    pub(crate) fn new(
        path: Option<&Path>,
        format: Option<Format>,
        codec: Option<Codec>,
        limits: Limits,
        read_bytes: &Arc<AtomicU64>,
    ) -> Result<Self, Failure> {
        let name = path.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
        let fail = |error: io::Error| not_read(&name, &error);
        let from: Box<dyn Read> = match path {
            None => Box::new(io::stdin().lock()),
            Some(path) => match File::open(path) {
                Ok(file) => Box::new(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(Failure::not_found(format!("no such file: {name}")));
                }
                Err(error) => return Err(Failure::io("open", &name, &error)),
            },
        };
        let counted = Counted { from, read_bytes: Arc::clone(read_bytes) };
        let (head, from) = with_head(BufReader::with_capacity(BUFFER_BYTES, counted)).map_err(fail)?;
        let codec = codec.unwrap_or_else(|| pack::codec_of(&head));
        let (head, from) = pack::unpack(from, codec).and_then(with_head).map_err(fail)?;
        let format = format.unwrap_or_else(|| Format::of(&head));
        Ok(Self { name, from, format, limits, read_bytes: Arc::clone(read_bytes) })
    }

    pub(crate) fn items(self) -> Items {
        Items {
            stream: self,
            position: 0,
            begin: 0,
            lines: 0,
            begin_line: 0,
            rows: CsvReader::default(),
            buffer: Vec::new(),
        }
    }
}

/// The first bytes, and the stream with them.
fn with_head(mut from: impl BufRead + 'static) -> io::Result<(Vec<u8>, Box<dyn BufRead>)> {
    let mut head = Vec::new();
    from.by_ref().take(pack::HEAD_BYTES as u64).read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(from);
    Ok((head, Box::new(whole)))
}

struct Counted {
    from: Box<dyn Read>,
    read_bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The walk over a stream: lends one thing after the other.
pub(crate) struct Items {
    stream: Opened,
    /// Bytes that were taken, unpacked.
    position: u64,
    /// Where the present item begins.
    begin: u64,
    lines: u64,
    begin_line: u64,
    rows: CsvReader,
    buffer: Vec<u8>,
}

impl Items {
    /// Where the item last given begins, or the one that could not be.
    pub(crate) fn place(&self) -> String {
        match self.stream.format {
            Format::Raw => format!("{} at byte {}", self.stream.name, self.begin),
            Format::Jsonl | Format::Csv => format!("{} line {}", self.stream.name, self.begin_line),
        }
    }

    /// The bytes of the item last given, where it is a batch, a message or a line.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Bytes that were read so far of this stream and those before it, as they lie in files.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.stream.read_bytes.load(Ordering::Relaxed)
    }

    /// The next item; `None` at the end of the stream. A batch is checked: its length, CRC and counts.
    pub(crate) fn next_item(&mut self) -> Result<Option<Item<'_>>, Failure> {
        self.begin = self.position;
        match self.stream.format {
            Format::Raw => self.next_batch(),
            Format::Jsonl => self.next_line(),
            Format::Csv => self.next_row(),
        }
    }

    fn damaged(&self, what: impl std::fmt::Display) -> Failure {
        Failure::new(Code::Corrupt, format!("{}: {what}", self.place()))
    }

    fn not_read(&self, error: &io::Error) -> Failure {
        not_read(&self.place(), error)
    }

    fn too_long(&self, what: &str) -> Failure {
        let limit = self.stream.limits.line_bytes;
        self.damaged(format!("a {what} of more than {limit} bytes"))
            .hint("if it is one record, --max-batch-bytes with a larger size takes it")
    }

    /// Takes bytes until the buffer has `len`, as they come: no memory for what was only claimed.
    fn fill(&mut self, len: usize) -> Result<(), Failure> {
        let wanted = len.saturating_sub(self.buffer.len()) as u64;
        let read = self.stream.from.by_ref().take(wanted).read_to_end(&mut self.buffer);
        self.position += read.map_err(|error| self.not_read(&error))? as u64;
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<Item<'_>>, Failure> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        self.fill(PROBE_BYTES)?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let found = match probe(&self.buffer) {
            Ok(Some(found)) => found,
            Ok(None) => {
                let count = self.buffer.len();
                return Err(self.damaged(format!("it ends {count} bytes into a batch")));
            }
            Err(error) => return Err(self.damaged(error)),
        };
        let (offset, size) = (found.base_offset, found.size_bytes);
        if size > self.stream.limits.batch_bytes {
            let limit = self.stream.limits.batch_bytes;
            let what = format!("a batch of {size} bytes (offset {offset}), where {limit} are the most");
            return Err(self.damaged(what).hint("raise --max-batch-bytes and --segment-bytes, if it is one"));
        }
        let whole = usize::try_from(size).unwrap_or(usize::MAX);
        self.fill(whole)?;
        if self.buffer.len() < whole {
            let count = self.buffer.len();
            let what = format!("it ends {count} bytes into the batch of offset {offset}, which has {size}");
            return Err(self.damaged(what));
        }
        let checked = if found.magic < 2 {
            OldMessage::parse(&self.buffer)
                .and_then(|message| message.check_crc().map(|()| Item::Old(message)))
        } else {
            BatchRef::parse(&self.buffer)
                .and_then(|batch| batch.validate_for_preserve().map(|()| Item::Batch(batch)))
        };
        let checked = checked.map_err(|error: BatchError| {
            let place = format!("{} at byte {}", self.stream.name, self.begin);
            Failure::new(Code::Corrupt, format!("{place} (offset {offset}): {error}"))
        });
        checked.map(Some)
    }

    fn next_line(&mut self) -> Result<Option<Item<'_>>, Failure> {
        let limit = self.stream.limits.line_bytes;
        loop {
            self.buffer.clear();
            self.buffer.shrink_to(KEPT_BYTES);
            self.begin_line = self.lines + 1;
            let read = self.stream.from.by_ref().take(limit as u64).read_until(b'\n', &mut self.buffer);
            let count = read.map_err(|error| self.not_read(&error))?;
            self.position += count as u64;
            self.lines += 1;
            if count == 0 {
                return Ok(None);
            }
            if count == limit && self.buffer.last() != Some(&b'\n') {
                return Err(self.too_long("line"));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let place = self.place();
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        match JsonLine::parse(line) {
            Ok(line) => Ok(Some(Item::Record(line))),
            Err(error) => Err(Failure::new(Code::Corrupt, format!("{place}, {error}"))
                .hint("each line is a record as `logctl cat -J` prints it")),
        }
    }

    fn next_row(&mut self) -> Result<Option<Item<'_>>, Failure> {
        while self.fill_row()? {
            let place = self.place();
            let row = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
            let row = self.rows.row(row);
            let Some(row) = row.map_err(|what| Failure::new(Code::Corrupt, format!("{place}: {what}")))?
            else {
                continue;
            };
            // The bytes of the row are wanted too, and a walk that may go round lends nothing: a copy of its own.
            let owned = |bytes: Option<Cow<'_, [u8]>>| bytes.map(|bytes| Cow::Owned(bytes.into_owned()));
            let headers = row.headers.into_iter();
            return Ok(Some(Item::Record(JsonLine {
                offset: row.offset,
                timestamp: row.timestamp,
                is_append_time: false,
                leader_epoch: None,
                key: owned(row.key),
                value: owned(row.value),
                headers: headers.map(|(name, value)| (Cow::Owned(name), value.map(Cow::Owned))).collect(),
            })));
        }
        Ok(None)
    }

    /// Takes a row with its line breaks; false at the end.
    fn fill_row(&mut self) -> Result<bool, Failure> {
        let limit = self.stream.limits.line_bytes;
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        self.begin_line = self.lines + 1;
        let mut in_quotes = false;
        loop {
            let from = self.buffer.len();
            let room = limit.saturating_sub(from) as u64;
            let read = self.stream.from.by_ref().take(room).read_until(b'\n', &mut self.buffer);
            let count = read.map_err(|error| self.not_read(&error))?;
            self.position += count as u64;
            self.lines += u64::from(self.buffer.ends_with(b"\n"));
            if count == 0 && self.buffer.len() >= limit {
                return Err(self.too_long("row"));
            }
            if count == 0 || CsvReader::row_end(&self.buffer, from, &mut in_quotes).is_some() {
                return Ok(!self.buffer.is_empty());
            }
        }
    }
}

/// A stream that cannot be unpacked is damaged; one that cannot be read is not.
fn not_read(place: &str, error: &io::Error) -> Failure {
    let is_damage = matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput
    );
    let is_ours = error.raw_os_error().is_some() || error.kind() == io::ErrorKind::OutOfMemory;
    let code = if is_damage || !is_ours { Code::Corrupt } else { Code::Other };
    Failure::new(code, format!("cannot read {place}: {error}"))
}
