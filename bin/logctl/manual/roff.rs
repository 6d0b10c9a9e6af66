//! Manual pages, in the language of `man`(7).

use std::io::{self, Write as _};

use clap::Command;
use clap_mangen::Man;

use super::{TOPICS, Topic};

/// The name of the manual, at the top of each page.
const MANUAL: &str = "logctl manual";

/// The pages: the file's name, and what is in it. `command` is the built command line.
pub(crate) fn pages(command: &Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = vec![("logctl.1".to_owned(), front(command)?)];
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        pages.push((format!("logctl-{}.1", verb.get_name()), of_verb(command, verb)?));
    }
    for topic in TOPICS {
        pages.push((format!("logctl-{}.7", topic.name), of_topic(topic)));
    }
    Ok(pages)
}

/// `logctl(1)`.
pub(crate) fn front(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = title("logctl", 1).into_bytes();
    page.extend(b".SH NAME\n");
    page.extend(format!("logctl \\- {}\n", lower_first(&about(command))).bytes());
    page.extend(b".SH SYNOPSIS\n\\fBlogctl\\fR [\\fIOPTIONS\\fR] \\fIVERB\\fR [\\fIARGUMENTS\\fR]\n");
    man.render_description_section(&mut page)?;
    page.extend(b".SH VERBS\n");
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let names = std::iter::once(verb.get_name()).chain(verb.get_visible_aliases());
        let names = names.map(|name| format!("\\fB{}\\fR", text(name))).collect::<Vec<_>>().join(", ");
        page.extend(
            format!(
                ".TP\n{names}\n{}; see \\fBlogctl\\-{}\\fR(1)\n",
                text(&about(verb)),
                text(verb.get_name())
            )
            .bytes(),
        );
    }
    man.render_options_section(&mut page)?;
    page.extend(from_text(&after(command)).bytes());
    page.extend(see_also(TOPICS.iter().map(|topic| (topic.name, 7))).bytes());
    Ok(page)
}

/// `logctl-VERB(1)`. Options that every verb has are named; `logctl(1)` describes them.
pub(crate) fn of_verb(command: &Command, verb: &Command) -> io::Result<Vec<u8>> {
    let name = format!("logctl-{}", verb.get_name());
    let globals = command.get_arguments().filter(|arg| arg.is_global_set()).collect::<Vec<_>>();
    let is_global = |id: &clap::Id| globals.iter().any(|arg| arg.get_id() == id);
    let own = verb.clone().mut_args(|arg| if is_global(arg.get_id()) { arg.hide(true) } else { arg });
    let man = Man::new(own.bin_name(format!("logctl {}", verb.get_name())));
    let mut page = title(&name, 1).into_bytes();
    page.extend(format!(".SH NAME\n{} \\- {}\n", text(&name), text(&lower_first(&about(verb)))).bytes());
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    let aliases =
        verb.get_visible_aliases().map(|alias| format!("\\fB{}\\fR", text(alias))).collect::<Vec<_>>();
    if !aliases.is_empty() {
        page.extend(format!(".PP\nAlso called {}.\n", aliases.join(", ")).bytes());
    }
    man.render_options_section(&mut page)?;
    for inner in verb.get_subcommands().filter(|inner| inner.get_name() != "help") {
        let title = format!("{} {}", verb.get_name(), inner.get_name());
        page.extend(format!(".SH {}\n{}.\n", text(&title.to_uppercase()), text(&about(inner))).bytes());
        let own = inner.clone().mut_args(|arg| if is_global(arg.get_id()) { arg.hide(true) } else { arg });
        let mut options = Vec::new();
        Man::new(own).render_options_section(&mut options)?;
        page.extend(String::from_utf8_lossy(&options).replace(".SH OPTIONS\n", "").bytes());
    }
    let longs = globals.iter().filter_map(|arg| arg.get_long());
    let longs = longs.map(|long| format!("\\fB\\-\\-{}\\fR", text(long))).collect::<Vec<_>>().join(", ");
    page.extend(format!(".SH GLOBAL OPTIONS\n{longs}: see \\fBlogctl\\fR(1).\n").bytes());
    let after = after(verb);
    let begins_with_heading =
        after.lines().next().and_then(|line| line.strip_suffix(':')).is_some_and(is_heading);
    if !after.is_empty() && !begins_with_heading {
        page.extend(b".SH NOTES\n");
    }
    page.extend(from_text(&after).bytes());
    let topics = TOPICS.iter().map(|topic| (topic.name, 7));
    page.extend(see_also(std::iter::once(("", 1)).chain(topics)).bytes());
    Ok(page)
}

