//! What clients of brokers are told: the servers, how to encrypt, who one is. Read from the file, from the client files
//! of librdkafka and kcat (`key=value`) and of Java (`.properties`), and from `-X key=value`.

use std::{collections::BTreeMap, fs, path::Path};

use super::keys::nearest;
use crate::failure::Failure;

/// A key of our own and what other clients call it; librdkafka's names where it has one.
struct Known {
    name: &'static str,
    others: &'static [&'static str],
    values: &'static [&'static str],
}

const fn known_as(name: &'static str, others: &'static [&'static str]) -> Known {
    Known { name, others, values: &[] }
}

/// The servers' key: in the file it is `brokers`.
pub(crate) const SERVERS: &str = "bootstrap.servers";

const KNOWN: &[Known] = &[
    known_as(SERVERS, &["metadata.broker.list", "brokers"]),
    known_as("client.id", &[]),
    Known {
        name: "security.protocol",
        others: &[],
        values: &["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
    },
    Known {
        name: "sasl.mechanism",
        others: &["sasl.mechanisms"],
        values: &["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
    },
    known_as("sasl.username", &[]),
    known_as("sasl.password", &[]),
    known_as("ssl.ca.location", &["ssl.truststore.location"]),
    known_as("ssl.certificate.location", &[]),
    known_as("ssl.key.location", &[]),
    known_as("ssl.key.password", &[]),
];

/// Told in Java's files beside the keys above, and taken apart or compared with what can be done.
const JAAS: &str = "sasl.jaas.config";
const TRUSTSTORE: &str = "ssl.truststore.location";
const TRUSTSTORE_TYPE: &str = "ssl.truststore.type";

/// The key's own name, by any of its names.
pub(super) fn known(name: &str) -> Option<&'static str> {
    KNOWN.iter().find(|known| known.name == name || known.others.contains(&name)).map(|known| known.name)
}

/// All names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.name)
}

/// Not to be shown.
pub(super) fn is_secret(name: &str) -> bool {
    name.ends_with(".password")
}

/// The value as it is kept, or what is wrong with it.
pub(super) fn checked(name: &str, value: &str) -> Result<String, String> {
    if name == SERVERS {
        return servers(value);
    }
    let Some(known) = KNOWN.iter().find(|known| known.name == name).filter(|known| !known.values.is_empty())
    else {
        return Ok(value.to_owned());
    };
    let upper = value.to_ascii_uppercase();
    if known.values.contains(&upper.as_str()) {
        return Ok(upper);
    }
    Err(format!("`{value}` is no {name}: write {}", known.values.join(", ")))
}

/// A list of `HOST:PORT`; without a port, Kafka's own.
pub(crate) fn servers(list: &str) -> Result<String, String> {
    let mut servers = Vec::new();
    for server in list.split(',').map(str::trim).filter(|server| !server.is_empty()) {
        let wrong = || format!("`{server}` is no server: write HOST:PORT");
        // An address of IPv6 stands in brackets.
        let after = server.rfind(']').map_or(0, |bracket| bracket + 1);
        let (host, port) = match server.get(after..).unwrap_or_default().rfind(':') {
            Some(at) => server.split_at(after + at),
            None => (server, ":9092"),
        };
        let digits = port.strip_prefix(':').unwrap_or_default();
        let number: u16 = digits.parse().map_err(|_| wrong())?;
        let is_plain = host.starts_with('[') == host.ends_with(']') && (after > 0 || !host.contains(':'));
        if number == 0 || host.is_empty() || !is_plain || host.contains(char::is_whitespace) {
            return Err(wrong());
        }
        servers.push(format!("{host}:{number}"));
    }
    if servers.is_empty() {
        return Err("no server in it: write HOST:PORT".to_owned());
    }
    Ok(servers.join(","))
}

/// What a client's file says: known keys, and the names of those that mean nothing here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ClientFile {
    pub(super) keys: BTreeMap<&'static str, String>,
    pub(super) ignored: Vec<String>,
}

impl ClientFile {
    /// Reads one; a name that ends with `.properties` has Java's escapes.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::not_found(format!("no such file: {}", path.display())),
            _ => Failure::io("read", path.display(), &error),
        })?;
        let is_java = path.extension().is_some_and(|suffix| suffix == "properties");
        Self::parse(&text, is_java)
            .map_err(|(line, what)| Failure::usage(format!("{}:{line}: {what}", path.display())))
    }

    fn parse(text: &str, is_java: bool) -> Result<Self, (usize, String)> {
        let mut found = Self::default();
        let mut store = None;
        let mut store_type = None;
        for (line, name, value) in pairs(text, is_java)? {
            let at = |what: String| (line, what);
            match (known(&name), name.as_str()) {
                (_, TRUSTSTORE) => store = Some((line, value)),
                (Some(key), _) => {
                    found.keys.insert(key, checked(key, &value).map_err(at)?);
                }
                (None, TRUSTSTORE_TYPE) => store_type = Some(value),
                (None, JAAS) => {
                    for (option, key) in [("username", "sasl.username"), ("password", "sasl.password")] {
                        let value = jaas_option(&value, option)
                            .ok_or_else(|| at(format!("{JAAS} has no {option}=\"...\"")))?;
                        found.keys.insert(key, value);
                    }
                }
                (None, _) => found.ignored.push(name),
            }
        }
        if let Some((line, path)) = store {
            let is_pem = store_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("PEM"));
            if !is_pem {
                return Err((line, format!("{TRUSTSTORE} is read only with {TRUSTSTORE_TYPE}=PEM")));
            }
            found.keys.insert("ssl.ca.location", path);
        }
        Ok(found)
    }
}

