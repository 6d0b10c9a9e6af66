//! How records are printed: the options that `cat`, `tail` and `get` share, and what follows from them.

use stratalog::{
    Error, Isolation, LogReader, Offset,
    record::{BatchRef, RecordRef, Scratch},
};

use crate::{
    csv::{self, Columns},
    decode::{Decode, DecodeField, TextStyle},
    failure::Failure,
    filter::Filter,
    grammar,
    json::{self, JsonStyle},
    output::Output,
    source::Source,
    target::Target,
    template::Template,
    view::{BatchView, Ends, View, timestamp_type_name},
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
    /// The names in JSON: ours, or kcat's (ts, tstype, payload, headers in one array); implies --json
    #[arg(long, value_enum, value_name = "STYLE", conflicts_with = "format")]
    json_style: Option<JsonNames>,
    /// Add to each JSON record the batch that it lies in
    #[arg(long)]
    batch_meta: bool,
    /// Print records as CSV (RFC 4180) with a row of names; `append --format csv` reads it
    ///
    /// Null is a field without anything, empty is "". Rows end in a newline, or in what -D says (RFC 4180 has \r\n).
    #[arg(long, conflicts_with_all = ["format", "json", "pretty", "json_style", "meta_only", "keys_only"])]
    csv: bool,
    /// Columns of --csv, with commas; default: offset,timestamp,key,value
    ///
    /// Also topic, partition, time (the timestamp for people), timestamp_type, leader_epoch, headers (as JSON),
    /// header.NAME, key_bytes, value_bytes, producer_id.
    #[arg(long, value_name = "NAMES", value_parser = Columns::parse, requires = "csv")]
    columns: Option<Columns>,
    /// Leave out key, value and headers
    #[arg(long, conflicts_with = "format")]
    meta_only: bool,
    /// Print keys only
    #[arg(long, conflicts_with_all = ["format", "meta_only"])]
    keys_only: bool,
    /// Print each record with a template: '%o %k=%v\n'; nothing is added to it; also json and csv
    ///
    /// %t topic, %p partition, %o offset, %k key, %v or %s value, %d timestamp in milliseconds,
    /// %d{strftime[%F %T]} or %d{go[2006-01-02 15:04:05]} the same in UTC, %e leader epoch, %i count of records printed.
    /// %h: all headers, as NAME=VALUE,NAME=VALUE; %h{..}: what is in the braces for each header (it does not choose
    /// one), where %k %v %K %V are the header's.
    /// %T %K %V %H: length of topic (kcat's %T is %d), key and value, number of headers; %S %R: length of the value or -1
    /// for null, as text and as four bytes.
    /// %a{compression}, %a{timestamp-type}, %a{transactional-bit}, %a{control-bit}: of the batch; %x %y: producer's id
    /// and epoch; %[ %| %]: start, last stable offset and end of the log.
    /// %% %{ %}: these signs; \n \t \r \0 \\ and \xNN are understood.
    /// Texts take {hex}, {base64}, {base64raw} or {unpack[<bBhH>iIqQc.s$]}; numbers {ascii}, {hex}, {hex4} to {hex64},
    /// {big8} to {big64}, {little8} to {little64}, {byte} or {bool}: %o{hex64}. For [..] any run of [ { ( # or another
    /// sign and its counterpart will do. Inside of %h{..} there are no other fields, and Avro is not decoded.
    #[arg(long, value_name = "TEMPLATE", value_parser = Format::parse, conflicts_with = "json")]
    format: Option<Format>,
    /// What fields are: key=FORM,value=FORM,header=FORM
    ///
    /// Forms: utf8, hex, base64, json (put into JSON as it is), i8 to i64 and u8 to u64, f32, f64, with be (default) or le,
    /// or a pack string such as >iQ. What does not have the form is printed as 0x.., in JSON as without --decode.
    #[arg(long, value_name = "FORMS", value_delimiter = ',', value_parser = DecodeField::parse)]
    decode: Vec<DecodeField>,
    /// Print NULL for null where text is printed; else it is nothing
    #[arg(short = 'Z', long)]
    print_null: bool,
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

/// `--json-style`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum JsonNames {
    Logctl,
    Kcat,
}

/// `--format`: a template, or the name of a format, which no template of one word is.
#[derive(Debug, Clone)]
pub(crate) enum Format {
    Template(Template),
    Json,
    Csv,
}

impl Format {
    /// For clap.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "json" | "jsonl" => Ok(Self::Json),
            "csv" => Ok(Self::Csv),
            template => Template::parse(template).map(Self::Template),
        }
    }
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
    style: TextStyle,
    filter: Option<Filter>,
    ends: Ends,
    with_control: bool,
    count: u64,
}

