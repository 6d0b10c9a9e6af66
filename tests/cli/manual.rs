//! `help`, `man`, and that they say the same as `--help` and the README.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use crate::{
    run::{Place, fails, ok},
    tools,
};

fn text(args: &[&str]) -> String {
    String::from_utf8(ok(args, b"")).unwrap()
}

/// The names that a heading of a help lists.
fn listed(args: &[&str], heading: &str) -> Vec<String> {
    let help = text(args);
    let lines = help.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    let names =
        lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

pub(crate) fn verbs() -> Vec<String> {
    let verbs = listed(&["--help"], "Commands:");
    assert!(verbs.len() >= 20 && verbs.contains(&"cat".to_owned()), "{verbs:?}");
    verbs
}

pub(crate) fn topics() -> Vec<String> {
    let topics = listed(&["--help"], "Topics (");
    assert!(topics.len() >= 7 && topics.contains(&"recipes".to_owned()), "{topics:?}");
    topics
}

/// The long options that a text names at the beginning of a line, as help lists them.
fn flags_of_help(help: &str) -> BTreeSet<String> {
    let mut flags = BTreeSet::new();
    for line in help.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        for word in
            line.split([' ', ',', '=', '[', '.']).take(4).filter(|word| word.starts_with('-') && *word != "-")
        {
            flags.insert(word.to_owned());
        }
    }
    flags
}

/// The options of a page: what `.TP` is followed by.
fn flags_of_page(page: &str) -> BTreeSet<String> {
    let page = page.replace("\\-", "-");
    let lines = page.lines().collect::<Vec<_>>();
    let heads = lines.windows(2).filter(|pair| pair[0] == ".TP").map(|pair| pair[1]);
    let plain = heads.map(|head| head.replace("\\fB", "").replace("\\fI", "").replace("\\fR", ""));
    plain.flat_map(|head| flags_of_help(&head)).collect()
}

#[test]
fn help_man_and_readme_name_the_same_verbs() {
    let place = Place::new();
    let verbs = verbs();
    let pages: BTreeSet<String> = text(&["man", &place.path("man")]).lines().map(str::to_owned).collect();
    let page = |name: &str, section: u8| place.path(&format!("man/man{section}/{name}.{section}"));
    let mut wanted: BTreeSet<String> = verbs.iter().map(|verb| page(&format!("logctl-{verb}"), 1)).collect();
    wanted.insert(page("logctl", 1));
    wanted.extend(topics().iter().map(|topic| page(&format!("logctl-{topic}"), 7)));
    assert_eq!(pages, wanted);
    assert!(pages.iter().all(|page| Path::new(page).is_file()));

    let front = fs::read_to_string(page("logctl", 1)).unwrap().replace("\\-", "-");
    for verb in &verbs {
        assert!(front.contains(&format!("logctl-{verb}\\fR(1)")), "logctl(1) does not name {verb}");
    }
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let table: Vec<&str> =
        readme.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let named: BTreeSet<&str> =
        table.iter().copied().filter(|name| verbs.iter().any(|v| v == name)).collect();
    let missing: Vec<_> = verbs.iter().filter(|verb| !named.contains(verb.as_str())).collect();
    assert!(missing.is_empty(), "the README's table of verbs lacks {missing:?}");
}

#[test]
fn help_and_man_name_the_same_flags() {
    let globals = flags_of_page(&text(&["man"]).replace("\\-", "-"));
    assert!(globals.contains("--dir") && globals.contains("--timeout"), "{globals:?}");
    for verb in verbs() {
        let mut helped = flags_of_help(&text(&[&verb, "--help"]));
        for inner in listed(&[&verb, "--help"], "Commands:").iter().filter(|inner| *inner != "help") {
            helped.extend(flags_of_help(&text(&[&verb, inner, "--help"])));
        }
        let own = flags_of_page(&text(&["man", &format!("{verb}.1")]));
        let paged: BTreeSet<_> = own.union(&globals).cloned().collect();
        assert_eq!(helped, paged, "{verb}");
        if !topics().contains(&verb) {
            assert_eq!(text(&["help", &verb]), text(&[&verb, "--help"]), "{verb}");
        }
    }
}

#[test]
fn every_verb_has_examples_in_its_long_help_alone() {
    for verb in verbs() {
        let (long, short) = (text(&[&verb, "--help"]), text(&[&verb, "-h"]));
        assert!(long.contains("\nExamples:\n"), "{verb}");
        assert!(!short.contains("\nExamples:\n"), "{verb}: -h is to be short");
        assert!(text(&["man", &verb]).contains(".SH EXAMPLES"), "{verb}");
    }
    assert!(text(&["--help"]).contains("\nExamples:\n") && !text(&["-h"]).contains("\nExamples:\n"));
}

