//! The house inspector: keeps rooms, hazards, files and fixtures where the architecture says they belong.
//!
//! Lives here: checks of the sources as text. They need no build of the crate and pass over rooms that do not exist.
//! Not here: what a compiler or clippy sees; their settings are in `Cargo.toml` and `clippy.toml`.
//! Holds always: each finding says where it is and what to do; each checker has a test in which it finds something.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

// ---- the tables ------------------------------------------------------------------------------------------------------

/// One room of `src`: a folder or file at its top, and what it may import.
struct Room {
    name: &'static str,
    /// Other rooms of this crate.
    ours: &'static [&'static str],
    /// Crates besides std and [`LEAF_CRATES`].
    crates: &'static [&'static str],
}

/// Every engine room may use these.
const LEAF_CRATES: &[&str] = &["thiserror", "tracing", "bytes"];

/// Who may import whom. A room that is not here may not exist; `lib.rs` sees all.
const ROOMS: &[Room] = &[
    Room { name: "offset", ours: &["error"], crates: &[] },
    // Errors carry offsets and what is wrong with a batch, and take in what the system said: `sys` knows nothing of ours.
    Room { name: "error", ours: &["offset", "record", "sys"], crates: &[] },
    // Settings name a codec and a timestamp type.
    Room { name: "config", ours: &["record", "offset", "error"], crates: &[] },
    // Knows bytes, names and positions: nothing of ours.
    Room { name: "sys", ours: &[], crates: &["rustix", "nix", "fs4", "memmap2", "parking_lot"] },
    Room {
        name: "record",
        ours: &["offset", "error"],
        crates: &["crc_fast", "crc32fast", "flate2", "snap", "lz4_flex", "zstd"],
    },
    Room { name: "index", ours: &["sys", "offset", "error"], crates: &["parking_lot"] },
    Room {
        name: "segment",
        ours: &["sys", "index", "record", "config", "offset", "error"],
        crates: &["parking_lot"],
    },
    Room {
        name: "log",
        ours: &["segment", "index", "record", "sys", "config", "offset", "error"],
        crates: &["parking_lot", "crc32fast", "serde", "bincode"],
    },
    // Reads single files that need not belong to any log, as dump and verify do.
    Room {
        name: "inspect",
        ours: &["log", "segment", "index", "record", "sys", "offset", "error"],
        crates: &[],
    },
    // Many logs in a data directory: reaches into `log` for what a store's lock stands for.
    Room {
        name: "store",
        ours: &["log", "inspect", "record", "sys", "config", "offset", "error"],
        crates: &["parking_lot", "crc32fast"],
    },
    // Names for what copies whole files.
    Room { name: "transfer", ours: &["sys"], crates: &[] },
    // Speaks lengths and bytes; the server speaks files.
    Room { name: "protocol", ours: &["offset"], crates: &[] },
    // Uses what an embedder can use: the names at the crate's root, and the public rooms.
    Room {
        name: "server",
        ours: &["protocol", "record", "inspect"],
        crates: &["parking_lot", "rustix", "rustls", "tempfile", "toml"],
    },
];

