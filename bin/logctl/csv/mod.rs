//! Records as comma-separated values, by RFC 4180 but for the newline, which is the one of this system unless asked.
//!
//! Lives here: a row for a record, written and read. Not here: which records. Holds always: null is a field without
//! anything and empty is `""`, as `PostgreSQL` has it, so that what was written is read again as it was; bytes are never
//! replaced.

mod read;
mod write;

pub(crate) use read::{CsvReader, Row};
pub(crate) use write::{Columns, push_header, push_row};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{write::push_text, *};

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in proptest::collection::vec(proptest::option::of("[a\",\r\n\\PC]{0,6}"), 2..8)) {
            let mut table = b"key,value\n".to_vec();
            for row in rows.chunks_exact(2) {
                for (field, end) in row.iter().zip([b',', b'\n']) {
                    if let Some(field) = field {
                        push_text(&mut table, field.as_bytes());
                    }
                    table.push(end);
                }
            }
            let (mut reader, mut quotes, mut read, mut begin) = (CsvReader::default(), false, Vec::new(), 0);
            while let Some(end) = CsvReader::row_end(&table, begin, &mut quotes) {
                if let Some(row) = reader.row(&table[begin..end]).unwrap() {
                    let own = |field: Option<std::borrow::Cow<'_, [u8]>>| field.map(|f| String::from_utf8(f.into_owned()).unwrap());
                    read.extend([own(row.key), own(row.value)]);
                }
                begin = end + 1;
            }
            prop_assert_eq!(begin, table.len());
            prop_assert_eq!(&read[..], &rows[..rows.len() / 2 * 2]);
        }
    }
}
