//! `cat --count-by`: how many records there are for each key, value, partition or header.

use std::collections::HashMap;

use crate::{
    decode::{Form, TextStyle},
    failure::Failure,
    output::{Output, push_decimal},
    view::View,
};

/// Different ones that are counted at most, and the bytes of all of them.
const MOST: usize = 1_000_000;
const MOST_BYTES: usize = 256 << 20;

/// What is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CountBy {
    Key,
    Value,
    Partition,
    Header(String),
}

impl CountBy {
    /// For clap.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "key" => Ok(Self::Key),
            "value" => Ok(Self::Value),
            "partition" => Ok(Self::Partition),
            _ => match text.strip_prefix("header.").or_else(|| text.strip_prefix("headers.")) {
                Some(name) if !name.is_empty() => Ok(Self::Header(name.to_owned())),
                _ => Err(format!("`{text}` cannot be counted by: use key, value, partition or header.NAME")),
            },
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Key => "key".to_owned(),
            Self::Value => "value".to_owned(),
            Self::Partition => "partition".to_owned(),
            Self::Header(name) => format!("header.{name}"),
        }
    }
}

/// What was counted so far.
pub(crate) struct Counts {
    by: CountBy,
    found: HashMap<Vec<u8>, u64>,
    null: u64,
    bytes: usize,
    most: usize,
}

impl Counts {
    pub(crate) fn new(by: CountBy) -> Self {
        Self { by, found: HashMap::new(), null: 0, bytes: 0, most: MOST }
    }

    /// Counts a record.
    pub(crate) fn add(&mut self, view: &View<'_>) -> Result<(), Failure> {
        let partition;
        let field = match &self.by {
            CountBy::Key => view.key,
            CountBy::Value => view.value,
            CountBy::Partition => {
                partition = view.partition.map(|number| number.to_string());
                partition.as_deref().map(str::as_bytes)
            }
            CountBy::Header(name) => view
                .headers
                .clone()
                .filter(|header| header.key == name.as_bytes())
                .last()
                .and_then(|header| header.value),
        };
        let Some(field) = field else {
            self.null += 1;
            return Ok(());
        };
        if let Some(count) = self.found.get_mut(field) {
            *count += 1;
            return Ok(());
        }
        self.bytes += field.len();
        if self.found.len() >= self.most || self.bytes > MOST_BYTES {
            return Err(Failure::other(format!(
                "more than {} different ones up to offset {}",
                self.found.len(),
                view.offset
            ))
            .hint(
                "count them with sort: cat --keys-only | sort | uniq -c; or count a part: -o, -c, --where",
            ));
        }
        self.found.insert(field.to_vec(), 1);
        Ok(())
    }

    /// Prints them, the most frequent first, equal ones by their bytes.
    pub(crate) fn print(self, style: &TextStyle, json: bool, output: &mut Output) -> Result<(), Failure> {
        let form = match self.by {
            CountBy::Key => &style.decode.key,
            CountBy::Value => &style.decode.value,
            CountBy::Partition => &Form::Plain,
            CountBy::Header(_) => &style.decode.header,
        };
        let mut rows: Vec<(Option<Vec<u8>>, u64)> =
            self.found.into_iter().map(|(field, count)| (Some(field), count)).collect();
        if self.null > 0 {
            rows.push((None, self.null));
        }
        rows.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let name = self.by.name();
        for (field, count) in rows {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let out = output.buffer();
            if json {
                let line = |out: &mut Vec<u8>, name: &str| {
                    crate::json::push_text_to(out, name, style.escape);
                    out.push(b':');
                };
                out.push(b'{');
                line(out, &name);
                match &field {
                    None => out.extend_from_slice(b"null"),
                    Some(field) => {
                        if let Some(encoding) = form.push_json(out, field, style.escape) {
                            out.push(b',');
                            line(out, &format!("{name}_encoding"));
                            crate::json::push_text(out, encoding);
                        }
                    }
                }
                out.extend_from_slice(b",\"count\":");
                push_decimal(out, count);
                out.extend_from_slice(b"}\n");
            } else {
                push_decimal(out, count);
                out.push(b'\t');
                match &field {
                    None => out.extend_from_slice(b"<null>"),
                    Some(field) => form.push_text(out, field, style.escape),
                }
                out.push(b'\n');
            }
            output.spill()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use stratalog::record::{BatchBuilder, BatchOptions, BatchRef, Record, Scratch};

    use super::*;
    use crate::{target::Target, view::BatchView};

    #[test]
    fn what_would_fill_the_memory_is_refused() {
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for key in ["a", "b", "a", "c"] {
            builder.push(Record::new().key(key.as_bytes()).value(b"")).unwrap();
        }
        let batch = BatchRef::parse(builder.finish().unwrap()).unwrap();
        let target = Target::new("t-0".into(), false);
        let mut counts = Counts { most: 2, ..Counts::new(CountBy::Key) };
        let mut scratch = Scratch::default();
        let outcomes: Vec<bool> = batch
            .records(&mut scratch)
            .unwrap()
            .map(|record| counts.add(&View::new(&target, BatchView::new(&batch), &record.unwrap())).is_ok())
            .collect();
        assert_eq!(outcomes, [true, true, true, false]);
    }
}