/// What is looked for in code.
enum Sign {
    /// A path that begins so, `use` trees unfolded.
    Starts(&'static [&'static str]),
    /// A path in which these stand next to each other.
    Holds(&'static [&'static str]),
    /// A macro's name.
    Macro(&'static str),
    /// A word of code.
    Word(&'static str),
    /// A method's name.
    Method(&'static str),
}

/// A dangerous thing and the only places in `src` for it.
struct Hazard {
    sign: Sign,
    /// Files, or folders ending in `/`.
    homes: &'static [&'static str],
    remedy: &'static str,
}

const SYSTEM: &str = "call the operating system through src/sys";
const CLOCK: &str = "take the time from the clock in LogConfig: tests pass their own";
const PRINT: &str = "return the text or emit a tracing event: only logctl prints";
const THREADS: &str = "let the caller's thread do it: the engine starts none unless asked";
const CRC: &str = "use src/record/crc.rs for batches; crc32fast is for our private files";

const HAZARDS: &[Hazard] = &[
    Hazard {
        sign: Sign::Word("unsafe"),
        homes: &["src/sys/mmap.rs"],
        remedy: "find a safe call, or move it to src/sys/mmap.rs",
    },
    Hazard {
        sign: Sign::Starts(&["bincode"]),
        homes: &["src/log/summary.rs"],
        remedy: "give the file a fixed layout of its own",
    },
    Hazard {
        sign: Sign::Starts(&["serde"]),
        homes: &["src/log/summary.rs"],
        remedy: "what is serialised is a promise: do it in logctl's output types",
    },
    Hazard {
        sign: Sign::Starts(&["std", "fs"]),
        // The one reader of files that lie outside any log directory.
        homes: &["src/sys/", "src/inspect/source.rs"],
        remedy: SYSTEM,
    },
    // Sockets are the server's, and its calls on them stand in one file.
    Hazard { sign: Sign::Starts(&["rustix"]), homes: &["src/sys/", "src/server/socket.rs"], remedy: SYSTEM },
    Hazard { sign: Sign::Starts(&["nix"]), homes: &["src/sys/"], remedy: SYSTEM },
    Hazard { sign: Sign::Starts(&["fs4"]), homes: &["src/sys/"], remedy: SYSTEM },
    Hazard { sign: Sign::Starts(&["memmap2"]), homes: &["src/sys/"], remedy: SYSTEM },
    Hazard {
        sign: Sign::Starts(&["std", "net"]),
        homes: &["src/server/"],
        remedy: "sockets belong to the server",
    },
    Hazard { sign: Sign::Starts(&["crc_fast"]), homes: &["src/record/crc.rs"], remedy: CRC },
    Hazard {
        sign: Sign::Starts(&["crc32fast"]),
        homes: &[
            "src/record/crc.rs",
            "src/record/legacy.rs", // message formats 0 and 1 are summed with the IEEE polynomial
            "src/log/checkpoint.rs",
            "src/log/summary.rs",
            "src/log/cursor.rs",
            "src/store/private_file.rs",
        ],
        remedy: CRC,
    },
    Hazard {
        sign: Sign::Holds(&["SystemTime", "now"]),
        homes: &["src/config.rs", "src/config/"],
        remedy: CLOCK,
    },
    Hazard {
        sign: Sign::Holds(&["Instant", "now"]),
        homes: &["src/config.rs", "src/config/"],
        remedy: CLOCK,
    },
    Hazard { sign: Sign::Method("elapsed"), homes: &["src/config.rs", "src/config/"], remedy: CLOCK },
    Hazard {
        sign: Sign::Starts(&["std", "env"]),
        homes: &[],
        remedy: "take it as a setting: only logctl reads the environment",
    },
    Hazard { sign: Sign::Macro("println"), homes: &[], remedy: PRINT },
    Hazard { sign: Sign::Macro("eprintln"), homes: &[], remedy: PRINT },
    Hazard { sign: Sign::Macro("print"), homes: &[], remedy: PRINT },
    Hazard { sign: Sign::Macro("eprint"), homes: &[], remedy: PRINT },
    Hazard {
        sign: Sign::Holds(&["thread", "spawn"]),
        homes: &["src/log/watch.rs", "src/server/"],
        remedy: THREADS,
    },
    Hazard { sign: Sign::Holds(&["thread", "scope"]), homes: &["src/server/"], remedy: THREADS },
    Hazard {
        sign: Sign::Holds(&["thread", "Builder"]),
        homes: &["src/log/watch.rs", "src/server/"],
        remedy: THREADS,
    },
];

/// Code lines a file may have: without blank lines, comments and tests.
const MAX_CODE_LINES: usize = 450;

/// Larger files, each with the reason.
const LARGE_FILES: &[(&str, &str)] = &[];

// ---- the inspection --------------------------------------------------------------------------------------------------

#[test]
fn rooms_import_only_what_the_table_allows() {
    let house = House::open();
    let crates = dependencies(&house.read("Cargo.toml"));
    let exports = root_exports(&house.sources("src/"));
    report(house.sources("src/").iter().flat_map(|source| foreign_imports(source, &crates, &exports)));
}

#[test]
fn hazards_stay_in_their_rooms() {
    report(House::open().sources("src/").iter().flat_map(misplaced_hazards));
}

#[test]
fn unsafe_has_one_home_in_the_whole_repository() {
    let house = House::open();
    let others = ["bin/", "tests/", "benches/", "examples/", "fuzz/"];
    let sources = others.iter().flat_map(|folder| house.sources(folder)).collect::<Vec<_>>();
    report(sources.iter().flat_map(|source| hazard_lines(source, &HAZARDS[0])));
}

#[test]
fn files_stay_small() {
    let house = House::open();
    let sources = house.sources("src/").into_iter().chain(house.sources("bin/")).collect::<Vec<_>>();
    report(oversized(&sources, LARGE_FILES));
}

#[test]
fn every_room_has_a_door_plate() {
    report(missing_door_plates(&House::open().sources("src/")));
}

#[test]
fn sources_are_ascii_and_finished() {
    let house = House::open();
    let texts =
        house.files.iter().filter(|path| is_source(path)).map(|path| (path.clone(), house.read(path)));
    report(texts.flat_map(|(path, text)| {
        let mut found = non_ascii(&path, &text);
        found.extend(unfinished_marks(&path, &text));
        found
    }));
}

#[test]
fn exceptions_carry_reasons() {
    let house = House::open();
    let folders = ["src/", "bin/", "tests/", "benches/", "examples/"];
    let sources = folders.iter().flat_map(|folder| house.all_sources(folder)).collect::<Vec<_>>();
    report(sources.iter().flat_map(bare_exceptions));
}

#[test]
fn no_file_names_a_place_on_one_machine() {
    let house = House::open();
    let texts = house.files.iter().filter(|path| !is_recorded(path));
    report(texts.flat_map(|path| machine_paths(path, &house.read(path))));
}

#[test]
fn every_fixture_is_named() {
    let house = House::open();
    report(unnamed_fixtures(&house.files, &house.read("fixtures/README.md")));
}

#[test]
fn licences_are_there() {
    let house = House::open();
    let text = |path: &str| house.read(path);
    assert!(
        text("LICENSE-MIT").contains("Permission is hereby granted, free of charge")
            && text("LICENSE-APACHE").contains("Version 2.0, January 2004"),
        "LICENSE-MIT and LICENSE-APACHE hold the full texts of both licences: bring them back"
    );
    assert!(
        text("Cargo.toml").contains("license = \"MIT OR Apache-2.0\""),
        "Cargo.toml: the field `license` names what the LICENSE files hold: \"MIT OR Apache-2.0\""
    );
}

/// Fails with all findings at once.
fn report(findings: impl IntoIterator<Item = String>) {
    let findings = findings.into_iter().collect::<Vec<_>>();
    assert!(findings.is_empty(), "{} findings:\n  {}", findings.len(), findings.join("\n  "));
}

// ---- what there is to look at ----------------------------------------------------------------------------------------

/// The repository: its files by their path from the top.
struct House {
    root: PathBuf,
    files: Vec<String>,
}

/// A Rust file.
struct Source {
    path: String,
    raw: String,
    /// `raw` with blanks for comments, the contents of literals and `cfg(test)` items; the lines are the same.
    code: String,
}

impl Source {
    fn new(path: &str, raw: &str) -> Self {
        Self { path: path.to_owned(), raw: raw.to_owned(), code: blank_tests(&blank_text(raw)) }
    }
}

impl House {
    fn open() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output();
        let mut files = match listed {
            Ok(output) if output.status.success() => {
                String::from_utf8_lossy(&output.stdout).split('\0').map(str::to_owned).collect()
            }
            // Not a clone: an unpacked archive has nothing but the repository's files and what a build left.
            _ => walk(&root, ""),
        };
        files.retain(|path| root.join(path).is_file());
        files.sort();
        assert!(files.iter().any(|path| path == "src/lib.rs"), "no sources under {}", root.display());
        Self { root, files }
    }

    /// A file as text; empty where it is absent or no text.
    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_default()
    }

    /// All Rust files below `folder`.
    fn all_sources(&self, folder: &str) -> Vec<Source> {
        let rust = self.files.iter().filter(|path| path.starts_with(folder) && has_extension(path, &["rs"]));
        rust.map(|path| Source::new(path, &self.read(path))).collect()
    }

    /// The Rust files below `folder` that are no unit tests: a room may keep those in `tests.rs` or `tests/`.
    fn sources(&self, folder: &str) -> Vec<Source> {
        let mut sources = self.all_sources(folder);
        sources.retain(|source| {
            let inside = source.path.strip_prefix(folder).unwrap_or(&source.path);
            !inside.split('/').any(|part| part == "tests" || part == "tests.rs")
        });
        sources
    }
}

