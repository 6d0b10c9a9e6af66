//! Colours, pipes, terminals that can do little, and bytes that mean harm.

use crate::session::Session;

#[test]
fn colours() {
    let mut day = Session::new("colour");
    day.fixture("broken/torn-tail", "torn-0");
    day.chapter("on a terminal");
    day.run("logctl cat nowhere-0");
    day.run("logctl verify torn-0");
    day.run("logctl ls torn-0");
    day.run("logctl cat nowhere-0 --color never");
    day.chapter("in a pipe");
    day.pipe("logctl cat nowhere-0");
    day.pipe("logctl cat nowhere-0 --color always");
    day.pipe("logctl ls torn-0");
    day.pipe("logctl ls torn-0 --color always");
    day.set("CLICOLOR_FORCE", "1");
    day.pipe("logctl cat nowhere-0");
    day.unset("CLICOLOR_FORCE");
    day.chapter("where they are not wanted");
    day.set("NO_COLOR", "1");
    day.run("logctl cat nowhere-0");
    day.run("logctl cat --nonsense");
    day.run("logctl verify torn-0");
    day.unset("NO_COLOR");
    day.set("TERM", "dumb");
    day.run("logctl cat nowhere-0");
    day.run("logctl cat --nonsense");
    day.run("logctl ls torn-0");
    day.finish();
}

#[test]
fn pipes() {
    let mut day = Session::new("pipes");
    day.prepare("seq 1 200000 | logctl append orders-0 --create --timestamp 1700000000000");
    day.chapter("a reader that has seen enough");
    day.pipe("{ logctl cat orders-0; echo \"exit code $?\" >&2; } | head -n 2");
    day.pipe("{ logctl cat orders-0 -J; echo \"exit code $?\" >&2; } | head -n 1");
    day.pipe("{ logctl dump orders-0/*.log --deep-iteration; echo \"exit code $?\" >&2; } | head -n 1");
    day.pipe("logctl cat orders-0 >/dev/full");
    day.pipe("logctl ls orders-0 >/dev/full");
    day.pipe("logctl cat orders-0 -c 3 | logctl append copy-0 --create --timestamp 1700000000000 && logctl cat copy-0");

    day.chapter("bytes that a terminal would obey");
    day.prepare("printf '\\033]0;owned\\007\\033[31mred\\033[0m \\302\\233 \\377\\n' | logctl append evil-0 --create -k \"$(printf 'k\\033[2J')\" -H \"$(printf 'h\\033c=v\\033c')\" --timestamp 1700000000000");
    day.run("logctl cat evil-0");
    day.run("logctl cat evil-0 -f '%k|%v|%h{%k=%v}\\n'");
    day.run("logctl cat evil-0 -J");
    day.run("logctl get evil-0 0");
    day.run("logctl get evil-0 0 --raw | od -An -c");
    day.run("logctl dump evil-0/*.log --print-data-log --skip-record-metadata");
    day.run("logctl tail evil-0");
    day.pipe("logctl cat evil-0 | od -An -c");
    day.prepare("seq 3 | logctl append \"$(printf 'odd\\033[2Jname-0')\" --create --timestamp 1700000000000; cp -r \"$(printf 'odd\\033[2Jname-0')\" tame-0; truncate -s -3 odd*/*.log");
    for verb in [
        "ls",
        "info",
        "verify",
        "repair",
        "truncate --to 0",
        "trim --before 3",
        "retain --bytes 1",
        "roll",
        "cat",
        "diff tame-0",
        "offsets",
    ] {
        day.run(&format!("logctl {verb} odd*"));
    }
    day.run("logctl copy odd* there-0");
    day.run("logctl copy tame-0 odd*");
    day.run("logctl cat tame-0 odd*");
    day.prepare("mkdir \"$(printf 'bad\\033[2Jname-0')\"");
    day.run("logctl ls .");
    day.run("logctl info \"$(printf 'bad\\033[2Jname-0')\"");
    day.run("logctl cat \"$(printf 'no\\033[2Jname-0')\"");
    day.run("logctl dump \"$(printf 'no\\033[2Jname.log')\"");
    day.finish();
}
