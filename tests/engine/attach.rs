//! Readers that attach to a log which another process writes: this test program again, told over a pipe what to do.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    os::unix::fs::{FileExt, MetadataExt},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stratalog::{Error, Follow, LogReader, LogWriter, Position, ReadOptions, Wait};

use crate::support::{TempLog, at, expected, fill, pairs};

const CONTROL: &str = ".stratalog-control";
const WAITERS: &str = ".stratalog-waiters";
/// Bytes of the control page.
const STATE: u64 = 4 * 8;
const BOOT: u64 = 2 * 8;
/// The one place that a reader may change.
const FLAG: usize = 16 * 4;

const DIR: &str = "STRATALOG_TEST_ATTACH_DIR";

/// A writer in a process of its own.
struct Elsewhere {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Elsewhere {
    fn start(log: &TempLog) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "attach::the_other_process", "--ignored", "--nocapture"])
            .env(DIR, log.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        let mut elsewhere = Self { process, orders, answers };
        elsewhere.answer();
        elsewhere
    }

    fn answer(&mut self) {
        let mut line = String::new();
        while !line.starts_with('#') {
            line.clear();
            assert!(self.answers.read_line(&mut line).unwrap() > 0, "the writer ended");
        }
    }

    /// Has something done, and waits until it is.
    fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
        self.answer();
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "the other process of the tests here"]
fn the_other_process() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let mut config = TempLog::small().config;
    config.segment_bytes = 1 << 20;
    let mut log = Some(LogWriter::open(&dir, config.clone()).unwrap());
    println!("#");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let (order, number) = (words.next().unwrap(), words.next().map_or(0, |word| word.parse().unwrap()));
        let open = log.as_mut();
        match order {
            "append" => fill(open.unwrap(), number),
            "sync" => drop(open.unwrap().sync().unwrap()),
            "roll" => open.unwrap().roll().unwrap(),
            "start" => {
                open.unwrap().advance_start(at(number as i64)).unwrap();
                log.as_mut().unwrap().maintain().unwrap();
            }
            "epoch" => open.unwrap().set_leader_epoch(number as i32).unwrap(),
            "close" => log.take().unwrap().close().unwrap(),
            "open" => log = Some(LogWriter::open(&dir, config.clone()).unwrap()),
            other => panic!("{other}"),
        }
        println!("#");
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn now() -> Instant {
    Instant::now()
}

fn follow_durable() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.follow = Follow::Durable;
    options
}

#[test]
fn an_attached_reader_sees_each_end_as_it_is_published() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = Elsewhere::start(&log);
    let reader = log.reader();
    let durable = reader.clone().with_options(follow_durable());
    for end in 1..50 {
        writer.tell("append 1");
        assert_eq!(reader.wait_past(at(end - 1), now()), Wait::Advanced);
        assert_eq!(reader.end(), at(end));
        assert_eq!(pairs(&reader), expected(0..end));
        assert!(durable.end() < at(end), "nothing was synced");
    }
    assert_eq!(durable.wait_past(at(48), now()), Wait::TimedOut);
    writer.tell("sync");
    assert_eq!(durable.wait_past(at(48), now()), Wait::Advanced);
    assert_eq!(durable.end(), at(49));
}

#[test]
fn a_reader_that_sleeps_is_woken_by_each_kind_of_change() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = Elsewhere::start(&log);
    let reader = log.reader();
    let changes: [&[&str]; 5] = [
        &["append 1"],
        &["roll", "append 1"],
        &["epoch 3", "append 2"],
        &["close", "open", "append 1"],
        &["sync"],
    ];
    for change in changes {
        let reader =
            if change == ["sync"] { reader.clone().with_options(follow_durable()) } else { reader.clone() };
        reader.refresh().unwrap();
        let (waiting, from) = (reader.clone(), reader.end());
        let waiter = std::thread::spawn(move || waiting.wait_past(from, soon()));
        // Let it fall asleep; that it had, if it had, makes the test no weaker.
        std::thread::sleep(Duration::from_millis(20));
        for order in change {
            writer.tell(order);
        }
        assert_eq!(waiter.join().unwrap(), Wait::Advanced, "{change:?}");
        assert!(reader.end() > from);
    }
    assert_eq!(pairs(&reader), expected(0..5));
}

