//! Messages of formats 0 and 1 in a `.log` file: a line for each, and one for each that it wraps.

use std::{io::Write, path::Path};

use stratalog::{
    inspect::OldEntry,
    record::{BatchRef, Codec, OldMessage, TimestampType},
};

use super::{
    Dump, Stopped,
    log::{json_record, size_of, text_contents},
    problems::shown,
};
use crate::{
    json::JsonStyle,
    json_line::ObjectLine,
    target::Target,
    view::{BatchView, View, timestamp_type_name},
};

impl Dump<'_> {
    pub(super) fn old_message(
        &mut self,
        path: &Path,
        target: &Target,
        entry: &OldEntry<'_>,
    ) -> Result<(), Stopped> {
        let (position, message) = (entry.position, &entry.message);
        if self.args.is_json() {
            json_message(self.out.buffer(), path, entry);
        } else {
            text_message(self.out.buffer(), entry);
        }
        self.out.spill()?;
        let size_bytes = u64::from(entry.size_bytes());
        if !entry.crc_ok() {
            let text = format!(
                "the message at byte {position} (offset {}, {size_bytes} bytes): the stored CRC is {}, its bytes give {}",
                message.offset(),
                message.crc(),
                entry.computed_crc
            );
            self.damage(path, "bad-crc", position, size_bytes, &text, true)?;
        }
        if !self.args.is_deep() {
            return Ok(());
        }
        if self.args.is_json() {
            self.json_records(path, target, entry)
        } else {
            self.text_records(path, entry)
        }
    }

    fn text_records(&mut self, path: &Path, entry: &OldEntry<'_>) -> Result<(), Stopped> {
        let (args, out) = (self.args, &mut self.out);
        let terminal = out.is_terminal();
        let mut wrong = Vec::new();
        let mut failed = None;
        match entry.message.messages(&mut self.scratch) {
            Ok(messages) => {
                for message in messages {
                    match message {
                        Ok(message) => {
                            let is_valid = message.check_crc().is_ok();
                            if !is_valid && !is_alone(&entry.message) {
                                wrong.push(message.offset());
                            }
                            text_record(out.buffer(), args, &entry.message, &message, is_valid, terminal);
                        }
                        Err(error) => failed = Some(error),
                    }
                    out.spill()?;
                }
            }
            Err(error) => failed = Some(error),
        }
        let (position, size_bytes) = (entry.position, u64::from(entry.size_bytes()));
        for offset in wrong {
            let text =
                format!("the message of offset {offset} in the one at byte {position}: its CRC does not fit");
            self.damage(path, "bad-records", position, size_bytes, &text, true)?;
        }
        self.failed(path, position, size_bytes, entry.message.offset(), failed)
    }

    /// In the form that records of format 2 have, of which they are made.
    fn json_records(&mut self, path: &Path, target: &Target, entry: &OldEntry<'_>) -> Result<(), Stopped> {
        let (args, out) = (self.args, &mut self.out);
        let message = &entry.message;
        let mut failed = message.to_batch(&mut self.scratch, &mut self.made).err();
        if failed.is_none()
            && let Ok(batch) = BatchRef::parse(&self.made)
        {
            let view = BatchView { codec: message.codec().ok(), ..BatchView::new(&batch) };
            match batch.records(&mut self.scratch) {
                Ok(records) => {
                    for record in records.flatten() {
                        let style = JsonStyle { with_batch: true, ..JsonStyle::default() };
                        let decoded = args.decoder().map(|decoder| {
                            decoder.decode(record.offset().value(), record.key(), record.value())
                        });
                        let terminal = out.is_terminal();
                        let view = View::new(target, view, &record);
                        json_record(out.buffer(), &view, style, decoded.as_ref(), terminal);
                        out.spill()?;
                    }
                }
                Err(error) => failed = Some(error),
            }
        }
        // That its CRC does not fit has been told.
        let failed = failed.filter(|_| entry.crc_ok());
        self.failed(path, entry.position, u64::from(entry.size_bytes()), message.offset(), failed)
    }
}

/// True where the message wraps no others.
fn is_alone(message: &OldMessage<'_>) -> bool {
    message.codec() == Ok(Codec::None)
}

fn codec_name(message: &OldMessage<'_>) -> &'static str {
    message.codec().map_or("unknown", Codec::name)
}

/// Kafka's name for what format 0 has not.
fn type_name(message: &OldMessage<'_>) -> &'static str {
    message.timestamp_type().map_or("NoTimestampType", TimestampType::name)
}

fn text_message(out: &mut Vec<u8>, entry: &OldEntry<'_>) {
    let message = &entry.message;
    // Writing to a Vec cannot fail.
    let _ = writeln!(
        out,
        "offset: {} position: {} {}: {} size: {} magic: {} compresscodec: {} crc: {} isvalid: {}",
        message.offset(),
        entry.position,
        type_name(message),
        message.timestamp(),
        entry.size_bytes(),
        message.magic(),
        codec_name(message),
        message.crc(),
        entry.crc_ok(),
    );
}

fn json_message(out: &mut Vec<u8>, path: &Path, entry: &OldEntry<'_>) {
    let message = &entry.message;
    let alone = is_alone(message);
    let line = ObjectLine::new(out, "batch")
        .text("file", &shown(path))
        .bare("position", entry.position)
        .bare("size_bytes", entry.size_bytes())
        .maybe("base_offset", alone.then(|| message.offset()))
        .bare("last_offset", message.offset())
        .maybe("count", alone.then_some(1))
        .bare("magic", message.magic())
        .text("codec", codec_name(message))
        .bare("attributes", message.attributes());
    let line = match message.timestamp_type() {
        Some(kind) => line.text("timestamp_type", timestamp_type_name(kind)),
        None => line.bare("timestamp_type", "null"),
    };
    line.bare("max_timestamp", message.timestamp())
        .bare("crc", message.crc())
        .bare("computed_crc", entry.computed_crc)
        .bare("valid", entry.crc_ok())
        .end();
}

fn text_record(
    out: &mut Vec<u8>,
    args: &super::Args,
    whole: &OldMessage<'_>,
    message: &OldMessage<'_>,
    is_valid: bool,
    terminal: bool,
) {
    let mut prefix = "| ";
    if !args.skip_record_metadata {
        let _ = write!(
            out,
            "{prefix}offset: {} {}: {} keySize: {} valueSize: {} isValid: {is_valid} crc: {}",
            message.offset(),
            type_name(whole),
            message.timestamp(),
            size_of(message.key()),
            size_of(message.value()),
            message.crc(),
        );
        prefix = " ";
    }
    if args.prints_data() {
        text_contents(out, args, prefix, (message.offset(), message.key(), message.value()), terminal);
    }
    out.push(b'\n');
}
