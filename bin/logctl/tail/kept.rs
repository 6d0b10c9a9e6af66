//! The cursor of a `tail`: where it begins again, and when its place is kept.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use stratalog::{Cursor, Error, Position};

use crate::{
    failure::{Code, Failure},
    target::Target,
};

/// While there is much to print, the place is kept after so much of it, or so long: it is a sync each time.
const DUE_BYTES: u64 = 1 << 20;
const DUE_AFTER: Duration = Duration::from_millis(100);

/// Where a consumer's place is kept.
#[derive(Debug, Clone, clap::Args)]
#[group(multiple = false)]
pub(super) struct KeptArgs {
    /// Go on where the cursor NAME of this log stands, and keep it at what was printed; the first time -n and --since
    /// say where to begin
    #[arg(long, value_name = "NAME")]
    cursor: Option<String>,
    /// The same with the cursor in a file anywhere
    #[arg(long, value_name = "FILE")]
    cursor_file: Option<PathBuf>,
}

impl KeptArgs {
    /// True where the place is to be kept in the log's directory.
    pub(super) fn is_beside_the_log(&self) -> bool {
        self.cursor.is_some()
    }
}

/// A cursor that is held.
pub(super) struct Kept {
    cursor: Cursor,
    is_beside_the_log: bool,
    at: Instant,
    written_bytes: u64,
}

impl Kept {
    /// Takes the cursor that was asked for.
    pub(super) fn open(args: &KeptArgs, target: &Target) -> Result<Option<Self>, Failure> {
        let opened = match (&args.cursor, &args.cursor_file) {
            (None, None) => return Ok(None),
            _ if target.is_file => {
                return Err(Failure::usage("a single segment file has no cursors")
                    .hint("name the partition directory that it lies in"));
            }
            (Some(name), _) => Cursor::open(&target.path, name),
            (None, Some(file)) => Cursor::at_file(file),
        };
        let cursor = opened.map_err(|error| match error {
            Error::InvalidConfig { name, reason } => Failure::usage(format!("{name}: {reason}")),
            Error::Corrupt(found) => Failure::new(Code::Corrupt, found.to_string()),
            Error::NotFound { path } => Failure::not_found(format!("no such directory: {}", path.display())),
            Error::Io { op: "create" | "open", ref source, .. }
                if args.cursor.is_some() && is_refused(source) =>
            {
                Failure::from(error).hint("--cursor-file keeps it where you may write")
            }
            error => error.into(),
        })?;
        let is_beside_the_log = args.cursor.is_some();
        Ok(Some(Self { cursor, is_beside_the_log, at: Instant::now(), written_bytes: 0 }))
    }

    /// Where to go on.
    pub(super) fn position(&self) -> Option<Position> {
        self.cursor.position()
    }

    /// True where the cursor's file lies in the log's directory, and goes when that does.
    pub(super) fn is_beside_the_log(&self) -> bool {
        self.is_beside_the_log
    }

    /// True once so much was printed since the last commit, or so long ago, that another is worth its sync.
    pub(super) fn is_due(&self, printed_bytes: u64) -> bool {
        printed_bytes.saturating_sub(self.written_bytes) >= DUE_BYTES || self.at.elapsed() >= DUE_AFTER
    }

    /// Keeps a place, all before which was written.
    pub(super) fn commit(&mut self, at: Position, written_bytes: u64) -> Result<(), Failure> {
        self.cursor.commit(at)?;
        (self.at, self.written_bytes) = (Instant::now(), written_bytes);
        Ok(())
    }
}

fn is_refused(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem)
}
