//! `repair` over every damaged directory there is: the check, the plan, the work, the proof.

use std::{fs, path::PathBuf, thread};

use serde_json::Value;

use crate::run::{Place, copy_dir, fails, numbers, ok, run, snapshot};

fn json(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn broken() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/broken"))
}

/// Each case, and what is to come of it: `found` by a deep check (severity, file, position, offset, kind, repairable), how
/// many of that by a deep one only, the `steps` of a repair (action, file, position, offset, bytes), how many files are
/// `kept`, what is `left` (severity, file, kind), and which offsets are `gone` afterwards.
fn cases() -> Vec<Value> {
    let mut made = json(&fs::read(broken().join("expected.jsonl")).unwrap());
    made.extend(json(&fs::read(broken().join("more.jsonl")).unwrap()));
    let cases = json(include_bytes!("damage.jsonl"));
    let names = |cases: &[Value]| {
        cases.iter().map(|case| case["case"].to_string()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(names(&made), names(&cases), "each case has its line in tests/cli/damage.jsonl");
    cases
}

/// The partition directory of a case.
fn copy_of(place: &Place, case: &str) -> String {
    let from = fs::read_dir(broken().join(case)).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.is_dir().then_some(path)
    });
    let to = place.path(&format!("{case}-0"));
    let plain = broken().join(case);
    let is_partition = plain.join("00000000000000000000.log").exists();
    copy_dir(if is_partition { plain } else { from.unwrap() }, &to);
    to
}

fn offsets(dir: &str) -> Vec<i64> {
    let printed = String::from_utf8(ok(&["cat", dir, "-f", "%o\n"], b"")).unwrap();
    printed.lines().map(|line| line.parse().unwrap()).collect()
}

/// The objects of one type, some of their fields.
fn gist(lines: &[Value], of: &str, fields: &[&str]) -> Value {
    let of_type = lines.iter().filter(|line| line["type"] == of);
    of_type
        .map(|line| {
            fields
                .iter()
                .map(|field| match (*field, line[field].as_str()) {
                    ("file", Some(path)) => path.rsplit('/').next().unwrap().into(),
                    _ => line[field].clone(),
                })
                .collect::<Value>()
        })
        .collect()
}

const FINDING: &[&str] = &["severity", "file", "position", "offset", "kind", "repairable"];

#[test]
fn every_damaged_directory_is_put_right() {
    let place = Place::new();
    let cases = cases();
    assert!(cases.len() > 40);
    // They wait for the disk most of the time.
    thread::scope(|scope| {
        for some in cases.chunks(8) {
            let place = &place;
            scope.spawn(move || some.iter().for_each(|case| is_put_right(place, case)));
        }
    });
}

