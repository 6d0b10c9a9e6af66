//! A `.log` file: a line for each batch, and one for each record.

use std::{io::Write, path::Path};

use stratalog::{
    Offset,
    inspect::{Entry, LogFile, Piece, Reason, Tail},
    record::{BatchError, BatchHeader, BatchRef, Codec, ControlType, EndTxnMarker, RecordRef, control_type},
};

use super::{
    Dump, Stopped,
    coordinator::{
        Decoded, KRAFT_VERSION, KRAFT_VOTERS, LEADER_CHANGE, Reader, SNAPSHOT_FOOTER, SNAPSHOT_HEADER,
    },
    problems::shown,
};
use crate::{
    decode::TextStyle,
    json::{JsonStyle, push_compact_json, push_record_in, push_text_to},
    json_line::ObjectLine,
    output::push_foreign,
    target::Target,
    view::{BatchView, View, timestamp_type_name},
};

impl Dump<'_> {
    pub(super) fn log(&mut self, path: &Path) -> Result<(), Stopped> {
        let log = LogFile::open(path)?;
        self.problems.dumped();
        if self.args.is_json() {
            let base = log.base_offset();
            let line = ObjectLine::new(self.out.buffer(), "file").text("file", &shown(path));
            line.bare("size_bytes", log.len_bytes()).maybe("base_offset", base).end();
        } else if let Some(heading) = snapshot_heading(path) {
            self.out.line(heading)?;
        } else if let Some(base) = log.base_offset() {
            self.out.line(format!("Log starting offset: {base}"))?;
        } else if path.extension().is_some_and(|suffix| suffix == "log") {
            self.problems.damage(path, "the name does not begin with a base offset");
        } else if let Some(first) = log.first_offset(u64::MAX)? {
            self.out.line(format!("Log starting offset: {first}"))?;
        }
        let target = Target::new(path.to_owned(), true);
        let end = self.args.max_bytes.unwrap_or(u64::MAX);
        let mut pieces = log.pieces_from(0, end);
        let mut last = None;
        while let Some(piece) = pieces.next_piece()? {
            self.stop.check()?;
            match piece {
                Piece::Batch(entry) => {
                    if entry.crc_ok() {
                        self.order(path, entry.position, entry.header.base_offset(), last)?;
                        last = Some(entry.header.last_offset());
                    }
                    self.batch(path, &target, &entry)?;
                }
                Piece::Bad { position, size_bytes, reason } => {
                    self.bad(path, position, size_bytes, &reason)?;
                }
                Piece::Old(entry) => {
                    if entry.crc_ok() {
                        self.order(path, entry.position, entry.message.offset(), last)?;
                        last = Some(entry.message.offset());
                    }
                    self.old_message(path, &target, &entry)?;
                }
                _ => {}
            }
        }
        // Kafka's tool says nothing of what lies behind --max-bytes.
        let tail = pieces.tail().cloned().filter(|_| self.args.max_bytes.is_none());
        self.tail(path, tail)
    }

    fn order(
        &mut self,
        path: &Path,
        position: u64,
        first: Offset,
        before: Option<Offset>,
    ) -> Result<(), Stopped> {
        if before.is_none_or(|before| first > before) {
            return Ok(());
        }
        let text =
            format!("the batch at byte {position} begins at offset {first}, not behind the one before it");
        self.damage(path, "offset-order", position, 0, &text, true)
    }

    fn batch(&mut self, path: &Path, target: &Target, entry: &Entry<'_>) -> Result<(), Stopped> {
        let header = &entry.header;
        if self.args.is_json() {
            json_batch(self.out.buffer(), path, entry);
        } else {
            text_batch(self.out.buffer(), entry);
        }
        self.out.spill()?;
        if !entry.crc_ok() {
            let text = format!(
                "the batch at byte {} (offset {}, {} bytes): the stored CRC is {}, its bytes give {}",
                entry.position,
                header.base_offset(),
                header.size_bytes(),
                header.crc(),
                entry.computed_crc
            );
            self.damage(path, "bad-crc", entry.position, u64::from(header.size_bytes()), &text, true)?;
        }
        if !self.args.is_deep() {
            return Ok(());
        }
        if let Some(batch) = &entry.batch {
            self.records(path, target, entry.position, batch)?;
        }
        Ok(())
    }

    fn records(
        &mut self,
        path: &Path,
        target: &Target,
        position: u64,
        batch: &BatchRef<'_>,
    ) -> Result<(), Stopped> {
        let (args, out) = (self.args, &mut self.out);
        let mut failed = None;
        match batch.records(&mut self.scratch) {
            Ok(records) => {
                for record in records {
                    match record {
                        Ok(record) if args.is_json() => {
                            let view = View::new(target, BatchView::new(batch), &record);
                            let style = JsonStyle { with_batch: true, ..JsonStyle::default() };
                            let decoder = args.decoder().filter(|_| !batch.is_control());
                            let decoded = decoder.map(|decoder| {
                                decoder.decode(record.offset().value(), record.key(), record.value())
                            });
                            let terminal = out.is_terminal();
                            json_record(out.buffer(), &view, style, decoded.as_ref(), terminal);
                        }
                        Ok(record) => {
                            let terminal = out.is_terminal();
                            text_record(out.buffer(), args, batch.header(), &record, terminal);
                        }
                        Err(error) => failed = Some(error),
                    }
                    out.spill()?;
                }
            }
            Err(error) => failed = Some(error),
        }
        let size_bytes = u64::from(batch.size_bytes());
        self.failed(path, position, size_bytes, batch.base_offset(), failed)
    }

    /// Tells why the records of a batch could not be read to their end, if they could not.
    pub(super) fn failed(
        &mut self,
        path: &Path,
        position: u64,
        size_bytes: u64,
        offset: Offset,
        failed: Option<BatchError>,
    ) -> Result<(), Stopped> {
        if let Some(error) = failed {
            let text = format!("the records of the batch at byte {position} (offset {offset}): {error}");
            // Nothing is known against records that we do not unpack.
            if matches!(error, BatchError::TooLargeDecompressed { .. } | BatchError::CodecMissing { .. }) {
                self.problems.unread(path, &text);
                return self.damage(path, "unread", position, size_bytes, &text, false);
            }
            self.damage(path, "bad-records", position, size_bytes, &text, true)?;
        }
        Ok(())
    }

    fn bad(&mut self, path: &Path, position: u64, size_bytes: u64, reason: &Reason) -> Result<(), Stopped> {
        if !self.args.is_json() {
            let name = path.file_name().unwrap_or_default().display();
            self.named_line(&format!("Found {size_bytes} invalid bytes at position {position} of {name}"))?;
        }
        let next = position + size_bytes;
        let text = format!("bytes {position}..{next} are no batch and were skipped: {reason}");
        self.damage(path, reason.kind().as_str(), position, size_bytes, &text, true)
    }

    fn tail(&mut self, path: &Path, tail: Option<Tail>) -> Result<(), Stopped> {
        let Some((position, size_bytes)) = tail.as_ref().and_then(Tail::place) else { return Ok(()) };
        let name = path.file_name().unwrap_or_default().display();
        let is_zeros = matches!(tail, Some(Tail::Zeros { .. }));
        if !self.args.is_json() {
            let what = if is_zeros { "zero" } else { "invalid" };
            self.named_line(&format!("Found {size_bytes} {what} bytes at the end of {name}"))?;
        }
        match tail {
            // Reserved room is what a crash leaves; nothing is missing.
            Some(Tail::Zeros { .. }) => {
                let text = "zeros to the end of the file: reserved room";
                self.damage(path, "untrimmed", position, size_bytes, text, false)
            }
            Some(Tail::Partial { .. }) => {
                let text = format!(
                    "the last {size_bytes} bytes, from byte {position}, begin a batch and do not complete it"
                );
                self.damage(path, "torn-tail", position, size_bytes, &text, true)
            }
            Some(Tail::Bad { reason, .. }) => {
                let text =
                    format!("the last {size_bytes} bytes, from byte {position}, are no batch: {reason}");
                self.damage(path, reason.kind().as_str(), position, size_bytes, &text, true)
            }
            _ => Ok(()),
        }
    }

    /// A problem: on its own line of JSON, or for the end of the run.
    pub(super) fn damage(
        &mut self,
        path: &Path,
        kind: &str,
        position: u64,
        size_bytes: u64,
        text: &str,
        is_damage: bool,
    ) -> Result<(), Stopped> {
        if self.args.is_json() {
            ObjectLine::new(self.out.buffer(), "problem")
                .text("file", &shown(path))
                .bare("position", position)
                .bare("size_bytes", size_bytes)
                .text("kind", kind)
                .text("severity", if is_damage { "damage" } else { "warning" })
                .text("detail", text)
                .end();
            self.out.spill()?;
            if is_damage {
                self.problems.shown_damage();
            }
        } else if is_damage {
            self.problems.damage(path, text);
        }
        Ok(())
    }
}

