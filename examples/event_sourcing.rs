//! An account whose only truth is the log of what happened to it.
//!
//! - State is rebuilt by reading the log, from its start or from a snapshot that says up to which offset it goes.
//! - A command looks at the state, decides, and appends its event *only if the log still ends where the state does*
//!   (`AppendOptions::expected`). Somebody who decided on an older state is refused, reads on, and decides again.
//!
//! ```text
//! cargo run --example event_sourcing [DIRECTORY]
//! ```
//! Without a directory it works in a temporary one.

use std::{error::Error, fs, path::Path};

use stratalog::{
    AppendOptions, Error as LogError, LogConfig, LogReader, LogWriter, Offset, OpenMode, record::Record,
};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(dir) = std::env::args_os().nth(1) {
        run(Path::new(&dir))?;
        return Ok(());
    }
    let temp = tempfile::tempdir()?;
    run(temp.path())?;
    Ok(())
}

/// What has happened so far, summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// In cents; never below zero.
    pub balance: u64,
    /// Everything below this offset is in the sum: where to read on, and what an append must find.
    pub next: Offset,
}

impl Account {
    const EMPTY: Self = Self { balance: 0, next: Offset::ZERO };

    /// Takes in what was appended since.
    fn catch_up(&mut self, reader: &LogReader) -> Result<(), Box<dyn Error>> {
        let mut events = reader.records(self.next);
        while let Some(event) = events.next_record()? {
            let cents: u64 = std::str::from_utf8(event.value().unwrap_or_default())?.parse()?;
            let balance = match event.key() {
                Some(b"deposited") => self.balance.checked_add(cents),
                Some(b"withdrawn") => self.balance.checked_sub(cents),
                _ => None,
            };
            self.balance = balance.ok_or_else(|| format!("no such event: offset {}", event.offset()))?;
        }
        // Not the last record's offset plus one: a batch may end with offsets that no record has.
        self.next = events.position().offset;
        Ok(())
    }

    /// A snapshot is a hint, like an index: with a wrong or lost one the log is read from its start.
    fn load(path: &Path) -> Self {
        let parse = |text: &str| {
            let (balance, next) = text.trim().split_once(' ')?;
            Some(Self { balance: balance.parse().ok()?, next: Offset::new(next.parse().ok()?)? })
        };
        fs::read_to_string(path).ok().and_then(|text| parse(&text)).unwrap_or(Self::EMPTY)
    }

    fn store(&self, path: &Path) -> std::io::Result<()> {
        let temporary = path.with_extension("tmp");
        fs::write(&temporary, format!("{} {}\n", self.balance, self.next))?;
        fs::rename(temporary, path)
    }
}

/// Appends an event that was decided on in the state `seen`.
fn append(log: &mut LogWriter, seen: &Account, event: &str, cents: u64) -> stratalog::Result<()> {
    let cents = cents.to_string();
    let record = Record::new().key(event.as_bytes()).value(cents.as_bytes());
    let options = AppendOptions { expected: Some(seen.next), ..AppendOptions::default() };
    log.append_records(&[record], options)?;
    Ok(())
}

/// Withdraws, if there is enough; decides again as often as somebody else was quicker. True where it was done.
fn withdraw(log: &mut LogWriter, seen: &mut Account, cents: u64) -> Result<bool, Box<dyn Error>> {
    loop {
        if seen.balance < cents {
            return Ok(false);
        }
        match append(log, seen, "withdrawn", cents) {
            Ok(()) => {
                seen.catch_up(&log.reader())?;
                return Ok(true);
            }
            Err(LogError::UnexpectedOffset { expected, end }) => {
                println!("decided at offset {expected}, the log ends at {end}: looking again");
                seen.catch_up(&log.reader())?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// The whole example, in `dir`: the log in `account-0`, the snapshot beside it. Returns the last state.
pub fn run(dir: &Path) -> Result<Account, Box<dyn Error>> {
    let (log_dir, snapshot) = (dir.join("account-0"), dir.join("account.snapshot"));
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    let mut log = LogWriter::open(&log_dir, config.clone())?;

    // From the snapshot's offset on, or from the start.
    let mut account = Account::load(&snapshot);
    account.catch_up(&log.reader())?;
    append(&mut log, &account, "deposited", 100)?;
    account.catch_up(&log.reader())?;
    println!("{account:?}");

    // Two who look at the same state: the account has enough for one of them.
    let cents = account.balance - 30;
    let (mut ann, mut bob) = (account.clone(), account.clone());
    let (first, second) = (withdraw(&mut log, &mut ann, cents)?, withdraw(&mut log, &mut bob, cents)?);
    println!("withdraw {cents}: ann {first}, bob {second}");
    assert_eq!((first, second), (true, false), "never overdrawn");

    bob.store(&snapshot)?;
    append(&mut log, &bob, "deposited", 5)?;
    log.close()?;

    // The next start reads the snapshot and one event; without the snapshot it comes to the same.
    let log = LogWriter::open(&log_dir, config)?;
    let mut account = Account::load(&snapshot);
    account.catch_up(&log.reader())?;
    let mut anew = Account::EMPTY;
    anew.catch_up(&log.reader())?;
    assert_eq!(account, anew);
    println!("after a restart: {account:?}");
    log.close()?;
    Ok(account)
}
