//! A copy that is not finished is nobody's log yet; one that was finished is found to be whole.

use std::{fs, path::Path};

use serde_json::Value;

use crate::run::{Place, fails, numbers, ok, run, snapshot};

const SMALL: [&str; 4] = ["--batch-size", "100", "--segment-bytes", "2k"];
const MARK: &str = ".stratalog-copy-of";

/// What a copy of `dir` leaves that ran out of room.
fn cut_short(dir: &str, copy: &str) {
    ok(&["copy", dir, copy], b"");
    mark(dir, copy);
    let mut logs: Vec<_> = fs::read_dir(copy)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "log"))
        .collect();
    logs.sort();
    logs.iter().skip(2).for_each(|log| fs::remove_file(log).unwrap());
}

fn mark(dir: &str, copy: &str) {
    let source = fs::canonicalize(dir).unwrap();
    fs::write(Path::new(copy).join(MARK), source.to_str().unwrap()).unwrap();
}

#[test]
fn no_writer_opens_it_and_all_name_it() {
    let place = Place::new();
    let (dir, copy) = (place.log("t-0", &numbers(2000), &SMALL), place.path("u-0"));
    cut_short(&dir, &copy);
    let raw = ok(&["export", &dir], b"");
    let before = snapshot(&copy);
    for (args, input) in [
        (&["append", &copy][..], &b"acknowledged\n"[..]),
        (&["append", &copy, "--create"], b"x\n"),
        (&["import", &copy, "--resume"], &raw),
        (&["truncate", &copy, "--to", "12", "--yes"], b""),
        (&["trim", &copy, "--before", "10", "--yes"], b""),
        (&["roll", &copy], b""),
        (&["tail", &copy, "--cursor", "mine"], b""),
    ] {
        let ran = run(args, input);
        assert_ne!(ran.code, Some(0), "{args:?}");
        assert!(
            ran.err.contains("unfinished copy of") && ran.err.contains("--resume"),
            "{args:?}: {}",
            ran.err
        );
        assert!(ran.err.contains(MARK), "{args:?}: {}", ran.err);
    }
    fails(&["repair", &copy, "--yes"], b"", 1, "unfinished copy of");
    let names = |files: &[(String, Vec<u8>, _)]| -> Vec<_> {
        let files = files.iter().filter(|(name, ..)| name != ".lock");
        files
            .map(|(name, bytes, _): &(String, Vec<u8>, std::time::SystemTime)| (name.clone(), bytes.clone()))
            .collect()
    };
    assert!(names(&snapshot(&copy)) == names(&before), "it was refused, and something changed");
    let info: Value = serde_json::from_slice(&ok(&["info", &copy, "-J"], b"")).unwrap();
    let source = fs::canonicalize(&dir).unwrap();
    assert_eq!(info["unfinished_copy_of"], source.to_str().unwrap());
    assert!(String::from_utf8(ok(&["info", &copy], b"")).unwrap().contains("not finished, of"));
    let checked = run(&["verify", &copy], b"");
    assert_eq!(checked.code, Some(4), "{}", checked.err);
    assert!(checked.text().contains("unfinished-copy"), "{}", checked.text());
    // A copy of it would be whole by its looks.
    fails(&["copy", &copy, &place.path("v-0")], b"", 1, "not finished");
    ok(&["copy", &dir, &copy, "--resume"], b"");
    ok(&["append", &copy], b"more\n");
    // Who wants it as it is says so.
    let other = place.path("w-0");
    cut_short(&dir, &other);
    fs::remove_file(Path::new(&other).join(MARK)).unwrap();
    let checked = run(&["verify", &other], b"");
    let text = checked.text();
    assert!(text.contains("lost-records") && !text.contains("unfinished-copy"), "{text}");
    ok(&["append", &other], b"more\n");
}

#[test]
fn a_partition_of_an_unfinished_data_directory_is_not_written_to() {
    let place = Place::new();
    let (data, copy) = (place.path("data"), place.path("moved"));
    place.log("data/a-0", &numbers(100), &SMALL);
    place.log("data/a-1", &numbers(100), &SMALL);
    fs::write(Path::new(&data).join("meta.properties"), "version=1\n").unwrap();
    ok(&["copy", &data, &copy], b"");
    mark(&data, &copy);
    fails(&["append", &format!("{copy}/a-0")], b"x\n", 1, "unfinished copy of");
    let ran = run(&["verify", &copy], b"");
    assert!(ran.text().contains("unfinished-copy"), "{} {}", ran.text(), ran.err);
    ok(&["copy", &data, &copy, "--resume"], b"");
    ok(&["append", &format!("{copy}/a-0")], b"x\n");
}

#[test]
fn a_copy_that_was_finished_is_proved_and_left_alone() {
    let place = Place::new();
    let (dir, copy) = (place.log("t-0", &numbers(2000), &SMALL), place.path("u-0"));
    for verb in ["copy", "snapshot"] {
        let copy = format!("{copy}{verb}");
        ok(&[verb, &dir, &copy], b"");
        let before = snapshot(&copy);
        let again = ok(&[verb, &dir, &copy, "--resume", "-J"], b"");
        let last: Value =
            serde_json::from_slice(again.trim_ascii().split(|b| *b == b'\n').next_back().unwrap()).unwrap();
        assert_eq!((&last["copied"], &last["end"]), (&0.into(), &2000.into()), "{last}");
        assert!(last["checked"].as_u64().unwrap() > 2, "{last}");
        let said = String::from_utf8(ok(&[verb, &dir, &copy, "--resume"], b"")).unwrap();
        assert!(said.contains("whole already"), "{said}");
        assert!(snapshot(&copy) == before, "nothing was to be done");
        fails(&[verb, &dir, &copy], b"", 1, "is not empty");
    }
    // Whatever else is there is no copy of it.
    let copied = format!("{copy}copy");
    let log = Path::new(&copied).join("00000000000000000000.log");
    let whole = fs::read(&log).unwrap();
    let mut bytes = whole.clone();
    bytes[777] ^= 4;
    fs::write(&log, bytes).unwrap();
    fails(&["copy", &dir, &copied, "--resume"], b"", 1, "not a finished copy");
    fs::write(&log, whole).unwrap();
    ok(&["copy", &dir, &copied, "--resume"], b"");
    ok(&["append", &dir], b"more\n");
    fails(&["copy", &dir, &copied, "--resume"], b"", 1, "up to 2001");
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(Path::new(&other).join("notes"), "mine").unwrap();
    fails(&["copy", &dir, &other, "--resume"], b"", 1, "is not empty");
}

#[test]
fn a_data_directory_that_was_copied_is_proved_too() {
    let place = Place::new();
    let (data, copy) = (place.path("data"), place.path("moved"));
    place.log("data/a-0", &numbers(100), &SMALL);
    place.log("data/a-1", &numbers(100), &SMALL);
    fs::write(Path::new(&data).join("meta.properties"), "version=1\n").unwrap();
    ok(&["copy", &data, &copy], b"");
    ok(&["copy", &data, &copy, "--resume"], b"");
    place.log("data/b-0", &numbers(100), &SMALL);
    fails(&["copy", &data, &copy, "--resume"], b"", 1, "not a finished copy");
}