/// What Kafka's tool says first of a snapshot of the cluster's metadata.
fn snapshot_heading(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".checkpoint")?;
    if name == "bootstrap" {
        return Some("KRaft bootstrap snapshot".to_owned());
    }
    let (offset, epoch) = name.split_once('-')?;
    let (offset, epoch): (u64, u32) = (offset.parse().ok()?, epoch.parse().ok()?);
    Some(format!("Snapshot end offset: {offset}, epoch: {epoch}"))
}

fn codec_name(header: &BatchHeader) -> &'static str {
    header.codec().map_or("unknown", Codec::name)
}

fn text_batch(out: &mut Vec<u8>, entry: &Entry<'_>) {
    let header = &entry.header;
    // Writing to a Vec cannot fail.
    let _ = write!(
        out,
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: ",
        header.base_offset(),
        header.last_offset(),
        header.record_count(),
        header.base_sequence(),
        header.last_sequence(),
        header.producer_id(),
        header.producer_epoch(),
        header.leader_epoch(),
        header.is_transactional(),
        header.is_control(),
    );
    let _ = match header.delete_horizon() {
        Some(horizon) => write!(out, "OptionalLong[{horizon}]"),
        None => write!(out, "OptionalLong.empty"),
    };
    let _ = writeln!(
        out,
        " position: {} {}: {} size: {} magic: 2 compresscodec: {} crc: {} isvalid: {}",
        entry.position,
        header.timestamp_type(),
        header.max_timestamp(),
        header.size_bytes(),
        codec_name(header),
        header.crc(),
        entry.crc_ok(),
    );
}