fn walk(root: &Path, below: &str) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join(below)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && name != "target" && name != ".git" => {
                files.extend(walk(root, &path));
            }
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
    files
}

fn has_extension(path: &str, extensions: &[&str]) -> bool {
    Path::new(path).extension().is_some_and(|found| extensions.iter().any(|e| found == *e))
}

/// Bytes kept as they came: not ours to word.
fn is_recorded(path: &str) -> bool {
    path.starts_with("fixtures/kafka/") || path.starts_with("fixtures/broken/")
}

/// What people write for machines to read; prose may use the letters it needs.
fn is_source(path: &str) -> bool {
    let script = path.starts_with(".ci/") || ["tests/kafka/kafka", "fixtures/make-broken"].contains(&path);
    !is_recorded(path) && (script || has_extension(path, &["rs", "toml", "java", "sh", "py", "xml"]))
}

/// Names of the crates in `[dependencies]`, as they are written in code.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let table = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names = table.take_while(|line| !line.starts_with('[')).filter_map(|line| line.split_once('='));
    names.map(|(name, _)| name.trim().replace('-', "_")).filter(|name| !name.starts_with('#')).collect()
}

// ---- reading code ----------------------------------------------------------------------------------------------------

/// Blanks comments and the contents of string and character literals; line ends stay.
fn blank_text(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (from, to, next) = if rest.starts_with(b"//") {
            let end = at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            (at, end, end)
        } else if rest.starts_with(b"/*") {
            let end = at + block_comment(rest);
            (at, end, end)
        } else if let Some((open, close)) = raw_string(bytes, at) {
            let end = text[at + open..].find(&close).map_or(bytes.len(), |i| at + open + i);
            (at + open, end, (end + close.len()).min(bytes.len()))
        } else if rest[0] == b'"' {
            let end = at + 1 + closing_quote(&rest[1..]);
            (at + 1, end, (end + 1).min(bytes.len()))
        } else if let Some(length) = character(&text[at..]) {
            (at + 1, at + length - 1, at + length)
        } else {
            at += 1;
            continue;
        };
        for byte in &mut out[from..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = next;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn closing_quote(rest: &[u8]) -> usize {
    let mut at = 0;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at.min(rest.len())
}

/// A raw string at `at`: the length of what opens it, and what closes it.
fn raw_string(bytes: &[u8], at: usize) -> Option<(usize, String)> {
    if at > 0 && is_word(bytes[at - 1]) {
        return None;
    }
    let rest = &bytes[at..];
    let prefix = [&b"br"[..], b"cr", b"r"].into_iter().find(|p| rest.starts_with(p))?.len();
    let hashes = rest[prefix..].iter().take_while(|b| **b == b'#').count();
    (rest.get(prefix + hashes) == Some(&b'"'))
        .then(|| (prefix + hashes + 1, format!("\"{}", "#".repeat(hashes))))
}

/// The length of a character literal; `None` for a lifetime and all else.
fn character(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if let Some(escaped) = inner.strip_prefix('\\') {
        // The character after the backslash may be a quote itself.
        return escaped.get(1..)?.find('\'').map(|i| i + 4);
    }
    let one = inner.chars().next()?.len_utf8();
    inner[one..].starts_with('\'').then_some(one + 2)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Blanks the items under `#[cfg(test)]` and `#[cfg(all(test, ..))]` in code that [`blank_text`] has seen.
fn blank_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    let mut from = 0;
    while let Some(found) = code[from..].find("#[cfg(") {
        let start = from + found;
        let condition = &code[start + "#[cfg(".len()..];
        from = start + 1;
        if !["test)", "all(test)", "all(test,"].iter().any(|test| condition.starts_with(test)) {
            continue;
        }
        let end = item_end(code.as_bytes(), start);
        for byte in &mut out[start..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        from = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where the item ends whose attributes begin at `at`.
fn item_end(code: &[u8], mut at: usize) -> usize {
    // Pass over the attributes.
    while code.get(at) == Some(&b'#') {
        let mut depth = 0;
        while at < code.len() {
            depth += i32::from(code[at] == b'[') - i32::from(code[at] == b']');
            at += 1;
            if depth == 0 && code[at - 1] == b']' {
                break;
            }
        }
        at += code[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    }
    let word = code[at..].iter().take_while(|b| is_word(**b)).copied().collect::<Vec<_>>();
    let items = "pub fn mod use impl struct enum const static trait type unsafe async extern macro_rules let";
    let is_item = items.split(' ').any(|item| item.as_bytes() == word);
    let mut depth = 0;
    while at < code.len() {
        match code[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return at, // the end of what the item stands in
            b'}' if depth == 1 && is_item => return at + 1,
            b')' | b']' | b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            b',' if depth == 0 && !is_item => return at + 1, // a field, variant or argument
            _ => {}
        }
        at += 1;
    }
    at
}

/// A path in code, `use` trees unfolded, and the modules inside the file that it stands in.
struct CodePath {
    line: usize,
    parts: Vec<String>,
    inner_modules: Vec<String>,
}

/// Words, `::` and single signs, each with its line.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let bytes = code.as_bytes();
    let (mut found, mut line, mut at) = (Vec::new(), 1, 0);
    while at < bytes.len() {
        let length = match bytes[at] {
            b if is_word(b) => bytes[at..].iter().take_while(|b| is_word(**b)).count(),
            _ if code[at..].starts_with("::") => 2,
            _ => code[at..].chars().next().map_or(1, char::len_utf8),
        };
        let token = &code[at..at + length];
        if token == "\n" {
            line += 1;
        } else if !token.trim().is_empty() {
            found.push((line, token));
        }
        at += length;
    }
    found
}

fn paths(code: &str) -> Vec<CodePath> {
    let tokens = tokens(code);
    let word = |at: usize| tokens.get(at).is_some_and(|(_, t)| t.bytes().all(is_word));
    let is = |at: usize, sign: &str| tokens.get(at).is_some_and(|(_, t)| *t == sign);
    let (mut found, mut modules, mut depth, mut at) = (Vec::new(), Vec::<(usize, String)>::new(), 0, 0);
    while at < tokens.len() {
        let inner =
            |modules: &[(usize, String)]| modules.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>();
        if is(at, "{") {
            depth += 1;
        } else if is(at, "}") {
            depth -= usize::from(depth > 0);
            modules.retain(|(opened, _)| *opened <= depth);
        } else if is(at, "mod") && word(at + 1) && is(at + 2, "{") {
            depth += 1;
            modules.push((depth, tokens[at + 1].1.to_owned()));
            at += 3;
            continue;
        } else if is(at, "use") && (word(at + 1) || is(at + 1, "::") || is(at + 1, "{")) {
            let end = (at..tokens.len()).find(|i| is(*i, ";")).unwrap_or(tokens.len());
            let mut rest = &tokens[at + 1..end];
            for (line, parts) in use_tree(&mut rest, &[]) {
                found.push(CodePath { line, parts, inner_modules: inner(&modules) });
            }
            at = end;
            continue;
        } else if word(at) {
            let (line, first) = tokens[at];
            let mut parts = vec![first.to_owned()];
            while is(at + 1, "::") && word(at + 2) {
                parts.push(tokens[at + 2].1.to_owned());
                at += 2;
            }
            if parts.len() > 1 {
                found.push(CodePath { line, parts, inner_modules: inner(&modules) });
            }
        }
        at += 1;
    }
    found
}

/// Unfolds one branch of a `use` tree and takes it off the front of `rest`.
fn use_tree(rest: &mut &[(usize, &str)], before: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut parts = before.to_vec();
    let mut line = rest.first().map_or(0, |(line, _)| *line);
    while let Some(((at, token), after)) = rest.split_first() {
        match *token {
            "," | "}" => break,
            "{" => {
                *rest = after;
                let mut all = Vec::new();
                while rest.first().is_some_and(|(_, t)| *t != "}") {
                    all.extend(use_tree(rest, &parts));
                    if rest.first().is_some_and(|(_, t)| *t == ",") {
                        *rest = &rest[1..];
                    }
                }
                *rest = rest.get(1..).unwrap_or_default();
                return all;
            }
            "as" => {
                *rest = after.get(1..).unwrap_or_default(); // a new name for the same thing
                continue;
            }
            "::" | "*" => {}
            "self" if !parts.is_empty() => {}
            name => {
                line = *at;
                parts.push(name.to_owned());
            }
        }
        *rest = after;
    }
    vec![(line, parts)]
}

/// The module a file makes: `src/log/writer.rs` is `log::writer`, `src/log/mod.rs` is `log`.
fn module_of(path: &str) -> Vec<String> {
    let inside = path.strip_prefix("src/").unwrap_or(path);
    let mut parts = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect::<Vec<_>>();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// The path from the crate's root, for those that begin with `crate`, `self` or `super`.
fn from_root(path: &CodePath, file: &str) -> Option<Vec<String>> {
    let mut base = match path.parts[0].as_str() {
        "crate" => Vec::new(),
        "self" | "super" => [module_of(file), path.inner_modules.clone()].concat(),
        _ => return None,
    };
    for part in &path.parts {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => drop(base.pop()),
            name => base.push(name.to_owned()),
        }
    }
    Some(base)
}

/// Names that `lib.rs` re-exports, each with the room it comes from.
fn root_exports(sources: &[Source]) -> BTreeMap<String, String> {
    let lib = sources.iter().filter(|source| source.path == "src/lib.rs");
    let all = lib.flat_map(|source| paths(&source.code)).filter(|path| path.parts.len() > 1);
    all.map(|path| {
        let parts = path.parts.iter().filter(|part| *part != "crate" && *part != "self").collect::<Vec<_>>();
        (parts[parts.len() - 1].clone(), parts[0].clone())
    })
    .collect()
}

// ---- the checkers: each gives findings, and none where all is well ---------------------------------------------------

fn foreign_imports(
    source: &Source,
    crates: &BTreeSet<String>,
    exports: &BTreeMap<String, String>,
) -> Vec<String> {
    let path = &source.path;
    let Some(own) = module_of(path).first().cloned() else { return Vec::new() };
    let Some(room) = ROOMS.iter().find(|room| room.name == own) else {
        return vec![format!(
            "{path}: the room `{own}` has no line in ROOMS of tests/tidy.rs: add what it may use, or move the file"
        )];
    };
    let mut found = Vec::new();
    for used in paths(&source.code) {
        let at = format!("{path}:{}", used.line);
        if let Some(parts) = from_root(&used, path) {
            let Some(first) = parts.first() else { continue };
            let is_room = ROOMS.iter().any(|room| room.name == first);
            let home = if is_room { Some(first) } else { exports.get(first) };
            // The server sees what an embedder sees: root names are its public API, whatever room they come from.
            let public = own == "server" && !is_room;
            if let Some(home) =
                home.filter(|home| **home != own && !public && !room.ours.contains(&home.as_str()))
            {
                found.push(format!(
                    "{at}: `{own}` must not use `{home}` (here: {}): it may use {:?}; pass the value in, or move the code",
                    parts.join("::"),
                    room.ours
                ));
            }
        } else {
            let first = &used.parts[0];
            let known = LEAF_CRATES.contains(&first.as_str()) || room.crates.contains(&first.as_str());
            if crates.contains(first) && !known {
                found.push(format!(
                    "{at}: `{own}` must not use the crate `{first}`: it may use {:?} and {LEAF_CRATES:?}; go through the room that may",
                    room.crates
                ));
            }
        }
    }
    found
}

fn misplaced_hazards(source: &Source) -> Vec<String> {
    let at_home = |hazard: &Hazard| {
        let homes = hazard.homes.iter();
        homes
            .into_iter()
            .any(|home| *home == source.path || (home.ends_with('/') && source.path.starts_with(home)))
    };
    HAZARDS.iter().filter(|hazard| !at_home(hazard)).flat_map(|hazard| hazard_lines(source, hazard)).collect()
}

fn hazard_lines(source: &Source, hazard: &Hazard) -> Vec<String> {
    let tokens = tokens(&source.code);
    let followed = |name: &str, sign: &str| -> Vec<usize> {
        let pairs = tokens.windows(2).filter(|pair| pair[0].1 == name && pair[1].1 == sign);
        pairs.map(|pair| pair[0].0).collect()
    };
    let (what, lines) = match hazard.sign {
        Sign::Starts(prefix) => {
            let all = paths(&source.code);
            let begins = |path: &&CodePath| {
                path.parts.iter().zip(prefix).filter(|(a, b)| a == b).count() == prefix.len()
            };
            (prefix.join("::"), all.iter().filter(begins).map(|path| path.line).collect())
        }
        Sign::Holds(pair) => {
            let all = paths(&source.code);
            let holds = |path: &&CodePath| path.parts.windows(pair.len()).any(|window| window == pair);
            (pair.join("::"), all.iter().filter(holds).map(|path| path.line).collect())
        }
        Sign::Macro(name) => (format!("{name}!"), followed(name, "!")),
        Sign::Word(word) => (
            word.to_owned(),
            tokens.iter().filter(|(_, t)| *t == word).map(|(line, _)| *line).collect::<Vec<_>>(),
        ),
        Sign::Method(name) => {
            let calls = tokens.windows(3).filter(|w| w[0].1 == "." && w[1].1 == name && w[2].1 == "(");
            (format!(".{name}()"), calls.map(|w| w[1].0).collect())
        }
    };
    let homes = if hazard.homes.is_empty() { "nowhere in src".to_owned() } else { hazard.homes.join(", ") };
    let say = |line| format!("{}:{line}: `{what}` may stand in: {homes}; {}", source.path, hazard.remedy);
    lines.into_iter().map(say).collect()
}

fn oversized(sources: &[Source], listed: &[(&str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let lines = source.code.lines().filter(|line| !line.trim().is_empty()).count();
        let excused = listed.iter().any(|(path, reason)| *path == source.path && !reason.is_empty());
        if lines > MAX_CODE_LINES && !excused {
            found.push(format!(
                "{}: {lines} lines of code, at most {MAX_CODE_LINES}: give the second subject a file, or list it with a reason in LARGE_FILES of tests/tidy.rs",
                source.path
            ));
        } else if lines <= MAX_CODE_LINES && excused {
            found.push(format!("{}: small again: take it out of LARGE_FILES in tests/tidy.rs", source.path));
        }
    }
    let gone = listed.iter().filter(|(path, _)| !sources.iter().any(|source| source.path == *path));
    found.extend(gone.map(|(path, _)| format!("{path}: gone: take it out of LARGE_FILES in tests/tidy.rs")));
    found
}

fn missing_door_plates(sources: &[Source]) -> Vec<String> {
    let parent =
        |source: &Source| source.path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let folders = sources.iter().map(parent).filter(|folder| folder != "src").collect::<BTreeSet<_>>();
    let mut found = Vec::new();
    for folder in folders {
        let path = format!("{folder}/mod.rs");
        let Some(door) = sources.iter().find(|source| source.path == path) else {
            found.push(format!(
                "{folder}: no mod.rs: every folder has one, and it begins with its door plate"
            ));
            continue;
        };
        let plate = door.raw.lines().take_while(|line| line.starts_with("//!")).collect::<Vec<_>>();
        for line in ["Lives here:", "Not here:", "Holds always:"] {
            if !plate.iter().any(|said| said.starts_with(&format!("//! {line}"))) {
                found.push(format!(
                    "{path}: the door plate at its top lacks a line `//! {line} ..`: write what it says"
                ));
            }
        }
    }
    found
}

fn non_ascii(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_ascii());
    lines.map(|(i, _)| format!("{path}:{}: not ASCII: write \\u{{..}} or another word", i + 1)).collect()
}

fn unfinished_marks(path: &str, text: &str) -> Vec<String> {
    // Put together here, so that this file does not hold them.
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["X", "XX"].concat()];
    let words =
        |line: &str| line.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| marks.iter().any(|m| m == w));
    let lines = text.lines().enumerate().filter(|(_, line)| words(line));
    lines
        .map(|(i, _)| {
            format!(
                "{path}:{}: an unfinished mark: finish it, or file an issue and say it in the docs",
                i + 1
            )
        })
        .collect()
}

fn bare_exceptions(source: &Source) -> Vec<String> {
    // Literals are blank here, so that only real attributes are seen.
    let code = blank_text(&source.raw);
    let mut found = Vec::new();
    for (line, text) in code.lines().enumerate() {
        let at = format!("{}:{}", source.path, line + 1);
        if text.contains("#[ignore]") {
            found.push(format!(
                "{at}: an ignored test without a reason: #[ignore = \"..\"], and run it in .ci/run"
            ));
        }
        if text.contains("#[allow(") || text.contains("#![allow(") {
            found.push(format!(
                "{at}: use #[expect(.., reason = \"..\")]: it says why, and goes when it is not needed"
            ));
        }
    }
    found
}

fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let places = ["home", "root", "work", "farm", "Users"].map(|place| ["/", place, "/"].concat());
    let names = |line: &str| {
        places.iter().any(|place| {
            line.match_indices(place.as_str()).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_ascii_alphanumeric() || "_.-})~".contains(c))
            })
        })
    };
    let lines = text.lines().enumerate().filter(|(_, line)| names(line));
    lines
        .map(|(i, _)| format!("{path}:{}: a path of one machine: make it relative or a variable", i + 1))
        .collect()
}