/// `key=value` of `-X`.
pub(crate) fn pair(text: &str) -> Result<(&'static str, String), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("`{text}` is no setting: write KEY=VALUE"));
    };
    let Some(key) = known(name.trim()) else {
        let near = nearest(name, names()).map(|near| format!(": did you mean `{near}`?"));
        return Err(format!("unknown key `{name}`{}", near.unwrap_or_default()));
    };
    checked(key, value.trim()).map(|value| (key, value))
}

/// A line's number, key and value.
type Pair = (usize, String, String);

/// The lines with a key: their number, the key, the value.
fn pairs(text: &str, is_java: bool) -> Result<Vec<Pair>, (usize, String)> {
    let mut pairs = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        while is_java && line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1 {
            line.pop();
            line.push_str(lines.next().map_or("", |(_, next)| next.trim_start()));
        }
        let separator = line.find(if is_java { &['=', ':'][..] } else { &['='][..] });
        let Some(at) = separator else {
            return Err((number + 1, format!("`{}` is no setting: write KEY=VALUE", line.trim_end())));
        };
        let (name, value) = line.split_at(at);
        let value = value.get(1..).unwrap_or_default().trim();
        let value = if is_java { unescaped(value) } else { value.to_owned() };
        pairs.push((number + 1, name.trim_end().to_owned(), value));
    }
    Ok(pairs)
}

/// Java's escapes in a value.
fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => text.push('\t'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('f') => text.push('\u{c}'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                text.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

/// `username="me"` in a line of JAAS.
fn jaas_option(line: &str, option: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("{option}="))?;
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (value, _) = rest.get(1..)?.split_once(quote)?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_have_a_host_and_a_port() {
        assert_eq!(servers("a:1, b ,[::1]:9093,[::1]").unwrap(), "a:1,b:9092,[::1]:9093,[::1]:9092");
        for list in ["", ",", "a:", "a:0", "a:x", ":1", "a:70000", "::1", "a b:1", "[::1:9092"] {
            assert!(servers(list).is_err(), "{list}");
        }
    }

    #[test]
    fn a_file_of_librdkafka() {
        let file = ClientFile::parse(
            "# comment\nmetadata.broker.list=a,b:1\n security.protocol = sasl_ssl\nsasl.password=a\\b=c\nacks=all\n",
            false,
        )
        .unwrap();
        let keys: Vec<_> = file.keys.iter().map(|(key, value)| (*key, value.as_str())).collect();
        assert_eq!(
            keys,
            [
                ("bootstrap.servers", "a:9092,b:1"),
                ("sasl.password", "a\\b=c"),
                ("security.protocol", "SASL_SSL")
            ]
        );
        assert_eq!(file.ignored, ["acks"]);
    }

    #[test]
    fn a_file_of_java() {
        let text = "! comment\nbootstrap.servers: a:1,\\\n  b:2\nsasl.mechanism=PLAIN\n\
            sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n\
            username=\"me\" password=\"p\\u0041\";\nssl.truststore.location=/ca.pem\nssl.truststore.type=pem\n";
        let file = ClientFile::parse(text, true).unwrap();
        let keys: Vec<_> = file.keys.iter().map(|(key, value)| (*key, value.as_str())).collect();
        assert_eq!(
            keys,
            [
                ("bootstrap.servers", "a:1,b:2"),
                ("sasl.mechanism", "PLAIN"),
                ("sasl.password", "pA"),
                ("sasl.username", "me"),
                ("ssl.ca.location", "/ca.pem")
            ]
        );
        for (text, line) in [
            ("a=b\nssl.truststore.location=/x.jks", 2),
            ("\nsecurity.protocol=tls", 2),
            ("sasl.jaas.config=x", 1),
            ("what", 1),
        ] {
            assert_eq!(ClientFile::parse(text, true).unwrap_err().0, line, "{text}");
        }
    }

    #[test]
    fn single_settings() {
        assert_eq!(pair("brokers=a"), Ok((SERVERS, "a:9092".to_owned())));
        assert_eq!(pair("client.id= x=y"), Ok(("client.id", "x=y".to_owned())));
        assert!(pair("client.id").is_err_and(|what| what.contains("KEY=VALUE")));
        assert!(pair("security.protocl=ssl").is_err_and(|what| what.contains("`security.protocol`")));
        assert!(pair("security.protocol=x").is_err_and(|what| what.contains("SASL_SSL")));
    }
}
