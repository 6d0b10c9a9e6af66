//! The configuration file, profiles and the environment; `--output`; topics and partitions; the words of other tools.

use std::{fs, process::Output};

use serde_json::Value;

use crate::run::{Place, Ran, fails, logctl, numbers, ok, run};

/// Runs it with this configuration file, and these variables.
fn with(file: &str, vars: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = logctl(args);
    command.env("LOGCTL_CONFIG", file).envs(vars.iter().copied());
    let Output { status, stdout, stderr } = command.output().unwrap();
    Ran { code: status.code(), out: stdout, err: String::from_utf8(stderr).unwrap() }
}

fn json(ran: &Ran) -> Vec<Value> {
    ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The value and the origin of a key.
fn shown(ran: &Ran, key: &str) -> (Value, String) {
    let found = json(ran).into_iter().find(|setting| setting["key"] == key);
    let found = found.unwrap_or_else(|| panic!("no {key} in {}{}", ran.text(), ran.err));
    (found["value"].clone(), found["origin"].as_str().unwrap().to_owned())
}

/// Two topics, three partitions.
fn data(place: &Place, name: &str) -> String {
    let small = ["--batch-size", "100", "--segment-bytes", "1k"];
    place.log(&format!("{name}/orders-0"), &numbers(300), &small);
    place.log(&format!("{name}/orders-10"), &numbers(200), &small);
    place.log(&format!("{name}/audit-0"), &numbers(3), &small);
    place.path(name)
}

#[test]
fn a_flag_beats_the_environment_beats_a_profile_beats_the_file() {
    let place = Place::new();
    let file = place.path("config.toml");
    let (one, two, three, four) = ("/d/one", "/d/two", "/d/three", "/d/four");
    let text = format!("dir = \"{one}\"\ntimeout = \"5s\"\n[profiles.p]\ndir = \"{two}\"\n[profiles.q]\n");
    fs::write(&file, text).unwrap();
    let dir = |vars: &[(&str, &str)], args: &[&str]| {
        shown(&with(&file, vars, &[&["config", "show", "-J"], args].concat()), "dir")
    };
    assert_eq!(dir(&[], &[]), (one.into(), format!("{file}:1")));
    assert_eq!(dir(&[], &["--profile", "p"]), (two.into(), format!("profile p, {file}:4")));
    assert_eq!(dir(&[("LOGCTL_PROFILE", "p")], &[]), (two.into(), format!("profile p, {file}:4")));
    // The flag beats the variable, and a profile without the key leaves the file's.
    assert_eq!(dir(&[("LOGCTL_PROFILE", "p")], &["--profile=q"]).0, one);
    let named = [("LOGCTL_PROFILE", "p"), ("LOGCTL_DIR", three)];
    assert_eq!(dir(&named, &[]), (three.into(), "LOGCTL_DIR".into()));
    assert_eq!(dir(&named, &["--dir", four]), (four.into(), "--dir".into()));
    let ran = with(&file, &[], &["config", "show", "-J"]);
    assert_eq!(shown(&ran, "timeout").0, "5s");
    assert_eq!(shown(&ran, "color"), ("auto".into(), "default".into()));
    assert_eq!(shown(&ran, "topic"), (Value::Null, "default".into()));
}

#[test]
fn what_the_file_says_is_done() {
    let place = Place::new();
    let data = data(&place, "data");
    let file = place.path("config.toml");
    fs::write(
        &file,
        "dir = \"data\"\ntopic = \"audit\"\noutput = \"jsonl\"\nquiet = true\n\
         [append]\ncompression = \"zstd\"\nsync = \"never\"\n\
         [profiles.loud]\nquiet = false\noutput = \"table\"\n",
    )
    .unwrap();
    // A relative directory lies beside the file; the topic is the file's.
    assert_eq!(with(&file, &[], &["cat"]).text(), "1\n2\n3\n");
    // A place on the command line has its own name.
    let ran = with(&file, &[], &["cat", &format!("{data}/orders-10"), "-c", "1"]);
    assert_eq!((ran.code, ran.text()), (Some(0), "1\n"), "{}", ran.err);
    // And so has a topic.
    let ran = with(&file, &[], &["offsets", "-t", "orders", "-p", "10"]);
    assert_eq!(json(&ran)[0]["offset"], 200);
    let ran = with(&file, &[], &["ls", "--profile", "loud"]);
    assert!(ran.text().starts_with("PARTITION"), "{}", ran.text());
    // -q is the file's: no heading; the command line takes it back.
    let ran = with(&file, &[], &["ls", "--output", "table"]);
    assert!(ran.text().starts_with("audit-0"), "{}", ran.text());
    let ran = with(&file, &[], &["ls", "--output", "table", "--quiet=false"]);
    assert!(ran.text().starts_with("PARTITION"), "{}", ran.text());
    let mut command = logctl(&["append", "-t", "new", "--create"]);
    command.env("LOGCTL_CONFIG", &file).stdin(fs::File::open(&file).unwrap());
    assert!(command.output().unwrap().status.success());
    let header = ok(&["get", &format!("{data}/new-0"), "0", "--batch", "-J"], b"");
    assert!(String::from_utf8(header).unwrap().contains("\"zstd\""));
}

/// Which messages of the library are shown: the variable, then -v, then the file.
#[test]
fn messages_of_the_library() {
    let place = Place::new();
    let data = data(&place, "data");
    let file = place.path("config.toml");
    fs::write(&file, "log = \"a=b=c\"\nverbose = 1\n").unwrap();
    let warns = |vars: &[(&str, &str)], args: &[&str]| {
        let ran = with(&file, vars, &[&["ls", &data], args].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.err
    };
    assert!(warns(&[], &[]).starts_with("warning: filter of messages `a=b=c`"));
    assert_eq!(warns(&[], &["-v"]), "");
    assert_eq!(warns(&[("LOGCTL_LOG", "error")], &[]), "");
    assert!(warns(&[("LOGCTL_LOG", "d=e=f")], &["-v"]).contains("`d=e=f`"));
}

#[test]
fn a_mistake_in_the_file_is_told_with_its_line() {
    let place = Place::new();
    let file = place.path("config.toml");
    for (text, says) in [
        ("\ntopik = \"x\"", ":2: unknown key `topik`\n  did you mean `topic`?"),
        ("[append]\nsinc = \"never\"", ":2: unknown key in [append] `sinc`\n  did you mean `sync`?"),
        (
            "[append]\nsync = \"sometimes\"",
            ":2: append.sync: invalid value 'sometimes' for '--sync <POLICY>'",
        ),
        ("color = \"blue\"", ":1: color: invalid value 'blue'"),
        ("quiet = \"yes\"", ":1: quiet: write true or false"),
        ("progress = 1", ":1: progress: write true or false"),
        ("dir = [\"a\", \"b\"]", ":1: dir: takes one value"),
        ("[repair]\nyes = true", ":1: unknown table `repair`"),
        ("dir = \"x", ":1: "),
    ] {
        fs::write(&file, text).unwrap();
        let ran = with(&file, &[], &["ls", "."]);
        assert_eq!((ran.code, ran.text()), (Some(2), ""), "{text}: {}", ran.err);
        assert!(
            ran.err.starts_with(&format!("error: {file}:")) && ran.err.contains(says),
            "{text}: {}",
            ran.err
        );
        // What helps out of it works all the same.
        assert_eq!(with(&file, &[], &["config", "path"]).text(), format!("{file}\n"));
        assert_eq!(with(&file, &[], &["ls", "--help"]).code, Some(0));
    }
    fs::write(&file, "[profiles.one]\n").unwrap();
    let ran = with(&file, &[("LOGCTL_PROFILE", "two")], &["ls", "."]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("no profile `two`") && ran.err.contains("it has: one"), "{}", ran.err);
    let ran = with(&place.path("absent"), &[], &["ls", "."]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("cannot read"), "{}", ran.err);
    fails(&["ls", ".", "--profile", "p"], b"", 2, "no profile `p`");
}

#[test]
fn the_file_is_where_base_directories_say() {
    let place = Place::new();
    let look = |vars: &[(&str, &str)]| {
        let mut command = logctl(&["config", "path"]);
        command.env_remove("LOGCTL_CONFIG").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        let output = command.envs(vars.iter().copied()).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, out, err) = look(&[("HOME", "/h")]);
    assert_eq!((code, out.as_str()), (Some(0), "/h/.config/logctl/config.toml\n"));
    assert!(err.contains("not there"), "{err}");
    let base = place.path("base");
    assert_eq!(look(&[("HOME", "/h"), ("XDG_CONFIG_HOME", &base)]).1, format!("{base}/logctl/config.toml\n"));
    // As the standard has it, a relative one counts for nothing.
    assert_eq!(look(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "rel")]).1, "/h/.config/logctl/config.toml\n");
    assert_eq!(look(&[]).0, Some(3));
    fs::create_dir_all(format!("{base}/logctl")).unwrap();
    fs::write(format!("{base}/logctl/config.toml"), "verbose = 2\n").unwrap();
    let mut command = logctl(&["config", "show", "-J"]);
    command.env_remove("LOGCTL_CONFIG").env("XDG_CONFIG_HOME", &base);
    assert!(
        String::from_utf8(command.output().unwrap().stdout).unwrap().contains("\"verbose\",\"value\":\"2\"")
    );
}

