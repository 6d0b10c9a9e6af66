//! `logctl serve`: a data directory for Kafka's clients, until a signal.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
};

use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag, low_level,
};
use stratalog::server::{Server, Settings};

use crate::{
    failure::{Code, Failure},
    globals::Globals,
    log_lines::LogFormat,
    serve_settings::SettingsArgs,
};

/// Serve a data directory to Kafka's clients
///
/// Clients that Kafka has, unmodified, produce to its topics and read them; topics are made when a client asks for them.
/// Once it listens a line `ready ADDRESS` is printed for each listener. SIGTERM or SIGINT stops it: what is being answered
/// is answered, everything is made durable, and the directory is left as after a broker's clean stop. A second signal ends
/// it at once, which costs nothing that was acknowledged.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  logctl serve data --listen 127.0.0.1:9092
  logctl serve data --listen 127.0.0.1:0 --ports-file ports   # any free port
  logctl serve --config server.properties --check-config
  logctl serve data --listen :9092 --override num.partitions=4 --log-format json")]
pub(crate) struct Args {
    /// Data directory, made where it is not there; default: --dir, or log.dirs of the settings
    #[arg(value_name = "DIR")]
    target: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsArgs,
    /// Write the addresses that are listened on to this file, one a line, when they are served
    #[arg(long, value_name = "FILE")]
    ports_file: Option<PathBuf>,
    /// How messages on standard error look
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

pub(crate) fn run(args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    let dir = args.target.as_deref().or(globals.dir.as_deref());
    let settings = args.settings.resolve(dir)?;
    if args.settings.print_config || args.settings.check_config {
        return show(&settings, args, globals);
    }
    // Before there is anything to stop.
    let mut signals = Signals::watch(globals.timeout)?;
    let server = Server::bind(settings)?;
    let addresses: Vec<_> = server.addresses().iter().map(ToString::to_string).collect();
    if let Some(path) = &args.ports_file {
        write_whole(path, &(addresses.join("\n") + "\n"))
            .map_err(|error| Failure::other(format!("--ports-file {}: {error}", path.display())))?;
    }
    let mut out = io::stdout();
    for address in &addresses {
        // Who started it may have gone away: that is no reason not to serve.
        let _ = writeln!(out, "ready {address}").and_then(|()| out.flush());
    }
    let is_signalled = signals.wait();
    tracing::info!(signal = is_signalled, "stopping");
    if !server.shutdown()? {
        tracing::warn!("no marker of a clean stop is left: the next start looks through the logs");
    }
    if is_signalled { Ok(ExitCode::SUCCESS) } else { Err(Failure::quiet(Code::TimedOut)) }
}

/// `--print-config` and `--check-config`.
fn show(settings: &Settings, args: &Args, globals: &Globals) -> Result<ExitCode, Failure> {
    for warning in settings.warnings() {
        globals.note(format!("warning: {warning}"));
    }
    if args.settings.print_config {
        let mut out = globals.stdout()?;
        out.foreign(settings.print().as_bytes())?;
        out.finish()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Who reads the file finds all of it or nothing.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

/// SIGTERM and SIGINT.
struct Signals(UnixStream);

impl Signals {
    /// From now on the first one only leaves a note; the second ends the process.
    fn watch(timeout: Option<std::time::Duration>) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::other(format!("signals cannot be waited for: {error}"));
        let (told, teller) = UnixStream::pair().map_err(failed)?;
        told.set_read_timeout(timeout).map_err(failed)?;
        let again = Arc::new(AtomicBool::new(false));
        for (number, code) in [(SIGINT, 130), (SIGTERM, 143)] {
            // In this order: the first one must not find its own mark.
            flag::register_conditional_shutdown(number, code, Arc::clone(&again)).map_err(failed)?;
            flag::register(number, Arc::clone(&again)).map_err(failed)?;
            low_level::pipe::register(number, teller.try_clone().map_err(failed)?).map_err(failed)?;
        }
        Ok(Self(told))
    }

    /// Sleeps until a signal, or the time is over: false then.
    fn wait(&mut self) -> bool {
        loop {
            match self.0.read(&mut [0]) {
                Ok(_) => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}
