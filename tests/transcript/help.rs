//! What the command says of itself.

use crate::session::Session;

#[test]
fn help() {
    let mut day = Session::new("help");
    day.columns(80);
    day.run("logctl");
    let verbs = String::from_utf8(day.quietly("logctl -h").stdout).unwrap();
    let verbs: Vec<&str> = verbs
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.contains(&"append") && verbs.contains(&"offsets"), "{verbs:?}");
    for verb in verbs {
        day.chapter(verb);
        // What every verb has is shown above.
        day.run_without(&format!("logctl {verb} --help"), "Global options:");
    }
    day.chapter("short, in a narrow window");
    day.columns(60);
    day.run("logctl get -h");
    day.columns(80);
    day.chapter("topics");
    for topic in ["", "recipes", "exit-codes", "offsets"] {
        day.run(&format!("logctl help {topic}"));
    }
    day.run("logctl help nonsense");
    day.run("logctl help get");
    day.chapter("the rest");
    day.pipe("logctl get -h | head -n 3");
    day.pipe("logctl --version");
    day.pipe("logctl man get | head -n 12");
    day.pipe("logctl man pages/ | head -n 3");
    day.pipe("logctl completions bash | head -n 5");
    day.run("logctl completions tcsh");
    day.finish();
}