fn json_batch(out: &mut Vec<u8>, path: &Path, entry: &Entry<'_>) {
    let header = &entry.header;
    ObjectLine::new(out, "batch")
        .text("file", &shown(path))
        .bare("position", entry.position)
        .bare("size_bytes", header.size_bytes())
        .bare("base_offset", header.base_offset())
        .bare("last_offset", header.last_offset())
        .bare("count", header.record_count())
        .bare("magic", 2)
        .text("codec", codec_name(header))
        .bare("attributes", header.attributes())
        .text("timestamp_type", timestamp_type_name(header.timestamp_type()))
        .bare("base_timestamp", header.base_timestamp())
        .bare("max_timestamp", header.max_timestamp())
        .maybe("delete_horizon", header.delete_horizon())
        .bare("leader_epoch", header.leader_epoch())
        .bare("producer_id", header.producer_id())
        .bare("producer_epoch", header.producer_epoch())
        .bare("base_sequence", header.base_sequence())
        .bare("last_sequence", header.last_sequence())
        .bare("transactional", header.is_transactional())
        .bare("control", header.is_control())
        .bare("crc", header.crc())
        .bare("computed_crc", entry.computed_crc)
        .bare("valid", entry.crc_ok())
        .end();
}

/// The line of a record as `cat -J` has it, with its type in front.
pub(super) fn json_record(
    out: &mut Vec<u8>,
    view: &View<'_>,
    style: JsonStyle,
    decoded: Option<&Decoded>,
    terminal: bool,
) {
    out.extend_from_slice(b"{\"type\":\"record\",");
    let from = out.len();
    push_record_in(out, view, style, &TextStyle { escape: terminal, ..TextStyle::default() });
    // The object's own brace has been written already.
    if out.get(from) == Some(&b'{') {
        out.remove(from);
    }
    let Some(decoded) = decoded else { return };
    // Beside the bytes of the record, so that nothing is lost where it cannot be decoded.
    let end = out.len().saturating_sub(b"}\n".len());
    out.truncate(end);
    if decoded.is_json {
        let value = decoded.value.as_deref().filter(|value| value.starts_with('{')).unwrap_or("null");
        if let Some(key) = &decoded.key {
            out.extend_from_slice(b",\"decoded_key\":");
            push_compact_json(out, key.as_bytes(), terminal);
        }
        out.extend_from_slice(b",\"decoded_value\":");
        push_compact_json(out, value.as_bytes(), terminal);
        out.extend_from_slice(b"}\n");
    } else {
        out.extend_from_slice(b",\"undecoded\":");
        let text = decoded.key.as_deref().or(decoded.value.as_deref()).unwrap_or_default();
        push_text_to(out, text, terminal);
        out.extend_from_slice(b"}\n");
    }
}

