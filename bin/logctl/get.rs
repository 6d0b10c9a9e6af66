//! `logctl get`: one record, or the batch that holds it.

use std::{ops::ControlFlow, path::PathBuf, process::ExitCode};

use stratalog::{
    Access, Offset,
    record::{BatchRef, Codec, Scratch},
};

use crate::{
    failure::Failure,
    globals::Globals,
    grammar::{self, Border},
    output::Output,
    printer::{Format, PrintArgs, Printer, Window, out_of_range, time_text},
    source::Source,
    target::Target,
    view::timestamp_type_name,
};

/// Print the record at an offset, the first one of a time or later, or the batch that holds it
#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    after_long_help = "Examples:
  logctl get ./data/orders-0 42 -J
  logctl get -d ./data -t orders -p 0 42 --raw > value
  logctl get ./data/orders-0 42 --batch
  logctl get ./data/orders-0 @2026-11-30T08:00:00Z -J"
)]
pub(crate) struct Args {
    /// Partition directory, or one .log file
    target: Option<PathBuf>,
    /// Which record: an offset, start, end (the last one), or the first that is not older than a time: @2026-11-30, @-15m
    #[arg(value_parser = grammar::border)]
    offset: Border,
    /// Print the value's bytes and nothing else; with --batch the batch's
    #[arg(long, conflicts_with_all = ["json", "pretty", "json_style", "csv", "format", "template"])]
    raw: bool,
    /// Print the header of the batch that holds the record
    #[arg(long, conflicts_with_all = ["csv", "json_style", "format", "template"])]
    batch: bool,
    /// Short for --format, whose help (--help) lists what a template may say
    #[arg(short = 'f', value_name = "TEMPLATE", value_parser = Format::parse, conflicts_with_all = ["format", "json", "pretty", "json_style", "csv", "meta_only", "keys_only"])]
    template: Option<Format>,
    #[command(flatten)]
    print: PrintArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let target = Target::existing(globals, args.target.as_deref())?;
    let source = Source::open(&target, Access::Random, args.print.isolation())?;
    let mut output = globals.stdout()?;
    let with_control = args.print.with_control();
    let mut printer = Printer::new(&with_control, args.template.as_ref(), None, &target, &mut output)?;
    printer.look_at(&source)?;
    let (start, end) = (source.start(), source.end());
    let stop = globals.stop();
    let from = match args.offset {
        Border::End => source.last_records_from(1, &stop)?,
        border => border.resolve(start, end, |at| source.first_not_before(at))?,
    };
    if from < start || from >= end {
        return Err(match args.offset {
            Border::Offset(_) => out_of_range(from, start, end),
            Border::Time(at) => Failure::not_found(format!(
                "{}: there is no record of {} or later",
                target.path.display(),
                time_text(at.millis())
            )),
            Border::Start | Border::End => {
                Failure::not_found(format!("{}: there are no records", target.path.display()))
            }
        });
    }
    // An offset is that one and no other; the first record may stand behind the start.
    let is_exact = args.offset != Border::Start;
    let to = if is_exact { from.next().unwrap_or(Offset::MAX) } else { end };
    let window = Window { from, to, most: 1 };
    let mut scratch = Scratch::new();
    let mut found = false;
    source.visit(from, &stop, &mut |batch| {
        if batch.base_offset() > from && is_exact {
            return Ok(ControlFlow::Break(()));
        }
        if args.batch {
            found = true;
            print_batch(args, batch, printer.is_json(), &mut output)?;
        } else if args.raw {
            found = push_value(batch, window, &mut scratch, &mut output)?;
        } else {
            found = printer.batch(batch, window, &mut scratch, &mut output)? > 0;
        }
        Ok(if found || is_exact { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    output.flush()?;
    if found {
        return Ok(ExitCode::SUCCESS);
    }
    Err(Failure::not_found(format!("{}: there is no record at offset {from}", target.path.display()))
        .hint("the log goes on behind it: records were compacted away, or offsets were left out"))
}

/// Prints the bytes of the value at an offset; false where there is no record. Null has no bytes.
fn push_value(
    batch: &BatchRef<'_>,
    window: Window,
    scratch: &mut Scratch,
    output: &mut Output,
) -> Result<bool, Failure> {
    let broken = |e: stratalog::record::BatchError| {
        Failure::new(crate::failure::Code::Corrupt, format!("batch at offset {}: {e}", batch.base_offset()))
    };
    for record in batch.records(scratch).map_err(broken)? {
        let record = record.map_err(broken)?;
        if record.offset() >= window.from && record.offset() < window.to {
            output.bytes(record.value().unwrap_or_default())?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a batch says of itself; serialised names are a promise.
#[derive(serde::Serialize)]
struct BatchJson {
    base_offset: i64,
    last_offset: i64,
    record_count: i32,
    size_bytes: u32,
    leader_epoch: i32,
    crc: u32,
    codec: &'static str,
    timestamp_type: &'static str,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    transactional: bool,
    control: bool,
    delete_horizon: Option<i64>,
}

fn print_batch(args: &Args, batch: &BatchRef<'_>, json: bool, output: &mut Output) -> Result<(), Failure> {
    if args.raw {
        return output.bytes(batch.as_bytes());
    }
    let fields = BatchJson {
        base_offset: batch.base_offset().value(),
        last_offset: batch.last_offset().value(),
        record_count: batch.record_count(),
        size_bytes: batch.size_bytes(),
        leader_epoch: batch.leader_epoch(),
        crc: batch.crc(),
        codec: batch.codec().map_or("unknown", Codec::name),
        timestamp_type: timestamp_type_name(batch.timestamp_type()),
        base_timestamp: batch.base_timestamp().millis(),
        max_timestamp: batch.max_timestamp().millis(),
        producer_id: batch.producer_id(),
        producer_epoch: batch.producer_epoch(),
        base_sequence: batch.base_sequence(),
        transactional: batch.is_transactional(),
        control: batch.is_control(),
        delete_horizon: batch.delete_horizon().map(stratalog::Timestamp::millis),
    };
    if json {
        let text = if args.print.is_pretty() {
            serde_json::to_string_pretty(&fields)
        } else {
            serde_json::to_string(&fields)
        };
        return output.line(text.map_err(|e| Failure::other(e.to_string()))?);
    }
    let rows = [
        ("offsets", format!("{} to {}", fields.base_offset, fields.last_offset)),
        ("records", fields.record_count.to_string()),
        ("bytes", fields.size_bytes.to_string()),
        ("leader epoch", fields.leader_epoch.to_string()),
        ("crc", format!("{:#010x}", fields.crc)),
        ("codec", fields.codec.to_owned()),
        (
            "timestamps",
            format!(
                "{} to at most {} ({})",
                time_text(fields.base_timestamp),
                time_text(fields.max_timestamp),
                fields.timestamp_type
            ),
        ),
        (
            "producer",
            format!(
                "id {}, epoch {}, base sequence {}",
                fields.producer_id, fields.producer_epoch, fields.base_sequence
            ),
        ),
        ("transactional", fields.transactional.to_string()),
        ("control", fields.control.to_string()),
    ];
    for (name, value) in rows {
        output.line(format!("{} {value}", output.bold(&format!("{name:<14}"))))?;
    }
    Ok(())
}