#[test]
fn readers_follow_across_rolls_retention_and_restarts() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = Elsewhere::start(&log);
    let reader = log.reader();
    let mut walk = reader.records(at(0));
    let mut next = 0;
    let mut read_on = |next: &mut i64| {
        while let Some(record) = walk.next_record().unwrap() {
            assert_eq!(record.offset(), at(*next));
            assert_eq!(record.value().unwrap(), next.to_string().as_bytes());
            *next += 1;
        }
    };
    for round in 1..=6 {
        for _ in 0..3 {
            writer.tell("append 7");
            writer.tell("roll");
        }
        writer.tell("append 4");
        assert_eq!(reader.wait_past(at(next), soon()), Wait::Advanced);
        read_on(&mut next);
        assert_eq!(next, round * 25);
        match round {
            2 => writer.tell("start 30"),
            3 => {
                writer.tell("close");
                writer.tell("open");
            }
            4 => {
                writer.kill();
                writer = Elsewhere::start(&log);
            }
            _ => {}
        }
    }
    assert_eq!(reader.start(), at(30));
    assert_eq!(pairs(&reader), expected(30..150));
    assert_eq!(pairs(&log.reader()), expected(30..150));
    let bases = |reader: &LogReader| reader.segments().iter().map(|one| one.base_offset).collect::<Vec<_>>();
    assert_eq!(bases(&reader), bases(&log.reader()));
}

#[test]
fn what_a_killed_writer_published_holds() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = Elsewhere::start(&log);
    let attached = log.reader();
    writer.tell("append 10");
    writer.tell("sync");
    writer.tell("append 10");
    attached.refresh().unwrap();
    writer.kill();
    for reader in [&attached, &log.reader()] {
        reader.refresh().unwrap();
        assert_eq!((reader.end(), reader.durable_end()), (at(20), at(10)));
        assert_eq!(reader.wait_past(at(20), now()), Wait::TimedOut);
        assert_eq!(pairs(reader), expected(0..20));
    }
    let waiting = attached.clone();
    let waiter = std::thread::spawn(move || waiting.wait_past(at(20), soon()));
    let mut writer = Elsewhere::start(&log);
    writer.tell("append 1");
    assert_eq!(waiter.join().unwrap(), Wait::Advanced);
    assert_eq!((attached.end(), attached.durable_end()), (at(21), at(20)));
}

fn set_word(log: &TempLog, position: u64, value: u64) {
    let page = File::options().write(true).open(log.path().join(CONTROL)).unwrap();
    page.write_all_at(&value.to_le_bytes(), position).unwrap();
}

#[test]
fn while_a_writer_is_opening_the_last_view_stands() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = Elsewhere::start(&log);
    let reader = log.reader();
    writer.tell("append 5");
    reader.refresh().unwrap();
    set_word(&log, STATE, 1);
    writer.tell("append 5");
    reader.refresh().unwrap();
    assert_eq!(reader.wait_past(at(5), now()), Wait::TimedOut);
    assert_eq!((reader.end(), pairs(&reader)), (at(5), expected(0..5)));
    // Open again.
    set_word(&log, STATE, 2);
    assert_eq!(reader.wait_past(at(5), now()), Wait::Advanced);
    assert_eq!(reader.end(), at(10));
}

#[test]
fn a_page_of_another_boot_means_nothing() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 10);
    writer.sync().unwrap();
    fill(&mut writer, 10);
    drop(writer);
    // Words that would say other things: written and durable up to 15.
    set_word(&log, STATE, 2);
    set_word(&log, 8 * 8, 15);
    set_word(&log, 9 * 8, 15);
    set_word(&log, 12 * 8, u64::MAX);
    set_word(&log, BOOT, 7);
    let reader = log.reader();
    assert_eq!(reader.end(), at(20), "as the files say");
    assert_eq!(reader.durable_end(), at(0), "the recovery point, and no scan's end");
}