/// They are checked and shown, secrets apart, and it is said that nothing uses them.
#[test]
fn servers_and_connections_are_shown() {
    let place = Place::new();
    let file = place.path("config.toml");
    fs::write(
        &file,
        "brokers = [\"a\", \"b:1\"]\n[connection]\nsasl.username = \"me\"\nsasl.password = \"hush\"\n",
    )
    .unwrap();
    let client = place.path("client.properties");
    fs::write(&client, "security.protocol=SASL_SSL\nacks=all\nsasl.username=you\n").unwrap();
    let ran = with(&file, &[], &["config", "show", "-J"]);
    assert_eq!(shown(&ran, "brokers"), ("a:9092,b:1".into(), format!("{file}:1")));
    assert_eq!(shown(&ran, "connection.sasl.password").0, "********");
    let ran = with(&file, &[("LOGCTL_BROKERS", "c:2")], &["config", "show", "-J", "-F", &client]);
    assert_eq!(shown(&ran, "brokers"), ("c:2".into(), "LOGCTL_BROKERS".into()));
    assert_eq!(shown(&ran, "connection.sasl.username"), ("you".into(), format!("-F {client}")));
    assert!(ran.err.contains("ignored: acks"), "{}", ran.err);
    let args = ["config", "show", "-J", "-F", &client, "-X", "security.protocol=ssl"];
    assert_eq!(shown(&with(&file, &[], &args), "connection.security.protocol"), ("SSL".into(), "-X".into()));
    assert!(!ran.text().contains("hush") && !ran.err.contains("hush"));
    fails(&["config", "show", "-X", "security.protocl=ssl"], b"", 2, "`security.protocol`");
    let ran = with("", &[("LOGCTL_BROKERS", "c:x")], &["config", "show"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    // Where there are none, nothing is said of them.
    assert_eq!(run(&["config", "show"], b"").err, "");
}

#[test]
fn the_three_forms() {
    let place = Place::new();
    let data = data(&place, "data");
    let one = format!("{data}/orders-0");
    for args in [
        &["ls", &data][..],
        &["ls", &one],
        &["offsets", &data],
        &["verify", &one],
        &["diff", &one, &one],
        &["truncate", &one, "--to", "8", "--dry-run"],
        &["trim", &one, "--before", "5", "--dry-run"],
        &["retain", &data, "--bytes", "1k", "--dry-run"],
        &["roll", &data, "--dry-run"],
        &["repair", &one, "--dry-run"],
        &["copy", &one, &place.path("copy"), "--dry-run"],
        &["info", &data],
    ] {
        let lines = ok(&[args, &["-J"]].concat(), b"");
        assert_eq!(ok(&[args, &["--output", "jsonl"]].concat(), b""), lines, "{args:?}");
        let lines: Vec<Value> = lines
            .split(|b| *b == b'\n')
            .filter(|l| !l.is_empty())
            .map(|l| serde_json::from_slice(l).unwrap())
            .collect();
        assert!(!lines.is_empty(), "{args:?}");
        let whole: Value = serde_json::from_slice(&ok(&[args, &["--output", "json"]].concat(), b"")).unwrap();
        assert_eq!(whole, Value::Array(lines), "{args:?}");
        let table = ok(&[args, &["--output", "table"]].concat(), b"");
        assert_eq!(ok(args, b""), table, "{args:?}");
        assert!(!table.starts_with(b"{") && !table.starts_with(b"["), "{args:?}");
    }
    // Of one log it is one object.
    let info: Value = serde_json::from_slice(&ok(&["info", &one, "--output", "json"], b"")).unwrap();
    assert_eq!(info["end"], 300);
    // A plan that is not carried out is whole JSON too.
    let ran = run(&["truncate", &one, "--to", "0", "--output", "json"], b"");
    assert_eq!(ran.code, Some(1));
    assert!(serde_json::from_str::<Value>(ran.text()).is_ok_and(|plan| plan.is_array()), "{}", ran.text());
    for verb in ["cat", "tail"] {
        fails(&[verb, &one, "--output", "json"], b"", 2, "-J prints records");
    }
}

#[test]
fn topics_and_partitions_that_are_not_there_are_told_what_is() {
    let place = Place::new();
    let data = data(&place, "data");
    let at = |args: &[&'static str]| {
        [&["-d", &data], args].concat().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (args, code, says) in [
        (&["cat", "-t", "q"][..], 3, "no topic `q`"),
        (&["cat", "-t", "q"], 3, "topics there: audit, orders"),
        (&["cat", "-t", "orders", "-p", "7"], 3, "has no partition 7"),
        (&["cat", "-t", "orders", "-p", "7"], 3, "it has partitions 0, 10"),
        (&["tail", "-t", "orders"], 3, "choose one with --partition"),
        (&["get", "0", "-t", "q"], 3, "no topic `q`"),
        (&["append", "-t", "q"], 3, "topics there: audit, orders"),
        (&["append", "-t", "orders"], 3, "partitions 0, 10"),
        (&["info", "-t", "q"], 3, "no topic `q`"),
        (&["info", "-t", "orders", "-p", "7"], 3, "it has partitions 0, 10"),
        (&["ls", "-t", "q"], 3, "topics there: audit, orders"),
        (&["offsets", "-t", "q"], 3, "topics there: audit, orders"),
        (&["roll", "-t", "q"], 3, "topics there: audit, orders"),
        (&["retain", "--age", "1d", "-t", "q"], 3, "topics there: audit, orders"),
        (&["trim", "--before", "0", "-t", "q"], 3, "topics there: audit, orders"),
        (&["truncate", "--to", "0", "-t", "q"], 3, "topics there: audit, orders"),
        (&["cat", "-p", "3"], 2, "--topic"),
        (&["cat", "-t", "a/b"], 2, "invalid topic"),
    ] {
        let args = at(args);
        fails(&args.iter().map(String::as_str).collect::<Vec<_>>(), b"", code, says);
    }
    // One partition needs no number.
    assert_eq!(ok(&["cat", "-d", &data, "-t", "audit"], b""), b"1\n2\n3\n");
    fails(&["cat", "-d", &place.path("absent"), "-t", "q"], b"", 3, "no such file or directory");
}

/// A topic alone is all of its partitions; one that fails hides none of the others.
#[test]
fn many_partitions() {
    let place = Place::new();
    let data = data(&place, "data");
    let rows = |args: &[&str]| -> Vec<Value> {
        let ran = run(args, b"");
        json(&ran)
    };
    assert_eq!(rows(&["ls", &data, "-t", "orders", "-J"]).len(), 2);
    let offsets = ok(&["offsets", "-d", &data, "-t", "orders"], b"");
    assert_eq!(offsets, b"orders:0:300\norders:10:200\n");
    let infos = rows(&["info", &data, "-J"]);
    assert_eq!(infos.iter().map(|info| info["end"].as_i64().unwrap()).collect::<Vec<_>>(), [3, 300, 200]);
    let shown = String::from_utf8(ok(&["info", &data, "-t", "orders"], b"")).unwrap();
    assert_eq!(shown.matches("\npath").count() + 1, 2, "{shown}");
    let rolled = rows(&["roll", &data, "-t", "orders", "-J"]);
    assert_eq!(rolled.iter().map(|row| &row["rolled"]).collect::<Vec<_>>(), [true, true]);
    let plan = rows(&["retain", &data, "-t", "orders", "--bytes", "0", "-J"]);
    assert_eq!(plan.len(), 2);
    let ran = run(&["retain", &data, "-t", "orders", "--bytes", "0"], b"");
    assert_eq!((ran.code, ran.text().lines().count()), (Some(1), 2), "{}", ran.err);
    let done = rows(&["retain", &data, "-t", "orders", "--bytes", "0", "--yes", "-J"]);
    assert_eq!(
        done.iter().map(|row| row["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["plan", "plan", "done", "done"]
    );
    assert_eq!((&done[2]["start"], &done[3]["start"]), (&300.into(), &200.into()));
    fs::create_dir(place.path("data/orders-3")).unwrap();
    for args in [&["info", &data, "-J"][..], &["roll", &data, "-J"], &["offsets", &data, "-J"]] {
        let ran = run(args, b"");
        assert_eq!((ran.code, json(&ran).len()), (Some(8), 3), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("error: ") && ran.err.contains("orders-3"), "{}", ran.err);
    }
    let ran = run(&["retain", &data, "--bytes", "1g", "--yes", "-J"], b"");
    assert_eq!((ran.code, json(&ran).len()), (Some(8), 3), "{}", ran.err);
}

#[test]
fn words_of_other_tools_are_understood() {
    for (args, says) in [
        (&["trim", "x", "--to", "5"][..], "--before OFFSET"),
        (&["cat", "x", "-n", "5"], "-c N stops after N records"),
        (&["truncate", "x", "--before", "5"], "--to OFFSET"),
        (&["info", "-b", "localhost:9092"], "works on directories"),
        (&["get", "--bootstrap-server=localhost:9092"], "works on directories"),
        (&["cat", "--bootstrap-server=localhost:9092"], "no topic given"),
        (&["consume", "x", "--from-beginning"], "begins at the first record"),
        (&["-C", "-t", "orders"], "kcat's modes are verbs"),
        (&["list"], "`ls` lists"),
        (&["describe", "x"], "`info` shows"),
        (&["truncate", "x", "--to", "1", "--execute"], "--yes"),
    ] {
        let ran = fails(args, b"", 2, says);
        assert!(!ran.err.contains("as a value, use") && !ran.err.contains("similar"), "{}", ran.err);
    }
    // A slip of the finger is still clap's to guess.
    fails(&["cat", "x", "--formt", "x"], b"", 2, "--format");
}

#[test]
fn the_long_version() {
    let text = String::from_utf8(ok(&["--version", "--verbose"], b"")).unwrap();
    for word in ["logctl ", "record format", "none, gzip, snappy, lz4, zstd", "features", "commit"] {
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(ok(&["--verbose", "--version"], b""), text.as_bytes());
    let short = String::from_utf8(ok(&["--version"], b"")).unwrap();
    assert_eq!((short.lines().count(), short.starts_with("logctl ")), (1, true));
}

#[test]
fn colours_follow_the_flag_and_the_environment() {
    let place = Place::new();
    let data = data(&place, "data");
    let err = |args: &[&str], vars: &[(&str, &str)]| with("", vars, args).err;
    let absent = place.path("absent");
    assert!(err(&["ls", &absent, "--color", "always"], &[]).starts_with("\x1b[1;31merror:\x1b[0m "));
    assert!(err(&["ls", &absent], &[("CLICOLOR_FORCE", "1")]).starts_with('\x1b'));
    assert!(!err(&["ls", &absent], &[]).contains('\x1b'));
    assert!(!err(&["ls", &absent, "--color", "never"], &[("CLICOLOR_FORCE", "1")]).contains('\x1b'));
    // clap's own.
    assert!(err(&["ls", "--nope", "--color=always"], &[]).contains('\x1b'));
    assert!(!err(&["ls", "--nope", "--color=never"], &[("CLICOLOR_FORCE", "1")]).contains('\x1b'));
    assert!(with("", &[], &["ls", &data, "--color", "always"]).text().starts_with("\x1b[1mPARTITION"));
    assert!(!with("", &[], &["ls", &data, "--color", "always", "-J"]).text().contains('\x1b'));
}

/// A file that lies at its usual place and cannot be used is left out, with a word; one that somebody asks for is not.
#[test]
fn a_file_nobody_asked_for_stops_nothing() {
    let place = Place::new();
    let dir = place.log("t-0", b"a\n", &[]);
    let base = place.path("base");
    fs::create_dir_all(format!("{base}/logctl")).unwrap();
    let file = format!("{base}/logctl/config.toml");
    let at_home = |args: &[&str]| {
        let mut command = logctl(args);
        command.env_remove("LOGCTL_CONFIG").env("XDG_CONFIG_HOME", &base);
        let ran = command.output().unwrap();
        (ran.status.code(), ran.stdout, String::from_utf8(ran.stderr).unwrap())
    };
    let cat = |says: &str| {
        let (code, out, err) = at_home(&["cat", &dir]);
        assert_eq!((code, &out[..]), (Some(0), &b"a\n"[..]), "{err}");
        assert!(err.starts_with("warning: ") && err.contains(says) && err.contains(&file), "{err}");
        assert_eq!(at_home(&["cat", &dir, "-q"]).2, "");
        // It is what these are asked about.
        assert_eq!(at_home(&["config", "show"]).0, Some(2));
        assert_eq!(at_home(&["cat", &dir, "--profile", "x"]).0, Some(2));
        let ran = with(&file, &[], &["cat", &dir]);
        assert_eq!((ran.code, ran.text()), (Some(2), ""), "{}", ran.err);
    };
    fs::write(&file, "dri = 'x'").unwrap();
    cat(":1: unknown key `dri`");
    fs::write(&file, [0xff]).unwrap();
    cat("UTF-8");
    fs::write(&file, vec![b'\n'; (1 << 20) + 1]).unwrap();
    cat("larger than 1 MiB");
    fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    cat("not a regular file");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    cat("not a regular file");
    for (named, code) in [("/dev/zero", Some(2)), ("/dev/null", Some(0)), ("", Some(0))] {
        assert_eq!(with(named, &[], &["cat", &dir]).code, code, "{named}");
    }
    // There is no such place.
    let ran = logctl(&["cat", &dir]).env_remove("LOGCTL_CONFIG").env("XDG_CONFIG_HOME", "/dev/null").output();
    assert!(ran.is_ok_and(|ran| ran.status.success() && ran.stderr.is_empty()));
}

#[test]
fn a_variable_set_to_nothing_is_none() {
    let place = Place::new();
    place.log("t-0", b"a\n", &[]);
    for verb in [&["cat", "t-0"][..], &["info", "t-0"], &["verify", "t-0"], &["--version"]] {
        let mut command = logctl(verb);
        for name in ["LOGCTL_DIR", "LOGCTL_PROFILE", "LOGCTL_CONFIG", "LOGCTL_LOG", "LOGCTL_BROKERS", "PAGER"]
        {
            command.env(name, "");
        }
        let ran = command.current_dir(place.path("")).output().unwrap();
        assert!(ran.status.success() && ran.stderr.is_empty(), "{verb:?}: {ran:?}");
    }
}