/// `logctl-TOPIC(7)`.
pub(crate) fn of_topic(topic: &Topic) -> Vec<u8> {
    let name = format!("logctl-{}", topic.name);
    let mut page = title(&name, 7);
    page.extend([".SH NAME\n", &text(&name), " \\- ", &text(topic.summary), "\n.SH DESCRIPTION\n"]);
    page += &from_text(&topic.text());
    let others = TOPICS.iter().filter(|other| other.name != topic.name).map(|other| (other.name, 7));
    page += &see_also(std::iter::once(("", 1)).chain(others));
    page.into_bytes()
}

/// The first lines of a page.
fn title(name: &str, section: u8) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH \"{}\" \"{section}\" \"\" \"logctl {version}\" \"{MANUAL}\"\n",
        text(&name.to_uppercase())
    )
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn after(command: &Command) -> String {
    let after = command.get_after_long_help().or_else(|| command.get_after_help());
    after.map(ToString::to_string).unwrap_or_default()
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

fn see_also<'n>(names: impl Iterator<Item = (&'n str, u8)>) -> String {
    let names = names.map(|(name, section)| {
        let dash = if name.is_empty() { "" } else { "\\-" };
        format!("\\fBlogctl{dash}{}\\fR({section})", text(name))
    });
    format!(".SH SEE ALSO\n{}\n", names.collect::<Vec<_>>().join(",\n"))
}

/// A text of [`super`]'s form. What precedes its first heading belongs to the section that is open.
pub(crate) fn from_text(source: &str) -> String {
    let mut page = String::new();
    let mut is_fixed = false;
    let mut is_break_due = false;
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with(' ')
            || (line.is_empty() && is_fixed && lines.peek().is_some_and(|l| l.starts_with(' ')))
        {
            if !is_fixed {
                if !after_heading(&page) {
                    page.push_str(".PP\n");
                }
                page.push_str(".RS 4\n.nf\n");
            }
            is_fixed = true;
            page.push_str(&if line.is_empty() {
                ".sp".to_owned()
            } else {
                text(line.strip_prefix("  ").unwrap_or(line))
            });
            page.push('\n');
            continue;
        }
        if is_fixed {
            page.push_str(".fi\n.RE\n");
            is_fixed = false;
            is_break_due = true;
        }
        match line.strip_suffix(':') {
            _ if line.is_empty() => is_break_due = true,
            Some(heading) if is_heading(heading) => {
                page.extend([".SH ", &text(&heading.to_uppercase()), "\n"]);
                is_break_due = false;
            }
            _ => {
                if is_break_due && !page.is_empty() && !after_heading(&page) {
                    page.push_str(".PP\n");
                }
                is_break_due = false;
                page.push_str(&text(line));
                page.push('\n');
            }
        }
    }
    if is_fixed {
        page.push_str(".fi\n.RE\n");
    }
    page
}

/// Where a paragraph has begun anyhow.
fn after_heading(page: &str) -> bool {
    page.lines().next_back().is_some_and(|line| line.starts_with(".SH "))
}

/// Of a line that ends with a colon: a short one is a heading, a long one the end of a sentence.
fn is_heading(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_uppercase()) && line.len() <= 40 && !line.contains([',', '.'])
}

/// A line whose characters are printed as they stand, quotes and dashes included, so that it can be pasted in a shell.
fn text(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    if line.starts_with(['.', '\'']) {
        escaped.push_str("\\&");
    }
    for c in line.chars() {
        match c {
            '\\' => escaped.push_str("\\(rs"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Writes every page below `dir`, in the folders where `man` looks for them; gives their paths.
pub(crate) fn write_all(command: &Command, dir: &std::path::Path) -> io::Result<Vec<std::path::PathBuf>> {
    let mut paths = Vec::new();
    for (name, page) in pages(command)? {
        let folder = dir.join(if name.ends_with('7') { "man7" } else { "man1" });
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(name);
        std::fs::File::create(&path)?.write_all(&page)?;
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_paragraphs_and_lines_that_stand() {
        let page = from_text("One\ntwo.\n\nThree:\n  a 'b' \\n\n\n  -c\n\nfour\nExamples:\n  .d\n");
        assert_eq!(
            page,
            "One\ntwo.\n.SH THREE\n.RS 4\n.nf\na \\(aqb\\(aq \\(rsn\n.sp\n\\-c\n.fi\n.RE\n.PP\nfour\n\
             .SH EXAMPLES\n.RS 4\n.nf\n\\&.d\n.fi\n.RE\n"
        );
    }

    #[test]
    fn a_colon_does_not_make_a_heading_of_a_sentence() {
        assert_eq!(from_text("Of these, take one:\n  a\n").lines().next(), Some("Of these, take one:"));
    }
}
