//! What verbs print that is no record: objects with named fields, as a table, as JSON lines, or as one JSON value.
//!
//! Lives here: `--output`, and rows with named columns that know all three forms. Not here: where the bytes go
//! (`output.rs`, which also opens and closes the array of `--output json`), how an object is written (`json_line.rs`).
//! Holds always: the objects of `json` are those of `jsonl`; a table escapes control characters in its cells.

use std::fmt::Display;

use clap::ValueEnum;

use crate::{
    failure::Failure,
    output::{Output, push_foreign},
    printer::time_text,
};

/// `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    #[value(alias = "text")]
    Table,
    /// One JSON value: an array of what jsonl prints
    Json,
    /// JSON lines: an object on each
    Jsonl,
}

/// A column: its field in JSON, its heading in a table, or only one of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    field: Option<&'static str>,
    heading: Option<&'static str>,
    is_number: bool,
}

impl Column {
    /// Cells begin below each other.
    pub(crate) const fn text(field: &'static str, heading: &'static str) -> Self {
        Self { field: Some(field), heading: Some(heading), is_number: false }
    }

    /// Cells end below each other.
    pub(crate) const fn number(field: &'static str, heading: &'static str) -> Self {
        Self { field: Some(field), heading: Some(heading), is_number: true }
    }

    /// In JSON only.
    pub(crate) const fn field(field: &'static str) -> Self {
        Self { field: Some(field), heading: None, is_number: false }
    }

    /// In the table only.
    pub(crate) const fn heading(heading: &'static str) -> Self {
        Self { field: None, heading: Some(heading), is_number: false }
    }
}

/// What stands in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    /// A string of anybody's.
    Text(String),
    /// A number, or anything else whose text is JSON.
    Bare(String),
    /// Milliseconds of the epoch: a date in a table.
    Time(i64),
    /// `yes` and `no` in a table.
    Flag(bool),
    /// null; `-` in a table.
    Absent,
}

impl Cell {
    /// A number.
    pub(crate) fn number(number: impl Display) -> Self {
        Self::Bare(number.to_string())
    }

    /// A number that may not be known.
    pub(crate) fn maybe(number: Option<impl Display>) -> Self {
        number.map_or(Self::Absent, Self::number)
    }

    /// A string.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A time that may not be known.
    pub(crate) fn time(millis: Option<i64>) -> Self {
        millis.map_or(Self::Absent, Self::Time)
    }

    /// For a table; nothing in it ends the line.
    fn shown(&self) -> String {
        let text = match self {
            Self::Text(text) => text,
            Self::Bare(text) => return text.clone(),
            Self::Time(millis) => return time_text(*millis),
            Self::Flag(true) => return "yes".to_owned(),
            Self::Flag(false) => return "no".to_owned(),
            Self::Absent => return "-".to_owned(),
        };
        let mut out = Vec::new();
        push_foreign(&mut out, text.as_bytes(), true);
        String::from_utf8_lossy(&out).replace('\n', "\\n").replace('\t', "\\t")
    }
}

/// Rows of the same columns.
#[derive(Debug)]
pub(crate) struct Rows {
    kind: &'static str,
    columns: &'static [Column],
    cells: Vec<Vec<Cell>>,
}

impl Rows {
    /// None yet. `kind`: the field `type` of their objects.
    pub(crate) fn new(kind: &'static str, columns: &'static [Column]) -> Self {
        Self { kind, columns, cells: Vec::new() }
    }

