//! What `logctl serve` goes by: arguments, files and the environment made into a server's settings.

use std::{env, fs, path::PathBuf};

use stratalog::server::{Layers, Settings};

use crate::failure::{Code, Failure};

/// Where settings come from. What wins: `--override`, then the other options, then the environment, then files.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsArgs {
    /// A server.properties with Kafka's words, or the same words in TOML (NAME.toml)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// A setting that beats all others; may be given often
    #[arg(long = "override", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Where to listen: HOST:PORT, or NAME://HOST:PORT as in the setting `listeners`; port 0 for any free one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<String>,
    /// Check the settings, say what is wrong or has no effect, and end
    #[arg(long)]
    pub(crate) check_config: bool,
    /// Print every setting in force with where it comes from, and end
    #[arg(long)]
    pub(crate) print_config: bool,
}

impl SettingsArgs {
    /// Makes sense of it all, over a data directory where one is given beside it. What is wrong is one failure with a line for
    /// each thing.
    pub(crate) fn resolve(&self, dir: Option<&std::path::Path>) -> Result<Settings, Failure> {
        let variables = env::vars_os();
        // What is not text is no setting.
        let variables =
            variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        self.resolve_with(dir, variables)
    }

    fn resolve_with(
        &self,
        dir: Option<&std::path::Path>,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Settings, Failure> {
        let mut layers = Layers::new();
        for path in &self.config {
            let text = fs::read_to_string(path)
                .map_err(|error| Failure::not_found(format!("--config {}: {error}", path.display())))?;
            layers.file(&path.display().to_string(), &text);
        }
        layers.environment(variables);
        if let Some(dir) = dir {
            let text = dir.to_str().filter(|text| !text.contains(',') && text.trim() == *text);
            let text = text.ok_or_else(|| {
                Failure::usage(format!("{}: a data directory's path is text without commas", dir.display()))
            })?;
            layers.flag("--dir", "log.dirs", text);
        }
        if !self.listen.is_empty() {
            let listeners: Vec<_> = self.listen.iter().map(|address| listener(address)).collect();
            layers.flag("--listen", "listeners", &listeners.join(","));
        }
        for pair in &self.overrides {
            layers.set_override(pair);
        }
        layers.resolve().map_err(|error| Failure::new(Code::Usage, error.to_string()))
    }
}

/// With a name, where it has none.
fn listener(address: &str) -> String {
    if address.contains("://") { address.to_owned() } else { format!("PLAINTEXT://{address}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(args: &SettingsArgs, dir: Option<&str>) -> Result<Settings, Failure> {
        let variables = [("KAFKA_NUM_PARTITIONS", "2"), ("PATH", "/bin")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        args.resolve_with(dir.map(std::path::Path::new), variables)
    }

    #[test]
    fn arguments_beat_the_environment_and_files() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("server.toml");
        fs::write(&file, "num.partitions = 1\nlog.dirs = \"/elsewhere\"\n[log.retention]\nhours = 5\n")
            .unwrap();
        let mut args = SettingsArgs { config: vec![file], ..SettingsArgs::default() };
        args.listen = vec!["127.0.0.1:0".to_owned(), "OTHER://:9093".to_owned()];
        args.overrides =
            vec!["listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT".to_owned()];
        let settings = resolve(&args, Some("/data")).unwrap();
        let printed = settings.print();
        for line in [
            "num.partitions=2  # environment KAFKA_NUM_PARTITIONS\n",
            "log.dirs=/data  # --dir\n",
            "listeners=PLAINTEXT://127.0.0.1:0,OTHER://:9093  # --listen\n",
        ] {
            assert!(printed.contains(line), "{line}{printed}");
        }
        assert!(printed.contains("server.toml:4\n"), "{printed}");
        assert_eq!(settings.listeners().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_a_usage_failure() {
        let args = SettingsArgs { overrides: vec!["nope=1".to_owned()], ..SettingsArgs::default() };
        let failure = resolve(&args, None).unwrap_err();
        assert_eq!(failure.code, Code::Usage);
        assert!(failure.what().contains("nope") && failure.what().contains("no data directory"));
        assert!(resolve(&SettingsArgs::default(), Some("a,b")).is_err());
        let missing = SettingsArgs { config: vec!["/nowhere/x".into()], ..SettingsArgs::default() };
        assert_eq!(resolve(&missing, Some("/data")).unwrap_err().code, Code::NotFound);
    }
}
