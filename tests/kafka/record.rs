//! Records as each side tells them, in one shape, and the first difference between two lists of them.

use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

/// Everything that a consumer gets of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) is_append_time: bool,
    pub(crate) leader_epoch: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Told {
    /// From a line of `logctl cat -J`.
    pub(crate) fn by_logctl(line: &str) -> Self {
        let line: Value = serde_json::from_str(line).unwrap();
        let headers = line["headers"].as_array().unwrap();
        Self {
            offset: line["offset"].as_i64().unwrap(),
            timestamp: line["timestamp"].as_i64().unwrap(),
            is_append_time: match line["timestamp_type"].as_str().unwrap() {
                "create" => false,
                "append" => true,
                other => panic!("timestamp type {other}"),
            },
            leader_epoch: line["leader_epoch"].as_i64().unwrap(),
            key: encoded(&line, "key"),
            value: encoded(&line, "value"),
            headers: headers.iter().map(|h| (encoded(h, "key").unwrap(), encoded(h, "value"))).collect(),
        }
    }

    /// From a line of `Consume.java`, with its partition.
    pub(crate) fn by_broker(line: &str) -> (usize, Self) {
        let line: Value = serde_json::from_str(line).unwrap();
        let headers = line["headers"].as_array().unwrap();
        let told = Self {
            offset: line["offset"].as_i64().unwrap(),
            timestamp: line["timestamp"].as_i64().unwrap(),
            is_append_time: match line["timestampType"].as_str().unwrap() {
                "CreateTime" => false,
                "LogAppendTime" => true,
                other => panic!("timestamp type {other}"),
            },
            leader_epoch: line["leaderEpoch"].as_i64().unwrap_or(-1),
            key: base64(&line["key"]),
            value: base64(&line["value"]),
            headers: headers
                .iter()
                .map(|h| (h["key"].as_str().unwrap().as_bytes().to_vec(), base64(&h["value"])))
                .collect(),
        };
        (usize::try_from(line["partition"].as_u64().unwrap()).unwrap(), told)
    }

    /// A line for `append --format jsonl`.
    pub(crate) fn to_line(&self) -> String {
        let mut line = json!({"timestamp": self.timestamp});
        put(&mut line, "key", self.key.as_deref());
        put(&mut line, "value", self.value.as_deref());
        let headers = self.headers.iter().map(|(key, value)| {
            let mut header = json!({});
            put(&mut header, "key", Some(key));
            put(&mut header, "value", value.as_deref());
            header
        });
        line["headers"] = headers.collect();
        format!("{line}\n")
    }
}

fn base64(value: &Value) -> Option<Vec<u8>> {
    value.as_str().map(|text| BASE64_STANDARD.decode(text).unwrap())
}

/// A field of ours: text, or base64 where a field beside it says so. It must be there, if only as null.
fn encoded(object: &Value, name: &str) -> Option<Vec<u8>> {
    let field = object.get(name).unwrap_or_else(|| panic!("no {name} in {object}"));
    match object.get(format!("{name}_encoding")).and_then(Value::as_str) {
        Some("base64") => base64(field),
        Some(other) => panic!("{name} is encoded as {other}"),
        None => field.as_str().map(|text| text.as_bytes().to_vec()),
    }
}

fn put(object: &mut Value, name: &str, bytes: Option<&[u8]>) {
    object[name] = match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => Value::Null,
        Some((_, Ok(text))) => text.into(),
        Some((bytes, Err(_))) => {
            object[format!("{name}_encoding")] = "base64".into();
            BASE64_STANDARD.encode(bytes).into()
        }
    };
}

/// Where two lists of records first differ, field by field.
pub(crate) fn difference(left: &[Told], right: &[Told]) -> Option<String> {
    for (left, right) in left.iter().zip(right) {
        if left != right {
            return Some(format!("they differ:\n  {left:?}\n  {right:?}"));
        }
    }
    let (shorter, longer) = (left.len().min(right.len()), left.len().max(right.len()));
    (shorter != longer).then(|| format!("{} records here, {} there", left.len(), right.len()))
}

/// Fails with the first difference, and on empty lists, which prove nothing.
#[track_caller]
pub(crate) fn assert_same(what: &str, left: &[Told], right: &[Told]) {
    assert!(!left.is_empty(), "{what}: no records");
    if let Some(difference) = difference(left, right) {
        panic!("{what}: {difference}");
    }
}

#[test]
fn every_change_is_a_difference() {
    let all = crate::corpus::records(0, 60);
    assert_eq!(difference(&all, &all), None);
    let changes: [fn(&mut Vec<Told>); 11] = [
        |all| drop(all.pop()),
        |all| drop(all.remove(0)),
        |all| all.swap(3, 4),
        |all| all.push(all[0].clone()),
        |all| all[7].offset += 1,
        |all| all[7].timestamp += 1,
        |all| all[7].is_append_time = true,
        |all| all[7].leader_epoch += 1,
        |all| all.iter_mut().find_map(|one| one.key.as_mut()).unwrap().push(0),
        |all| *all.iter_mut().find_map(|one| one.value.as_mut()?.first_mut()).unwrap() ^= 1,
        |all| all.iter_mut().find(|one| one.value.as_ref().is_some_and(Vec::is_empty)).unwrap().value = None,
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut changed = all.clone();
        change(&mut changed);
        assert!(difference(&all, &changed).is_some(), "change {number}");
        assert!(difference(&changed, &all).is_some(), "change {number}");
    }
    let mut changed = all.clone();
    changed.iter_mut().find(|one| one.headers.len() > 1).unwrap().headers.swap(0, 1);
    assert!(difference(&all, &changed).is_some());
}

#[test]
fn a_line_says_everything() {
    for told in crate::corpus::records(0, 60) {
        let mut line: Value = serde_json::from_str(&told.to_line()).unwrap();
        for (name, value) in
            [("offset", json!(told.offset)), ("leader_epoch", json!(0)), ("timestamp_type", json!("create"))]
        {
            line[name] = value;
        }
        assert_eq!(Told::by_logctl(&line.to_string()), told);
    }
}
