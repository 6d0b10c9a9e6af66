//! Reads the file: every key is known, and every mistake is told with its line.

use std::{ops::Range, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    connection,
    keys::{BROKERS, CONNECTION, GLOBAL, PROFILE, PROFILES, VERBS, nearest},
};
use crate::failure::Failure;

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// The verb's table or `connection`; none at the top.
    pub(super) section: Option<&'static str>,
    pub(super) key: &'static str,
    /// As on the command line; several where the file has a list.
    pub(super) values: Vec<String>,
    pub(super) line: usize,
    pub(super) profile: Option<String>,
}

impl Setting {
    pub(super) fn is_same_key(&self, other: &Self) -> bool {
        (self.section, self.key) == (other.section, other.key)
    }

    /// The key as it is told.
    pub(super) fn name(&self) -> String {
        self.section.map_or_else(|| self.key.to_owned(), |section| format!("{section}.{}", self.key))
    }
}

/// The file as a whole.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// The profile that is taken where nobody chooses.
    pub(super) profile: Option<String>,
    /// What is there for all profiles.
    pub(super) common: Vec<Setting>,
    /// By name.
    pub(super) profiles: Vec<(String, Vec<Setting>)>,
}

/// Reads the text of the file at `path`.
pub(super) fn parse(text: &str, path: &Path) -> Result<Parsed, Failure> {
    let reader = Reader { text, path };
    let table =
        DeTable::parse(text).map_err(|error| reader.wrong(error.span().unwrap_or(0..0), error.message()))?;
    let mut parsed = Parsed::default();
    for (key, value) in table.get_ref() {
        match (key.get_ref().as_ref(), value.get_ref()) {
            (PROFILE, DeValue::String(name)) => parsed.profile = Some(name.to_string()),
            (PROFILE, _) => return Err(reader.wrong(value.span(), "`profile` is the name of a profile")),
            (PROFILES, DeValue::Table(profiles)) => {
                for (name, profile) in profiles {
                    let DeValue::Table(table) = profile.get_ref() else {
                        return Err(reader.wrong(name.span(), "a profile is a table: [profiles.NAME]"));
                    };
                    let mut settings = Vec::new();
                    for (key, value) in table {
                        reader.entry(key, value, Some(name.get_ref()), &mut settings)?;
                    }
                    parsed.profiles.push((name.get_ref().to_string(), settings));
                }
            }
            _ => reader.entry(key, value, None, &mut parsed.common)?,
        }
    }
    Ok(parsed)
}

struct Reader<'t> {
    text: &'t str,
    path: &'t Path,
}

type Key<'i> = Spanned<std::borrow::Cow<'i, str>>;