#[test]
fn topics_are_one_text_in_help_and_man() {
    for topic in topics() {
        let help = text(&["help", &topic]);
        let page = text(&["man", &format!("{topic}.7")]);
        // Every word of the help is in the page, in order.
        let plain = page
            .replace("\\-", "-")
            .replace("\\(aq", "'")
            .replace("\\(ga", "`")
            .replace("\\(ha", "^")
            .replace("\\(ti", "~")
            .replace("\\(rs", "\\")
            .replace("\\&", "");
        let mut words = plain.split_whitespace();
        let help = help.split("\n\nThe verb of this name:").next().unwrap();
        for word in help.split_whitespace() {
            let upper = word.trim_end_matches(':').to_uppercase();
            assert!(words.any(|w| w == word || w == upper), "{topic}: the page lacks {word:?}");
        }
    }
}

#[test]
fn what_is_asked_for_and_not_there() {
    let place = Place::new();
    for verb in ["help", "man"] {
        let ran = fails(&[verb, "nonsense"], b"", 2, "no verb or topic is called \"nonsense\"");
        assert!(ran.out.is_empty());
    }
    assert!(!Path::new("nonsense").exists());
    fs::write(place.path("file"), "").unwrap();
    fails(&["man", &place.path("file")], b"", 1, "cannot write");
    // A word that is both: help explains the topic and names the verb, man has the verb in section 1.
    assert!(text(&["help", "offsets"]).contains("logctl offsets --help"));
    assert!(text(&["man", "offsets"]).contains("logctl\\-offsets \\- print offsets"));
    assert!(text(&["man", "offsets.7"]).contains("which records"));
    // Aliases are verbs too.
    assert_eq!(text(&["help", "consume"]), text(&["help", "cat"]));
    assert_eq!(text(&["man", "consume"]), text(&["man", "cat"]));
}

#[test]
fn pages_are_sound() {
    let place = Place::new();
    let pages = text(&["man", &place.path("man")]);
    let (groff, mandoc) = (tools::has("groff"), tools::has("mandoc"));
    for page in pages.lines() {
        if groff {
            let output = Command::new("groff").args(["-man", "-Tutf8", "-ww", page]).output().unwrap();
            assert!(output.status.success(), "{page}");
            assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        if mandoc {
            let output = Command::new("mandoc").args(["-Tlint", "-Wwarning", page]).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            // A page has no date: it is made from the program. Breaks around blank lines come of possible values.
            let known = ["missing date", "br before sp", "br after sp"];
            let bad = said.lines().filter(|line| !known.iter().any(|known| line.contains(known)));
            assert_eq!(bad.collect::<Vec<_>>(), Vec::<&str>::new());
        }
    }
}

/// As a reader sees it: through `man`.
#[test]
fn a_page_is_read_by_man() {
    if !tools::has("man") {
        return;
    }
    let place = Place::new();
    text(&["man", &place.path("man")]);
    let output = Command::new("man")
        .args(["--warnings", "-l", &place.path("man/man1/logctl-cat.1")])
        .env("MANWIDTH", "100")
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    let (shown, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.is_empty(), "{said}");
    for part in ["NAME", "SYNOPSIS", "--format", "EXAMPLES", "logctl-templates(7)"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// No example is in a page and not in the help, or the other way about: so the tests of examples reach both.
#[test]
fn help_and_man_have_the_same_examples() {
    let fixed = |page: &str| -> BTreeMap<String, usize> {
        let plain =
            page.replace("\\-", "-").replace("\\(aq", "'").replace("\\(rs", "\\").replace("\\(ti", "~");
        let plain = plain.replace("\\(ga", "`").replace("\\(ha", "^").replace("\\&", "");
        let mut lines = BTreeMap::new();
        let mut inside = false;
        for line in plain.lines() {
            match line {
                ".nf" => inside = true,
                ".fi" => inside = false,
                line if inside => *lines.entry(line.trim().to_owned()).or_default() += 1,
                _ => {}
            }
        }
        lines
    };
    let verbs = verbs().into_iter().map(|name| (text(&[&name, "--help"]), format!("{name}.1")));
    let topics = topics().into_iter().map(|name| (text(&["help", &name]), format!("{name}.7")));
    for (help, name) in verbs.chain(topics) {
        let page = fixed(&text(&["man", &name]));
        let examples = crate::examples::examples(&help);
        assert!(!examples.is_empty(), "{name}");
        for example in examples {
            assert!(page.contains_key(&example), "{name}: {example:?} is not in the page: {page:?}");
        }
    }
}