fn unnamed_fixtures(files: &[String], readme: &str) -> Vec<String> {
    let named = |name: &str| readme.contains(&format!("`{name}`")) || readme.contains(&format!("`{name}/`"));
    let mut missing = BTreeSet::new();
    for file in files.iter().filter_map(|path| path.strip_prefix("fixtures/")) {
        let parts = file.split('/').collect::<Vec<_>>();
        let (folder, name) = match parts.as_slice() {
            ["kafka", version, case, _, ..] => {
                if !named(&format!("kafka/{version}")) {
                    missing.insert((format!("kafka/{version}"), format!("kafka/{version}")));
                }
                (format!("kafka/{version}/{case}"), (*case).to_owned())
            }
            ["broken", case, _, ..] => (format!("broken/{case}"), (*case).to_owned()),
            [folder, _, ..] => ((*folder).to_owned(), (*folder).to_owned()),
            _ => continue,
        };
        if !named(&name) {
            missing.insert((folder, name));
        }
    }
    let say = |(folder, name)| {
        format!(
            "fixtures/{folder}: not in fixtures/README.md: say as `{name}` what is in it and how to make it again"
        )
    };
    missing.into_iter().map(say).collect()
}

// ---- the inspector inspected -----------------------------------------------------------------------------------------

/// Each checker finds what it is for, and only that.
mod checkers {
    use super::*;

