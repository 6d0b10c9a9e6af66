//! `logctl info`: what a log holds, from its indexes and small files; the log itself is read only with `--batches`.

use std::{ops::ControlFlow, path::PathBuf, process::ExitCode};

use serde::Serialize;
use stratalog::{
    Access, Cursor, CursorInfo, Isolation, Offset, Timestamp,
    inspect::{EpochCheckpoint, LEADER_EPOCH_CHECKPOINT},
    record::Scratch,
    transfer::UNFINISHED_COPY,
};

use crate::{
    failure::Failure,
    globals::Globals,
    lock::{holder_of, lock_text},
    output::{Output, counted},
    printer::time_text,
    report::{Cell, Column, Rows},
    scope::Scope,
    source::Source,
    target::Target,
};

/// Show what a log holds: offsets, sizes, times
///
/// It does not read the log, so it takes no longer for a large one; --batches does.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl info ./data/orders-0
  logctl info ./data/orders-0 --segments --epochs
  logctl info ./data/orders-0 -J | jq .end")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    /// Partition directory, or one .log file
    target: Option<PathBuf>,
    /// Print JSON
    #[arg(short = 'J', long)]
    json: bool,
    /// List the segments
    #[arg(long)]
    segments: bool,
    /// List the leader epochs and where each begins
    #[arg(long)]
    epochs: bool,
    /// Count batches, records and transactions, which reads the whole log
    #[arg(long)]
    batches: bool,
}

/// What `-J` prints; the names are a promise.
#[derive(Serialize)]
struct Info {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
    start: i64,
    /// The offset after the last record.
    end: i64,
    /// Absent where nothing tells it: a single file, or a log without a recovery point.
    #[serde(skip_serializing_if = "Option::is_none")]
    durable_end: Option<i64>,
    /// Whether the log was closed and not opened for writing since; absent where nothing tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    clean: Option<bool>,
    /// Whether a writer, a store or a broker holds it now; absent for a single file.
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<bool>,
    /// `free`, or `held by pid N since T`.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    /// Of which directory this is a copy that is not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished_copy_of: Option<String>,
    segments: usize,
    /// Of all `.log` files.
    bytes: u64,
    /// That of the first record's batch.
    first_timestamp: Option<i64>,
    max_timestamp: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batches: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    /// With `--batches`, for a log that holds records of transactions.
    #[serde(skip_serializing_if = "Option::is_none")]
    transactions: Option<Transactions>,
    /// Of consumers, by name; absent for a single file.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursors: Option<Vec<Place>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader_epochs: Option<Vec<Epoch>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment_list: Option<Vec<Segment>>,
}

#[derive(Serialize)]
struct Transactions {
    /// Where committed reads end.
    last_stable_offset: i64,
    /// How many have no end yet.
    open: u64,
    /// How many were aborted.
    aborted: u64,
}

#[derive(Serialize)]
struct Epoch {
    epoch: i32,
    start: i64,
}

/// Where a consumer stands.
#[derive(Serialize)]
pub(crate) struct Place {
    pub(crate) name: String,
    /// The next offset it reads; null where it has kept none yet, or its file cannot be read.
    pub(crate) offset: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leader_epoch: Option<i32>,
    /// How many offsets it is behind the end; those already deleted count too.
    pub(crate) lag: Option<u64>,
    /// Whether a consumer holds it now.
    pub(crate) in_use: bool,
    /// Why its file cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Place {
    /// What there is to say of it beside its numbers.
    pub(crate) fn state(&self) -> String {
        match (&self.error, self.in_use) {
            (Some(error), true) => format!("in use  {error}"),
            (Some(error), false) => error.clone(),
            (None, true) => "in use".to_owned(),
            (None, false) => String::new(),
        }
    }
}

#[derive(Serialize)]
struct Segment {
    file: String,
    base_offset: i64,
    next_offset: i64,
    bytes: u64,
    max_timestamp: Option<i64>,
    sealed: bool,
}

/// Runs the verb.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let scope = Scope::find(globals, args.target.as_deref())?;
    let mut output = globals.report(args.json)?;
    if !scope.is_many() {
        output.without_array();
    }
    let mut is_first = true;
    let outcome = scope.each(globals, |target| {
        let source = Source::open(target, Access::Random, Isolation::Uncommitted)?;
        let info = gather(args, globals, target, &source)?;
        if output.is_json() {
            let json = serde_json::to_string(&info).map_err(|e| Failure::other(e.to_string()))?;
            return output.whole_object(&json);
        }
        if !std::mem::take(&mut is_first) {
            output.line("")?;
        }
        print(&info, target.is_file, &mut output)
    });
    output.finish()?;
    outcome.map(|()| ExitCode::SUCCESS)
}

