//! Records of `__consumer_offsets` that hold committed offsets, as a broker writes and reads them.
//!
//! A key is a type, then fields of that type; a value is a version, then fields of that version. Types 0 and 1 are committed
//! offsets, type 2 groups of the classic protocol (`group_record` has their values), types 3 to 8 groups of the newer one.
//! Written is version 3 of the value, which brokers of all versions since 2.1 read; read are 0 to 4.

use super::{
    Committed,
    rest::{Malformed, Rest},
};

const KEY_TYPE: i16 = 1;
const VALUE_VERSION: i16 = 3;
const GROUP_KEY_TYPE: i16 = 2;

/// What a key is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Offset {
        group: String,
        topic: String,
        partition: i32,
    },
    /// A group of the classic protocol.
    Group(String),
    /// Something that is kept of a group of the newer protocol.
    NewerGroup(String),
    /// Something else that a coordinator keeps.
    Other,
}

/// Texts are this long at most, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = i16::MAX as usize;

pub(super) fn encode_key(group: &str, topic: &str, partition: i32) -> Vec<u8> {
    let mut key = KEY_TYPE.to_be_bytes().to_vec();
    put_text(&mut key, group);
    put_text(&mut key, topic);
    key.extend(partition.to_be_bytes());
    key
}

pub(super) fn encode_group_key(group: &str) -> Vec<u8> {
    let mut key = GROUP_KEY_TYPE.to_be_bytes().to_vec();
    put_text(&mut key, group);
    key
}

pub(super) fn encode_value(committed: &Committed) -> Vec<u8> {
    let mut value = VALUE_VERSION.to_be_bytes().to_vec();
    value.extend(committed.offset.to_be_bytes());
    value.extend(committed.leader_epoch.to_be_bytes());
    put_text(&mut value, &committed.metadata);
    value.extend(committed.commit_ms.to_be_bytes());
    value
}

/// The caller has checked its length.
pub(super) fn put_text(into: &mut Vec<u8>, text: &str) {
    let len = i16::try_from(text.len()).unwrap_or(i16::MAX);
    into.extend(len.to_be_bytes());
    into.extend(text.as_bytes().iter().take(MAX_TEXT_BYTES));
}

pub(super) fn decode_key(bytes: &[u8]) -> Result<Key, Malformed> {
    let mut rest = Rest(bytes);
    match rest.i16()? {
        0 | 1 => {}
        GROUP_KEY_TYPE => return Ok(Key::Group(rest.text()?)),
        3..=8 => return Ok(Key::NewerGroup(rest.text()?)),
        9.. => return Ok(Key::Other),
        _ => return Err(Malformed),
    }
    Ok(Key::Offset { group: rest.text()?, topic: rest.text()?, partition: rest.i32()? })
}

pub(super) fn decode_value(bytes: &[u8]) -> Result<Committed, Malformed> {
    let mut rest = Rest(bytes);
    let version = rest.i16()?;
    if !(0..=4).contains(&version) {
        return Err(Malformed);
    }
    let offset = rest.i64()?;
    let leader_epoch = if version >= 3 { rest.i32()? } else { -1 };
    let metadata = if version >= 4 { rest.compact_text()? } else { rest.text()? };
    // What follows (when it expires, which topic it was) is not needed.
    let commit_ms = rest.i64()?;
    Ok(Committed { offset, leader_epoch, metadata, commit_ms, log_offset: -1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed() -> Committed {
        Committed {
            offset: 42,
            leader_epoch: 7,
            metadata: "note \u{e4}".to_owned(),
            commit_ms: 1_700_000_000_123,
            log_offset: -1,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let key = encode_key("g", "t", 3);
        assert_eq!(key, b"\0\x01\0\x01g\0\x01t\0\0\0\x03");
        let offset = Key::Offset { group: "g".into(), topic: "t".into(), partition: 3 };
        assert_eq!(decode_key(&key), Ok(offset));
        let value = encode_value(&committed());
        assert_eq!(decode_value(&value), Ok(committed()));
        for cut in 0..value.len() {
            assert!(decode_value(&value[..cut]).is_err(), "{cut}");
        }
        for cut in 0..key.len() {
            assert!(decode_key(&key[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn every_version_of_a_brokers_value_is_read() {
        let with = |version: i16, fields: &[&[u8]]| {
            let mut bytes = version.to_be_bytes().to_vec();
            bytes.extend(fields.concat());
            decode_value(&bytes)
                .map(|found| (found.offset, found.leader_epoch, found.metadata, found.commit_ms))
        };
        let (offset, epoch, at) = (4_i64.to_be_bytes(), 9_i32.to_be_bytes(), 5_i64.to_be_bytes());
        let old = Ok((4, -1, "n".to_owned(), 5));
        assert_eq!(with(0, &[&offset, b"\0\x01n", &at]), old);
        assert_eq!(with(1, &[&offset, b"\0\x01n", &at, &at]), old);
        assert_eq!(with(2, &[&offset, b"\0\x01n", &at]), old);
        assert_eq!(with(3, &[&offset, &epoch, b"\0\0", &at]), Ok((4, 9, String::new(), 5)));
        // With the topic's id as a tagged field, as version 4.4 writes it.
        let tags = [&[1, 0, 16][..], &[0xab; 16]].concat();
        assert_eq!(
            with(4, &[&offset, &epoch, b"\x07note 4", &at, &tags]),
            Ok((4, 9, "note 4".to_owned(), 5))
        );
        assert_eq!(with(4, &[&offset, &epoch, b"\0", &at]), Err(Malformed));
        assert_eq!(with(5, &[&offset, &epoch, b"\0\0", &at]), Err(Malformed));
        assert_eq!(with(-1, &[&offset]), Err(Malformed));
        assert_eq!(decode_key(b"\0\x02\0\x01g"), Ok(Key::Group("g".to_owned())));
        assert_eq!(decode_key(&encode_group_key("g")), Ok(Key::Group("g".to_owned())));
        assert_eq!(decode_key(b"\0\x05\0\x01g\0\x01m"), Ok(Key::NewerGroup("g".to_owned())));
        assert_eq!(decode_key(b"\0\x0a\0\x01g"), Ok(Key::Other));
        assert_eq!(decode_key(b"\xff\xff"), Err(Malformed));
        assert_eq!(decode_key(b"\0\x01\xff\xff"), Err(Malformed));
    }
}