fn is_put_right(place: &Place, case: &Value) {
    let name = case["case"].as_str().unwrap();
    let dir = copy_of(place, name);
    let before = files(&dir);
    let array = |field: &str| case[field].as_array().unwrap().clone();
    let checked = run(&["verify", &dir, "--deep", "-J"], b"");
    let found = gist(&json(&checked.out), "finding", FINDING);
    assert_eq!(found, case["found"], "{name}");
    let has = |severity: &str| array("found").iter().any(|finding| finding[0] == severity);
    assert_eq!(checked.code, Some(if has("damage") { 4 } else { 0 }), "{name}: {}", checked.err);
    let shallow = gist(&json(&run(&["verify", &dir, "-J"], b"").out), "finding", FINDING);
    let shallow = shallow.as_array().unwrap();
    let only_deep = array("found").iter().filter(|finding| !shallow.contains(finding)).count();
    assert_eq!(Value::from(only_deep), case["deep_only"], "{name}: {shallow:?}");

    let plan = run(&["repair", &dir, "--deep", "--dry-run", "-J"], b"");
    assert_eq!(plan.code, Some(0), "{name}: {}", plan.err);
    assert!(files(&dir) == before, "{name}: a dry run changed a file");
    let steps = json(&plan.out);
    assert_eq!(
        gist(&steps, "step", &["action", "file", "position", "offset", "bytes"]),
        case["steps"],
        "{name}"
    );

    let done = run(&["repair", &dir, "--deep", "--yes", "-J"], b"");
    assert_eq!(done.code, Some(0), "{name}: {}", done.err);
    let lines = json(&done.out);
    assert_eq!(gist(&lines, "left", &["severity", "file", "kind"]), case["left"], "{name}");
    let summary = lines.last().unwrap();
    assert_eq!((&summary["state"], &summary["damage"]), (&"clean".into(), &0.into()), "{name}");

    // What was dropped or cut is kept, and bytes before the first bad one are those of before.
    let kept: Vec<Vec<u8>> = lines
        .iter()
        .filter(|line| line["type"] == "kept")
        .map(|line| fs::read(line["file"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(Value::from(kept.len()), case["kept"], "{name}");
    let mut changed = Vec::new();
    for step in steps.iter().filter(|step| step["type"] == "step") {
        let file = PathBuf::from(step["file"].as_str().unwrap());
        if let Some(at) = step["position"].as_u64() {
            let at = usize::try_from(at).unwrap();
            let bytes = usize::try_from(step["bytes"].as_u64().unwrap()).unwrap();
            let old = &before.iter().find(|(path, _)| *path == file).unwrap().1;
            assert!(kept.iter().any(|kept| *kept == old[at..at + bytes]), "{name}: {step}");
            assert_eq!(fs::read(&file).unwrap()[..at], old[..at], "{name}");
        }
        changed.push(file);
    }
    for (path, old) in before.iter().filter(|(path, _)| !changed.contains(path)) {
        let is_log = path.extension().is_some_and(|suffix| suffix == "log");
        assert!(!is_log || fs::read(path).unwrap() == *old, "{name}: {} changed", path.display());
    }

    // Only what was said to be left is found, every record that can be had is there, and it is a log again.
    let after = json(&ok(&["verify", &dir, "--deep", "-J"], b""));
    let rest: Vec<Value> = gist(&after, "finding", &["severity", "file", "kind"])
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding[0] != "note")
        .cloned()
        .collect();
    assert_eq!(Value::from(rest), case["left"], "{name}");
    let gone: Vec<_> =
        array("gone").iter().map(|pair| pair[0].as_i64().unwrap()..pair[1].as_i64().unwrap()).collect();
    let wanted: Vec<i64> = (0..273).filter(|offset| !gone.iter().any(|gone| gone.contains(offset))).collect();
    assert_eq!(offsets(&dir), wanted, "{name}");
    ok(&["append", &dir], b"next\n");
    let again = json(&ok(&["repair", &dir, "--yes", "-J"], b""));
    assert!(again.iter().all(|line| line["type"] != "step" && line["type"] != "kept"), "{name}: {again:?}");
}

/// Files of a directory and their bytes, by path; a fixture may hold directories too.
fn files(dir: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// All that lies behind the first bad batch can be cut instead.
#[test]
fn the_log_can_end_at_the_first_bad_batch() {
    let place = Place::new();
    for (case, end) in [
        ("flipped-bit-sealed", 133),
        ("zeroed-header-sealed", 133),
        ("torn-tail", 266),
        ("backward-offset", 266),
    ] {
        let dir = copy_of(&place, case);
        ok(&["repair", &dir, "--truncate-tail", "--yes"], b"");
        assert_eq!(offsets(&dir), (0..end).collect::<Vec<_>>(), "{case}");
        ok(&["verify", &dir], b"");
    }
}

#[test]
fn a_sound_log_is_left_alone() {
    let place = Place::new();
    let dir = place.log("t-0", &numbers(300), &["--batch-size", "100", "--segment-bytes", "1k"]);
    let before = snapshot(&dir);
    for args in [&["repair", &dir][..], &["repair", &dir, "--yes"], &["repair", &dir, "--dry-run"]] {
        let said = String::from_utf8(ok(args, b"")).unwrap();
        assert!(said.contains("no damage"), "{said}");
    }
    assert!(snapshot(&dir) == before, "a file changed");
}

/// Damage in a log of ours, whose recovery point lies behind it: dropped, and what is behind it stays.
#[test]
fn damage_below_the_recovery_point_is_dropped() {
    let place = Place::new();
    for (nth, closes) in [true, false].into_iter().enumerate() {
        let dir =
            place.log(&format!("t-{nth}"), &numbers(300), &["--batch-size", "1", "--segment-bytes", "1k"]);
        let file = PathBuf::from(&dir).join("00000000000000000000.log");
        let mut bytes = fs::read(&file).unwrap();
        // The second and the last batch of the segment.
        let second = 12 + usize::try_from(u32::from_be_bytes(bytes[8..12].try_into().unwrap())).unwrap();
        bytes[second + 61] ^= 1;
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&file, bytes).unwrap();
        if !closes {
            fs::remove_file(PathBuf::from(&dir).join(".stratalog-checkpoint")).unwrap();
        }
        fails(&["verify", &dir], b"", 4, "");
        fails(&["repair", &dir], b"", 1, "nothing was changed");
        let backup = place.path(&format!("backup-{nth}"));
        ok(&["repair", &dir, "--yes", "--backup", &backup], b"");
        assert_eq!(fs::read_dir(&backup).unwrap().count(), 2);
        ok(&["verify", &dir], b"");
        let left = offsets(&dir);
        assert_eq!((left.len(), left[0], left[1]), (298, 0, 2), "{left:?}");
        assert_eq!(left.last(), Some(&299));
    }
}

#[test]
fn what_is_no_log_is_not_repaired() {
    let place = Place::new();
    fails(&["repair", &place.path("absent"), "--yes"], b"", 3, "no such file");
    fs::create_dir(place.path("empty-0")).unwrap();
    fails(&["repair", &place.path("empty-0"), "--yes"], b"", 3, "no log at");
    fails(&["repair", "--wrong"], b"", 2, "");
}

/// Indexes below the recovery point are believed by an open; by a repair they are not. In a broker's data directory too.
#[test]
fn indexes_that_nobody_would_scan_are_built_anew() {
    let place = Place::new();
    for in_data_directory in [false, true] {
        let name = if in_data_directory { "data/t-0" } else { "t-0" };
        fs::create_dir_all(place.path("data")).unwrap();
        if in_data_directory {
            fs::write(place.path("data/recovery-point-offset-checkpoint"), "0\n1\nt 0 0\n").unwrap();
        }
        let dir = place.log(name, &numbers(2000), &["--batch-size", "100", "--segment-bytes", "16k"]);
        let index = PathBuf::from(&dir).join("00000000000000000000.index");
        let right = fs::read(&index).unwrap();
        assert!(right.len() >= 16, "{} bytes of index", right.len());
        let mut wrong = right.clone();
        wrong[7] ^= 1;
        fs::write(&index, &wrong).unwrap();
        if in_data_directory {
            fs::remove_file(PathBuf::from(&dir).join(".stratalog-checkpoint")).unwrap();
        }
        fails(&["verify", &dir], b"", 4, "");
        let steps = json(&ok(&["repair", &dir, "--dry-run", "-J"], b""));
        assert_eq!(steps[0]["action"], "rebuild");
        ok(&["repair", &dir, "--yes"], b"");
        assert_eq!(fs::read(&index).unwrap(), right);
        ok(&["verify", &dir], b"");
        assert_eq!(ok(&["cat", &dir], b""), numbers(2000));
    }
}

#[test]
fn a_wrong_transaction_index_is_built_anew() {
    let place = Place::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0/transactions/transactions-0");
    let dir = place.path("transactions-0");
    copy_dir(root, &dir);
    let index = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.extension().is_some_and(|suffix| suffix == "txnindex")
                && fs::metadata(path).unwrap().len() > 0
        })
        .unwrap();
    let right = fs::read(&index).unwrap();
    let mut wrong = right.clone();
    wrong[20] ^= 1;
    fs::write(&index, wrong).unwrap();
    let finds = || String::from_utf8(ok(&["verify", &dir], b"")).unwrap().contains("txn-index");
    assert!(finds());
    ok(&["repair", &dir, "--yes"], b"");
    assert_eq!(fs::read(&index).unwrap(), right);
    assert!(!finds());
}

