//! `logctl cat`: the records of a range, up to the end that the log has at the start.

use std::{ops::ControlFlow, path::PathBuf, process::ExitCode};

use stratalog::{Access, record::Scratch};

use crate::{
    damage::Damage,
    failure::Failure,
    globals::Globals,
    grammar::{self, OffsetRange},
    printer::{PrintArgs, Printer, Window},
    source::{Source, tell_tail},
    target::Target,
    template::Template,
};

/// Print records: their values, each followed by a newline, or what the options say
///
/// It ends where the log ends when it starts; `tail -f` goes on. Exit code 3 if the range begins outside of the log.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Offsets: start, end, N, +N (from the start), -N (from the end), A:B, A:, :B, @TIME, @TIME:TIME,
@TIME:; B is not printed. kcat's beginning, s@MS and e@MS are understood too (`logctl help offsets`).
Times: now, today, yesterday, -15m, 2026-11-30, 2026-11-30T08:00:00Z, seconds or milliseconds
since 1970; without a zone in UTC (`logctl help time`).

Examples:
  logctl cat ./data/orders-0 -o @-1h: -J | jq -r .value
  logctl cat ./data/orders-0 -o -100 -f '%d{strftime[%F %T]} %p:%o %k=%v\\n'"
)]
pub(crate) struct Args {
    /// Partition directory, or one .log file
    target: Option<PathBuf>,
    /// Which records; default: all
    #[arg(short, long, value_name = "RANGE", value_parser = grammar::offset_range, allow_hyphen_values = true)]
    offset: Vec<OffsetRange>,
    /// Stop after N records
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Short for --format, whose help (--help) lists what a template may say
    #[arg(short = 'f', value_name = "TEMPLATE", value_parser = Template::parse, conflicts_with_all = ["format", "json", "pretty", "meta_only", "keys_only"])]
    template: Option<Template>,
    /// End at the end of the log, which is what it does
    #[arg(short = 'e', hide = true)]
    _exit_at_end: bool,
    /// Pass over what is damaged: tell on standard error which offsets it was, go on behind it, end with exit code 4
    #[arg(long)]
    skip_damaged: bool,
    #[command(flatten)]
    print: PrintArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let range = OffsetRange::merge(&args.offset).map_err(Failure::usage)?;
    let target = Target::existing(globals, args.target.as_deref())?;
    let source = Source::open(&target, Access::Sequential, args.print.isolation())?;
    let stop = globals.stop();
    let mut output = globals.stdout()?;
    let mut printer = Printer::new(&args.print, args.template.as_ref(), &target, &output)?;
    let (from, to) = source.resolve(&range)?;
    let mut window = Window { from, to, most: args.count.unwrap_or(u64::MAX) };
    let mut scratch = Scratch::new();
    let mut damage = Damage::new(args.skip_damaged);
    if from < to && window.most > 0 {
        let visited = source.visit_over(&mut damage, from, &stop, &mut |batch| {
            if batch.base_offset() >= to {
                return Ok(ControlFlow::Break(()));
            }
            window.most -= printer.batch(batch, window, &mut scratch, &mut output)?;
            // What lies behind the range is not looked at: it may be damaged.
            let is_over = window.most == 0 || batch.next_offset().is_none_or(|next| next >= to);
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        if let Err(failure) = visited {
            // What could be read is printed before it is told what could not.
            output.flush()?;
            return Err(failure);
        }
    }
    output.flush()?;
    tell_tail(&source, globals)?;
    Ok(damage.exit_code())
}
