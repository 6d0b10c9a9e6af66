//! A `tail` of a broker's topic: the last records of its partitions, and those that come in any of them.

use std::{ops::ControlFlow, process::ExitCode};

use stratalog::{Offset, Position, record::Scratch};

use super::{Args, begin::begin, first_since, is_past, kept::Kept};
use crate::{
    broker::{Fetched, Place, Walk, Wanted},
    damage::Damage,
    failure::{Code, Failure},
    globals::{Globals, warn},
    output::{Output, check_reader},
    printer::{Printer, Window},
    source::Source,
    stop::Stop,
    target::Target,
};

/// A partition that is followed.
struct Lane {
    number: i32,
    at: Offset,
    /// Where it ended at the start: with no `-f` what comes behind it is left.
    end: Offset,
    is_over: bool,
}

pub(super) fn run(args: &Args, globals: &Globals, place: &Place, stop: &Stop) -> Result<ExitCode, Failure> {
    if args.kept.is_beside_the_log() {
        return Err(Failure::usage(
            "--cursor keeps a place beside a directory's log, and a broker's log is not here",
        )
        .hint("--cursor-file keeps it in a file of yours"));
    }
    let topic = place.topic()?;
    let targets = wait_for(args, globals, stop, || place.partitions(topic))?;
    let Some(first) = targets.first() else { return Ok(ExitCode::SUCCESS) };
    let kept = Kept::open(&args.kept, first)?;
    if kept.is_some() && targets.len() > 1 {
        return Err(Failure::usage(format!(
            "a cursor is of one partition, and `{topic}` has {}",
            targets.len()
        ))
        .hint("choose one with -p"));
    }
    let isolation = args.print.isolation();
    let mut output = globals.stdout()?;
    let mut printer = Printer::new(&args.print, None, args.filter.filter()?, first, &mut output)?;
    let mut lanes = Vec::new();
    for target in &targets {
        let source = Source::Broker(wait_for(args, globals, stop, || place.open(target, isolation))?);
        printer.move_to(target);
        let at = match kept.as_ref().and_then(Kept::position) {
            Some(position) => position.offset,
            None => begin(args, &source, &printer, stop)?,
        };
        let number = target.partition_number().and_then(|number| i32::try_from(number).ok()).unwrap_or(0);
        if lanes.is_empty() {
            printer.look_at(&source)?;
        }
        lanes.push(Lane { number, at, end: source.end(), is_over: false });
    }
    let mut tail = Tail {
        args,
        globals,
        place,
        stop,
        topic,
        targets: &targets,
        printer,
        output: &mut output,
        scratch: Scratch::new(),
        damage: Damage::new(args.skip_damaged),
        kept,
    };
    tail.settle(&lanes)?;
    let outcome = tail.go(&mut lanes);
    let settled = tail.settle(&lanes);
    outcome.and(settled).map(|()| tail.damage.exit_code())
}

/// Does it; with `-F` again and again while the topic or its brokers are not there.
fn wait_for<T>(
    args: &Args,
    globals: &Globals,
    stop: &Stop,
    mut look: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut is_told = false;
    loop {
        match look() {
            Err(failure)
                if args.follow_name && matches!(failure.code, Code::NotFound | Code::Unreachable) =>
            {
                if !is_told {
                    globals.note(format!("waiting: {}", failure.what()));
                    is_told = true;
                }
                stop.check()?;
                check_reader(std::io::stdout())?;
                std::thread::sleep(super::ABSENT_STEP);
            }
            outcome => return outcome,
        }
    }
}

struct Tail<'t> {
    args: &'t Args,
    globals: &'t Globals,
    place: &'t Place,
    stop: &'t Stop,
    topic: &'t str,
    targets: &'t [Target],
    printer: Printer<'t>,
    output: &'t mut Output,
    scratch: Scratch,
    damage: Damage,
    kept: Option<Kept>,
}

