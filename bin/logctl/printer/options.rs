//! The options of printing, and what they come to.

use stratalog::Isolation;

use super::Shape;
use crate::{
    csv::Columns,
    decode::{Decode, DecodeField, TextStyle},
    failure::Failure,
    grammar,
    json::JsonStyle,
    template::Template,
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
    /// Also topic, partition, time (the timestamp for people), `timestamp_type`, `leader_epoch`, headers (as JSON),
    /// header.NAME, `key_bytes`, `value_bytes`, `producer_id`.
    #[arg(long, value_name = "NAMES", value_parser = Columns::parse)]
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

    /// True where control records are printed too.
    pub(super) fn prints_control(&self) -> bool {
        self.control
    }

    /// How the fields are printed. `escape`: for a terminal.
    pub(super) fn style(&self, escape: bool) -> Result<TextStyle, Failure> {
        Ok(TextStyle {
            escape,
            null: if self.print_null { b"NULL" } else { b"" },
            decode: Decode::of(&self.decode).map_err(|e| Failure::usage(format!("--decode: {e}")))?,
        })
    }

    /// What a record is printed as. `short`: the template of a verb that has a short option for it.
    pub(super) fn shape(&self, short: Option<&Format>) -> Result<Shape, Failure> {
        let delim = grammar::escapes(&self.delim).map_err(|e| Failure::usage(format!("--delim: {e}")))?;
        let format = self.format.as_ref().or(short);
        let is_json =
            self.json || self.pretty || self.json_style.is_some() || matches!(format, Some(Format::Json));
        let is_csv = self.csv || matches!(format, Some(Format::Csv));
        if self.columns.is_some() && !is_csv {
            return Err(Failure::usage("--columns are those of a table: give --csv too"));
        }
        if self.batch_meta && !is_json {
            return Err(Failure::usage("--batch-meta adds to JSON records: give --json too"));
        }
        let style = JsonStyle {
            without_value: self.keys_only,
            meta_only: self.meta_only,
            with_batch: self.batch_meta,
            pretty: self.pretty,
            kcat: self.json_style == Some(JsonNames::Kcat),
        };
        Ok(if let Some(Format::Template(template)) = format {
            Shape::Template(template.clone())
        } else if is_json {
            Shape::Json(style)
        } else if is_csv {
            Shape::Csv { columns: self.columns.clone().unwrap_or_default(), newline: delim }
        } else if self.meta_only {
            Shape::Meta
        } else if self.keys_only {
            Shape::Keys { delim }
        } else {
            Shape::Values { delim }
        })
    }

    /// True where JSON is to be easy to read.
    pub(crate) fn is_pretty(&self) -> bool {
        self.pretty
    }
}
