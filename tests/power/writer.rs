//! The process whose end is near: appends without end, and says what it was told.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use stratalog::{AppendOptions, Durability, FsyncPolicy, LogConfig, LogWriter, OpenMode, record::Record};

const DIR: &str = "STRATALOG_TEST_WRITER_DIR";
const POLICY: &str = "STRATALOG_TEST_WRITER_POLICY";
const SEED: &str = "STRATALOG_TEST_WRITER_SEED";

pub(crate) const POLICIES: [&str; 5] = ["commit", "bytes", "records", "interval", "never"];

/// What the writer is to do.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) dir: PathBuf,
    pub(crate) policy: String,
    pub(crate) seed: u64,
}

impl Order {
    pub(crate) fn from_environment() -> Option<Self> {
        Some(Self {
            dir: std::env::var_os(DIR)?.into(),
            policy: std::env::var(POLICY).unwrap(),
            seed: std::env::var(SEED).unwrap().parse().unwrap(),
        })
    }
}

pub(crate) fn config(policy: &str) -> LogConfig {
    let mut config = LogConfig::default();
    config.open = OpenMode::CreateIfMissing;
    config.segment_bytes = 32 << 10;
    config.index_interval_bytes = 512;
    config.retention.bytes = Some(256 << 10);
    config.fsync = match policy {
        "commit" => FsyncPolicy::Commit,
        "bytes" => FsyncPolicy::EveryBytes(10_000),
        "records" => FsyncPolicy::EveryRecords(23),
        "interval" => FsyncPolicy::Interval(Duration::from_millis(5)),
        _ => FsyncPolicy::Never,
    };
    config
}

/// What the record at `offset` holds.
pub(crate) fn value(offset: i64) -> Vec<u8> {
    let len = usize::try_from(20 + (offset.unsigned_abs() * 7919) % 1900).unwrap();
    format!("{offset:x}.").into_bytes().into_iter().cycle().take(len).collect()
}

/// Says a line at once: a pipe is not the terminal that flushes by itself.
fn say(word: &str, number: i64) {
    let mut out = std::io::stdout().lock();
    // Nobody listens any more: then the end has come.
    if writeln!(out, "{word} {number}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

pub(crate) fn run(order: &Order) {
    let mut state = order.seed | 1;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    loop {
        let mut log = match LogWriter::open(&order.dir, config(&order.policy)) {
            Ok(log) => log,
            Err(error) => {
                say("unopened", 0);
                eprintln!("open: {error}");
                std::process::exit(3);
            }
        };
        say("durable", log.durable_end().value());
        for _ in 0..next(400) {
            let (first, count) = (log.end().value(), i64::try_from(1 + next(6)).unwrap());
            say("try", first + count);
            let values: Vec<_> = (first..first + count).map(value).collect();
            let records: Vec<_> = values.iter().map(|value| Record::value_only(value)).collect();
            match log.append_records(&records, AppendOptions::default()) {
                Ok(appended) if appended.durability == Durability::Durable => say("durable", first + count),
                Ok(_) => say("written", first + count),
                Err(error) => after_failure(&mut log, &error),
            }
            if next(25) == 0 {
                match log.maintain() {
                    Ok(done) => say("start", done.start.value()),
                    Err(error) => after_failure(&mut log, &error),
                }
                say("durable", log.durable_end().value());
            }
            if next(60) == 0 {
                match log.sync() {
                    Ok(end) => say("durable", end.value()),
                    Err(error) => after_failure(&mut log, &error),
                }
            }
        }
        let end = log.end().value();
        // Half of the time it goes without a word, as a program does that forgets to close.
        if next(2) == 0 {
            match log.close() {
                Ok(()) => say("durable", end),
                Err(error) => {
                    eprintln!("close: {error}");
                    say("failed", end);
                    std::process::exit(4);
                }
            }
        }
    }
}

/// A sync failed: nothing may be acknowledged from now on.
fn after_failure(log: &mut LogWriter, error: &stratalog::Error) -> ! {
    eprintln!("failed: {error}");
    say("failed", log.durable_end().value());
    for _ in 0..3 {
        if log.append_records(&[Record::value_only(b"x")], AppendOptions::default()).is_ok() {
            say("after-failure", log.end().value());
        }
        if log.sync().is_ok() {
            say("after-failure", log.durable_end().value());
        }
    }
    // No drop: nothing is put in order.
    std::process::exit(5);
}

/// What the writer has said so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) tried: i64,
    pub(crate) written: i64,
    pub(crate) durable: i64,
    pub(crate) start: i64,
    pub(crate) failed: bool,
    pub(crate) unopened: bool,
    /// Acknowledged after a sync had failed.
    pub(crate) after_failure: bool,
    pub(crate) lines: u64,
}

/// A running writer. Ends with its owner.
pub(crate) struct Writer {
    child: Child,
    told: Arc<Mutex<Told>>,
    ear: Option<JoinHandle<()>>,
}

impl Writer {
    /// `through`: a command that runs it, such as strace with its options.
    pub(crate) fn start(order: &Order, through: &[&str]) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut command = match through.split_first() {
            None => Command::new(own),
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(own);
                command
            }
        };
        command.env(DIR, &order.dir).env(POLICY, &order.policy).env(SEED, order.seed.to_string());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let told = Arc::new(Mutex::new(Told::default()));
        let (lines, into) = (BufReader::new(child.stdout.take().unwrap()), Arc::clone(&told));
        let ear = std::thread::spawn(move || {
            for line in lines.split(b'\n').map_while(Result::ok) {
                into.lock().unwrap().hear(&String::from_utf8_lossy(&line));
            }
        });
        Self { child, told, ear: Some(ear) }
    }

    pub(crate) fn told(&self) -> Told {
        *self.told.lock().unwrap()
    }

    /// SIGKILL; returns all that it had said.
    pub(crate) fn kill(mut self) -> Told {
        self.end();
        self.told()
    }

    /// Waits for it to end by itself.
    pub(crate) fn wait(mut self) -> Told {
        let _ = self.child.wait();
        self.end();
        self.told()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(ear) = self.ear.take() {
            let _ = ear.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}

impl Told {
    fn hear(&mut self, line: &str) {
        let Some((word, number)) = line.split_once(' ') else { return };
        // The last line of a killed writer may be cut.
        let Ok(number) = number.parse::<i64>() else { return };
        self.lines += 1;
        match word {
            "try" => self.tried = self.tried.max(number),
            "written" => self.written = self.written.max(number),
            "durable" => {
                self.durable = self.durable.max(number);
                self.written = self.written.max(number);
            }
            "start" => self.start = self.start.max(number),
            "failed" => self.failed = true,
            "unopened" => self.unopened = true,
            "after-failure" => self.after_failure = true,
            _ => {}
        }
    }
}

/// After a power cut the machine starts again under another boot id: what the control page tells means nothing then.
pub(crate) fn forget_boot(dir: &Path) {
    let path = dir.join(".stratalog-control");
    if let Ok(mut page) = std::fs::read(&path)
        && let Some(boot) = page.get_mut(16..32)
    {
        boot.fill(0);
        std::fs::write(&path, &page).unwrap();
    }
}
