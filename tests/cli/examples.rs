//! Every example of every help text, manual page and the README, run by bash as it stands.
//!
//! The examples are taken from what the built command prints (`tests/cli/manual.rs` holds that the pages have the same).
//! Each runs in a directory of its own where there is what it names. Absolute paths lie in that directory too, and what
//! follows a log is ended by `--timeout`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use tempfile::TempDir;

use crate::{
    brokers::serve_for,
    manual::{topics, verbs},
    run::{Place, copy_dir, ok},
    tools,
};

/// The examples in a help text: what is indented below `Examples:`, and every other indented line that begins with a
/// command. Comments are left where they are.
pub(crate) fn examples(help: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_below = false;
    for line in help.lines() {
        match line.strip_prefix("  ") {
            Some(example) => {
                let example = example.trim();
                if (is_below && !line.starts_with("   ") && !example.starts_with('#'))
                    || example.starts_with("logctl ")
                {
                    found.push(example.to_owned());
                }
            }
            None if line.is_empty() => {}
            None => is_below = line == "Examples:",
        }
    }
    found
}

/// What an example works on, made once.
fn world() -> &'static Path {
    static WORLD: OnceLock<TempDir> = OnceLock::new();
    WORLD.get_or_init(make_world).path()
}

fn make_world() -> TempDir {
    let world = TempDir::new().unwrap();
    let at = |name: &str| world.path().join(name).to_str().unwrap().to_owned();
    let orders = at("data/orders-0");
    let pairs = |from: u32, to: u32| -> Vec<u8> {
        (from..to).flat_map(|n| format!("u{}=v{n}\n", n % 7).into_bytes()).collect()
    };
    let append = |dir: &str, lines: &[u8], time: &str| {
        let log =
            ["append", dir, "--create", "-q", "-K", "=", "--segment-bytes", "32k", "--batch-size", "2k"];
        ok(&[&log[..], &["--timestamp", time, "-Z", "-H", "source=shop"]].concat(), lines);
    };
    // In the order of the offsets: 100 records of yesterday, 500 and 600 of two fixed times, 200 of now.
    append(&orders, &pairs(0, 100), "yesterday");
    append(&orders, &pairs(100, 600), "2026-11-30T07:30:00Z");
    append(&orders, &pairs(600, 1200), "2026-11-30T08:30:00Z");
    append(&orders, &pairs(1200, 1398), "now");
    append(&orders, b"u1=\nu2=\n", "now");
    append(&at("data/orders-1"), &pairs(0, 10), "now");
    for copy in ["backup/orders-0", "mirror/orders-0", "A", "a", "b"] {
        copy_dir(&orders, at(copy));
    }
    let store = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0/store-clean/data");
    copy_dir(format!("{store}/__consumer_offsets-1"), at("data/__consumer_offsets-7"));
    for file in ["meta.properties", "recovery-point-offset-checkpoint"] {
        fs::copy(format!("{store}/{file}"), at(&format!("data/{file}"))).unwrap();
    }
    for dir in ["mnt/other", "backups", ".zfunc", ".config/fish/completions", ".config/elvish"] {
        fs::create_dir_all(at(dir)).unwrap();
    }
    fs::create_dir_all(at(".local/share/bash-completion/completions")).unwrap();
    if verbs().iter().any(|verb| verb == "export") {
        ok(&["export", &orders, "--to", &at("orders.raw")], b"");
        ok(&["export", &orders, "-z", "zstd", "--to", &at("orders.raw.zst")], b"");
        let half = (fs::metadata(at("orders.raw")).unwrap().len() * 2 / 3).to_string();
        ok(&["export", &orders, "--split", &half, "--to", &at("orders.raw")], b"");
    }
    fs::create_dir_all(at(".config/logctl")).unwrap();
    fs::write(at(".config/logctl/config.toml"), "[profiles.staging]\ndir = \"data\"\n").unwrap();
    fs::write(at("server.properties"), "log.dirs=data\nnum.partitions=3\n").unwrap();
    fs::write(at("client.properties"), "bootstrap.servers=localhost:9092\n").unwrap();
    let offsets = r#"{"partitions":[{"topic":"orders","partition":0,"offset":1200}],"version":1}"#;
    fs::write(at("offsets.json"), offsets).unwrap();
    // Another host is another directory.
    fs::create_dir_all(at("bin")).unwrap();
    for (name, script) in
        [("bill", "cat"), ("bin/ssh", "shift; mkdir -p \"$HOME/host/data\"; cd \"$HOME/host\"; \"$@\"")]
    {
        fs::write(at(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(at(name), executable).unwrap();
    }
    world
}

/// Flips a bit in the last batch of the log.
fn damage(dir: &Path) {
    let mut logs: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|suffix| suffix == "log"));
    logs.sort();
    let last = logs.last().unwrap();
    let mut bytes = fs::read(last).unwrap();
    let at = bytes.len() - 5;
    bytes[at] ^= 1;
    fs::write(last, bytes).unwrap();
}

