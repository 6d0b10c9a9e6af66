//! What destroys asks first; what is damaged is found and put right; copies are the same.

use crate::session::Session;

#[test]
fn changing() {
    let mut day = Session::new("change");
    day.prepare("for i in 1 2 3 4; do seq 1 100 | logctl append orders-0 --create --segment-bytes 1k --batch-size 100 --timestamp $((1700000000000 + i * 60000)); done");
    for verb in ["trim orders-0 --before 150", "truncate orders-0 --to 352", "retain orders-0 --bytes 2k"] {
        day.chapter(verb.split(' ').next().unwrap());
        day.run(&format!("logctl {verb}"));
        day.run(&format!("logctl {verb} --dry-run"));
        day.pipe(&format!("logctl {verb} --dry-run -J"));
        day.run(&format!("logctl {verb} --yes"));
        day.run(&format!("logctl {verb} --yes"));
    }
    day.run("logctl truncate orders-0 --to 350 --yes");
    day.run("logctl truncate orders-0 --to 348 --yes --backup cut");
    day.run("ls cut");
    day.chapter("roll");
    day.run("logctl roll orders-0 --dry-run");
    day.run("logctl roll orders-0");
    day.run("logctl roll orders-0");
    day.pipe("logctl roll orders-0 -J");
    day.run("logctl ls orders-0");

    day.chapter("what cannot be done");
    day.run("logctl trim orders-0 --before 9999 --yes");
    day.run("logctl truncate orders-0 --to 1 --yes");
    day.run("logctl truncate orders-0");
    day.run("logctl retain orders-0");
    day.run("logctl trim nowhere-0 --before 3");
    day.run("logctl roll nowhere-0");

    day.chapter("while another process writes");
    let mut writer = day.start("logctl append orders-0 --report 'stored at %o\\n'");
    writer.wait_for("end with Ctrl-D\n");
    writer.type_in("from the keyboard\n");
    writer.wait_for("stored at");
    for verb in [
        "trim orders-0 --before end --yes",
        "truncate orders-0 --to start --yes",
        "retain orders-0 --bytes 1 --yes",
        "roll orders-0",
        "repair orders-0 --yes",
    ] {
        day.pipe(&format!("logctl {verb}"));
    }
    day.pipe("echo x | logctl append orders-0");
    writer.type_in("\x04");
    day.end(&mut writer);
    day.finish();
}

#[test]
fn checking() {
    let mut day = Session::new("check");
    for case in [
        "torn-tail",
        "flipped-bit-sealed",
        "missing-index",
        "zero-tail",
        "missing-middle-segment",
        "backward-offset",
    ] {
        day.fixture(&format!("broken/{case}"), &format!("{case}-0"));
    }
    day.fixture("kafka/4.4.0/plain/plain-0", "plain-0");
    day.chapter("nothing is wrong");
    day.run("logctl verify plain-0");
    day.run("logctl verify plain-0 --deep");
    day.run("logctl repair plain-0");
    day.pipe("logctl verify plain-0 -J");
    for case in [
        "torn-tail",
        "missing-index",
        "zero-tail",
        "flipped-bit-sealed",
        "missing-middle-segment",
        "backward-offset",
    ] {
        day.chapter(case);
        day.run(&format!("logctl verify {case}-0"));
        day.pipe(&format!("logctl verify {case}-0 -J"));
        day.run(&format!("logctl repair {case}-0"));
        day.run(&format!("logctl repair {case}-0 --yes"));
        day.run(&format!("logctl verify {case}-0"));
    }
    day.chapter("all of a data directory");
    for case in ["torn-tail", "missing-index"] {
        day.fixture(&format!("broken/{case}"), &format!("data/{case}-0"));
    }
    day.fixture("kafka/4.4.0/plain/plain-0", "data/plain-0");
    day.run("logctl verify data");
    day.run("logctl repair data");
    day.run("logctl repair data --yes");
    day.run("logctl verify data");
    day.run("logctl repair data/plain-0 --rebuild-index --drop-batch 100 --dry-run");

    day.chapter("the end of the log at the first bad batch");
    day.prepare("rm -r flipped-bit-sealed-0");
    day.fixture("broken/flipped-bit-sealed", "flipped-bit-sealed-0");
    day.run("logctl cat flipped-bit-sealed-0 -o 130: -f '%o '; echo");
    day.run("logctl cat flipped-bit-sealed-0 -o 130: -f '%o ' --skip-damaged; echo");
    day.run("logctl repair flipped-bit-sealed-0 --truncate-tail --dry-run");
    day.run("logctl repair flipped-bit-sealed-0 --truncate-tail --yes --backup kept");
    day.run("logctl verify flipped-bit-sealed-0");
    day.run("ls kept");
    day.chapter("what cannot be done");
    day.run("logctl verify nowhere-0");
    day.run("logctl repair nowhere-0");
    day.run("logctl verify .");
    day.run("logctl verify plain-0 --parallel 0");
    day.finish();
}

#[test]
fn moving() {
    let mut day = Session::new("move");
    day.fixture("kafka/4.4.0/plain/plain-0", "data/plain-0");
    day.fixture("broken/flipped-bit-sealed", "data/flipped-0");
    day.chapter("copies");
    day.run("logctl copy data/plain-0 copy-0 --dry-run");
    day.run("logctl copy data/plain-0 copy-0");
    day.run("logctl diff data/plain-0 copy-0");
    day.run("logctl diff data/plain-0 copy-0 --by bytes");
    day.run("logctl diff data/plain-0 copy-0 --by records");
    day.pipe("logctl diff data/plain-0 copy-0 -J");
    day.pipe("logctl copy data/plain-0 copy2-0 -J");
    day.run("logctl snapshot data/plain-0 snap-0");
    day.run("logctl snapshot data/plain-0 linked-0 --hardlink");

    day.chapter("streams");
    day.run("logctl export data/plain-0 --to plain.raw");
    day.run("logctl import import-0 --create --from plain.raw");
    day.run("logctl diff data/plain-0 import-0");
    day.run("logctl export data/plain-0 -z zstd --to plain.zst -o 100:200");
    day.run("logctl import part-0 --create --from plain.zst --dry-run");
    day.run("logctl import part-0 --create --from plain.zst");
    day.run("logctl export data/plain-0 --format jsonl --split 100k --to plain.jsonl");
    day.run("ls plain*");
    day.pipe("logctl export data/plain-0 | logctl import piped-0 --create");
    day.run("logctl export data/plain-0");
    day.run("logctl export data/plain-0 --to plain.raw");
    day.run("head -c 5000 plain.raw | logctl import cut-0 --create");
    day.run("logctl import import-0 --from plain.raw");
    day.run("echo nonsense | logctl import new-0 --create");
    day.run("logctl copy data all");
    day.run("logctl diff data all");
    day.run("logctl copy data/plain-0 checked-0 --check");

    day.chapter("they part");
    day.run("echo new | logctl append copy-0 --timestamp 1700000000000");
    day.run("logctl diff data/plain-0 copy-0");
    day.pipe("logctl diff data/plain-0 copy-0 -J");
    day.run("logctl diff data/plain-0 copy-0 --by bytes");
    day.run("logctl diff data/plain-0 data/flipped-0 --by records");

    day.chapter("what cannot be done");
    day.run("logctl copy data/plain-0 copy-0");
    day.run("logctl copy nowhere-0 there-0");
    day.run("logctl copy data/flipped-0 flipped-copy-0");
    day.run("logctl diff data/plain-0 nowhere-0");
    day.run("logctl diff data/plain-0");
    day.run("logctl copy data/plain-0 /proc/here");
    day.finish();
}