impl Tail<'_> {
    fn go(&mut self, lanes: &mut [Lane]) -> Result<(), Failure> {
        let follows = self.args.follow || self.args.follow_name;
        let patience = self.place.client().borrow().patience().clone();
        let mut tries = patience.tries();
        let mut is_away = false;
        let mut turn = 0;
        loop {
            self.stop.check()?;
            for lane in lanes.iter_mut().filter(|lane| !follows && lane.at >= lane.end) {
                lane.is_over = true;
            }
            let mut wanted: Vec<Wanted> = lanes
                .iter()
                .filter(|lane| !lane.is_over)
                .map(|lane| Wanted { partition: lane.number, offset: lane.at.value() })
                .collect();
            if wanted.is_empty() || (follows && self.args.until.is_some_and(is_past) && is_caught_up(lanes)) {
                return Ok(());
            }
            // An answer has room for some: each partition is the first at times. Without -f they come in their order.
            if follows {
                let first = turn % wanted.len();
                wanted.rotate_left(first);
                turn = turn.wrapping_add(1);
            } else {
                wanted.truncate(1);
            }
            let mut passing = None;
            let fetched = self.place.client().borrow_mut().fetch(
                self.topic,
                &wanted,
                self.args.print.isolation(),
                true,
                &mut passing,
            );
            let fetched = match fetched {
                Err(failure) if self.args.follow_name && failure.code == Code::NotFound => {
                    passing = Some(failure);
                    Vec::new()
                }
                fetched => fetched?,
            };
            let is_any = !fetched.is_empty();
            for fetched in fetched {
                self.take(lanes, &fetched, follows)?;
            }
            self.settle(lanes)?;
            self.output.check_reader()?;
            match passing {
                Some(failure) => {
                    if !is_away && follows {
                        is_away = true;
                        warn(&format!("{}; trying again", failure.what()));
                    }
                    match tries.again(failure) {
                        // As long as it takes.
                        Err(failure)
                            if self.args.follow_name
                                && failure.code != Code::TimedOut
                                && !failure.is_quiet() =>
                        {
                            tries = patience.tries();
                        }
                        outcome => outcome?,
                    }
                }
                None if is_any => {
                    if is_away {
                        is_away = false;
                        self.globals.note("the brokers are back");
                    }
                    tries = patience.tries();
                }
                None => tries.again(Failure::unreachable(format!("{}: nothing was answered", self.topic)))?,
            }
        }
    }

    /// Prints what came of a partition.
    fn take(&mut self, lanes: &mut [Lane], fetched: &Fetched, follows: bool) -> Result<(), Failure> {
        let found = lanes.iter_mut().zip(self.targets).find(|(lane, _)| lane.number == fetched.partition);
        let Some((lane, target)) = found else { return Ok(()) };
        let name = format!("{}/{}", self.topic, fetched.partition);
        if fetched.is_out_of_range {
            let next = self.missing(&name, lane.at)?;
            if self.args.strict || !follows {
                return Err(Failure::not_found(format!("{name}: offset {} is not there any more", lane.at))
                    .hint(format!("`logctl offsets -b` shows the range; it goes on at offset {next}")));
            }
            warn(&if next > lane.at {
                let count = next.since(lane.at);
                let last = next.saturating_sub(1);
                format!(
                    "{name}: offsets {} to {last} were deleted before they were read: {count} skipped",
                    lane.at
                )
            } else {
                format!("{name}: the log ends at {next}, before offset {} up to which it was read", lane.at)
            });
            lane.at = next;
            return Ok(());
        }
        self.printer.move_to(target);
        let (from, until, end) = (lane.at, self.args.until, if follows { Offset::MAX } else { lane.end });
        let Self { printer, output, scratch, stop, damage, .. } = self;
        let before = lane.at;
        let mut walk = Walk::new(&name, fetched, self.args.print.isolation());
        let is_over = walk.each(damage, &mut lane.at, &mut |batch| {
            stop.check()?;
            if batch.base_offset() >= end {
                return Ok(ControlFlow::Break(()));
            }
            let since = until.and_then(|until| first_since(batch, until, from, scratch));
            let to = since.map_or(end, |since| since.min(end));
            let window = Window { from, to, most: u64::MAX };
            printer.batch(batch, window, scratch, output)?;
            Ok(if since.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        lane.is_over |= is_over;
        if lane.at == before && !fetched.bytes.is_empty() && !is_over {
            return Err(Failure::unreachable(format!(
                "{name}: only a part of the batch at offset {before} was sent"
            )));
        }
        // It was cut since: what was to come will not.
        if !follows && fetched.bytes.is_empty() && fetched.end <= lane.at.value() {
            lane.is_over = true;
        }
        lane.end = lane.end.max(Offset::new(fetched.end).filter(|_| follows).unwrap_or(lane.end));
        Ok(())
    }

    /// Where there is something to read again.
    fn missing(&self, name: &str, at: Offset) -> Result<Offset, Failure> {
        let target = self.targets.iter().find(|target| {
            target.partition.as_ref().is_some_and(|(topic, number)| format!("{topic}/{number}") == name)
        });
        let Some(target) = target else { return Ok(at) };
        let now = self.place.open(target, self.args.print.isolation())?;
        Ok(if at < now.start() { now.start() } else { now.end() })
    }

    /// Hands what was printed to the kernel, and only then keeps the place behind it.
    fn settle(&mut self, lanes: &[Lane]) -> Result<(), Failure> {
        self.output.flush()?;
        match (&mut self.kept, lanes.first()) {
            (Some(kept), Some(lane)) if kept.position().map(|kept| kept.offset) != Some(lane.at) => {
                kept.commit(Position::from(lane.at), self.output.printed_bytes())
            }
            _ => Ok(()),
        }
    }
}

/// True where everything was read that there was.
fn is_caught_up(lanes: &[Lane]) -> bool {
    lanes.iter().all(|lane| lane.is_over || lane.at >= lane.end)
}
