//! Which records are printed: `--grep` on bytes, `--where` on fields.
//!
//! Lives here: the two, and the language of `--where`. Not here: offset ranges and times (`grammar`). Holds always: an
//! expression is checked whole before the first record is read, and looking at a record cannot fail.

mod expression;
mod grep;
mod lexer;
mod parse;

use stratalog::record::{BatchRef, Codec};

use crate::{failure::Failure, view::View};
use expression::Expression;
use grep::Grep;
pub(crate) use grep::GrepIn;

/// Options that choose records.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Filter")]
pub(crate) struct FilterArgs {
    /// Only records in which this regular expression is found; repeat for any of several
    ///
    /// On bytes, in the syntax of ripgrep: (?i) ignores case, (?s-u:\xff) is a byte. -c counts what is found.
    #[arg(long, value_name = "REGEX")]
    grep: Vec<String>,
    /// Where --grep looks: key, value, headers (values of headers), with commas for several; default: key,value
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', requires = "grep")]
    grep_in: Vec<GrepIn>,
    /// Let --grep ignore case
    #[arg(short = 'i', long, requires = "grep")]
    ignore_case: bool,
    /// Only records in which --grep finds nothing
    #[arg(long, requires = "grep")]
    invert_match: bool,
    /// Only records for which this holds: 'key = "a" and value is not null'; repeat for all of several
    ///
    /// Fields: offset, timestamp, partition, epoch, `producer_id`, `producer_epoch`, size (bytes of key and value), `key_size`,
    /// `value_size`, `header_count`, topic, key, value, headers.NAME or `headers['any name']` (the last of this name).
    /// Operators: = (or ==) != < <= > >= =~ !~ (regular expression), is null, is not null, and, or, not, parentheses.
    /// Values: 'text' or "text" with \n \t \r \0 \\ \" \' \xNN, numbers, sizes (64KiB), times (@-15m, @2026-11-30,
    /// @"2026-11-30 08:00"), null. Text is compared by its bytes; with a number as the number that it is, if it is one.
    /// Null and a missing header are equal to null alone, and neither less nor more than anything.
    #[arg(long = "where", value_name = "EXPR", value_parser = Expression::parse)]
    condition: Vec<Expression>,
}

/// What a record must have to be printed.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    grep: Option<Grep>,
    conditions: Vec<Expression>,
}

impl FilterArgs {
    /// The filter, if there is one.
    pub(crate) fn filter(&self) -> Result<Option<Filter>, Failure> {
        let grep = if self.grep.is_empty() {
            None
        } else {
            let grep = Grep::new(&self.grep, &self.grep_in, self.ignore_case, self.invert_match);
            Some(grep.map_err(|e| Failure::usage(format!("--grep: {e}")))?)
        };
        if grep.is_none() && self.condition.is_empty() {
            return Ok(None);
        }
        Ok(Some(Filter { grep, conditions: self.condition.clone() }))
    }
}

impl Filter {
    /// False where no record of the batch can pass: found out without reading them one by one.
    pub(crate) fn may_pass(&self, batch: &BatchRef<'_>) -> bool {
        match &self.grep {
            Some(grep) if batch.codec() == Ok(Codec::None) => grep.may_match(batch.payload()),
            _ => true,
        }
    }

    /// True where the record is to be printed.
    pub(crate) fn passes(&self, view: &View<'_>) -> bool {
        self.grep.as_ref().is_none_or(|grep| grep.matches(view))
            && self.conditions.iter().all(|condition| condition.holds(view))
    }
}
