//! How records are printed: the options that `cat`, `tail` and `get` share, and what follows from them.

use stratalog::{
    Error, Isolation, Offset,
    record::{BatchRef, RecordRef, Scratch},
};

use crate::{
    failure::Failure,
    grammar,
    json::{self, JsonStyle},
    output::Output,
    target::Target,
    template::Template,
    view::{BatchView, View, timestamp_type_name},
};

/// Options for printing records.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct PrintArgs {
    /// Print records as JSON, a line each; `append --format jsonl` reads them
    #[arg(short = 'J', long)]
    json: bool,
    /// Print JSON over several lines
    #[arg(long, conflicts_with = "format")]
    pretty: bool,
    /// Add to each JSON record the batch that it lies in
    #[arg(long)]
    batch_meta: bool,
    /// Leave out key, value and headers
    #[arg(long, conflicts_with = "format")]
    meta_only: bool,
    /// Print keys only
    #[arg(long, conflicts_with_all = ["format", "meta_only"])]
    keys_only: bool,
    /// Print each record with a template: '%o %k=%v\n'; nothing is added to it
    ///
    /// %t topic, %p partition, %o offset, %k key, %v or %s value, %d timestamp in milliseconds,
    /// %d{strftime[%F %T]} the same in UTC, %e leader epoch, %i count of records printed.
    /// %h: all headers, as NAME=VALUE,NAME=VALUE; %h{..}: what is in the braces for each header (it does not choose
    /// one), where %k %v %K %V are the header's.
    /// %T %K %V %H: length of topic, key and value, number of headers; %S %R: length of the value or -1 for null, as
    /// text and as four bytes.
    /// %a{compression}, %a{timestamp-type}, %a{transactional-bit}, %a{control-bit}: of the batch; %x %y: producer's id
    /// and epoch.
    /// %% %{ %}: these signs; \n \t \r \0 \\ and \xNN are understood.
    /// Texts take {hex}, {base64} or {base64raw}; numbers {hex}, {hex4} to {hex64}, {big8} to {big64}, {little8} to
    /// {little64}, {byte} or {bool}: %o{hex64}.
    #[arg(long, value_name = "TEMPLATE", value_parser = Template::parse, conflicts_with = "json")]
    format: Option<Template>,
    /// Print control records too, which end transactions
    #[arg(long)]
    control: bool,
    /// Records of transactions: all of them, or only those of committed ones, up to the first that is open
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    isolation: IsolationLevel,
    /// What follows each value; \n \t \r \0 \\ and \xNN are understood, and nothing is possible
    #[arg(short = 'D', long, value_name = "DELIM", default_value = "\\n")]
    delim: String,
}

/// Which records of transactions are read; the names are those of Kafka's `isolation.level`, without their `read_`.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum IsolationLevel {
    #[default]
    #[value(alias = "read_uncommitted")]
    Uncommitted,
    #[value(alias = "read_committed")]
    Committed,
}

impl PrintArgs {
    /// Which records are to be read.
    pub(crate) fn isolation(&self) -> Isolation {
        match self.isolation {
            IsolationLevel::Uncommitted => Isolation::Uncommitted,
            IsolationLevel::Committed => Isolation::Committed,
        }
    }

    /// The same, with control records: for a verb that was asked for one of them by its offset.
    pub(crate) fn with_control(&self) -> Self {
        Self { control: true, ..self.clone() }
    }

    /// True where JSON is to be easy to read.
    pub(crate) fn is_pretty(&self) -> bool {
        self.pretty
    }
}

/// Prints records.
pub(crate) struct Printer<'t> {
    target: &'t Target,
    shape: Shape,
    with_control: bool,
    escape: bool,
    count: u64,
}

enum Shape {
    Values { delim: Vec<u8> },
    Keys { delim: Vec<u8> },
    Meta,
    Json(JsonStyle),
    Template(Template),
}

/// What [`Printer::batch`] is to do with a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// Records below it are passed over.
    pub(crate) from: Offset,
    /// Records from here on are left.
    pub(crate) to: Offset,
    /// At most so many are printed.
    pub(crate) most: u64,
}