fn gather(args: &Args, globals: &Globals, target: &Target, source: &Source) -> Result<Info, Failure> {
    let stop = globals.stop();
    let mut first_timestamp = None;
    let mut scratch = Scratch::new();
    source.visit(source.start(), &stop, &mut |batch| {
        // The header's base may be a producer's that was stamped over, or the horizon of a compaction.
        let mut records = batch.records(&mut scratch).into_iter().flatten().flatten();
        let Some(first) = records.find(|record| record.offset() >= source.start()) else {
            return Ok(ControlFlow::Continue(()));
        };
        first_timestamp = Some(first.timestamp()).filter(|first| *first != Timestamp::NONE);
        Ok(ControlFlow::Break(()))
    })?;
    let first_timestamp = first_timestamp.map(Timestamp::millis);
    let (mut batches, mut records, mut transactions) = (None, None, None);
    if args.batches {
        let mut count = (0, 0);
        let mut is_transactional = false;
        source.visit(source.start(), &stop, &mut |batch| {
            count.0 += 1;
            count.1 += u64::from(batch.record_count().max(0).unsigned_abs());
            is_transactional |= batch.is_transactional();
            Ok(ControlFlow::Continue(()))
        })?;
        (batches, records) = (Some(count.0), Some(count.1));
        if let (Source::Log(reader), true) = (source, is_transactional) {
            transactions = Some(Transactions {
                last_stable_offset: reader.last_stable_offset()?.value(),
                open: reader.open_transactions()?.len() as u64,
                aborted: reader.aborted_transactions(source.start()..source.end())?.len() as u64,
            });
        }
    }
    // First what looks at times: the list of segments shows those that are known.
    let largest = match source {
        Source::Log(reader) => reader.max_timestamp()?.map(|(at, _)| at.millis()),
        Source::File(_) | Source::Broker(_) => None,
    };
    let segments = segments(source, target)?;
    let bytes = segments.iter().map(|segment| segment.bytes).sum();
    let (durable_end, clean, max_timestamp) = match source {
        Source::Log(reader) => {
            let stats = reader.stats();
            // A broker's log has no recovery point of ours, which says nothing against its records.
            let is_known = stats.clean || stats.recovery_point.is_some() || stats.durable_end > stats.start;
            let durable_end = (is_known || stats.end == stats.start).then_some(stats.durable_end.value());
            (durable_end, is_known.then_some(stats.clean), largest)
        }
        Source::File(_) | Source::Broker(_) => {
            (None, None, segments.iter().filter_map(|segment| segment.max_timestamp).max())
        }
    };
    let holder = holder_of(target)?;
    Ok(Info {
        path: target.path.display().to_string(),
        topic: target.topic().map(str::to_owned),
        partition: target.partition_number(),
        start: source.start().value(),
        end: source.end().value(),
        durable_end,
        clean,
        locked: (!target.is_file).then_some(holder.is_some()),
        lock: (!target.is_file).then(|| lock_text(holder.as_ref())),
        unfinished_copy_of: unfinished_copy(target),
        segments: segments.len(),
        bytes,
        first_timestamp,
        max_timestamp,
        batches,
        records,
        transactions,
        cursors: if target.is_file { None } else { Some(cursors(source.end(), target)?) },
        leader_epochs: if args.epochs { Some(epochs(source, target)?) } else { None },
        segment_list: args.segments.then_some(segments),
    })
}

fn unfinished_copy(target: &Target) -> Option<String> {
    let mark = std::fs::read(target.path.join(UNFINISHED_COPY)).ok().filter(|_| !target.is_file)?;
    Some(String::from_utf8_lossy(&mark).into_owned())
}

/// The cursors beside a log that ends there.
pub(crate) fn cursors(end: Offset, target: &Target) -> Result<Vec<Place>, Failure> {
    let place = |cursor: CursorInfo| {
        let (position, error) = match cursor.position {
            Ok(position) => (position, None),
            Err(error) => (None, Some(error.to_string())),
        };
        Place {
            name: cursor.name,
            offset: position.map(|position| position.offset.value()),
            leader_epoch: position.and_then(|position| position.leader_epoch),
            lag: position.map(|position| end.max(position.offset).since(position.offset)),
            in_use: cursor.in_use,
            error,
        }
    };
    Ok(Cursor::list(&target.path)?.into_iter().map(place).collect())
}

fn segments(source: &Source, target: &Target) -> Result<Vec<Segment>, Failure> {
    let name = |path: &std::path::Path| {
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    match source {
        Source::Log(reader) => Ok(reader
            .segments()
            .into_iter()
            .map(|segment| Segment {
                file: name(&segment.path),
                base_offset: segment.base_offset.value(),
                next_offset: segment.next_offset.value(),
                bytes: segment.size_bytes,
                max_timestamp: segment.max_timestamp.map(Timestamp::millis),
                sealed: segment.sealed,
            })
            .collect()),
        Source::File(file) => {
            let metadata = std::fs::metadata(&target.path)
                .map_err(|e| Failure::io("look at", target.path.display(), &e))?;
            Ok(vec![Segment {
                file: name(&target.path),
                base_offset: source.start().value(),
                next_offset: source.end().value(),
                bytes: metadata.len(),
                max_timestamp: file.max_timestamp()?.map(Timestamp::millis),
                sealed: false,
            }])
        }
        Source::Broker(_) => Ok(Vec::new()),
    }
}

/// As the log knows them; for a single file from `leader-epoch-checkpoint` beside it, none where there is none.
fn epochs(source: &Source, target: &Target) -> Result<Vec<Epoch>, Failure> {
    let of = |(epoch, start): (i32, Offset)| Epoch { epoch, start: start.value() };
    if let Source::Log(reader) = source {
        return Ok(reader.leader_epochs().into_iter().map(of).collect());
    }
    let path = target.path.with_file_name(LEADER_EPOCH_CHECKPOINT);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Failure::io("read", path.display(), &e)),
    };
    let parsed = EpochCheckpoint::parse(&text)
        .map_err(|e| Failure::new(crate::failure::Code::Corrupt, format!("{}: {e}", path.display())))?;
    Ok(parsed.entries.into_iter().map(of).collect())
}