pub(super) fn size_of(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX))
}

fn text_record(
    out: &mut Vec<u8>,
    args: &super::Args,
    batch: &BatchHeader,
    record: &RecordRef<'_>,
    terminal: bool,
) {
    let mut prefix = "| ";
    if !args.skip_record_metadata {
        let _ = write!(
            out,
            "{prefix}offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [",
            record.offset(),
            batch.timestamp_type(),
            record.timestamp(),
            size_of(record.key()),
            size_of(record.value()),
            record.sequence(batch.base_sequence()),
        );
        for (index, header) in record.headers().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            push_foreign(out, header.key, terminal);
        }
        out.push(b']');
        prefix = " ";
        if batch.is_control() {
            text_control(out, record);
        }
    }
    if args.prints_data() && !batch.is_control() {
        text_contents(out, args, prefix, (record.offset(), record.key(), record.value()), terminal);
    }
    out.push(b'\n');
}

/// Key and value, as they are or decoded.
pub(super) fn text_contents(
    out: &mut Vec<u8>,
    args: &super::Args,
    mut prefix: &str,
    (offset, key, value): (Offset, Option<&[u8]>, Option<&[u8]>),
    terminal: bool,
) {
    let decoded = args.decoder().map(|decoder| decoder.decode(offset.value(), key, value));
    let (key, value) = match &decoded {
        Some(decoded) => {
            (decoded.key.as_deref().map(str::as_bytes), decoded.value.as_deref().map(str::as_bytes))
        }
        None => (key, value),
    };
    let mut field = |name: &str, bytes: &[u8]| {
        let _ = write!(out, "{prefix}{name}: ");
        prefix = " ";
        if args.hex {
            for byte in bytes {
                let _ = write!(out, "{byte:02x}");
            }
        } else {
            push_foreign(out, bytes, terminal);
        }
    };
    if let Some(key) = key {
        field("key", key);
    }
    if let Some(value) = value {
        field("payload", value);
    }
}

/// The control records of a cluster's metadata, as JSON in the words of Kafka's tool.
fn metadata_text(control_type: i16, value: &[u8]) -> Option<String> {
    let (name, message) = match control_type {
        2 => ("LeaderChange:", &LEADER_CHANGE),
        3 => ("SnapshotHeader", &SNAPSHOT_HEADER),
        4 => ("SnapshotFooter", &SNAPSHOT_FOOTER),
        5 => ("KRaftVersion", &KRAFT_VERSION),
        6 => ("KRaftVoters", &KRAFT_VOTERS),
        _ => return None,
    };
    // They begin with their version, which is a field of theirs too.
    let version = i16::from_be_bytes(*value.first_chunk()?);
    let json = message.to_json(&mut Reader::new(value), version).ok()?;
    Some(format!("{name} {json}"))
}

fn text_control(out: &mut Vec<u8>, record: &RecordRef<'_>) {
    let key = record.key().unwrap_or_default();
    let _ = match control_type(key) {
        Ok(kind @ (ControlType::Abort | ControlType::Commit)) => {
            match EndTxnMarker::parse(record.value().unwrap_or_default()) {
                Ok(marker) => {
                    let epoch = marker.coordinator_epoch;
                    write!(out, " endTxnMarker: {} coordinatorEpoch: {epoch}", kind.name())
                }
                Err(error) => write!(out, " endTxnMarker: {} ({error})", kind.name()),
            }
        }
        Ok(kind) => {
            let number =
                key.get(2..4).and_then(|bytes| bytes.first_chunk().copied()).map_or(-1, i16::from_be_bytes);
            match metadata_text(number, record.value().unwrap_or_default()) {
                Some(text) => write!(out, " {text}"),
                None => write!(out, " controlType: {}({number})", kind.name()),
            }
        }
        Err(error) => write!(out, " controlType: unreadable ({error})"),
    };
}
