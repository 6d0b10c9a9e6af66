//! How records are printed, for all verbs that print some.
//!
//! Lives here: the printer, and the options that `cat`, `tail` and `get` share (`options.rs`). Not here: which records
//! there are (`source`), what each form looks like (`json`, `csv`, `template`). Holds always: what comes from a record
//! reaches a terminal without control bytes.

mod options;

use stratalog::{
    Error, LogReader, Offset,
    record::{BatchRef, RecordRef, Scratch},
};

use crate::{
    csv::{self, Columns},
    decode::TextStyle,
    failure::Failure,
    filter::Filter,
    json::{self, JsonStyle},
    output::Output,
    source::Source,
    target::Target,
    template::Template,
    view::{BatchView, Ends, View, timestamp_type_name},
};

pub(crate) use options::{Format, PrintArgs};

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
        let shape = args.shape(short)?;
        if let Shape::Csv { columns, newline } = &shape {
            csv::push_header(output.buffer(), columns, newline);
        }
        let (style, with_control) = (args.style(output.is_terminal())?, args.prints_control());
        Ok(Self { target, shape, style, filter, ends: Ends::default(), with_control, count: 0 })
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
            Source::Broker(partition) => {
                let Shape::Template(template) = &self.shape else { return Ok(()) };
                let stable = if template.wants_stable_end() { partition.stable_end()? } else { -1 };
                self.ends = Ends { start: partition.start().value(), stable, end: partition.end().value() };
                Ok(())
            }
        }
    }

    /// What is printed from here on lies in another partition.
    pub(crate) fn move_to(&mut self, target: &'t Target) {
        self.target = target;
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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use stratalog::{
        Timestamp,
        record::{BatchBuilder, BatchOptions, Header, Record},
    };

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: PrintArgs,
    }

    #[test]
    fn no_form_brings_control_bytes_to_a_terminal() {
        let evil = b"\x1b]0;x\x07\x7f\xc2\x9b31m\xe2\x80\xae\r\xff";
        // What is text stays text in JSON.
        let text = "\x1b[2J\u{9b}\u{202e}\u{2066}\r";
        let name = text.to_owned();
        let headers = [Header { key: &name, value: Some(evil) }];
        let record = Record::new().headers(&headers).timestamp(Timestamp::from_millis(0x1b));
        let mut builder = BatchBuilder::new(BatchOptions::default());
        builder.push(record.key(evil).value(text.as_bytes())).unwrap();
        builder.push(record.key(text.as_bytes()).value(evil)).unwrap();
        let batch = BatchRef::parse(builder.finish().unwrap()).unwrap();
        let target = Target::new("t-0".into(), false);
        for options in [
            &[][..],
            &["--keys-only"],
            &["--meta-only"],
            &["-J"],
            &["--pretty"],
            &["--json-style", "kcat"],
            &["-J", "--decode", "key=json,value=>B.s,header=s"],
            &["--decode", "value=cs"],
            &["--csv", "--columns", "key,value,headers"],
            &["--format", "%k %v %h %h{%k%v%V{byte}} %d{byte}%d{big64}%d{little16}%R%k{unpack[s]}\n"],
        ] {
            let args = Cli::try_parse_from([&["x"], options].concat()).unwrap().args;
            let mut output = Output::memory(true);
            let mut printer =
                Printer::new(&args, None, None, &target, &mut output).map_err(|e| e.to_string()).unwrap();
            let all = Window { from: Offset::ZERO, to: Offset::MAX, most: u64::MAX };
            assert!(matches!(printer.batch(&batch, all, &mut Scratch::new(), &mut output), Ok(2)));
            let shown = String::from_utf8(output.into_bytes()).expect("only text reaches a terminal");
            let obeyed = |c: char| (c.is_control() && c != '\n') || crate::output::is_bidi_control(c);
            assert!(!shown.contains(obeyed), "{options:?}: {shown:?}");
        }
    }
}