    fn imports(path: &str, code: &str) -> Vec<String> {
        let lib =
            Source::new("src/lib.rs", "mod error;\npub use error::{Error, Result};\npub use sys::FileSlice;");
        let crates = dependencies(
            "[dependencies]\nrustix = \"1\"\nlz4_flex = { version = \"0\" }\nbytes = \"1\"\n[dev-dependencies]\ntempfile = \"3\"\n",
        );
        foreign_imports(&Source::new(path, code), &crates, &root_exports(&[lib]))
    }

    fn hazards(path: &str, code: &str) -> usize {
        misplaced_hazards(&Source::new(path, code)).len()
    }

    #[test]
    fn an_import_against_the_table_is_found_in_every_form() {
        for code in [
            "use crate::log::Shared;",
            "use crate::{offset::Offset, log};",
            "use crate::{\n    error::Error,\n    log::{writer::{self, LogWriter}, Shared},\n};",
            "fn f() -> crate::log::Shared {}",
            "use super::super::log::Shared;",
            "use crate::log as other;",
            "use rustix::fs::openat;",
            "fn f() { lz4_flex::block::compress(b\"\"); }",
        ] {
            assert!(
                !imports("src/index/offset.rs", &code.replace("FileSlice", "log::X")).is_empty(),
                "{code}"
            );
        }
        assert!(
            !imports("src/record/batch.rs", "use crate::FileSlice;").is_empty(),
            "re-export of another room"
        );
        assert!(!imports("src/record/mod.rs", "use super::sys::File;").is_empty(), "by way of the root");
        assert!(!imports("src/cellar.rs", "").is_empty(), "a room that is not in the table");
    }

