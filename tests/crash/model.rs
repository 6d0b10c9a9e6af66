//! What was appended, when each acknowledgement came, and what a disk may therefore hold.

use std::collections::BTreeMap;

use stratalog::{LogReader, LogWriter};

/// An appended record. Moments are counts of recorded events.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Vec<u8>,
    pub(crate) begun: usize,
    /// When it was acknowledged as written.
    pub(crate) written: Option<usize>,
    pub(crate) durable: Option<usize>,
    /// When a recovery was seen to have dropped it: from then on it must not come back.
    pub(crate) gone: Option<usize>,
    /// When somebody asked for a cut that takes it away: all that one cut takes goes or stays together.
    pub(crate) cut: Option<usize>,
}

/// A start that was asked for.
#[derive(Clone, Debug)]
struct Start {
    begun: usize,
    done: Option<usize>,
    offset: i64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    entries: BTreeMap<i64, Vec<Entry>>,
    starts: Vec<Start>,
    /// Every append is numbered by a producer, [`producer_of`] its offset.
    pub(crate) is_numbered: bool,
}

/// Who appends at an offset, where producers do.
pub(crate) fn producer_of(offset: i64) -> i64 {
    offset % 3
}

/// Offsets and values, as read.
pub(crate) type Contents = Vec<(i64, Vec<u8>)>;

pub(crate) fn read_all(reader: &LogReader) -> Result<Contents, String> {
    reader
        .owned_records(reader.start())
        .map(|record| {
            let record = record.map_err(|error| format!("reading: {error}"))?;
            Ok((record.offset.value(), record.value.map(|value| value.to_vec()).unwrap_or_default()))
        })
        .collect()
}

impl Model {
    pub(crate) fn begin(&mut self, offset: i64, value: Vec<u8>, now: usize) {
        let entry = Entry { value, begun: now, written: None, durable: None, gone: None, cut: None };
        self.entries.entry(offset).or_default().push(entry);
    }

    pub(crate) fn written(&mut self, offset: i64, now: usize) {
        if let Some(entry) = self.live(offset) {
            entry.written.get_or_insert(now);
        }
    }

    /// Everything acknowledged below `end` is durable.
    pub(crate) fn durable_up_to(&mut self, end: i64, now: usize) {
        for (_, entries) in self.entries.range_mut(..end) {
            if let Some(entry) = entries.last_mut().filter(|entry| entry.gone.is_none()) {
                entry.written.get_or_insert(now);
                entry.durable.get_or_insert(now);
            }
        }
    }

    pub(crate) fn ask_start(&mut self, start: i64, now: usize) {
        self.starts.push(Start { begun: now, done: None, offset: start });
    }

    /// Everything from `end` on is to be cut.
    pub(crate) fn ask_cut(&mut self, end: i64, now: usize) {
        for (_, entries) in self.entries.range_mut(end..) {
            for entry in entries.iter_mut().filter(|entry| entry.gone.is_none()) {
                entry.cut.get_or_insert(now);
            }
        }
    }

    pub(crate) fn start_is(&mut self, start: i64, begun: usize, now: usize) {
        self.starts.push(Start { begun, done: Some(now), offset: start });
    }

    /// An open returned and found `contents`: they are durable, all else is gone.
    pub(crate) fn opened(&mut self, contents: &Contents, now: usize) {
        let found: BTreeMap<_, _> = contents.iter().cloned().collect();
        for (offset, entries) in &mut self.entries {
            for entry in entries {
                if found.get(offset) == Some(&entry.value) {
                    entry.written.get_or_insert(now);
                    entry.durable.get_or_insert(now);
                } else if entry.begun <= now {
                    entry.gone.get_or_insert(now);
                }
            }
        }
    }

    fn live(&mut self, offset: i64) -> Option<&mut Entry> {
        self.entries.get_mut(&offset)?.last_mut()
    }

    /// What is known at a crash, as the past of a new run.
    pub(crate) fn at(&self, moment: usize, is_power_cut: bool) -> Self {
        let happened = |at: Option<usize>| at.filter(|at| *at <= moment).map(|_| 0);
        let mut entries = BTreeMap::new();
        for (offset, known) in &self.entries {
            let known: Vec<_> = known
                .iter()
                .filter(|entry| entry.begun <= moment)
                .map(|entry| Entry {
                    value: entry.value.clone(),
                    begun: 0,
                    written: happened(entry.written).filter(|_| !is_power_cut),
                    durable: happened(entry.durable),
                    gone: happened(entry.gone),
                    cut: happened(entry.cut),
                })
                .collect();
            entries.insert(*offset, known);
        }
        let starts = self.starts.iter().filter(|start| start.begun <= moment);
        let starts = starts
            .map(|start| Start { begun: 0, done: happened(start.done), offset: start.offset })
            .collect();
        Self { entries, starts, is_numbered: self.is_numbered }
    }