#[test]
fn without_a_page_that_tells_anything_readers_look_at_the_files() {
    for (page, damage) in
        [CONTROL, WAITERS].into_iter().flat_map(|page| (0..5).map(move |damage| (page, damage)))
    {
        let log = TempLog::in_memory(|_| {});
        let mut writer = Elsewhere::start(&log);
        writer.tell("append 5");
        let early = log.reader();
        let path = log.path().join(page);
        let hidden = log.temp.path().join("hidden");
        match damage {
            0 => fs::rename(&path, &hidden).unwrap(),
            // Another file in its place: the one that is written to has lost its name.
            1 => {
                fs::rename(&path, &hidden).unwrap();
                fs::write(&path, vec![0xA5; 4096]).unwrap();
            }
            2 => {
                fs::rename(&path, &hidden).unwrap();
                fs::write(&path, "short").unwrap();
            }
            3 => {
                fs::rename(&path, &hidden).unwrap();
                fs::create_dir(&path).unwrap();
            }
            _ => {
                fs::rename(&path, &hidden).unwrap();
                std::os::unix::fs::symlink(&hidden, &path).unwrap();
            }
        }
        writer.tell("append 5");
        for reader in [&early, &log.reader()] {
            let what = format!("{page}, {damage}");
            assert_eq!(reader.wait_past(at(9), soon()), Wait::Advanced, "{what}");
            assert_eq!(pairs(reader), expected(0..reader.end().value()), "{what}");
            let waiting = reader.clone();
            let waiter = std::thread::spawn(move || waiting.wait_past(waiting.end(), soon()));
            writer.tell("append 1");
            assert_eq!(waiter.join().unwrap(), Wait::Advanced, "{what}");
        }
        early.refresh().unwrap();
        assert_eq!(pairs(&early), expected(0..12), "{page}, {damage}");
    }
}

#[test]
fn a_reader_changes_no_byte_but_the_flag() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = Elsewhere::start(&log);
    writer.tell("append 5");
    let contents = || {
        let mut found = Vec::new();
        for entry in fs::read_dir(log.path()).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            if path.ends_with(WAITERS) {
                assert_eq!(bytes.len(), 4096);
                bytes[FLAG..FLAG + 4].fill(0);
            }
            let meta = fs::metadata(&path).unwrap();
            let time = if path.ends_with(WAITERS) { 0 } else { meta.mtime_nsec() };
            found.push((path, bytes, meta.mode(), time));
        }
        found.sort();
        found
    };
    let before = contents();
    let flag = || fs::read(log.path().join(WAITERS)).unwrap()[FLAG..FLAG + 4].to_vec();
    assert_eq!(flag(), [0; 4]);
    let reader = log.reader();
    assert_eq!(reader.wait_past(at(5), Instant::now() + Duration::from_millis(300)), Wait::TimedOut);
    let event = reader.event_fd().unwrap();
    assert_eq!(pairs(&reader), expected(0..5));
    assert_ne!(flag(), [0; 4], "it did say that it slept");
    drop((reader, event));
    assert_eq!(contents(), before);
    writer.tell("append 1");
}

#[test]
fn on_a_read_only_file_system_a_reader_waits_all_the_same() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = Elsewhere::start(&log);
    writer.tell("append 5");
    let view = log.temp.path().join("view");
    fs::create_dir(&view).unwrap();
    let mount = |arguments: &[&str]| {
        Command::new("mount")
            .args(arguments)
            .arg(&view)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|one| one.success())
    };
    if !mount(&["--bind", log.path().to_str().unwrap()]) {
        println!("skipped: mounting is not allowed here");
        return;
    }
    let unmount = || {
        Command::new("umount").arg("-l").arg(&view).status().unwrap();
    };
    if !mount(&["-o", "remount,bind,ro"]) {
        unmount();
        println!("skipped: mounting is not allowed here");
        return;
    }
    let reader = LogReader::open(&view, ReadOptions::default()).unwrap();
    let ends = (reader.end(), reader.wait_past(at(5), now()));
    writer.tell("append 1");
    let waiting = reader.clone();
    let waiter = std::thread::spawn(move || waiting.wait_past(at(6), soon()));
    writer.tell("append 1");
    let woken = waiter.join().unwrap();
    let found = pairs(&reader);
    unmount();
    assert_eq!(ends, (at(5), Wait::TimedOut));
    assert_eq!((woken, found), (Wait::Advanced, expected(0..7)));
}

#[test]
fn a_directory_without_any_file_of_ours_is_followed() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 8);
    let name = "00000000000000000000.log";
    let bytes = fs::read(log.path().join(name)).unwrap();
    let mut walk = writer.reader().batches(at(5));
    walk.next_batch().unwrap().unwrap();
    let half = walk.position_of_last().unwrap().1;
    drop(writer);
    let bare = log.temp.path().join("bare-0");
    fs::create_dir(&bare).unwrap();
    fs::write(bare.join(name), &bytes[..usize::try_from(half).unwrap() + 20]).unwrap();
    let reader = LogReader::open(&bare, ReadOptions::default()).unwrap();
    assert_eq!((reader.end(), reader.durable_end()), (at(5), at(0)));
    let waiting = reader.clone();
    let waiter = std::thread::spawn(move || waiting.wait_past(at(5), soon()));
    fs::write(bare.join(name), &bytes).unwrap();
    assert_eq!(waiter.join().unwrap(), Wait::Advanced);
    reader.refresh().unwrap();
    assert_eq!(pairs(&reader), expected(0..8));
    assert_eq!(fs::read_dir(&bare).unwrap().count(), 1, "nothing was made");
}