impl<'t> Printer<'t> {
    /// `short`: the template of a verb that has a short option for it.
    pub(crate) fn new(
        args: &PrintArgs,
        short: Option<&Template>,
        target: &'t Target,
        output: &Output,
    ) -> Result<Self, Failure> {
        let delim = grammar::escapes(&args.delim).map_err(|e| Failure::usage(format!("--delim: {e}")))?;
        if args.batch_meta && !(args.json || args.pretty) {
            return Err(Failure::usage("--batch-meta adds to JSON records: give --json too"));
        }
        let style = JsonStyle {
            without_value: args.keys_only,
            meta_only: args.meta_only,
            with_batch: args.batch_meta,
            pretty: args.pretty,
        };
        let shape = if let Some(template) = args.format.as_ref().or(short) {
            Shape::Template(template.clone())
        } else if args.json || args.pretty {
            Shape::Json(style)
        } else if args.meta_only {
            Shape::Meta
        } else if args.keys_only {
            Shape::Keys { delim }
        } else {
            Shape::Values { delim }
        };
        Ok(Self { target, shape, with_control: args.control, escape: output.is_terminal(), count: 0 })
    }

    /// True where records are printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self.shape, Shape::Json(_))
    }

    /// Prints the records of a batch that lie in the window; returns how many it were.
    pub(crate) fn batch(
        &mut self,
        batch: &BatchRef<'_>,
        window: Window,
        scratch: &mut Scratch,
        output: &mut Output,
    ) -> Result<u64, Failure> {
        let common = BatchView::new(batch);
        if common.is_control && !self.with_control {
            return Ok(0);
        }
        let broken = |e: stratalog::record::BatchError| {
            let place = format!("batch at offset {}", common.base_offset);
            Failure::new(crate::failure::Code::Corrupt, e.to_string()).at(place)
        };
        let mut printed = 0;
        for record in batch.records(scratch).map_err(broken)? {
            let record = record.map_err(broken)?;
            if record.offset() < window.from {
                continue;
            }
            if record.offset() >= window.to || printed >= window.most {
                break;
            }
            printed += 1;
            self.record(common, &record, output)?;
        }
        Ok(printed)
    }

    /// Prints one record.
    #[inline]
    pub(crate) fn record(
        &mut self,
        common: BatchView,
        record: &RecordRef<'_>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        self.count += 1;
        match &self.shape {
            Shape::Values { delim } => {
                output.foreign(record.value().unwrap_or_default())?;
                return output.bytes(delim);
            }
            Shape::Keys { delim } => {
                output.foreign(record.key().unwrap_or_default())?;
                return output.bytes(delim);
            }
            _ => {}
        }
        let view = View::new(self.target, common, record);
        let buffer = output.buffer();
        match &self.shape {
            Shape::Json(style) => json::push_record(buffer, &view, *style),
            Shape::Template(template) => template.render(&view, self.count, self.escape, buffer),
            _ => buffer.extend_from_slice(meta_line(&view).as_bytes()),
        }
        output.spill()
    }
}

fn meta_line(view: &View<'_>) -> String {
    let size =
        |field: Option<&[u8]>| field.map_or_else(|| "null".to_owned(), |bytes| bytes.len().to_string());
    format!(
        "offset={} timestamp={} ({}) leader_epoch={} key_bytes={} value_bytes={} headers={} producer_id={}\n",
        view.offset,
        time_text(view.timestamp.millis()),
        timestamp_type_name(view.batch.timestamp_type),
        view.batch.leader_epoch,
        size(view.key),
        size(view.value),
        view.header_count,
        view.batch.producer_id,
    )
}

/// A timestamp for people; its number where no calendar reaches.
pub(crate) fn time_text(millis: i64) -> String {
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(at) => format!("{at:.3}"),
        Err(_) => format!("{millis}ms"),
    }
}

/// The failure for an offset that lies outside of a log.
pub(crate) fn out_of_range(requested: Offset, start: Offset, end: Offset) -> Failure {
    Error::OffsetOutOfRange { requested, start, end }.into()
}