    #[test]
    fn an_import_by_the_table_is_not_found() {
        for (path, code) in [
            ("src/index/offset.rs", "use crate::{offset::Offset, sys::{self, MappedWords}, Result};"),
            (
                "src/index/offset.rs",
                "use super::time::TimeIndex; use std::sync::atomic::AtomicU32; use bytes::Bytes;",
            ),
            ("src/index/mod.rs", "mod a { use super::b; mod c { use super::super::b; } }"),
            ("src/index/time.rs", "// use crate::log::Shared;\nconst A: &str = \"crate::log::Shared\";"),
            ("src/index/time.rs", "#[cfg(test)]\nmod tests { use crate::log::Shared; }"),
            ("src/record/compression.rs", "#[cfg(feature = \"lz4\")] use lz4_flex::frame;"),
            ("src/server/broker.rs", "use crate::{Error, FileSlice, protocol::frame};"),
            ("src/lib.rs", "pub use log::LogWriter; use crate::sys::FileSlice;"),
        ] {
            assert_eq!(imports(path, code), Vec::<String>::new(), "{path}: {code}");
        }
        assert!(!imports("src/server/broker.rs", "use crate::log::LogWriter;").is_empty(), "an inner path");
    }

    #[test]
    fn a_hazard_is_found_outside_its_room_only() {
        for (home, elsewhere, code) in [
            ("src/sys/mmap.rs", "src/sys/file.rs", "fn f() { unsafe { g() } }"),
            ("src/log/summary.rs", "src/log/cursor.rs", "fn f() { bincode::serde::encode(); }"),
            ("src/sys/dir.rs", "src/log/writer.rs", "use std::{fs, io};"),
            ("src/sys/dir.rs", "src/log/writer.rs", "fn f() { std::fs::read(p); }"),
            ("src/config.rs", "src/log/sync.rs", "fn f() { std::time::SystemTime::now() }"),
            ("src/config.rs", "src/log/sync.rs", "fn f() { Instant::now() }"),
            ("src/config.rs", "src/log/sync.rs", "fn f() { begun.elapsed() }"),
            ("src/server/mod.rs", "src/log/sync.rs", "fn f() { std::thread::spawn(|| ()) }"),
            ("src/server/mod.rs", "src/log/sync.rs", "use std::net::TcpStream;"),
        ] {
            assert_eq!(hazards(home, code), 0, "{home}: {code}");
            assert_eq!(hazards(elsewhere, code), 1, "{elsewhere}: {code}");
        }
        for code in [
            "fn f() { println!(\"a\") }",
            "fn f() { eprint!(\"a\") }",
            "use std::env;",
            "fn f() { std::env::var(a) }",
        ] {
            assert_eq!(hazards("src/log/writer.rs", code), 1, "{code}");
        }
    }

