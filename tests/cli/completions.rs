//! Completions, as shells ask for them.

use std::{fs, path::Path, process::Command};

use crate::{
    run::{Place, fails, numbers, ok, snapshot},
    tools,
};

/// Two topics, three partitions, one of them with segments at 754, 1455, ..
fn data(place: &Place) -> String {
    place.log("data/orders-0", &numbers(2000), &["--batch-size", "1k", "--segment-bytes", "8k"]);
    place.log("data/orders-1", &numbers(3), &[]);
    place.log("data/my.topic-12", &numbers(3), &[]);
    fs::create_dir(place.path("my dir")).unwrap();
    fs::write(place.path("notes.txt"), "x").unwrap();
    place.path("")
}

/// The base offsets of the segments, from the names of the files.
fn bases(dir: impl AsRef<Path>) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut bases: Vec<u64> = names.filter_map(|name| name.strip_suffix(".log")?.parse().ok()).collect();
    bases.sort_unstable();
    bases.iter().map(ToString::to_string).collect()
}

fn script(shell: &str, place: &str, script: &str) -> Vec<String> {
    let (program, first) = match shell {
        "fish" => ("fish", &["--no-config", "-c"][..]),
        "zsh" => ("zsh", &["-f", "-c"][..]),
        _ => ("bash", &["--norc", "-c"][..]),
    };
    let output = Command::new(program)
        .args(first)
        .arg(script)
        .current_dir(place)
        .env("PATH", tools::path())
        .env("HOME", place)
        .env_remove("LOGCTL_DIR")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.is_empty(), "{script}: {err}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// What bash offers. `broken` is the line as bash breaks it into `COMP_WORDS` (at blanks, and around runs of `:`, `=`
/// and `@`), the last word the one under the cursor; `current` is what bash would replace.
fn bash(place: &str, line: &str, broken: &[&str], current: &str) -> Vec<String> {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let words = broken.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let asked = format!(
        "source <(logctl completions bash)
        complete -p logctl | grep -q -e '-F _logctl logctl' || echo 'not registered'
        COMP_WORDS=({words}) COMP_CWORD={} COMP_LINE={line} COMP_POINT={} COMP_TYPE=9
        _logctl logctl {} ''
        for word in \"${{COMPREPLY[@]}}\"; do printf '%s\\n' \"$word\"; done",
        broken.len() - 1,
        line.len(),
        quoted(current),
        line = quoted(line),
    );
    script("bash", place, &asked)
}

/// The same for a line that has none of those characters.
fn bash_plain(place: &str, line: &str) -> Vec<String> {
    let words = line.split(' ').collect::<Vec<_>>();
    bash(place, line, &words, words.last().unwrap())
}

#[test]
fn bash_completes_verbs_options_and_values() {
    let place = Place::new();
    let data = data(&place);
    let offers = |line: &str| bash_plain(&data, line);
    assert_eq!(offers("logctl sn"), ["snapshot"]);
    assert!(offers("logctl cat --").iter().any(|word| word == "--format"));
    assert_eq!(offers("logctl cat --isolation "), ["uncommitted", "committed"]);
    assert_eq!(offers("logctl append data/orders-0 -z zst"), ["zstd", "zstd:"]);
    assert_eq!(offers("logctl help rec"), ["recipes"]);
    assert_eq!(offers("logctl man sna"), ["snapshot"]);
    assert_eq!(offers("logctl completions z"), ["zsh"]);
    assert_eq!(offers("logctl tail data/orders-0 --since yes"), ["yesterday"]);
    assert_eq!(offers("logctl retain data/orders-0 --age 7"), ["7ms", "7s", "7m", "7h", "7d"]);
    assert_eq!(offers("logctl cat --nons"), Vec::<String>::new());
}

#[test]
fn bash_completes_topics_partitions_and_directories() {
    let place = Place::new();
    let data = data(&place);
    let offers = |line: &str| bash_plain(&data, line);
    assert_eq!(offers("logctl cat -d data -t "), ["my.topic", "orders"]);
    assert_eq!(offers("logctl cat --dir data --topic m"), ["my.topic"]);
    assert_eq!(offers("logctl -d data cat -t o"), ["orders"]);
    assert_eq!(offers("logctl info data -t "), ["my.topic", "orders"]);
    assert_eq!(offers("logctl cat -d data -t orders -p "), ["0", "1"]);
    assert_eq!(offers("logctl cat -d data -t my.topic -p "), ["12"]);
    assert_eq!(offers("logctl cat data/o"), ["data/orders-0/", "data/orders-1/"]);
    assert_eq!(offers("logctl cat -d data o"), ["orders-0", "orders-1"]);
    // A name with a blank comes as the shell must read it; files that are no segments are not offered.
    assert_eq!(offers("logctl cat m"), [r"my\ dir/"]);
    assert_eq!(bash(&data, "logctl cat \"m", &["logctl", "cat", "\"m"], "m"), ["my dir/"]);
    assert_eq!(offers("logctl cat n"), Vec::<String>::new());
    assert_eq!(offers("logctl dump n"), ["notes.txt"]);
    let files = offers("logctl cat data/orders-0/");
    assert_eq!(files.len(), bases(place.path("data/orders-0")).len());
    assert!(
        files.iter().all(|file| Path::new(file).extension().is_some_and(|end| end == "log")),
        "{files:?}"
    );
}

#[test]
fn bash_completes_offsets() {
    let place = Place::new();
    let data = data(&place);
    let bases = bases(place.path("data/orders-0"));
    assert!(bases.len() > 2);
    let mut all = bases.clone();
    all.push("2000".to_owned());
    let offers = |line: &str| bash_plain(&data, line);
    for line in [
        "logctl trim data/orders-0 --before ",
        "logctl truncate -d data -t orders --to ",
        "logctl append data/orders-0 --expect ",
    ] {
        assert_eq!(offers(line), all, "{line}");
    }
    let numbers = |words: Vec<String>| -> Vec<String> {
        words.into_iter().filter(|word| word.parse::<u64>().is_ok()).collect()
    };
    // At the end there is no record to get.
    assert_eq!(numbers(offers("logctl get data/orders-0 ")), all[..all.len() - 1]);
    let range = offers("logctl cat data/orders-0 -o ");
    assert!(range.iter().any(|word| word == "start") && range.iter().any(|word| word == "end"), "{range:?}");
    assert_eq!(numbers(range), all);
    // A segment alone: nothing but it is known of.
    let (second, begun) = (&bases[1], &bases[1][..2]);
    assert!(offers(&format!("logctl cat data/orders-0 -o {begun}")).contains(second));
}

#[test]
fn bash_completes_words_that_it_breaks() {
    let place = Place::new();
    let data = data(&place);
    let second = bases(place.path("data/orders-0"))[1].clone();
    let begun = &second[..2];
    let cat = ["logctl", "cat", "data/orders-0"];
    let offers = |rest: &str, broken: &[&str], current: &str| {
        bash(&data, &format!("logctl cat data/orders-0 {rest}"), &[&cat[..], broken].concat(), current)
    };
    let range = offers("-o 10:", &["-o", "10", ":"], "");
    assert!(range.contains(&second) && range.contains(&"end".to_owned()), "{range:?}");
    assert!(!range.contains(&"start".to_owned()), "{range:?}");
    assert!(offers(&format!("-o 10:{begun}"), &["-o", "10", ":", begun], begun).contains(&second));
    // bash breaks at the @ and yet takes it for a part of the word.
    assert_eq!(offers("-o @yes", &["-o", "@", "yes"], "@yes"), ["@yesterday"]);
    assert!(offers("-o @", &["-o", "@"], "@").contains(&"@yesterday".to_owned()));
    assert!(offers(&format!("--offset={begun}"), &["--offset", "=", begun], begun).contains(&second));
}

#[test]
fn fish_completes() {
    if !tools::has("fish") {
        return;
    }
    let place = Place::new();
    let data = data(&place);
    let second = bases(place.path("data/orders-0"))[1].clone();
    let offers = |line: &str| -> Vec<String> {
        let asked = format!("logctl completions fish | source; complete -C '{line}'");
        let lines = script("fish", &data, &asked).into_iter();
        lines.map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    assert_eq!(offers("logctl sn"), ["snapshot"]);
    assert_eq!(offers("logctl cat -d data -t "), ["my.topic", "orders"]);
    assert_eq!(offers("logctl cat data/o"), ["data/orders-0/", "data/orders-1/"]);
    assert!(offers("logctl cat data/orders-0 -o 10:").contains(&format!("10:{second}")));
    assert_eq!(offers("logctl cat data/orders-0 -o @yes"), ["@yesterday"]);
}

#[test]
fn zsh_completes() {
    if !tools::has("zsh") {
        return;
    }
    let place = Place::new();
    let data = data(&place);
    let second = bases(place.path("data/orders-0"))[1].clone();
    // What the completion system would be given, printed instead.
    let offers = |line: &str| -> Vec<String> {
        let words = line.split(' ').map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let asked = format!(
            "function compdef {{ registered=$1; }}
            function _describe {{ local name=${{@[-1]}}; print -rl -- ${{(P)name}}; }}
            function compadd {{ print -rl -- ${{@}}; }}
            source <(logctl completions zsh)
            words=({words}) CURRENT=${{#words}}
            $registered"
        );
        let lines = script("zsh", &data, &asked).into_iter();
        lines.filter(|line| !line.is_empty()).collect()
    };
    let begins = |offered: &[String], word: &str| offered.iter().any(|line| line.starts_with(word));
    assert!(begins(&offers("logctl sn"), "snapshot"), "{:?}", offers("logctl sn"));
    assert!(begins(&offers("logctl cat -d data -t m"), "my.topic"));
    assert!(begins(&offers("logctl cat data/orders-0 -o 10:"), &format!("10\\:{second}")));
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell", "pwsh"] {
        let script = String::from_utf8(ok(&["completions", shell], b"")).unwrap();
        assert!(script.contains("LOGCTL_COMPLETE") && script.contains("logctl"), "{shell}: {script}");
        assert!(!script.contains(env!("CARGO_BIN_EXE_logctl")), "{shell}: the path of one machine");
    }
    fails(&["completions", "tcsh"], b"", 2, "tcsh");
}

#[test]
fn asking_changes_nothing_and_says_nothing() {
    let place = Place::new();
    let data = data(&place);
    let dir = place.path("data/orders-0");
    let before = snapshot(&dir);
    for words in [
        &["cat", "data/orders-0", "-o", ""][..],
        &["truncate", "data/orders-0", "--yes", "--to", ""],
        &["append", "data/new-0", "--create", "--expect", ""],
        &["tail", "data/orders-0", "--cursor", ""],
        &["cat", "missing", "-o", ""],
        &["man", "new-directory/"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_logctl"));
        command.args(["--", "logctl"]).args(words).current_dir(&data).env_remove("LOGCTL_DIR");
        let index = words.len().to_string();
        let output =
            command.env("LOGCTL_COMPLETE", "bash").env("_LOGCTL_COMPLETE_INDEX", index).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
    }
    assert!(snapshot(&dir) == before, "the log was changed");
    assert!(!Path::new(&place.path("data/new-0")).exists());
    assert!(!Path::new(&place.path("new-directory")).exists());
}
