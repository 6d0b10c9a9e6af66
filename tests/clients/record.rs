//! Records of every kind that clients can send, and how they are told in JSON.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

const FIRST_TIMESTAMP: i64 = 1_700_000_000_000;
const LARGE_BYTES: usize = 900 * 1024;

/// What a producer is given, and any consumer has to give back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(&'static str, Option<&'static str>)>,
}

impl Record {
    /// The record of this number, as near as a client can send it. Six in a row have the same headers.
    pub(crate) fn new(number: usize, can: impl Fn(&str) -> bool) -> Self {
        let text = |text: String| Some(text.into_bytes());
        let value = match number % 6 {
            0 => text(format!("value {number}")),
            1 => Some(noise(number, 300)),
            2 => Some(Vec::new()),
            3 => text(format!("{number} packs well; ").repeat(20)),
            4 => text(format!("two\nlines\r\n\t\"{number}\" \\ \u{fc} \u{1f680} and \u{0}")),
            _ => None,
        };
        let key = match number % 5 {
            0 if value.is_none() && !can("null record") => text(format!("instead of null {number}")),
            0 if value.as_ref().is_some_and(Vec::is_empty) && !can("empty record") => {
                text(format!("{number}"))
            }
            0 => None,
            // Nobody's command line tells an empty key beside a null value.
            1 if value.is_some() => Some(Vec::new()),
            2 => Some(noise(number, 9)),
            3 => text(format!("schl\u{fc}ssel-{number}")),
            _ => text(format!("key-{number}")),
        };
        let mut headers = match number / 6 % 4 {
            0 => Vec::new(),
            1 => vec![("trace", Some("7f")), ("empty", Some(""))],
            2 => vec![("same", Some("1")), ("same", Some("2")), ("h\u{e9}ader", Some("\u{fc}"))],
            _ => vec![("null", None), ("trace", Some("80"))],
        };
        if !can("null header") {
            headers.retain(|(_, value)| value.is_some());
        }
        let timestamp = FIRST_TIMESTAMP + i64::try_from(number).unwrap() * 1000;
        Self { timestamp, key, value, headers }
    }

    /// As [`Self::new`], with a value that no codec makes smaller and that fills most of a batch.
    pub(crate) fn large(number: usize, can: impl Fn(&str) -> bool) -> Self {
        Self { value: Some(noise(number, LARGE_BYTES)), ..Self::new(number, can) }
    }

    /// For the job of a producer.
    pub(crate) fn told(&self) -> Value {
        let headers: Vec<_> = self.headers().collect();
        json!({
            "timestamp": self.timestamp,
            "key": encode(self.key.as_deref()),
            "value": encode(self.value.as_deref()),
            "headers": headers,
        })
    }

    fn headers(&self) -> impl Iterator<Item = Value> {
        self.headers.iter().map(|(name, value)| json!([name, encode(value.map(str::as_bytes))]))
    }

    /// What is different in a consumer's record.
    pub(crate) fn difference(&self, offset: usize, read: &Value) -> Option<String> {
        let mut expected = self.told();
        expected["offset"] = offset.into();
        if read.get("headers_text").is_some() {
            let one = |(name, value): &(&str, Option<&str>)| format!("{name}={}", value.unwrap_or("NULL"));
            let all = self.headers.iter().map(one).collect::<Vec<_>>().join(",");
            expected["headers_text"] = encode(Some(all.as_bytes()));
            expected.as_object_mut().unwrap().remove("headers");
        }
        let short = |value: &Value| {
            let text = value.to_string();
            text.chars().take(200).collect::<String>()
        };
        let fields = expected.as_object().unwrap();
        if let Some(more) = read.as_object().unwrap().keys().find(|name| !fields.contains_key(*name)) {
            return Some(format!("offset {offset}: there is a field {more}"));
        }
        fields.iter().find(|(name, value)| read.get(name) != Some(value)).map(|(name, value)| {
            format!("offset {offset}: {name} {} is not {}", short(&read[name]), short(value))
        })
    }
}

fn encode(bytes: Option<&[u8]>) -> Value {
    bytes.map(|bytes| BASE64_STANDARD.encode(bytes)).into()
}

/// Bytes that do not compress: splitmix64.
fn noise(seed: usize, count: usize) -> Vec<u8> {
    let mut state = u64::try_from(seed).unwrap() << 32;
    let mut all = Vec::with_capacity(count + 8);
    while all.len() < count {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        all.extend_from_slice(&(x ^ (x >> 31)).to_le_bytes());
    }
    all.truncate(count);
    all
}

#[test]
fn every_change_is_a_difference() {
    for number in 0..30 {
        let record = Record::new(number, |_| true);
        let mut read = record.told();
        read["offset"] = 7.into();
        assert_eq!(record.difference(7, &read), None);
        assert!(record.difference(8, &read).is_some());
        for name in ["timestamp", "key", "value", "headers", "offset"] {
            for other in [json!("x"), json!(""), json!(null), json!([["a", null]])] {
                let mut changed = read.clone();
                changed[name] = other;
                assert_eq!(record.difference(7, &changed).is_some(), changed != read, "{name}");
            }
        }
    }
}