impl Reader<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        self.text.get(..span.start).unwrap_or_default().matches('\n').count() + 1
    }

    fn wrong(&self, span: Range<usize>, what: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("{}:{}: {what}", self.path.display(), self.line(&span)))
    }

    fn unknown<'k>(&self, key: &Key<'_>, kind: &str, known: impl IntoIterator<Item = &'k str>) -> Failure {
        let known: Vec<&str> = known.into_iter().collect();
        let name = key.get_ref();
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", known.join(", ")),
        };
        self.wrong(key.span(), format!("unknown {kind} `{name}`")).hint(hint)
    }

    /// A key at the top, or the table of a verb.
    fn entry(
        &self,
        key: &Key<'_>,
        value: &Spanned<DeValue<'_>>,
        profile: Option<&str>,
        into: &mut Vec<Setting>,
    ) -> Result<(), Failure> {
        let name = key.get_ref().replace('_', "-");
        let DeValue::Table(table) = value.get_ref() else {
            let Some(known) = GLOBAL.iter().find(|known| known.name == name) else {
                if VERBS.iter().any(|(verb, _)| *verb == name) || name == CONNECTION {
                    return Err(self.wrong(value.span(), format!("`{name}` is a table: [{name}]")));
                }
                return Err(self.unknown(key, "key", GLOBAL.iter().map(|known| known.name)));
            };
            // Text without a rule of its own, which a number would pass for.
            if matches!(known.name, "dir" | "log")
                && !matches!(value.get_ref(), DeValue::String(_) | DeValue::Array(_))
            {
                let what = format!("`{name}` is a string, not a {}", value.get_ref().type_str());
                return Err(self.wrong(value.span(), what));
            }
            let mut setting = self.setting(None, known.name, key, value, profile)?;
            match known.name {
                "dir" => setting.values.iter_mut().for_each(|dir| *dir = self.resolved(dir)),
                BROKERS => {
                    let servers = setting.values.join(",");
                    let checked = connection::servers(&servers);
                    setting.values = vec![checked.map_err(|what| self.wrong(value.span(), what))?];
                }
                _ => {}
            }
            into.push(setting);
            return Ok(());
        };
        if name == CONNECTION {
            for (key, value) in table {
                // A dot in a name is a table in TOML, unless it is quoted: both are meant.
                self.connection(key.get_ref(), key, value, profile, into)?;
            }
            return Ok(());
        }
        let Some((verb, options)) = VERBS.iter().find(|(verb, _)| *verb == name) else {
            let tables = VERBS.iter().map(|(verb, _)| *verb).chain([CONNECTION, PROFILES]);
            return Err(self.unknown(key, "table", tables));
        };
        for (key, value) in table {
            let name = key.get_ref().replace('_', "-");
            let Some(option) = options.iter().find(|option| **option == name) else {
                return Err(self.unknown(key, &format!("key in [{verb}]"), options.iter().copied()));
            };
            into.push(self.setting(Some(verb), option, key, value, profile)?);
        }
        Ok(())
    }

    fn connection(
        &self,
        name: &str,
        key: &Key<'_>,
        value: &Spanned<DeValue<'_>>,
        profile: Option<&str>,
        into: &mut Vec<Setting>,
    ) -> Result<(), Failure> {
        if let DeValue::Table(table) = value.get_ref() {
            for (key, value) in table {
                self.connection(&format!("{name}.{}", key.get_ref()), key, value, profile, into)?;
            }
            return Ok(());
        }
        let Some(known) = connection::known(name) else {
            let near = nearest(name, connection::names());
            let failure = self.wrong(key.span(), format!("unknown key in [{CONNECTION}] `{name}`"));
            return Err(match near {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure,
            });
        };
        let mut setting = self.setting(Some(CONNECTION), known, key, value, profile)?;
        let text = setting.values.join(",");
        setting.values =
            vec![connection::checked(known, &text).map_err(|what| self.wrong(value.span(), what))?];
        into.push(setting);
        Ok(())
    }

    fn setting(
        &self,
        section: Option<&'static str>,
        name: &'static str,
        key: &Key<'_>,
        value: &Spanned<DeValue<'_>>,
        profile: Option<&str>,
    ) -> Result<Setting, Failure> {
        let values = match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|value| self.text(value)).collect::<Result<_, _>>()?,
            _ => vec![self.text(value)?],
        };
        let line = self.line(&key.span());
        Ok(Setting { section, key: name, values, line, profile: profile.map(str::to_owned) })
    }

    fn text(&self, value: &Spanned<DeValue<'_>>) -> Result<String, Failure> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Boolean(flag) => Ok(flag.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
            other => Err(self.wrong(
                value.span(),
                format!("a {} is no value here: write a string, a number, true or false", other.type_str()),
            )),
        }
    }

    /// A directory as it was meant: `~` is the home, and a relative one lies beside the file.
    fn resolved(&self, dir: &str) -> String {
        let home = std::env::var("HOME").ok().filter(|home| !home.is_empty());
        let path = match (dir.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => self.path.parent().unwrap_or(Path::new("")).join(dir),
        };
        path.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        match parse(text, Path::new("/c/config.toml")) {
            Ok(parsed) => panic!("{parsed:?}"),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn keys_tables_and_profiles() {
        let text = "dir = \"data\"\nverbose = 2\nprogress = false\nbrokers = [\"a:1\", \"b\"]\nprofile = \"x\"\n\
            [append]\nbatch_size = \"64KiB\"\nheader = [\"a=b\", \"c=d\"]\n\
            [connection]\nsasl.username = \"me\"\n\"client.id\" = \"c\"\n\
            [profiles.x.append]\nsync = \"never\"\n[profiles.y]\n";
        let parsed = parse(text, Path::new("/c/config.toml")).unwrap();
        let mut told: Vec<String> = parsed
            .common
            .iter()
            .map(|setting| format!("{} {}:{}", setting.name(), setting.line, setting.values.join("|")))
            .collect();
        told.sort();
        assert_eq!(
            told,
            [
                "append.batch-size 7:64KiB",
                "append.header 8:a=b|c=d",
                "brokers 4:a:1,b:9092",
                "connection.client.id 11:c",
                "connection.sasl.username 10:me",
                "dir 1:/c/data",
                "progress 3:false",
                "verbose 2:2"
            ]
        );
        assert_eq!(parsed.profile.as_deref(), Some("x"));
        let (name, own) = &parsed.profiles[0];
        assert_eq!((name.as_str(), own[0].name().as_str(), own[0].line), ("x", "append.sync", 13));
        assert_eq!(parsed.profiles[1], ("y".to_owned(), Vec::new()));
    }

    #[test]
    fn mistakes_have_a_line() {
        for (text, line, says) in [
            ("dir = 1.5", 1, "float"),
            ("\ntopik = \"x\"", 2, "unknown key `topik`\n  did you mean `topic`?"),
            ("[append]\ncompresion = \"zstd\"", 2, "in [append] `compresion`\n  did you mean `compression`?"),
            ("[apend]\n", 1, "unknown table `apend`\n  did you mean `append`?"),
            ("[repair]\nyes = true", 1, "unknown table `repair`"),
            ("[zzz]\n", 1, "there are: append"),
            ("append = 1", 1, "is a table"),
            ("dir = ", 1, ""),
            ("dir = 'a'\ndir = 'b'", 2, "duplicate"),
            ("profile = 1", 1, "name of a profile"),
            ("[profiles]\nx = 1", 2, "is a table"),
            ("[profiles.x]\nquite = true", 2, "did you mean `quiet`?"),
            ("brokers = \"a:x\"", 1, "a:x"),
            ("[connection]\nsasl.mechanism = \"magic\"", 2, "PLAIN"),
            ("[connection]\nsasl.user = \"me\"", 2, "did you mean `sasl.username`?"),
        ] {
            let told = told(text);
            assert!(told.starts_with(&format!("/c/config.toml:{line}: ")), "{text}: {told}");
            assert!(told.contains(says), "{text}: {told}");
        }
    }
}
