//! `--version --verbose`: what this build reads, writes and was made from.

use std::fmt::Write;

/// The commit, where the build was told: no build script looks for it, so that a source archive builds alike.
const COMMIT: Option<&str> = option_env!("STRATALOG_COMMIT");

/// The long answer.
pub(crate) fn long() -> String {
    let mut text = format!("logctl {}\n", env!("CARGO_PKG_VERSION"));
    let codecs = [
        ("gzip", cfg!(feature = "gzip")),
        ("snappy", cfg!(feature = "snappy")),
        ("lz4", cfg!(feature = "lz4")),
        ("zstd", cfg!(feature = "zstd")),
    ];
    let names: Vec<&str> =
        std::iter::once("none").chain(codecs.iter().filter(|codec| codec.1).map(|codec| codec.0)).collect();
    let features = [
        ("cli", cfg!(feature = "cli")),
        ("server", cfg!(feature = "server")),
        ("sim", cfg!(feature = "sim")),
    ];
    let features: Vec<&str> =
        features.iter().chain(&codecs).filter(|feature| feature.1).map(|feature| feature.0).collect();
    for (name, value) in [
        ("commit", COMMIT.unwrap_or("not known (a build with STRATALOG_COMMIT set tells it)")),
        ("record format", "2; 0 and 1 are read"),
        ("index entries", "8 bytes (.index), 12 bytes (.timeindex), version 0 (.txnindex)"),
        ("producer snapshots", "version 1"),
        ("checkpoints", "version 0"),
        ("codecs", &names.join(", ")),
        ("features", &features.join(", ")),
        ("machine", machine()),
    ] {
        // A String takes every write.
        let _ = writeln!(text, "{name:<19}{value}");
    }
    text
}

const fn machine() -> &'static str {
    if cfg!(target_arch = "x86_64") {
        "x86_64 linux"
    } else if cfg!(target_arch = "aarch64") {
        "aarch64 linux"
    } else {
        "linux"
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_has_every_codec() {
        assert!(super::long().contains("none, gzip, snappy, lz4, zstd\n"));
    }
}