    #[test]
    fn a_hazard_in_words_literals_and_tests_is_none() {
        for code in [
            "// unsafe { println!() }\n/* std::fs /* unsafe */ unsafe */",
            "const A: &str = \"\\\" unsafe \"; const B: &str = r#\"\" unsafe \"#; const C: &[u8] = b\"unsafe\";",
            "const Q: char = '\"'; const R: char = '\\''; fn f<'a>(a: &'a str) {} // unsafe \"",
            "#![deny(unsafe_code)]",
            "use std::os::unix::fs::FileExt; fn f(self) { self.print(1); fs::x() }",
            "#[cfg(test)]\n#[path = \"a;{\"]\nmod tests { fn f() { if a { println!() } } }\n",
            "struct A { #[cfg(test)] a: Vec<std::fs::File>, b: u8 }",
            "#[cfg(all(test, unix))] fn f<A, B>(a: [u8; 3]) -> B { std::fs::read() }",
        ] {
            assert_eq!(hazards("src/log/writer.rs", code), 0, "{code}");
        }
        assert_eq!(
            hazards("src/log/writer.rs", "#[cfg(test)] mod tests;\nfn f() { println!() }"),
            1,
            "after the tests"
        );
        assert_eq!(
            hazards("src/log/writer.rs", "#[cfg(any(test, unix))] fn f() { println!() }"),
            1,
            "not only tests"
        );
        assert_eq!(
            hazards("src/log/writer.rs", "struct A { #[cfg(test)] a: B, c: std::fs::File }"),
            1,
            "the next field"
        );
    }

