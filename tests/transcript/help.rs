//! What the command says of itself.

use crate::session::Session;

#[test]
fn help() {
    let mut day = Session::new("help");
    day.run("logctl");
    day.run("logctl -h");
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
        day.run(&format!("logctl {verb} --help"));
    }
    day.chapter("in a narrow window");
    day.columns(60);
    day.run("logctl get -h");
    day.chapter("in a pipe");
    day.pipe("logctl get -h");
    day.finish();
}
