//! Programs besides the command that a test needs.

use std::process::{Command, Stdio};

/// Whether a program is there. Where it is not, the test is told to pass over what needs it; in the gate (`CI` is set
/// there) that is a failure.
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v -- \"$1\"", "sh", program])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed: .ci/run names its package");
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// `PATH` with the built command in front.
pub(crate) fn path() -> String {
    let bin =
        std::path::Path::new(env!("CARGO_BIN_EXE_logctl")).parent().unwrap().to_str().unwrap().to_owned();
    format!("{bin}:{}", std::env::var("PATH").unwrap_or_default())
}
