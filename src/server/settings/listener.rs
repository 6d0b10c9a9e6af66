//! Where the server listens and what clients are told: `NAME://HOST:PORT`.

use std::fmt;

/// An address with the name it goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name, which `listener.security.protocol.map` gives a protocol.
    pub name: String,
    /// The host; empty for all addresses of the machine. An IPv6 address has no brackets here.
    pub host: String,
    /// The port; 0 for any free one.
    pub port: u16,
}

impl Listener {
    /// Reads one. The complaint says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{text:?}: {what}; a listener is NAME://HOST:PORT");
        let (name, address) = text.split_once("://").ok_or_else(|| wrong("no '://'"))?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(wrong("no name before '://'"));
        }
        let (host, port) = address.rsplit_once(':').ok_or_else(|| wrong("no port"))?;
        let port = port.parse().map_err(|_| wrong("the port is no number below 65536"))?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(|| wrong("no ']' after an IPv6 address"))?,
            None if host.contains(':') => return Err(wrong("an IPv6 address stands in '[' and ']'")),
            None => host,
        };
        Ok(Self { name: name.to_ascii_uppercase(), host: host.to_owned(), port })
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{}://[{}]:{}", self.name, self.host, self.port)
        } else {
            write!(f, "{}://{}:{}", self.name, self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_read_and_written() {
        for text in ["PLAINTEXT://:9092", "A_1://localhost:0", "X://[::1]:9092", "X://10.0.0.1:65535"] {
            assert_eq!(Listener::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Listener::parse("plaintext://h:1").unwrap().name, "PLAINTEXT");
        for wrong in [
            "",
            "PLAINTEXT",
            "PLAINTEXT://",
            "://h:1",
            "A://h",
            "A://h:",
            "A://h:65536",
            "A://::1:9092",
            "A://[::1:9092",
            "A B://h:1",
        ] {
            assert!(Listener::parse(wrong).is_err(), "{wrong}");
        }
    }
}