    #[test]
    fn a_finding_has_the_line_and_the_remedy() {
        let found =
            misplaced_hazards(&Source::new("src/log/a.rs", "/* \n */\n\nuse std::{\n    io,\n    fs,\n};"));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("src/log/a.rs:6: ") && found[0].ends_with(SYSTEM), "{found:?}");
    }

    #[test]
    fn a_large_file_is_found_unless_listed() {
        let code = |lines: usize| Source::new("src/a.rs", &"// said\n\nfn f() {}\n".repeat(lines));
        assert_eq!(oversized(&[code(MAX_CODE_LINES)], &[]).len(), 0);
        assert_eq!(oversized(&[code(MAX_CODE_LINES + 1)], &[]).len(), 1);
        assert_eq!(oversized(&[code(MAX_CODE_LINES + 1)], &[("src/a.rs", "one table")]).len(), 0);
        assert_eq!(
            oversized(&[code(1)], &[("src/a.rs", "one table")]).len(),
            1,
            "a listing that is not needed"
        );
        assert_eq!(oversized(&[], &[("src/a.rs", "one table")]).len(), 1, "a listing of nothing");
        let strings = Source::new("src/a.rs", &"\"a literal is code\"\n".repeat(MAX_CODE_LINES + 1));
        assert_eq!(oversized(&[strings], &[]).len(), 1);
    }

    #[test]
    fn a_missing_door_plate_is_found() {
        let plate = "//! A room.\n//!\n//! Lives here: a.\n//! Not here: b.\n//! Holds always: c.\n";
        let check = |text: &str| missing_door_plates(&[Source::new("src/sys/mod.rs", text)]).len();
        assert_eq!(check(plate), 0);
        assert_eq!(check(&plate.replace("Not here", "Elsewhere")), 1);
        assert_eq!(check(&format!("use a;\n{plate}")), 3, "not at the top");
        assert_eq!(missing_door_plates(&[Source::new("src/sys/file.rs", plate)]).len(), 1, "no mod.rs");
        assert_eq!(
            missing_door_plates(&[Source::new("src/lib.rs", "")]).len(),
            0,
            "the front door is another matter"
        );
    }

    #[test]
    fn odd_letters_and_unfinished_marks_are_found() {
        assert_eq!(non_ascii("a", "fine\nna\u{ef}ve").len(), 1);
        let mark = ["TO", "DO"].concat();
        assert_eq!(unfinished_marks("a", &format!("// {mark}: later\n// {mark}S\n// ({mark})")).len(), 2);
    }

    #[test]
    fn exceptions_without_reason_are_found() {
        let check = |text: &str| bare_exceptions(&Source::new("tests/a.rs", text)).len();
        assert_eq!(check("#[test]\n#[ignore]\nfn f() {}"), 1);
        assert_eq!(check("#[test]\n#[ignore = \"slow\"]\nfn f() {}\n// #[ignore]"), 0);
        assert_eq!(check("#![allow(unused)]\n#[cfg(test)] mod t { #[allow(unused)] fn f() {} }"), 2);
        assert_eq!(check("#[expect(unused, reason = \"a\")]"), 0);
    }

    #[test]
    fn places_of_one_machine_are_found() {
        let home = ["/ho", "me/"].concat();
        assert_eq!(machine_paths("a", &format!("cd {home}me\n\"{home}me\"\n{home}")).len(), 3);
        assert_eq!(
            machine_paths("a", &format!("https://a.b{home}c\n$A{home}\n../a{home}b\n~{home}")).len(),
            0
        );
    }

    #[test]
    fn fixtures_without_a_word_are_found() {
        let files =
            ["kafka/1.2/plain/a.log", "kafka/1.2/odd/x/y", "broken/torn/a", "wire/a", "README.md", "make"]
                .map(|file| format!("fixtures/{file}"));
        let check = |readme: &str| unnamed_fixtures(&files, readme).len();
        assert_eq!(check("`kafka/1.2/` `plain` `odd` `torn` `wire/`"), 0);
        assert_eq!(check("`kafka/1.2/` `plain` `odd` `torn`"), 1);
        assert_eq!(check("plain odd torn wire"), 5);
    }

    #[test]
    fn what_is_a_source_and_what_a_record() {
        assert!(is_source("src/lib.rs") && is_source(".ci/run") && is_source("tests/kafka/kafka"));
        assert!(!is_source("docs/FORMAT.md") && !is_source("fixtures/broken/a/b.rs"));
        assert!(
            is_recorded("fixtures/kafka/4.4.0/plain/consumed.jsonl") && !is_recorded("fixtures/README.md")
        );
    }
}
