//! The server over loopback: against bare `sendfile` and against a null server, over the same kind of socket and with the
//! same client, in turns; what idle connections cost.

#[path = "support/mod.rs"]
#[expect(dead_code, reason = "each bench uses some of it")]
mod support;
#[path = "support/wire.rs"]
mod wire;

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    net::SocketAddr,
    os::unix::fs::FileExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use stratalog::server::{Layers, Server};
use support::{Goal, heading, pair, reserved, timed, warm, workspace};
use wire::{Client, Take, batch, create, fetch, null_server, produce, put};

/// What one fetch asks for: a consumer's default for a partition.
const FETCH_BYTES: i32 = 1 << 20;
/// The bytes of an answer of version 11 before its records, where it is for one partition of a topic of one letter.
const FETCH_HEAD: usize = 67;
const HOT_BYTES: usize = 512 << 20;

fn server(dir: &Path, settings: &[&str]) -> Server {
    let mut layers = Layers::new();
    layers.flag("--dir", "log.dirs", dir.to_str().expect("a name"));
    layers.flag("--listen", "listeners", "PLAINTEXT://127.0.0.1:0");
    // The records have a fixed time, which is too old sooner or later.
    layers.set_override("log.retention.ms=-1");
    for setting in settings {
        layers.set_override(setting);
    }
    Server::bind(layers.resolve().expect("settings")).expect("a server")
}

// ---- fetch -----------------------------------------------------------------------------------------------------------

/// Where things are in requests and answers of `Fetch` for one partition.
struct FetchForm {
    request: Vec<u8>,
    offset_at: usize,
    /// The answer's bytes before its records, its length among them.
    head: Vec<u8>,
    records_bytes: usize,
    batch_bytes: usize,
    /// In the whole batches of an answer.
    records: i64,
}

impl FetchForm {
    /// Looks at a real answer. `batch_bytes` and `batch_records` are those of every batch in the log. As with a broker the
    /// last batch of an answer may be there in part; a client asks for it anew.
    fn learn(
        client: &mut Client,
        topic: &str,
        max_bytes: i32,
        batch_bytes: usize,
        batch_records: i64,
    ) -> Self {
        let ask = |offset| fetch(topic, offset, max_bytes, (1, 0));
        let (request, other) = (ask(0), ask(-1));
        let offset_at = request.iter().zip(&other).position(|(one, other)| one != other).expect("an offset");
        let answer = client.ask(&request);
        let records_bytes =
            u32::from_be_bytes(*answer[FETCH_HEAD - 4..].first_chunk().expect("a length")) as usize;
        assert_eq!(FETCH_HEAD + records_bytes, answer.len());
        let length = u32::try_from(answer.len()).expect("a length").to_be_bytes();
        let head = [&length, &answer[..FETCH_HEAD]].concat();
        let records = batch_records * i64::try_from(records_bytes / batch_bytes).expect("few");
        Self { request, offset_at, head, records_bytes, batch_bytes, records }
    }

    /// Fetches from the beginning to `end`, one at a time.
    fn consume(&self, client: &mut Client, end: i64, take: Take) -> Duration {
        let mut request = self.request.clone();
        timed(|| {
            let mut offset = 0;
            while offset + 2 * self.records < end {
                request[self.offset_at..self.offset_at + 8].copy_from_slice(&i64::to_be_bytes(offset));
                let bytes = client.fetch(&request, self.head.len(), take);
                assert_eq!(bytes, self.records_bytes, "at {offset} of {end}");
                offset += self.records;
            }
        })
    }
}