/// The verb that gives the line its exit code: of the last command.
fn last_verb(line: &str) -> Option<String> {
    let code = line.split("  #").next().unwrap();
    let last = code.split(['|', ';']).next_back().unwrap().split("&&").last().unwrap();
    let words: Vec<_> = last.split_whitespace().skip_while(|word| *word != "logctl").skip(1).collect();
    words.iter().find(|word| verbs().iter().any(|verb| verb == *word)).map(|word| (*word).to_owned())
}

/// The exit code that an example ends with. A plan that nobody agreed to is 1, an end of following 124.
fn expected_code(line: &str) -> i32 {
    let has = |flag: &str| line.split_whitespace().any(|word| word == flag);
    match last_verb(line).as_deref() {
        Some("truncate" | "trim" | "retain" | "repair") if !has("--yes") && !has("--dry-run") => 1,
        Some("topic") if (has("rm") || has("alter")) && !has("--yes") && !has("--dry-run") => 1,
        Some("cursor") if (has("rm") || has("set")) && !has("--yes") && !has("--dry-run") => 1,
        Some("tail") if has("-f") || has("-F") => 124,
        Some("serve") if !has("--check-config") => 124,
        _ => 0,
    }
}

/// Whether something must come out: not where it goes to a file, nor of verbs that have nothing to say.
fn must_print(line: &str) -> bool {
    let code = line.split("  #").next().unwrap();
    let is_redirected = code.replace("->", "").contains(" > ") || code.contains(">>") || code.contains("2>");
    let is_silent = match last_verb(line).as_deref() {
        Some("append") => !code.contains("--report"),
        Some("import") => true,
        Some("serve") => code.contains("--check-config"),
        Some("export") => code.contains("--to"),
        None => code.starts_with("source "),
        _ => false,
    };
    !is_redirected && !is_silent
}

/// Runs lines in a copy of the world, one after the other; what each ended with and printed.
fn run_in(place: &Path, line: &str) -> (Option<i32>, String, String) {
    let local = ["/mnt/", "/var/", "/backup"].iter().fold(line.to_owned(), |line, absolute| {
        line.replace(&format!(" {absolute}"), &format!(" .{absolute}"))
    });
    // Whoever has that port on this machine keeps it: a server of the example's own place takes the part of brokers.
    let talks = line.contains(" -b ") || line.contains("kafka://") || line.contains("LOGCTL_BROKERS=");
    let data = place.join("data");
    let served = if talks { serve_for(line, data.to_str().unwrap()) } else { None };
    let local = match &served {
        Some(served) => local.replace("localhost:9092", &served.brokers()),
        None => local.replace(":9092", ":0"),
    };
    let script = format!(
        "logctl() {{
            case \" $* \" in
                *' --timeout '*) command logctl \"$@\" ;;
                # Who asks a server prints nothing before it has answered.
                *' tail '*' -b '*' -f '*) command logctl \"$@\" --timeout 5s ;;
                *' --check-config '*) command logctl \"$@\" ;;
                *' serve '* | *' tail '*' -f '* | *' tail '*' -F '*) command logctl \"$@\" --timeout 1s ;;
                *) command logctl \"$@\" ;;
            esac
        }}
        {local}"
    );
    let output = Command::new("bash")
        .args(["--norc", "-c", &script])
        .current_dir(place)
        .env("PATH", format!("{}:{}", place.join("bin").display(), tools::path()))
        .env("HOME", place)
        .env("PROFILE", place.join("profile.ps1"))
        .env("XDG_CONFIG_HOME", place.join(".config"))
        .env_remove("LOGCTL_DIR")
        .env_remove("LOGCTL_LOG")
        .env_remove("LOGCTL_CONFIG")
        .env_remove("LOGCTL_PROFILE")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// What is wrong with an example; nothing if it does what it should.
fn faults(place: &Path, line: &str, code: i32) -> Option<String> {
    for program in ["jq", "zstd"] {
        if line.split_whitespace().any(|word| word == program) && !tools::has(program) {
            return None;
        }
    }
    let (got, out, err) = run_in(place, line);
    if got != Some(code) {
        return Some(format!("{line}\n  exit code {got:?}, not {code}\n  {out}{err}"));
    }
    if err.contains("panicked") {
        return Some(format!("{line}\n  {err}"));
    }
    (must_print(line) && out.is_empty()).then(|| format!("{line}\n  printed nothing: {err}"))
}