/// What a check calls repairable is what a repair gets rid of, and the other way round.
#[test]
fn repairable_is_what_a_repair_gets_rid_of() {
    let place = Place::new();
    let findings = |dir: &str| json(&run(&["verify", dir, "--deep", "-J"], b"").out);
    for case in cases() {
        let name = case["case"].as_str().unwrap();
        let dir = copy_of(&place, name);
        let gist =
            |lines: &[Value], fields: &[&str]| gist(lines, "finding", fields).as_array().unwrap().clone();
        let before = gist(&findings(&dir), &["severity", "file", "kind", "repairable"]);
        ok(&["repair", &dir, "--deep", "--yes"], b"");
        let after = gist(&findings(&dir), &["severity", "file", "kind"]);
        for finding in before.iter().filter(|finding| finding[0] != "note") {
            let is_left = after.iter().any(|left| (0..3).all(|field| left[field] == finding[field]));
            assert_eq!(finding[3], !is_left, "{name}: {finding}");
        }
    }
}

/// `--truncate-tail` ends every log at its first batch that cannot be read, a torn one too, and nothing follows.
#[test]
fn a_truncated_tail_ends_at_the_first_bad_batch() {
    let place = Place::new();
    for case in cases() {
        let name = case["case"].as_str().unwrap();
        let dir = copy_of(&place, name);
        let plan = json(&ok(&["repair", &dir, "--deep", "--truncate-tail", "--dry-run", "-J"], b""));
        let Some(cut) = plan.iter().find(|step| step["action"] == "cut") else { continue };
        let readable = offsets_or_none(&dir);
        let done = json(&ok(&["repair", &dir, "--deep", "--truncate-tail", "--yes", "-J"], b""));
        let info: Value = serde_json::from_slice(&ok(&["info", &dir, "-J"], b"")).unwrap();
        let (end, at) = (info["end"].as_i64().unwrap(), cut["offset"].as_i64().unwrap());
        // Where offsets are missing before it the log ends before them.
        assert!(end <= at, "{name}: ends at {end}, not {at}");
        assert!(offsets(&dir).last().is_none_or(|last| *last < at), "{name}");
        let mut logs = files(&dir)
            .into_iter()
            .filter(|(path, _)| path.extension().is_some_and(|suffix| suffix == "log"));
        assert!(
            logs.next_back().unwrap().0.metadata().unwrap().len() > 0 || end == 0 || at == 91,
            "{name}: an empty segment"
        );
        // What the plan said is what went.
        let kept: u64 = done
            .iter()
            .filter(|line| line["type"] == "kept")
            .map(|line| line["bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(cut["bytes"], kept, "{name}");
        if let (Some(readable), Some(records)) = (readable, cut["records"].as_u64()) {
            let behind = readable.iter().filter(|offset| **offset > at).count();
            assert!(behind as u64 >= records, "{name}: {records} of {behind}");
        }
    }
}

/// Where the log can be read from front to back.
fn offsets_or_none(dir: &str) -> Option<Vec<i64>> {
    let ran = run(&["cat", dir, "-f", "%o\n"], b"");
    (ran.code == Some(0)).then(|| ran.text().lines().map(|line| line.parse().unwrap()).collect())
}

/// A batch that leaps to the end of its segment's offsets, or past the log's: a reader says that it is damage and goes on
/// behind it, and what is read without a word rises.
#[test]
fn no_reader_ends_silently_at_damage() {
    let place = Place::new();
    for case in cases() {
        let name = case["case"].as_str().unwrap();
        let dir = copy_of(&place, name);
        let leaps = match name {
            "offset-up-far" => Some(133..140),
            "segments-overlap" => Some(84..91),
            _ => None,
        };
        if let Some(leaps) = leaps {
            let offset = format!("(offset {})", leaps.start);
            let ran = fails(&["cat", &dir, "-f", "%o\n"], b"", 4, &offset);
            assert_eq!(ran.text().lines().count(), usize::try_from(leaps.start).unwrap(), "{name}");
            fails(&["get", &dir, &leaps.start.to_string()], b"", 4, &offset);
            ok(&["get", &dir, &leaps.end.to_string()], b"");
            fails(&["tail", &dir, "-n", "200"], b"", 4, &offset);
            let passed = run(&["cat", &dir, "--skip-damaged", "-f", "%o\n"], b"");
            assert_eq!(passed.code, Some(4), "{name}: {}", passed.err);
            let read: Vec<i64> = passed.text().lines().map(|line| line.parse().unwrap()).collect();
            let wanted: Vec<i64> = (0..273).filter(|offset| !leaps.contains(offset)).collect();
            assert_eq!(read, wanted, "{name}");
        }
        if let Some(read) = offsets_or_none(&dir) {
            assert!(read.is_sorted_by(|one, next| one < next), "{name}: {read:?}");
        }
    }
}

/// The plan of a cut in the middle says what sound records go, and that a plain repair keeps them.
#[test]
fn the_plan_of_a_truncation_tells_the_whole_loss() {
    let place = Place::new();
    let options = ["--batch-size", "100", "--segment-bytes", "2k"];
    let dir = place.log("loss-0", &numbers(2000), &options);
    let log = PathBuf::from(&dir).join("00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&log, bytes).unwrap();
    let whole = json(&run(&["verify", &dir, "-J"], b"").out).last().unwrap()["records"].as_u64().unwrap();
    let text = String::from_utf8(ok(&["repair", &dir, "--truncate-tail", "--dry-run"], b"")).unwrap();
    assert!(text.contains("can be read, which repair without --truncate-tail keeps"), "{text}");
    let plan = json(&ok(&["repair", &dir, "--truncate-tail", "--dry-run", "-J"], b""));
    let cut = plan.iter().find(|step| step["action"] == "cut").unwrap();
    let done = String::from_utf8(ok(&["repair", &dir, "--truncate-tail", "--yes"], b"")).unwrap();
    assert!(done.lines().any(|line| line.starts_with("kept: ") && line.ends_with(" bytes)")), "{done}");
    let left = json(&ok(&["verify", &dir, "-J"], b"")).last().unwrap()["records"].as_u64().unwrap();
    assert_eq!(cut["records"], whole - left);
    assert!(cut["records"].as_u64().unwrap() > 1000, "{cut}");
    assert_eq!(cut["next"], 2000);
}

/// An empty segment above the end that no writer of ours began, and one whose name leaves no offset to be given.
#[test]
fn a_stray_segment_above_the_end_goes() {
    let place = Place::new();
    for (name, bytes) in [
        ("00000000000000099999.log", &b""[..]),
        ("00000000000000099999.log", b"junk"),
        ("09223372036854775807.log", b""),
        ("09223372036854775807.log", b"junk"),
    ] {
        let dir =
            place.log(&format!("{}-{}", &name[15..20], bytes.len()), &numbers(300), &["--batch-size", "10"]);
        let stray = PathBuf::from(&dir).join(name);
        fs::write(&stray, bytes).unwrap();
        let found = json(&run(&["verify", &dir, "-J"], b"").out);
        let kinds = gist(&found, "finding", &["kind"]);
        assert!(kinds.as_array().unwrap().contains(&serde_json::json!(["stray-segment"])), "{name}: {kinds}");
        assert_eq!(found.last().unwrap()["end"], 300, "{name}");
        let done = json(&ok(&["repair", &dir, "--yes", "-J"], b""));
        assert_eq!(gist(&done, "step", &["action"]), serde_json::json!([["remove"]]), "{name}");
        assert_eq!(done.iter().filter(|line| line["type"] == "kept").count(), usize::from(!bytes.is_empty()));
        assert!(!stray.exists());
        ok(&["verify", &dir], b"");
        ok(&["append", &dir], b"next\n");
        assert_eq!(offsets(&dir), (0..=300).collect::<Vec<_>>(), "{name}");
    }
}

/// What an open removes without a byte in it is told as that.
#[test]
fn an_empty_segment_that_an_open_removes_is_told_of() {
    let place = Place::new();
    let dir = place.log("empty-0", &numbers(300), &[]);
    fs::write(PathBuf::from(&dir).join("00000000000000099999.log"), b"").unwrap();
    let ran = run(&["append", &dir], b"next\n");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("an empty segment") && !ran.err.contains("kept in :"), "{}", ran.err);
}

/// One offset that is wrong costs one batch, wherever it stands and however large the rest.
#[test]
fn one_wrong_offset_costs_one_batch() {
    let place = Place::new();
    for (nth, (batch, bit)) in [(0, 5), (1, 3), (20, 5), (20, 2), (60, 13), (99, 40)].into_iter().enumerate()
    {
        let dir = place.log(&format!("bit-{nth}"), &numbers(300), &["--batch-size", "1"]);
        let log = PathBuf::from(&dir).join("00000000000000000000.log");
        let mut bytes = fs::read(&log).unwrap();
        let mut at = 0;
        for _ in 0..batch {
            at +=
                12 + usize::try_from(u32::from_be_bytes(bytes[at + 8..at + 12].try_into().unwrap())).unwrap();
        }
        bytes[at + 7 - bit / 8] ^= 1 << (bit % 8);
        fs::write(&log, bytes).unwrap();
        fails(&["verify", &dir], b"", 4, "");
        ok(&["repair", &dir, "--yes"], b"");
        let wanted: Vec<i64> = (0..300).filter(|offset| *offset != batch).collect();
        assert_eq!(offsets(&dir), wanted, "bit {bit} of batch {batch}");
        ok(&["verify", &dir], b"");
    }
}

/// Makes a log's checkpoint say that the log was being cut where its second segment begins, and the writer died then. Where
/// that is.
fn begin_cut(dir: &str) -> i64 {
    let path = PathBuf::from(dir).join(".stratalog-checkpoint");
    let old = fs::read(&path).unwrap();
    let sealed = usize::try_from(u32::from_be_bytes(old[108..112].try_into().unwrap())).unwrap();
    assert!(sealed > 1);
    let offset = i64::from_be_bytes(old[128..136].try_into().unwrap());
    let mut new = old[..108].to_vec();
    // A recovery point without a batch, a cut, and that the cut takes published records.
    new[16..20].copy_from_slice(&(2_u32 | 8 | 16).to_be_bytes());
    new[28..36].copy_from_slice(&offset.to_be_bytes());
    new[36..80].fill(0);
    new[36..44].copy_from_slice(&offset.to_be_bytes());
    new[44..52].copy_from_slice(&offset.to_be_bytes());
    new[80..88].copy_from_slice(&offset.to_be_bytes());
    new[88..92].copy_from_slice(&1_i32.to_be_bytes());
    new[92..100].copy_from_slice(&offset.to_be_bytes());
    new[100..108].fill(0);
    new.extend_from_slice(&1_u32.to_be_bytes());
    new.extend_from_slice(&old[112..128]);
    // No producers.
    new.extend_from_slice(&0_u32.to_be_bytes());
    let mut crc = u32::MAX;
    for byte in &new[16..] {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    new[12..16].copy_from_slice(&(!crc).to_be_bytes());
    fs::write(&path, new).unwrap();
    offset
}

/// A cut whose writer died is told of, and whoever cuts again, repairs or appends ends it.
#[test]
fn a_cut_that_was_begun_is_told_of_and_finished() {
    let place = Place::new();
    let log = |name: &str| {
        let dir = place.log(name, &numbers(300), &["--batch-size", "100", "--segment-bytes", "1k"]);
        let end = begin_cut(&dir);
        let found = json(&run(&["verify", &dir, "-J"], b"").out);
        let kinds = gist(&found, "finding", &["severity", "offset", "kind"]);
        let wanted = serde_json::json!(["warning", end, "pending-cut"]);
        assert!(kinds.as_array().unwrap().contains(&wanted), "{kinds}");
        (dir, end)
    };
    let is_cut = |dir: &str, end: i64| {
        assert_eq!(offsets(dir), (0..end).collect::<Vec<_>>());
        assert!(!String::from_utf8(ok(&["verify", dir], b"")).unwrap().contains("pending-cut"));
    };
    let (dir, end) = log("again-0");
    let to = end.to_string();
    let plan = String::from_utf8(ok(&["truncate", &dir, "--to", &to, "--dry-run"], b"")).unwrap();
    assert!(plan.contains(&format!("finish the cut at offset {end}")), "{plan}");
    let done = run(&["truncate", &dir, "--to", &to, "--yes"], b"");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.text().contains("kept: ") && !done.err.contains("did not check"), "{}", done.err);
    is_cut(&dir, end);
    let (dir, end) = log("repaired-0");
    let steps = json(&ok(&["repair", &dir, "--yes", "-J"], b""));
    assert_eq!(gist(&steps, "step", &["action", "offset"])[0], serde_json::json!(["finish-cut", null]));
    is_cut(&dir, end);
    let (dir, end) = log("appended-0");
    let ran = run(&["append", &dir], b"next\n");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("was finished") && !ran.err.contains("did not check"), "{}", ran.err);
    is_cut(&dir, end + 1);
}