/// Cuts the last records off a log that was killed, and opens it.
fn tear(log: &TempLog, from: i64) -> LogWriter {
    let reader = log.reader();
    let mut batches = reader.batches(at(from));
    batches.next_batch().unwrap().unwrap();
    let (base, position) = batches.position_of_last().unwrap();
    let path = log.path().join(format!("{:020}.log", base.value()));
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&[0xAA; 4], position + 62).unwrap();
    let writer = log.open();
    assert_eq!(writer.recovery().cut.as_ref().unwrap().offset, at(from));
    writer
}

#[test]
fn a_walk_that_stands_at_the_cut_goes_on_behind_it() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1 << 20);
    let mut writer = Elsewhere::start(&log);
    writer.tell("append 20");
    let reader = log.reader();
    // One that has it all in memory, one that has read nothing yet, one that waits.
    let mut read = reader.records(at(0));
    for offset in 0..15 {
        assert_eq!(read.next_record().unwrap().unwrap().offset(), at(offset));
    }
    let mut fresh = reader.records(at(15));
    let waiting = reader.clone();
    let passed = Position { offset: at(20), leader_epoch: Some(0) };
    let waiter = std::thread::spawn(move || waiting.wait_past(passed, soon()));
    writer.kill();
    let mut writer = tear(&log, 15);
    assert_eq!(waiter.join().unwrap(), Wait::Truncated { end: at(15) });
    let mut record = Vec::new();
    for _ in 0..5 {
        let value = format!("other {}", writer.end());
        crate::support::put(&mut writer, value.as_bytes());
        record.push(value);
    }
    reader.refresh().unwrap();
    let mut found = Vec::new();
    while let Some(one) = fresh.next_record().unwrap() {
        found.push(String::from_utf8_lossy(one.value().unwrap()).into_owned());
    }
    assert_eq!(found, record);
    // What it had it may show; then it is told.
    let mut last = None;
    let told = loop {
        match read.next_record() {
            Ok(Some(one)) => last = Some(one.offset()),
            Ok(None) => panic!("no word of the cut, and no more after {last:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(told, Error::Truncated { end } if end == at(15)), "{told}");
}

#[test]
fn damage_is_told_only_where_nothing_changed_meanwhile() {
    let log = TempLog::in_memory(|config| config.segment_bytes = 1 << 20);
    let mut writer = Elsewhere::start(&log);
    writer.tell("append 20");
    let reader = log.reader();
    writer.kill();
    // Nobody has looked: the view is of the log that was.
    let mut writer = tear(&log, 15);
    let mut into = Vec::new();
    match reader.read(at(17), 1 << 20, &mut into) {
        Err(Error::OffsetOutOfRange { end, .. }) => assert_eq!(end, at(15)),
        other => panic!("{other:?}"),
    }
    fill(&mut writer, 1);
    drop(writer);
    let real = tear_only(&log, 3);
    let error = loop {
        match log.reader().read(at(3), 1 << 20, &mut into) {
            Err(error) => break error,
            Ok(found) => assert!(found.bytes == 0, "{found:?}"),
        }
    };
    assert!(error.is_corruption(), "{error} ({real})");
}

/// Damages one batch for good.
fn tear_only(log: &TempLog, offset: i64) -> u64 {
    let reader = log.reader();
    let mut batches = reader.batches(at(offset));
    batches.next_batch().unwrap().unwrap();
    let (base, position) = batches.position_of_last().unwrap();
    let path = log.path().join(format!("{:020}.log", base.value()));
    File::options().write(true).open(path).unwrap().write_all_at(&[0xAA; 2], position + 62).unwrap();
    position
}

#[derive(Default)]
struct Counted(AtomicUsize);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = soon();
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_task_is_woken_by_another_process_and_not_for_nothing() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = Elsewhere::start(&log);
    let reader = log.reader();
    let counted = Arc::new(Counted::default());
    let waker = Waker::from(Arc::clone(&counted));
    let mut context = Context::from_waker(&waker);
    let wakes = || counted.0.load(Ordering::SeqCst);
    for end in 1..5 {
        assert!(reader.poll_past(at(end - 1), &mut context).is_pending());
        let before = wakes();
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(wakes(), before, "nothing happened");
        writer.tell("append 1");
        until("the task was not woken", || wakes() > before);
        assert_eq!(reader.poll_past(at(end - 1), &mut context), Poll::Ready(Wait::Advanced));
    }
    writer.kill();
}

fn is_readable(event: &impl std::os::fd::AsFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).unwrap();
    let mut events = [PollFd::new(event, PollFlags::IN)];
    poll(&mut events, Some(&timeout)).unwrap() > 0
}