/// A copy of the world; with a damaged log where damage is what the example is about.
fn place_for(line: &str) -> Place {
    let place = Place::new();
    copy_dir(world(), place.path(""));
    let bill = Path::new(&place.path("")).join("bill");
    assert!(bill.is_file());
    if line.contains("logctl import data/orders-0") && !line.contains("ssh ") && !line.contains("--resume") {
        fs::remove_dir_all(place.path("data/orders-0")).unwrap();
    }
    if line.contains("logctl export ") {
        for file in ["orders.raw", "orders.raw.00001", "orders.raw.00002", "orders.raw.zst"] {
            fs::remove_file(place.path(file)).unwrap();
        }
    }
    if line.contains("logctl diff data /mnt") {
        copy_dir(place.path("data"), place.path("mnt/other/data"));
    }
    if line.contains("logctl cursor") {
        ok(&["cursor", "set", &place.path("data/orders-0"), "billing", "--to", "end", "--yes"], b"");
    }
    if line.contains("logctl repair") {
        damage(Path::new(&place.path("data/orders-0")));
    }
    place
}

fn check(source: &str, help: &str) {
    let examples = examples(help);
    assert!(!examples.is_empty(), "{source}: no examples");
    let bad: Vec<_> = examples
        .iter()
        .filter_map(|line| {
            let place = place_for(line);
            faults(Path::new(&place.path("")), line, expected_code(line))
        })
        .collect();
    assert!(bad.is_empty(), "{source}:\n{}", bad.join("\n"));
}

#[test]
fn examples_of_the_verbs() {
    for verb in verbs() {
        let help = String::from_utf8(ok(&[&verb, "--help"], b"")).unwrap();
        check(&verb, &help);
    }
    for action in ["create", "ls", "describe", "alter", "rm", "config"] {
        check(action, &String::from_utf8(ok(&["topic", action, "--help"], b"")).unwrap());
    }
    check("logctl", &String::from_utf8(ok(&["--help"], b"")).unwrap());
}

#[test]
fn examples_of_the_topics() {
    for topic in topics().iter().filter(|topic| *topic != "recipes") {
        let help = String::from_utf8(ok(&["help", topic], b"")).unwrap();
        check(topic, &help);
    }
}

/// The commands of a recipe follow each other, in one place: what is cut is cut for the next.
#[test]
fn recipes_work_from_the_first_line_to_the_last() {
    let help = String::from_utf8(ok(&["help", "recipes"], b"")).unwrap();
    let mut title = String::new();
    let mut place = None;
    let mut bad = Vec::new();
    let mut count = 0;
    for line in help.lines() {
        let Some(example) = line.strip_prefix("  ") else {
            if line.ends_with(':') {
                title = line.to_owned();
                place = None;
            }
            continue;
        };
        if example.starts_with('#') {
            continue;
        }
        let is_damaged = title.contains("damaged");
        let place = place.get_or_insert_with(|| place_for(if is_damaged { "logctl repair" } else { "" }));
        let was_repaired = is_damaged && !has_damage(&place.path("data/orders-0"));
        let code = match (is_damaged, last_verb(example).as_deref()) {
            (true, Some("verify")) if !was_repaired => 4,
            (true, Some("repair")) if was_repaired => 0,
            _ => expected_code(example),
        };
        count += 1;
        bad.extend(faults(Path::new(&place.path("")), example, code).map(|fault| format!("{title} {fault}")));
    }
    assert!(count >= 20, "{count} recipes");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

fn has_damage(dir: &str) -> bool {
    crate::run::run(&["verify", dir, "-q"], b"").code == Some(4)
}

/// The README's commands, in their order. `cargo run` is this binary, and a million lines are fewer here.
#[test]
fn commands_of_the_readme() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let blocks = readme.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines: Vec<String> = blocks
        .flat_map(str::lines)
        .filter(|line| line.contains("logctl ") || line.contains("cargo run"))
        .filter(|line| !line.starts_with("alias ") && !line.starts_with('#'))
        .map(|line| {
            let line = line.split(" # ").next().unwrap().trim_end();
            line.replace("cargo run --release --", "logctl").replace("1000000", "500000")
        })
        .collect();
    assert!(lines.len() > 10, "{lines:?}");
    let place = Place::new();
    for line in &lines {
        // Nothing is damaged here, so that there is nothing to agree to.
        let code = if line.starts_with("logctl repair") { 0 } else { expected_code(line) };
        assert_eq!(faults(Path::new(&place.path("")), line, code), None);
    }
}

#[test]
fn the_parser_finds_examples() {
    let help = "Usage: logctl x\n\nOptions:\n  -a  logctl y\n\nExamples:\n  seq 3 | logctl append a\n  logctl b  # c\n      more\n\nText:\n  logctl d\n  other\n";
    assert_eq!(examples(help), ["seq 3 | logctl append a", "logctl b  # c", "logctl d"]);
    assert_eq!(expected_code("logctl trim a --before 3   # shows"), 1);
    assert_eq!(expected_code("logctl verify a || logctl repair a --yes"), 0);
    assert_eq!(expected_code("logctl tail a -f -J | jq ."), 0);
    assert_eq!(expected_code("logctl tail a -f"), 124);
    assert!(!must_print("logctl get a 3 --raw > value") && must_print("logctl cat a -f '%k->%v'"));
}