enum Shape {
    Values { delim: Vec<u8> },
    Keys { delim: Vec<u8> },
    Meta,
    Json(JsonStyle),
    Csv { columns: Columns, newline: Vec<u8> },
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
    /// `short`: the template of a verb that has a short option for it. Prints the names of columns, where there are some.
    pub(crate) fn new(
        args: &PrintArgs,
        short: Option<&Format>,
        filter: Option<Filter>,
        target: &'t Target,
        output: &mut Output,
    ) -> Result<Self, Failure> {
        let delim = grammar::escapes(&args.delim).map_err(|e| Failure::usage(format!("--delim: {e}")))?;
        let format = args.format.as_ref().or(short);
        let is_json =
            args.json || args.pretty || args.json_style.is_some() || matches!(format, Some(Format::Json));
        if args.batch_meta && !is_json {
            return Err(Failure::usage("--batch-meta adds to JSON records: give --json too"));
        }
        let style = JsonStyle {
            without_value: args.keys_only,
            meta_only: args.meta_only,
            with_batch: args.batch_meta,
            pretty: args.pretty,
            kcat: args.json_style == Some(JsonNames::Kcat),
        };
        let shape = if let Some(Format::Template(template)) = format {
            Shape::Template(template.clone())
        } else if is_json {
            Shape::Json(style)
        } else if args.csv || matches!(format, Some(Format::Csv)) {
            Shape::Csv { columns: args.columns.clone().unwrap_or_default(), newline: delim }
        } else if args.meta_only {
            Shape::Meta
        } else if args.keys_only {
            Shape::Keys { delim }
        } else {
            Shape::Values { delim }
        };
        if let Shape::Csv { columns, newline } = &shape {
            csv::push_header(output.buffer(), columns, newline);
        }
        let style = TextStyle {
            escape: output.is_terminal(),
            null: if args.print_null { b"NULL" } else { b"" },
            decode: Decode::of(&args.decode).map_err(|e| Failure::usage(format!("--decode: {e}")))?,
        };
        let (with_control, ends) = (args.control, Ends::default());
        Ok(Self { target, shape, style, filter, ends, with_control, count: 0 })
    }

    /// Looks where the log begins and ends, for templates that print it.
    pub(crate) fn look_at(&mut self, source: &Source) -> Result<(), Failure> {
        match source {
            Source::Log(reader) => self.look_at_log(reader),
            Source::File(_) => {
                let (start, end) = (source.start().value(), source.end().value());
                self.ends = Ends { start, end, ..Ends::default() };
                Ok(())
            }
        }
    }

    /// The same for a log.
    pub(crate) fn look_at_log(&mut self, reader: &LogReader) -> Result<(), Failure> {
        let Shape::Template(template) = &self.shape else { return Ok(()) };
        let (start, end) = (reader.start().value(), reader.written_end().value());
        let stable = if template.wants_stable_end() { reader.last_stable_offset()?.value() } else { -1 };
        self.ends = Ends { start, stable, end };
        Ok(())
    }

    /// How the fields are printed.
    pub(crate) fn style(&self) -> &TextStyle {
        &self.style
    }

    /// True where not every record is printed.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some()
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
        if self.filter.as_ref().is_some_and(|filter| !filter.may_pass(batch)) {
            return Ok(0);
        }
        let broken = |e: stratalog::record::BatchError| broken(common.base_offset, &e);
        let mut printed = 0;
        for record in batch.records(scratch).map_err(broken)? {
            let record = record.map_err(broken)?;
            if record.offset() < window.from {
                continue;
            }
            if record.offset() >= window.to || printed >= window.most {
                break;
            }
            if self.passes(common, &record) {
                printed += 1;
                self.record(common, &record, output)?;
            }
        }
        Ok(printed)
    }

    /// Gives each record of a batch that would be printed, from an offset on.
    pub(crate) fn visit(
        &self,
        batch: &BatchRef<'_>,
        window: Window,
        scratch: &mut Scratch,
        visit: &mut dyn FnMut(&View<'_>) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let common = BatchView::new(batch);
        let is_hidden = common.is_control && !self.with_control;
        if is_hidden || self.filter.as_ref().is_some_and(|filter| !filter.may_pass(batch)) {
            return Ok(0);
        }
        let broken = |e: stratalog::record::BatchError| broken(common.base_offset, &e);
        let mut count = 0;
        for record in batch.records(scratch).map_err(broken)? {
            let record = record.map_err(broken)?;
            if record.offset() >= window.to || count >= window.most {
                break;
            }
            if record.offset() >= window.from && self.passes(common, &record) {
                count += 1;
                visit(&View::new(self.target, common, &record))?;
            }
        }
        Ok(count)
    }

    #[inline]
    fn passes(&self, common: BatchView, record: &RecordRef<'_>) -> bool {
        let Some(filter) = &self.filter else { return true };
        filter.passes(&View::new(self.target, common, record))
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
        let style = &self.style;
        let (field, form, delim) = match &self.shape {
            Shape::Values { delim } => (record.value(), &style.decode.value, delim),
            Shape::Keys { delim } => (record.key(), &style.decode.key, delim),
            _ => return self.whole_record(common, record, output),
        };
        let buffer = output.buffer();
        match field {
            Some(bytes) => form.push_text(buffer, bytes, style.escape),
            None => buffer.extend_from_slice(style.null),
        }
        output.bytes(delim)
    }

    fn whole_record(
        &self,
        common: BatchView,
        record: &RecordRef<'_>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let mut view = View::new(self.target, common, record);
        view.ends = self.ends;
        let buffer = output.buffer();
        match &self.shape {
            Shape::Json(style) => json::push_record_in(buffer, &view, *style, &self.style),
            Shape::Template(template) => template.render(&view, self.count, &self.style, buffer),
            Shape::Csv { columns, newline } => csv::push_row(buffer, &view, columns, newline, &self.style),
            _ => buffer.extend_from_slice(meta_line(&view).as_bytes()),
        }
        output.spill()
    }
}

fn broken(base: Offset, error: &stratalog::record::BatchError) -> Failure {
    Failure::new(crate::failure::Code::Corrupt, error.to_string()).at(format!("batch at offset {base}"))
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