    /// Adds a row: a cell for each column, in their order.
    pub(crate) fn push<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.cells.push(cells.into());
    }

    /// Prints all of them in the form that was asked for; `with_headings` is for tables.
    pub(crate) fn print(&self, out: &mut Output, with_headings: bool) -> Result<(), Failure> {
        if !out.is_json() {
            return self.print_table(out, with_headings);
        }
        for row in &self.cells {
            let mut object = out.object(self.kind);
            for (column, cell) in self.columns.iter().zip(row) {
                let Some(field) = column.field else { continue };
                object = match cell {
                    Cell::Text(text) => object.text(field, text),
                    Cell::Bare(text) => object.bare(field, text),
                    Cell::Time(millis) => object.bare(field, millis),
                    Cell::Flag(flag) => object.bare(field, flag),
                    Cell::Absent => object.bare(field, "null"),
                };
            }
            object.end();
            out.spill()?;
        }
        Ok(())
    }

    /// As a table, whatever was asked for.
    pub(crate) fn print_table(&self, out: &mut Output, with_headings: bool) -> Result<(), Failure> {
        let columns = || self.columns.iter().enumerate().filter(|(_, column)| column.heading.is_some());
        let heads: Vec<&str> = columns().filter_map(|(_, column)| column.heading).collect();
        let rows: Vec<Vec<String>> = self
            .cells
            .iter()
            .map(|row| columns().map(|(at, _)| row.get(at).map(Cell::shown).unwrap_or_default()).collect())
            .collect();
        let mut widths: Vec<usize> = heads.iter().map(|head| head.len()).collect();
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let mut text = String::new();
            for ((cell, width), (_, column)) in cells.zip(&widths).zip(columns()) {
                if !text.is_empty() {
                    text.push_str("  ");
                }
                let pad = " ".repeat(width.saturating_sub(cell.chars().count()));
                text.extend(if column.is_number { [&pad, cell] } else { [cell, &pad] });
            }
            text.truncate(text.trim_end().len());
            text
        };
        if with_headings {
            let head = line(&mut heads.iter().copied());
            let head = out.bold(&head);
            out.line(head)?;
        }
        for row in &rows {
            out.line(line(&mut row.iter().map(String::as_str)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column::text("name", "NAME"),
        Column::number("bytes", "BYTES"),
        Column::text("at", "AT"),
        Column::field("clean"),
        Column::heading("STATE"),
    ];

    fn printed(form: Form, names: &[&str]) -> String {
        let mut rows = Rows::new("thing", COLUMNS);
        for (nth, name) in names.iter().enumerate() {
            let at = if nth == 0 { Some(0) } else { None };
            rows.push([
                Cell::text(*name),
                Cell::number(nth * 1000),
                Cell::time(at),
                Cell::Flag(true),
                Cell::text("fine"),
            ]);
        }
        let mut out = Output::memory(false);
        out.set_form(form);
        assert!(rows.print(&mut out, true).is_ok());
        assert!(out.finish().is_ok());
        String::from_utf8(out.into_bytes()).unwrap()
    }

    #[test]
    fn a_table_is_aligned_and_a_cell_cannot_break_it() {
        assert_eq!(
            printed(Form::Table, &["a", "lo\n\x1b[1mng"]),
            "NAME             BYTES  AT                        STATE\n\
             a                    0  1970-01-01T00:00:00.000Z  fine\n\
             lo\\n\\u{1b}[1mng   1000  -                         fine\n"
        );
        assert_eq!(printed(Form::Table, &[]), "NAME  BYTES  AT  STATE\n");
    }

    #[test]
    fn the_objects_of_both_forms_of_json_are_the_same() {
        let first = r#"{"type":"thing","name":"a","bytes":0,"at":0,"clean":true}"#;
        let second = r#"{"type":"thing","name":"\n","bytes":1000,"at":null,"clean":true}"#;
        assert_eq!(printed(Form::Jsonl, &["a", "\n"]), format!("{first}\n{second}\n"));
        assert_eq!(printed(Form::Json, &["a", "\n"]), format!("[\n{first},\n{second}\n]\n"));
        assert_eq!(printed(Form::Json, &["a"]), format!("[\n{first}\n]\n"));
        assert_eq!(printed(Form::Json, &[]), "[]\n");
        assert_eq!(printed(Form::Jsonl, &[]), "");
    }
}
