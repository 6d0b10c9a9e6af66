//! The files that say what a session must look like.

use std::{env, fs, path::Path};

/// Compares a transcript with its file, or writes the file anew with `UPDATE_GOLDEN=1`.
#[track_caller]
pub(crate) fn compare(name: &str, got: &str) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcript/golden").join(format!("{name}.txt"));
    if env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, got).unwrap();
        return;
    }
    let want = fs::read_to_string(&path).unwrap_or_default();
    if want == got {
        return;
    }
    let mut differing = want.lines().zip(got.lines()).enumerate().filter(|(_, (want, got))| want != got);
    let at = differing.next().map_or(want.lines().count().min(got.lines().count()), |(line, _)| line);
    let around = |text: &str| {
        let lines = text.lines().skip(at.saturating_sub(6)).take(16);
        lines.flat_map(|line| ["    ", line, "\n"]).collect::<String>()
    };
    panic!(
        "{} differs from line {} on\n  it says:\n{}  this is what came:\n{}\
         UPDATE_GOLDEN=1 cargo test --test transcript writes what came; read it before it is kept",
        path.display(),
        at + 1,
        around(&want),
        around(got),
    );
}