#[test]
fn an_event_loop_is_told_of_both_kinds_of_writers() {
    for is_elsewhere in [false, true] {
        let log = TempLog::in_memory(|_| {});
        let (mut here, mut elsewhere, reader);
        if is_elsewhere {
            (here, elsewhere) = (None, Some(Elsewhere::start(&log)));
            reader = log.reader();
        } else {
            let writer = log.open();
            reader = writer.reader();
            (here, elsewhere) = (Some(writer), None);
        }
        let event = reader.event_fd().unwrap();
        let clear = || rustix::io::read(&event, &mut [0; 8]);
        assert!(is_readable(&event, Duration::ZERO), "at first, so that whoever waits looks once");
        clear().unwrap();
        assert!(!is_readable(&event, Duration::from_millis(300)), "nothing happened");
        for end in 1..5 {
            if let Some(writer) = &mut here {
                fill(writer, 1);
            }
            if let Some(writer) = &mut elsewhere {
                writer.tell("append 1");
            }
            while reader.refresh().unwrap() < at(end) {
                assert!(is_readable(&event, Duration::from_secs(60)));
                clear().unwrap();
            }
            assert!(is_readable(&event, Duration::from_secs(60)), "also where the reader had looked itself");
            let _ = clear();
            // One publish may be told of twice: by who looked, and by the thread.
            std::thread::sleep(Duration::from_millis(20));
            let _ = clear();
        }
    }
}

fn watchers(of: &Path) -> usize {
    let name = |task: &Path| fs::read_to_string(task.join("comm")).unwrap_or_default();
    let tasks = fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    tasks.filter(|task| name(task).starts_with("stratalog-watch")).count()
}

#[test]
#[ignore = "alone in a process: run by the test after it"]
fn the_thread_alone() {
    let tasks = Path::new("/proc/self/task");
    let log = TempLog::in_memory(|_| {});
    let mut writer = log.open();
    fill(&mut writer, 3);
    let (reader, inside) = (log.reader(), writer.reader());
    assert_eq!(reader.wait_past(at(3), now()), Wait::TimedOut);
    let event = inside.event_fd().unwrap();
    assert_eq!(watchers(tasks), 0, "nobody asked for one");
    let (first, second) = (reader.event_fd().unwrap(), reader.clone().event_fd().unwrap());
    until("one thread", || watchers(tasks) == 1);
    drop((first, second, event));
    assert_eq!(watchers(tasks), 1, "one for all");
    drop(reader);
    until("the thread ends with the reader", || watchers(tasks) == 0);
    let reader = log.reader();
    let waker = Waker::from(Arc::new(Counted::default()));
    assert!(reader.poll_past(at(3), &mut Context::from_waker(&waker)).is_pending());
    until("one thread", || watchers(tasks) == 1);
    fill(&mut writer, 1);
    until("the thread ends once nobody waits", || watchers(tasks) == 0);
}

#[test]
fn one_thread_is_started_where_it_is_needed_and_ends() {
    let this = std::env::current_exe().unwrap();
    let run = Command::new(this).args(["--exact", "attach::the_thread_alone", "--ignored"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}

#[test]
fn a_new_leader_epoch_is_seen_and_is_no_cut() {
    let log = TempLog::in_memory(|_| {});
    let mut writer = Elsewhere::start(&log);
    writer.tell("append 3");
    let reader = log.reader();
    let mut walk = reader.records(at(0));
    while walk.next_record().unwrap().is_some() {}
    writer.tell("epoch 7");
    writer.tell("append 2");
    assert_eq!(reader.wait_past(walk.position(), now()), Wait::Advanced);
    assert_eq!(walk.next_record().unwrap().unwrap().offset(), at(3));
    assert_eq!(walk.next_record().unwrap().unwrap().offset(), at(4));
    assert!(walk.next_record().unwrap().is_none());
    assert_eq!(reader.leader_epochs(), [(0, at(0)), (7, at(3))]);
}
