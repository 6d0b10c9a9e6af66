//! `logctl completions`: what a shell needs to complete command lines, and the answers to its questions.
//!
//! Lives here: the scripts for the shells, and the side that they call at each press of the key: this command again,
//! with `LOGCTL_COMPLETE` set to the name of the shell. What fits where is in `values`.
//! Not here: the command line itself, from which verbs, options and fixed values are taken.
//! Holds always: a question changes nothing on the disk, writes nothing to standard error, and is answered within a
//! second: what the disk does not tell in time is left out.

mod values;
mod words;

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::env::{Elvish, EnvCompleter, Fish, Powershell, Zsh};

use crate::{
    config::{Config, with_defaults},
    failure::Failure,
    globals::Globals,
};

/// By which a shell's script says that it asks, and for which shell.
const VARIABLE: &str = "LOGCTL_COMPLETE";

/// Print what makes a shell complete verbs, options, topics, partitions and offsets
///
/// The script asks logctl itself at each press of the key, so it need not be made again for a new version. Directories
/// are looked into for a fraction of a second and nothing is changed in them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  source <(logctl completions bash)            # in ~/.bashrc; or for every shell:
  logctl completions bash > ~/.local/share/bash-completion/completions/logctl
  logctl completions zsh > ~/.zfunc/_logctl    # a directory of $fpath
  logctl completions fish > ~/.config/fish/completions/logctl.fish
  logctl completions elvish >> ~/.config/elvish/rc.elv
  logctl completions powershell >> $PROFILE")]
pub(crate) struct Args {
    /// For which shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// The shells that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    #[value(alias = "pwsh")]
    Powershell,
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
            Self::Elvish => &Elvish,
            Self::Powershell => &Powershell,
        }
    }
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    args.shell
        .completer()
        .write_registration(VARIABLE, "logctl", "logctl", "logctl", &mut script)
        .map_err(|e| Failure::io("make", "the script", &e))?;
    let mut out = globals.stdout()?;
    out.bytes(&script)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Where a shell asks, by [`VARIABLE`], the answer is printed and the exit code returned; a command line that is only
/// being written must not be carried out.
pub(crate) fn answer() -> Option<ExitCode> {
    let shell = env::var_os(VARIABLE).filter(|shell| !shell.is_empty())?;
    let shell = Path::new(&shell).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let Ok(shell) = Shell::from_str(shell, true) else { return Some(ExitCode::FAILURE) };
    let mut words: Vec<OsString> = env::args_os().skip_while(|word| word != "--").skip(1).collect();
    if words.is_empty() {
        words.push("logctl".into());
    }
    let mut command = values::with_values(crate::Cli::command());
    command.build();
    let dir = env::var_os("LOGCTL_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let _ = values::DATA_DIRECTORY.set(dir.or_else(configured_directory));
    let mut answer = Vec::new();
    let here = env::current_dir().ok();
    let made = shell.completer().write_complete(&mut command, words, here.as_deref(), &mut answer);
    let told = made.and_then(|()| io::stdout().write_all(&answer)).and_then(|()| io::stdout().flush());
    // A thread that waits for a disk ends with the process.
    Some(if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `dir` of the configuration file, if there is one.
fn configured_directory() -> Option<PathBuf> {
    let config = Config::load(None).ok()?;
    let command = with_defaults(crate::Cli::command(), &config).ok()?;
    let dir = command.get_arguments().find(|arg| arg.get_id() == "dir")?;
    dir.get_default_values().first().map(PathBuf::from)
}

/// bash, whose words break at `:`, `=` and `@`, all of which offsets are written with.
struct Bash;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        _var: &str,
        _name: &str,
        _bin: &str,
        _completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        buf.write_all(include_bytes!("logctl.bash"))
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let index = env::var("_LOGCTL_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
        let index = index.unwrap_or_else(|| words.len().saturating_sub(1));
        for candidate in clap_complete::engine::complete(command, words, index, current_dir)? {
            buf.write_all(candidate.get_value().as_encoded_bytes())?;
            buf.write_all(b"\n")?;
        }
        Ok(())
    }
}