fn print(info: &Info, is_file: bool, output: &mut Output) -> Result<(), Failure> {
    let time = |at: Option<i64>| at.map_or_else(|| "none".to_owned(), time_text);
    let count = Offset::new(info.end).unwrap_or_default().since(Offset::new(info.start).unwrap_or_default());
    let mut rows = vec![("path", info.path.clone())];
    if let (Some(topic), Some(partition)) = (&info.topic, info.partition) {
        rows.push(("topic", format!("{topic}, partition {partition}")));
    }
    rows.push(("offsets", format!("{} up to {} ({count})", info.start, info.end)));
    if !is_file {
        let durable = info.durable_end.map_or_else(|| "not known".to_owned(), |end| format!("below {end}"));
        rows.push(("durable", durable));
        let state = match (info.clean, info.locked) {
            (Some(true), Some(true)) => "in use; nothing was changed since it was closed cleanly",
            (Some(true), _) => "closed cleanly",
            (Some(false), Some(true)) => "in use",
            (Some(false), _) => "not closed: its writer was ended by force",
            (None, Some(true)) => "in use; no recovery point, as in what a broker writes",
            (None, _) => "not known: no recovery point, as in what a broker wrote",
        };
        rows.push(("state", state.to_owned()));
        rows.extend(info.lock.clone().map(|lock| ("lock", lock)));
    }
    if let Some(of) = &info.unfinished_copy_of {
        rows.push(("copy", format!("not finished, of {of}: `logctl copy --resume` goes on with it")));
    }
    let segments = counted(u64::try_from(info.segments).unwrap_or(u64::MAX), "segment");
    rows.push(("size", format!("{segments}, {}", counted(info.bytes, "byte"))));
    rows.push(("timestamps", format!("{} to {}", time(info.first_timestamp), time(info.max_timestamp))));
    if let (Some(batches), Some(records)) = (info.batches, info.records) {
        rows.push(("contents", format!("{} with {}", counted(batches, "batch"), counted(records, "record"))));
    }
    if let Some(transactions) = &info.transactions {
        let Transactions { last_stable_offset, open, aborted } = transactions;
        let text = format!("{open} open, {aborted} aborted; committed up to {last_stable_offset}");
        rows.push(("transactions", text));
    }
    for (name, value) in rows {
        let name = output.bold(&format!("{name:<14}"));
        output.bytes(format!("{name} ").as_bytes())?;
        output.foreign(value.as_bytes())?;
        output.line("")?;
    }
    if let Some(cursors) = info.cursors.as_ref().filter(|cursors| !cursors.is_empty()) {
        let mut rows = Rows::new("cursor", CURSORS);
        for cursor in cursors {
            rows.push([
                Cell::text(&cursor.name),
                Cell::maybe(cursor.offset),
                Cell::maybe(cursor.lag),
                Cell::text(cursor.state()),
            ]);
        }
        output.line("")?;
        rows.print_table(output, true)?;
    }
    if let Some(epochs) = &info.leader_epochs {
        let mut rows = Rows::new("epoch", EPOCHS);
        for epoch in epochs {
            rows.push([Cell::number(epoch.epoch), Cell::number(epoch.start)]);
        }
        output.line("")?;
        rows.print_table(output, true)?;
    }
    if let Some(segments) = &info.segment_list {
        let mut rows = Rows::new("segment", SEGMENTS);
        for segment in segments {
            let newest = match segment.max_timestamp {
                None if segment.next_offset > segment.base_offset => Cell::text("not known"),
                at => Cell::time(at),
            };
            rows.push([
                Cell::text(&segment.file),
                Cell::number(segment.next_offset),
                Cell::number(segment.bytes),
                newest,
                Cell::text(if segment.sealed { "" } else { "active" }),
            ]);
        }
        output.line("")?;
        rows.print_table(output, true)?;
    }
    Ok(())
}

const CURSORS: &[Column] = &[
    Column::text("name", "CURSOR"),
    Column::number("offset", "NEXT"),
    Column::number("lag", "LAG"),
    Column::heading("STATE"),
];

const EPOCHS: &[Column] = &[Column::number("epoch", "EPOCH"), Column::number("start", "START")];

const SEGMENTS: &[Column] = &[
    Column::text("file", "FILE"),
    Column::number("next_offset", "NEXT"),
    Column::number("bytes", "BYTES"),
    Column::text("max_timestamp", "NEWEST"),
    Column::heading("STATE"),
];
