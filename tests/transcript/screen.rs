//! A screen as text, with the colours in words: `<bold,red>error:</> no log`.

use vt100::{Cell, Color, Screen};

/// The lines of a screen down to the cursor.
pub(crate) fn lines(screen: &Screen) -> Vec<String> {
    let (rows, columns) = screen.size();
    let (at_row, at_column) = screen.cursor_position();
    let mut lines: Vec<String> = Vec::new();
    let mut is_wrapped = false;
    for row in 0..rows.get() {
        let line = line(screen, row, columns.get());
        // The arrow says that it is one line that went around the edge.
        lines.push(if is_wrapped { format!("\\ {line}") } else { line });
        is_wrapped = screen.row_wrapped(row);
    }
    let printed = usize::from(at_row) + usize::from(at_column > 0);
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    lines.truncate(printed.max(last));
    lines
}

fn line(screen: &Screen, row: u16, columns: u16) -> String {
    let mut line = String::new();
    let mut style = String::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column) else { continue };
        if cell.is_wide_continuation() {
            continue;
        }
        let now = style_of(cell);
        if now != style {
            if !style.is_empty() {
                line.push_str("</>");
            }
            if !now.is_empty() {
                line.extend(["<", &now, ">"]);
            }
            style = now;
        }
        line.push_str(if cell.has_contents() { cell.contents() } else { " " });
    }
    if !style.is_empty() {
        line.push_str("</>");
    }
    line.trim_end().to_owned()
}

fn style_of(cell: &Cell) -> String {
    let mut words = Vec::new();
    for (is_on, word) in [
        (cell.bold(), "bold"),
        (cell.dim(), "dim"),
        (cell.italic(), "italic"),
        (cell.underline(), "underline"),
        (cell.inverse(), "inverse"),
    ] {
        if is_on {
            words.push(word.to_owned());
        }
    }
    words.extend(colour(cell.fgcolor(), ""));
    words.extend(colour(cell.bgcolor(), "on-"));
    words.join(",")
}

fn colour(colour: Color, prefix: &str) -> Option<String> {
    const NAMES: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
    match colour {
        Color::Default => None,
        Color::Idx(index) => Some(match NAMES.get(usize::from(index % 8)) {
            Some(name) if index < 8 => format!("{prefix}{name}"),
            Some(name) if index < 16 => format!("{prefix}bright-{name}"),
            _ => format!("{prefix}colour-{index}"),
        }),
        Color::Rgb(red, green, blue) => Some(format!("{prefix}#{red:02x}{green:02x}{blue:02x}")),
    }
}