    /// What is wrong with a log that was opened after a crash at `moment`.
    pub(crate) fn fault(
        &self,
        writer: &LogWriter,
        moment: usize,
        is_power_cut: bool,
    ) -> Result<Contents, String> {
        let (start, end) = (writer.start().value(), writer.end().value());
        let contents = read_all(&writer.reader())?;
        self.start_fault(start, moment)?;
        self.producers_fault(writer, moment)?;
        let happened = |at: Option<usize>| at.is_some_and(|at| at <= moment);
        let found: BTreeMap<_, _> = contents.iter().cloned().collect();
        if found.len() != contents.len() || !contents.is_sorted_by_key(|(offset, _)| *offset) {
            return Err(format!("offsets do not rise: {:?}", offsets(&contents)));
        }
        for (offset, value) in &contents {
            let known = self.entries.get(offset).map_or(&[][..], Vec::as_slice);
            let Some(entry) = known.iter().find(|entry| entry.value == *value && entry.begun <= moment)
            else {
                return Err(format!("offset {offset} holds what was never appended there"));
            };
            if happened(entry.gone) {
                return Err(format!("offset {offset} was cut and came back"));
            }
            if *offset < start || *offset >= end {
                return Err(format!("offset {offset} lies outside {start}..{end}"));
            }
        }
        let mut is_cut = None;
        for (offset, known) in self.entries.range(start..) {
            for entry in known.iter().filter(|entry| entry.begun <= moment && !happened(entry.gone)) {
                let is_there = found.contains_key(offset);
                if happened(entry.cut) {
                    let is_gone = found.get(offset) != Some(&entry.value);
                    if happened(entry.durable) && *is_cut.get_or_insert(is_gone) != is_gone {
                        return Err(format!("offset {offset}: a cut was done by half (end {end})"));
                    }
                    continue;
                }
                if happened(entry.durable) && found.get(offset) != Some(&entry.value) {
                    return Err(format!("offset {offset} was durable and is not there (end {end})"));
                }
                if !is_power_cut && happened(entry.written) && found.get(offset) != Some(&entry.value) {
                    return Err(format!("offset {offset} was written and is not there (end {end})"));
                }
                if *offset < end && !is_there {
                    return Err(format!("offset {offset} is missing inside {start}..{end}"));
                }
            }
        }
        Ok(contents)
    }

    /// What is known of the producers is what the batches say, and nobody is forgotten whose record was durable, be it
    /// that the record itself was dropped since.
    fn producers_fault(&self, writer: &LogWriter, moment: usize) -> Result<(), String> {
        let known: BTreeMap<i64, (i32, i64)> = writer
            .producers()
            .into_iter()
            .filter_map(|info| Some((info.id, (info.last_sequence, info.last_offset?.value()))))
            .collect();
        let mut sent = BTreeMap::new();
        let reader = writer.reader();
        let mut batches = reader.batches(reader.start());
        while let Some(batch) = batches.next_batch().map_err(|error| format!("reading: {error}"))? {
            if batch.producer_id() >= 0 {
                sent.insert(batch.producer_id(), (batch.last_sequence(), batch.last_offset().value()));
            }
        }
        for (id, last) in &sent {
            if known.get(id) != Some(last) {
                return Err(format!("producer {id} sent {last:?} last, known is {:?}", known.get(id)));
            }
        }
        for (id, last) in known.iter().filter(|(id, _)| !sent.contains_key(id)) {
            if last.1 >= writer.start().value() {
                return Err(format!("producer {id} never sent {last:?}"));
            }
        }
        if !self.is_numbered {
            return Ok(());
        }
        for (offset, entries) in &self.entries {
            let is_durable = |entry: &Entry| {
                entry.begun <= moment
                    && entry.durable.is_some_and(|at| at <= moment)
                    && entry.gone.is_none_or(|at| at > moment)
            };
            let id = producer_of(*offset);
            // Calls of several records are their first one's; the workloads that number make them one by one.
            if entries.iter().any(is_durable) && known.get(&id).is_none_or(|last| last.1 < *offset) {
                return Err(format!("producer {id}: {offset} was durable, known is {:?}", known.get(&id)));
            }
        }
        Ok(())
    }

    fn start_fault(&self, start: i64, moment: usize) -> Result<(), String> {
        let begun = self.starts.iter().filter(|known| known.begun <= moment);
        let most = begun.clone().map(|known| known.offset).max().unwrap_or(0);
        let done = begun.filter(|known| known.done.is_some_and(|done| done <= moment));
        let least = done.map(|known| known.offset).max().unwrap_or(0);
        if start < least || start > most {
            return Err(format!("the log starts at {start}, not within {least}..={most}"));
        }
        Ok(())
    }
}

pub(crate) fn offsets(contents: &Contents) -> Vec<i64> {
    contents.iter().map(|(offset, _)| *offset).collect()
}