fn fetches(workspace: &Path) {
    let dir = workspace.join("fetch");
    let server = server(&dir, &["stratalog.acknowledge.at=written"]);
    let mut client = Client::new(server.address());
    let batch = batch(15, 1024);
    client.ask(&create("t", 1));
    let request = produce("t", 1, 1, &batch);
    let batches = HOT_BYTES / batch.len();
    for _ in 0..batches {
        client.ask(&request);
    }
    let end = 15 * i64::try_from(batches).expect("few");
    let file = Arc::new(File::open(dir.join("t-0/00000000000000000000.log")).expect("a segment"));
    for (size, name) in [(FETCH_BYTES, "1 MiB"), (64 << 10, "64 KiB")] {
        let form = FetchForm::learn(&mut client, "t", size, batch.len(), 15);
        let (head, at) = (form.head.clone(), form.offset_at - 4);
        let (records, records_bytes, file) = (form.records, form.records_bytes, Arc::clone(&file));
        let whole = (records_bytes / form.batch_bytes * form.batch_bytes) as u64;
        let bare = null_server(1, move |stream, request| {
            let offset = i64::from_be_bytes(*request[at..].first_chunk().expect("an offset"));
            let mut position = u64::try_from(offset / records).expect("a place") * whole;
            put(stream, &head, true);
            let mut left = records_bytes;
            while left > 0 {
                match rustix::fs::sendfile(stream, &*file, Some(&mut position), left) {
                    Ok(sent) if sent > 0 => left -= sent,
                    _ => return,
                }
            }
        });
        let mut other = Client::new(bare);
        for (take, what) in [(Take::Drop, "drops"), (Take::Copy, "copies")] {
            let work = format!("fetch 512 MiB, {name} a fetch, the receiver {what}");
            if !wants(&work) {
                continue;
            }
            pair(
                &work,
                &Goal::Share(0.95),
                11,
                || form.consume(&mut other, end, take),
                || form.consume(&mut client, end, take),
            );
        }
    }
    drop(client);
    server.shutdown().expect("a stop");
}

// ---- produce ---------------------------------------------------------------------------------------------------------

/// What the null server does with a request before it answers.
#[derive(Clone, Copy)]
enum Work {
    Nothing,
    Write,
    /// Of each of so many files, one after the other.
    WriteAndSync(usize),
}

/// A null server that answers as ours does.
fn null_broker(
    dir: &Path,
    name: &str,
    work: Work,
    bytes: usize,
    connections: usize,
    answer: &[u8],
) -> SocketAddr {
    let length = u32::try_from(answer.len()).expect("a length").to_be_bytes();
    let answer = [&length, answer].concat();
    let count = if let Work::WriteAndSync(count) = work { count } else { 1 };
    let file = |at| reserved(&dir.join(format!("{name}-{at}")), 256 << 20).expect("a file");
    let files: Arc<Vec<File>> = Arc::new((0..count).map(file).collect());
    let position = Arc::new(AtomicU64::new(0));
    null_server(connections, move |stream, request| {
        let records = &request[..bytes];
        if !matches!(work, Work::Nothing) {
            let position = position.fetch_add(bytes as u64, Ordering::Relaxed);
            for file in files.iter() {
                file.write_all_at(records, position).expect("room");
            }
        }
        if let Work::WriteAndSync(_) = work {
            for file in files.iter() {
                file.sync_data().expect("a sync");
            }
        }
        put(stream, &answer, false);
    })
}

/// One row: so many requests, one in flight, on each of so many connections.
struct Produce<'a> {
    work: &'a str,
    goal: Goal,
    is_durable: bool,
    partitions: i32,
    connections: usize,
    records: usize,
    calls: usize,
    null: Work,
}

impl Produce<'_> {
    fn run(&self, workspace: &Path) {
        if !wants(self.work) {
            return;
        }
        let at = if self.is_durable { "durable" } else { "written" };
        let dir = workspace.join("produce");
        let server =
            server(&dir, &[&format!("stratalog.acknowledge.at={at}"), "log.segment.bytes=1073741824"]);
        let batch = batch(self.records, 1024);
        let request = produce("t", self.partitions, 1, &batch);
        let mut first = Client::new(server.address());
        first.ask(&create("t", self.partitions));
        let answer = first.ask(&request).to_vec();
        drop(first);
        let null = null_broker(workspace, "null", self.null, batch.len(), self.connections, &answer);
        let connect = |address| (0..self.connections).map(|_| Client::new(address)).collect::<Vec<_>>();
        let (mut theirs, mut ours) = (connect(null), connect(server.address()));
        let work = |clients: &mut [Client]| {
            timed(|| {
                thread::scope(|scope| {
                    let mut clients = clients.iter_mut();
                    let first = clients.next().expect("a client");
                    for client in clients {
                        scope.spawn(|| self.calls(client, &request, answer.len()));
                    }
                    self.calls(first, &request, answer.len());
                });
            })
        };
        pair(self.work, &self.goal, 11, || work(&mut theirs), || work(&mut ours));
        drop((theirs, ours));
        server.shutdown().expect("a stop");
        fs::remove_dir_all(dir).expect("a directory");
    }

    fn calls(&self, client: &mut Client, request: &[u8], answer: usize) {
        for _ in 0..self.calls {
            assert_eq!(client.ask(request).len(), answer);
        }
    }
}

