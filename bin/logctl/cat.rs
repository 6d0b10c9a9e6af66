//! `logctl cat`: the records of a range, up to the end that the log has at the start.

use std::{ops::ControlFlow, path::PathBuf, process::ExitCode};

use stratalog::{Access, record::Scratch};

use crate::{
    broker::{BrokerArgs, Patience, Place},
    counts::{CountBy, Counts},
    damage::Damage,
    failure::{Code, Failure},
    filter::FilterArgs,
    globals::Globals,
    grammar::{self, OffsetRange},
    output::Output,
    printer::{Format, PrintArgs, Printer, Window},
    source::{Source, tell_tail},
    stop::Stop,
    target::Target,
};

/// Print records: their values, each followed by a newline, or what the options say
///
/// It ends where the log ends when it starts; `tail -f` goes on. Exit code 3 if the range begins outside of the log. With -b
/// TARGET is a topic of a broker: its partitions come one after the other, the range is that of each.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Offsets: start, end, N, +N (from the start), -N (from the end), A:B, A:, :B, @TIME, @TIME:TIME,
@TIME:; B is not printed. kcat's beginning, s@MS and e@MS are understood too (`logctl help offsets`).
Times: now, today, yesterday, -15m, 2026-11-30, 2026-11-30T08:00:00Z, seconds or milliseconds
since 1970; without a zone in UTC (`logctl help time`).

Examples:
  logctl cat ./data/orders-0 -o @-1h: -J | jq -r .value
  logctl cat ./data/orders-0 -o @2026-11-30T08:00 -c 1 -J   # the first record after a time
  logctl cat ./data/orders-0 --where 'value is null' -J     # all tombstones
  logctl cat ./data/orders-0 --count-by key                 # how often each key is there
  logctl cat ./data/orders-0 --grep 'error|failed' --csv
  logctl cat -b localhost:9092 orders -p 0 -o -100 -J
  logctl cat ./data/orders-0 -o -100 -f '%d{strftime[%F %T]} %p:%o %k=%v\\n'"
)]
pub(crate) struct Args {
    /// Partition directory, or one .log file; with -b a topic
    target: Option<PathBuf>,
    /// Which records; default: all
    #[arg(short, long, value_name = "RANGE", value_parser = grammar::offset_range, allow_hyphen_values = true)]
    offset: Vec<OffsetRange>,
    /// Stop after N records; with a filter: after N that it lets through
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Instead of records print how many there are for each key, value, partition or header.NAME, the most frequent first
    ///
    /// A line each: the number, a tab, and the field, or <null>; with -J a JSON object. Of more than 1,000,000 different
    /// ones, or more than 256 MiB of them, it is a failure: then sort them, as in cat --keys-only | sort | uniq -c.
    #[arg(long, value_name = "FIELD", value_parser = CountBy::parse, conflicts_with_all = ["format", "template", "csv", "meta_only", "keys_only", "pretty"])]
    count_by: Option<CountBy>,
    /// Short for --format, whose help (--help) lists what a template may say
    #[arg(short = 'f', value_name = "TEMPLATE", value_parser = Format::parse, conflicts_with_all = ["format", "json", "pretty", "json_style", "csv", "meta_only", "keys_only"])]
    template: Option<Format>,
    /// End at the end of the log, which is what it does
    #[arg(short = 'e', hide = true)]
    _exit_at_end: bool,
    /// Pass over what is damaged: tell on standard error which offsets it was, go on behind it, end with exit code 4
    #[arg(long)]
    skip_damaged: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    print: PrintArgs,
    #[command(flatten)]
    broker: BrokerArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let range = OffsetRange::merge(&args.offset).map_err(Failure::usage)?;
    let place = Place::find(&args.broker, globals, args.target.as_deref(), Patience::new)?;
    let targets = match &place {
        None => vec![Target::existing(globals, args.target.as_deref())?],
        Some(place) => place.partitions(place.topic()?)?,
    };
    let Some(first) = targets.first() else { return Ok(ExitCode::SUCCESS) };
    let open = |target: &Target| match &place {
        None => Source::open(target, Access::Sequential, args.print.isolation()),
        Some(place) => place.open(target, args.print.isolation()).map(Source::Broker),
    };
    // What cannot be opened is told before the first row of a table.
    let mut opened = Some(open(first)?);
    let stop = globals.stop();
    let mut output = globals.stdout()?;
    let filter = args.filter.filter()?;
    let mut printer = Printer::new(&args.print, args.template.as_ref(), filter, first, &mut output)?;
    let mut reading = Reading {
        range: &range,
        stop: &stop,
        counts: args.count_by.clone().map(Counts::new),
        scratch: Scratch::new(),
        damage: Damage::new(args.skip_damaged),
        left: args.count.unwrap_or(u64::MAX),
    };
    let mut is_partly = false;
    for target in &targets {
        let source = opened.take().map_or_else(|| open(target), Ok)?;
        printer.move_to(target);
        printer.look_at(&source)?;
        let read = reading.read(&source, &mut printer, &mut output);
        // What could be read is printed before it is told what could not.
        output.flush()?;
        match read {
            Err(failure) if targets.len() > 1 && matches!(failure.code, Code::NotFound | Code::Corrupt) => {
                is_partly = true;
                globals.complain(&failure);
            }
            read => read?,
        }
        tell_tail(&source, globals)?;
        if reading.left == 0 {
            break;
        }
    }
    if let Some(counts) = reading.counts {
        counts.print(printer.style(), printer.is_json(), &mut output)?;
    }
    output.flush()?;
    if is_partly {
        return Err(Failure::quiet(Code::Partly));
    }
    Ok(reading.damage.exit_code())
}

/// What goes on from partition to partition.
struct Reading<'r> {
    range: &'r OffsetRange,
    stop: &'r Stop,
    counts: Option<Counts>,
    scratch: Scratch,
    damage: Damage,
    /// So many records may still be printed.
    left: u64,
}

impl Reading<'_> {
    fn read(
        &mut self,
        source: &Source,
        printer: &mut Printer<'_>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let (from, to) = source.resolve(self.range)?;
        let mut window = Window { from, to, most: self.left };
        if from >= to || window.most == 0 {
            return Ok(());
        }
        let Self { stop, counts, scratch, damage, .. } = self;
        let visited = source.visit_over(damage, from, stop, &mut |batch| {
            if batch.base_offset() >= to {
                return Ok(ControlFlow::Break(()));
            }
            window.most -= match counts {
                None => printer.batch(batch, window, scratch, output)?,
                Some(counts) => printer.visit(batch, window, scratch, &mut |view| counts.add(view))?,
            };
            // What lies behind the range is not looked at: it may be damaged.
            let is_over = window.most == 0 || batch.next_offset().is_none_or(|next| next >= to);
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        self.left = window.most;
        visited
    }
}
