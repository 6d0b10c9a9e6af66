//! Where an export goes: standard output, one file, or numbered ones.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use stratalog::{
    Offset,
    record::{Codec, Compression},
};

use super::{Args, Unit, extent};
use crate::{
    csv,
    failure::{Code, Failure},
    globals::Globals,
    stream::{Format, Item, Items, Limits, Opened, Packer, csv_columns},
};

/// Ends the name of a file that is not whole.
const UNFINISHED: &str = ".unfinished";

/// Our own parts are read again, whatever they hold.
const LIMITS: Limits = Limits { batch_bytes: u32::MAX, line_bytes: usize::MAX };

/// Where the parts that are there begin, and where the last unit in them does, which is to be read again.
pub(super) struct Resumed {
    pub(super) first: Offset,
    pub(super) last: Offset,
}

fn first_of(item: &Item<'_>) -> Option<Offset> {
    match item {
        Item::Batch(batch) => extent(batch.as_bytes()).ok().map(|(first, ..)| first),
        Item::Old(message) => Some(message.offset()),
        Item::Record(line) => line.offset.and_then(Offset::new),
    }
}

/// The files of an export.
pub(super) struct Parts {
    to: Option<PathBuf>,
    split: Option<u64>,
    format: Format,
    compression: Compression,
    /// How many parts are whole.
    whole: u64,
    open: Option<Open>,
    /// What the last part ends with: the first unit must be the same.
    expect: Option<Vec<u8>>,
}

/// A file that is being written.
struct Open {
    packer: Packer<Counted>,
    /// Bytes that went in; what came out lags behind where it is packed.
    bytes: u64,
    /// Bytes that went in since the lag was last caught up.
    lag: u64,
    path: Option<PathBuf>,
}

struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Parts {
    pub(super) fn open(args: &Args) -> Result<Self, Failure> {
        let is_text = args.format != Format::Raw && args.compression.codec() == Codec::None;
        if args.to.is_none() && !is_text && io::stdout().is_terminal() {
            return Err(Failure::usage("a terminal is no place for bytes")
                .hint("--to FILE, a pipe, or --format jsonl"));
        }
        let parts = Self {
            to: args.to.clone(),
            split: args.split,
            format: args.format,
            compression: args.compression,
            whole: 0,
            open: None,
            expect: None,
        };
        let Some(to) = &args.to else { return Ok(parts) };
        let there = match args.split {
            None => to.symlink_metadata().is_ok().then(|| to.clone()),
            Some(_) => parts.part_path(1).filter(|path| path.symlink_metadata().is_ok()),
        };
        if let Some(path) = there.as_ref().filter(|path| !path.is_file()) {
            return Err(Failure::usage(format!("{}: not a regular file", path.display()))
                .hint("what is written to standard output goes wherever the shell says"));
        }
        match there {
            Some(_) if args.force && args.split.is_some() => parts.remove_all()?,
            Some(path) if !args.force && !args.resume => {
                let hint = if args.split.is_some() {
                    "--resume goes on behind the parts that are there, --force writes over them"
                } else {
                    "--force writes over it"
                };
                return Err(Failure::other(format!("{} exists", path.display())).hint(hint));
            }
            _ => {}
        }
        Ok(parts)
    }

    fn part_path(&self, number: u64) -> Option<PathBuf> {
        self.to.as_ref().map(|to| with_suffix(to, &format!(".{number:05}")))
    }

    /// Old parts would pass for new ones.
    fn remove_all(&self) -> Result<(), Failure> {
        for number in 1.. {
            let Some(path) = self.part_path(number) else { break };
            match fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(Failure::io("remove", path.display(), &error)),
            }
        }
        Ok(())
    }

    /// Counts the parts that are there. Gives where they begin and where the last unit in them does.
    pub(super) fn resume(&mut self) -> Result<Option<Resumed>, Failure> {
        if self.split.is_none() {
            return Ok(None);
        }
        let mut last = None;
        while let Some(path) = self.part_path(self.whole + 1).filter(|path| path.is_file()) {
            self.whole += 1;
            last = Some(path);
        }
        let Some(last) = last else { return Ok(None) };
        let mut found = None;
        let mut items = self.items_of(&last)?;
        while let Some(item) = items.next_item()? {
            found = first_of(&item).or(found);
            drop(item);
            self.expect = Some(items.bytes().to_vec());
        }
        let Some(last) = found else { return Ok(None) };
        let first = match self.part_path(1) {
            Some(path) => self.items_of(&path)?.next_item()?.as_ref().and_then(first_of),
            None => None,
        };
        Ok(Some(Resumed { first: first.unwrap_or(last), last }))
    }

    fn items_of(&self, part: &Path) -> Result<Items, Failure> {
        let codec = Some(self.compression.codec());
        Ok(Opened::new(Some(part), Some(self.format), codec, LIMITS, &Arc::default())?.items())
    }

    pub(super) fn write(&mut self, unit: Unit<'_>) -> Result<(), Failure> {
        if let Some(expected) = self.expect.take() {
            return if expected == unit.bytes { Ok(()) } else { Err(self.is_another_log()) };
        }
        if let (Some(split), Some(open)) = (self.split, &self.open) {
            let size = match &open.packer {
                Packer::Plain(_) => open.bytes + unit.bytes.len() as u64,
                packer => packed_bytes(packer),
            };
            if size > split && open.bytes > 0 {
                self.close()?;
            }
        }
        if self.open.is_none() {
            self.begin()?;
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        open.bytes += unit.bytes.len() as u64;
        open.lag += unit.bytes.len() as u64;
        let mut written = open.packer.write_all(unit.bytes);
        if self.split.is_some_and(|split| open.lag >= split / 4) {
            open.lag = 0;
            written = written.and_then(|()| open.packer.flush());
        }
        written.map_err(|error| failed(open.path.as_deref(), &error))
    }

    fn is_another_log(&self) -> Failure {
        let path = self.part_path(self.whole).unwrap_or_default();
        let what = format!("{} ends with something that the log does not have there", path.display());
        Failure::new(Code::Corrupt, what).hint(
            "the log was cut since, or it is another one: export it anew, to another name or with --force",
        )
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let path = match (self.split, &self.to) {
            (Some(_), _) => self.part_path(self.whole + 1),
            (None, to) => to.clone(),
        };
        let fail = |error: io::Error| failed(path.as_deref(), &error);
        let file = match &path {
            Some(path) => File::create(with_suffix(path, UNFINISHED)).map_err(fail)?,
            None => io::stdout().as_fd().try_clone_to_owned().map_err(fail)?.into(),
        };
        let mut packer = Packer::new(Counted { file, bytes: 0 }, self.compression).map_err(fail)?;
        if self.format == Format::Csv {
            let mut head = Vec::new();
            csv::push_header(&mut head, &csv_columns(), b"\n");
            packer.write_all(&head).map_err(fail)?;
        }
        self.open = Some(Open { packer, bytes: 0, lag: 0, path });
        Ok(())
    }

    /// Makes the file whole and durable, and gives it its name.
    fn close(&mut self) -> Result<(), Failure> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let path = open.path;
        let fail = |error: io::Error| failed(path.as_deref(), &error);
        let file = open.packer.finish().map_err(fail)?.file;
        self.whole += 1;
        let Some(path) = &path else { return Ok(()) };
        // What is no regular file (a pipe, a device) has nothing to be synced.
        file.sync_all().map_err(fail)?;
        fs::rename(with_suffix(path, UNFINISHED), path).map_err(fail)?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(fail)
    }

    /// Ends the last file; gives how many there are. An empty log is an empty file.
    pub(super) fn finish(mut self) -> Result<u64, Failure> {
        if self.expect.is_some() {
            return Err(self.is_another_log());
        }
        if self.whole == 0 && self.open.is_none() {
            self.begin()?;
        }
        self.close()?;
        Ok(self.whole)
    }

    /// The export failed: says how to go on. What is not whole keeps its private name, or is removed where nothing goes
    /// on with it.
    pub(super) fn give_up(self, failure: Failure, globals: &Globals) -> Failure {
        if let Some(path) = self.open.as_ref().and_then(|open| open.path.as_ref()) {
            let _ = fs::remove_file(with_suffix(path, UNFINISHED));
        }
        let has_begun = self.open.is_some() || self.whole > 0;
        let hint = "--resume goes on behind the last whole part";
        match (self.split, failure.is_quiet()) {
            (Some(_), false) if has_begun => failure.hint(hint),
            (_, false) => failure,
            // Nobody is there to be told.
            (..) if failure.code == Code::ClosedPipe => failure,
            (split, true) => {
                globals.note(match (split, &self.to) {
                    (Some(_), _) => format!("the export is not finished: {hint}"),
                    (None, Some(to)) => {
                        format!("the export is not finished: {} is as it was before", to.display())
                    }
                    (None, None) => "the export is not finished: what was written ends too early".to_owned(),
                });
                failure
            }
        }
    }
}

fn packed_bytes(packer: &Packer<Counted>) -> u64 {
    match packer {
        Packer::Plain(out) => out.get_ref().bytes,
        Packer::Gzip(out) => out.get_ref().bytes,
        Packer::Zstd(out) => out.get_ref().bytes,
        Packer::Lz4(out) => out.get_ref().bytes,
        Packer::Snappy(out) => out.get_ref().bytes,
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn failed(path: Option<&Path>, error: &io::Error) -> Failure {
    match path {
        Some(path) => Failure::io("write", path.display(), error),
        None => Failure::stdout(error),
    }
}