fn produces(workspace: &Path) {
    let (records, share) = (1, || Goal::Share(0.8));
    let row = |work, goal, is_durable, calls, null| Produce {
        work,
        goal,
        is_durable,
        partitions: 1,
        connections: 1,
        records,
        calls,
        null,
    };
    row("produce 1 KiB, one in flight, written, against no write", share(), false, 10_000, Work::Nothing)
        .run(workspace);
    row("the same against a bare write", share(), false, 10_000, Work::Write).run(workspace);
    Produce {
        records: 15,
        ..row(
            "produce 15 x 1 KiB, one in flight, written, against no write",
            share(),
            false,
            5000,
            Work::Nothing,
        )
    }
    .run(workspace);
    let sync = Work::WriteAndSync(1);
    row("produce 1 KiB, one in flight, durable", share(), true, 500, sync).run(workspace);
    Produce { records: 15, ..row("produce 15 x 1 KiB, one in flight, durable", share(), true, 500, sync) }
        .run(workspace);
    let row = |work, partitions, connections, calls, null| Produce {
        work,
        goal: Goal::Share(1.0),
        is_durable: true,
        partitions,
        connections,
        records,
        calls,
        null,
    };
    row(
        "16 partitions a request, durable, against a sync after the other",
        16,
        1,
        100,
        Work::WriteAndSync(16),
    )
    .run(workspace);
    row("16 connections, one log, durable, against a sync each", 1, 16, 100, Work::WriteAndSync(1))
        .run(workspace);
    row(
        "16 connections, 16 partitions a request, durable, against a sync after the other",
        16,
        16,
        20,
        Work::WriteAndSync(16),
    )
    .run(workspace);
}

// ---- memory ----------------------------------------------------------------------------------------------------------

/// `logctl serve` as a process of its own.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_logctl"))
            .args(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"])
            .arg(dir)
            .env("LOGCTL_CONFIG", "")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("logctl");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.split_whitespace().find_map(|word| word.parse().ok()).expect("an address");
        Self { child, address }
    }

    fn resident_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
        let kib: f64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number");
        kib / 1024.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing of it is to be kept.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn memory(workspace: &Path) {
    const POLLS: usize = 5000;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).expect("descriptors");
    let process = Process::start(&workspace.join("memory"));
    let told = |what: &str, mib: f64, goal: f64| {
        let sign = if mib <= goal { "met" } else { "MISSED" };
        println!("| resident memory, {what} | | {mib:.1} MiB | | <= {goal} MiB | {sign} |");
    };
    // Those who connect first have been served.
    Client::new(process.address).ask(&create("t", 1));
    thread::sleep(Duration::from_secs(1));
    told("idle", process.resident_mib(), 10.0);
    let poll = fetch("t", 0, FETCH_BYTES, (1, 600_000));
    let polls: Vec<_> = (0..POLLS)
        .map(|_| {
            let stream = std::net::TcpStream::connect(process.address).expect("a server");
            std::io::Write::write_all(&mut &stream, &poll).expect("a server that takes it");
            stream
        })
        .collect();
    // Until the last has been parked.
    thread::sleep(Duration::from_secs(3));
    told("5,000 idle long polls", process.resident_mib(), 150.0);
    drop(polls);
}

/// True for a row whose text has what was given; for all where nothing was. `fetch` alone goes for the whole group.
fn wants(work: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--")).peekable();
    words.peek().is_none() || words.any(|word| work.contains(&word) || word.starts_with(work))
}

fn main() {
    let workspace = workspace();
    warm(1024);
    heading("The server");
    if wants("fetch") {
        fetches(workspace.path());
    }
    produces(workspace.path());
    if wants("memory") {
        memory(workspace.path());
    }
}
