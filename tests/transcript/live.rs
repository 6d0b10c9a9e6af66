//! What only a terminal shows: following, typing, Ctrl-C, lines that move, windows that change.

use std::{fs, thread, time::Duration};

use rustix::process::Signal;

use crate::{session::Session, terminal::Terminal};

#[test]
fn following() {
    let mut day = Session::new("follow");
    day.prepare("seq 1 12 | logctl append orders-0 --create --timestamp 1700000000000");
    day.chapter("the end is followed until Ctrl-C");
    let mut tail = day.start("logctl tail orders-0 -n 2 -f --format '%o: %v\\n'");
    tail.wait_for("11: 12");
    day.prepare("echo thirteen | logctl append orders-0");
    tail.wait_for("12: thirteen");
    tail.resize(40);
    day.prepare(
        "printf 'fourteen is a long one that does not fit into a narrow window\\n' | logctl append orders-0",
    );
    tail.wait_for("window");
    tail.type_in("\x03");
    day.end(&mut tail);

    day.chapter("-F waits for the log, and for the next of its name");
    let mut tail = day.start("logctl tail later-0 -F");
    tail.wait_for("waiting for the log to appear");
    day.prepare("echo first | logctl append later-0 --create");
    tail.wait_for("first\n");
    day.prepare("mv later-0 gone-0");
    tail.wait_for("was removed while it was followed\nwaiting for the log to appear");
    day.prepare("echo second | logctl append later-0 --create");
    tail.wait_for("second");
    tail.type_in("\x03");
    day.end(&mut tail);

    day.chapter("a time limit");
    day.run("logctl tail orders-0 -n 1 -f --timeout 300ms");
    day.finish();
}

#[test]
fn typing() {
    let mut day = Session::new("type");
    day.chapter("lines from the keyboard to Ctrl-D");
    let mut append = day.start("logctl append orders-0 --create --report 'stored at %o\\n'");
    append.wait_for("end with Ctrl-D\n");
    append.type_in("good morning\n");
    append.wait_for("stored at 0");
    append.type_in("good night\n");
    append.wait_for("stored at 1");
    append.type_in("\x04");
    day.end(&mut append);

    day.chapter("to Ctrl-C: what was acknowledged stays");
    let mut append = day.start("logctl append orders-0 --report 'stored at %o\\n'");
    append.wait_for("end with Ctrl-D\n");
    append.type_in("kept\n");
    append.wait_for("stored at 2");
    append.type_in("\x03");
    day.end(&mut append);
    day.run("logctl cat orders-0");

    day.chapter("a slow pace, ended in the middle");
    let mut append = day.start(
        "seq 1 100000 | logctl append slow-0 --create --rate 50 --report 'stored at %o\\n' --batch-size 10",
    );
    append.wait_for("stored at 3\n");
    append.type_in("\x03");
    let code = append.finish();
    day.note(&format!("[stored some, exit code {code}]"));
    day.finish();
}

/// Stops the command as soon as it has opened a `.log` of at least a MiB, for longer than it takes until progress is
/// shown, and lets it go on. False where it was too quick for that.
fn hold(terminal: &Terminal) -> bool {
    let files = format!("/proc/{}/fd", terminal.pid());
    loop {
        let Ok(entries) = fs::read_dir(&files) else { return false };
        let links: Vec<_> = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
        if links.is_empty() {
            return false;
        }
        if links.iter().any(|link| link.extension().is_some_and(|suffix| suffix == "log")) {
            break;
        }
        thread::yield_now();
    }
    terminal.signal(Signal::STOP);
    true
}

/// Starts a long command and holds it until it shows its progress; again, where it was too quick.
fn caught(day: &mut Session, script: &str) -> Terminal {
    day.chapter(script);
    let mut terminal = None;
    for _ in 0..50 {
        let mut started = day.start_quietly(&format!("exec {script}"));
        if hold(&started) {
            thread::sleep(Duration::from_millis(1300));
            started.signal(Signal::CONT);
        }
        if started.sees(" left") {
            terminal = Some(started);
            break;
        }
        started.finish();
        day.prepare("rm -rf copy-0");
    }
    let terminal = terminal.expect("progress is seen in one of fifty tries");
    day.note(&format!("$ {script}"));
    day.moment(&terminal);
    terminal
}

#[test]
fn progress() {
    let mut day = Session::new("progress");
    // Large enough to be caught at work on any machine: 400 MiB, of which the disk holds little.
    day.prepare("head -c 65536 /dev/zero | tr '\\0' x > block; for i in 1 2 3 4 5 6 7 8; do cat block; done > half; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40; do cat half; echo; done > lines; logctl append big-0 --create --file lines --sync close --batch-size 1MiB --segment-bytes 4MiB --timestamp 1700000000000; rm block half; cp -r big-0 twin-0");
    for script in ["logctl verify big-0", "logctl diff big-0 twin-0", "logctl copy big-0 copy-0"] {
        let mut terminal = caught(&mut day, script);
        day.end(&mut terminal);
    }
    day.chapter("ended by Ctrl-C");
    for script in ["logctl verify big-0", "logctl diff big-0 twin-0"] {
        let mut terminal = caught(&mut day, script);
        terminal.type_in("\x03");
        let code = terminal.finish();
        // Whether it got to its end before is chance.
        assert!(matches!(code, 0 | 130), "{script}: {code}");
    }
    day.set("TERM", "dumb");
    let mut terminal = day.start("logctl verify big-0");
    if hold(&terminal) {
        thread::sleep(Duration::from_millis(1300));
        terminal.signal(Signal::CONT);
    }
    day.end(&mut terminal);
    day.finish();
}
