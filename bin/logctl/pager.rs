//! `--pager`: what a person would have to scroll back for goes through `PAGER`.

use std::{
    env, io,
    process::{Child, Command, Stdio},
};

/// Starts the pager that reads its standard input; `None` where there is to be none: `PAGER` is empty or `cat`.
pub(crate) fn start() -> Option<io::Result<Child>> {
    let pager = env::var_os("PAGER").unwrap_or_else(|| "less".into());
    if pager.is_empty() || pager == "cat" {
        return None;
    }
    let mut command = Command::new("sh");
    // As git does: leave at once what fits the screen, keep colours, leave the screen as it is.
    if env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    Some(command.arg("-c").arg(pager).stdin(Stdio::piped()).spawn())
}

/// Shows a text; false where there is no pager.
pub(crate) fn show(text: &[u8]) -> bool {
    let Some(Ok(mut child)) = start() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // Who leaves the pager early has seen enough.
        let _ = io::Write::write_all(&mut input, text);
    }
    child.wait().is_ok_and(|status| status.code() != Some(127))
}
