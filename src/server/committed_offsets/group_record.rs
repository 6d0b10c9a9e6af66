//! The value of a group's record: its generation, members and what each was assigned.
//!
//! Written is version 3, which brokers of all versions since 2.3 read; read are 0 to 4.

use super::{
    record::put_text,
    rest::{Malformed, Rest},
};

const VALUE_VERSION: i16 = 3;
/// Room taken at once for members that are only announced.
const ROOM: usize = 64;

/// A group of the classic protocol as it is kept: between generations, or as its leader has assigned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptGroup {
    /// Empty for a group that never had members.
    pub(crate) protocol_type: String,
    pub(crate) generation: i32,
    /// `None` where there are no members.
    pub(crate) protocol: Option<String>,
    pub(crate) leader: Option<String>,
    /// When it came to be as it is, in milliseconds; -1 where that is not known.
    pub(crate) since_ms: i64,
    pub(crate) members: Vec<KeptMember>,
}

/// A member of a kept group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptMember {
    pub(crate) id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_host: String,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) session_timeout_ms: i32,
    /// What it told for the protocol that was chosen.
    pub(crate) subscription: Vec<u8>,
    pub(crate) assignment: Vec<u8>,
}

pub(super) fn encode(group: &KeptGroup) -> Vec<u8> {
    let mut value = VALUE_VERSION.to_be_bytes().to_vec();
    put_text(&mut value, &group.protocol_type);
    value.extend(group.generation.to_be_bytes());
    put_nullable_text(&mut value, group.protocol.as_deref());
    put_nullable_text(&mut value, group.leader.as_deref());
    value.extend(group.since_ms.to_be_bytes());
    value.extend(i32::try_from(group.members.len()).unwrap_or(i32::MAX).to_be_bytes());
    for member in &group.members {
        put_text(&mut value, &member.id);
        put_nullable_text(&mut value, member.instance_id.as_deref());
        put_text(&mut value, &member.client_id);
        put_text(&mut value, &member.client_host);
        value.extend(member.rebalance_timeout_ms.to_be_bytes());
        value.extend(member.session_timeout_ms.to_be_bytes());
        put_bytes(&mut value, &member.subscription);
        put_bytes(&mut value, &member.assignment);
    }
    value
}

fn put_nullable_text(into: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => put_text(into, text),
        None => into.extend((-1_i16).to_be_bytes()),
    }
}

/// Bytes come from a frame, whose length has four bytes too.
fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend(i32::try_from(bytes.len()).unwrap_or(i32::MAX).to_be_bytes());
    into.extend(bytes);
}

pub(super) fn decode(bytes: &[u8]) -> Result<KeptGroup, Malformed> {
    let mut rest = Rest(bytes);
    let version = rest.i16()?;
    if !(0..=4).contains(&version) {
        return Err(Malformed);
    }
    let is_compact = version >= 4;
    let mut group = KeptGroup {
        protocol_type: if is_compact { rest.compact_text()? } else { rest.text()? },
        generation: rest.i32()?,
        protocol: if is_compact { rest.compact_nullable_text()? } else { rest.nullable_text()? },
        leader: if is_compact { rest.compact_nullable_text()? } else { rest.nullable_text()? },
        since_ms: if version >= 2 { rest.i64()? } else { -1 },
        members: Vec::new(),
    };
    let count = if is_compact { rest.compact_count()? } else { rest.count()? };
    group.members.reserve(count.min(ROOM));
    for _ in 0..count {
        group.members.push(if is_compact { compact_member(&mut rest)? } else { member(&mut rest, version)? });
    }
    Ok(group)
}

fn member(rest: &mut Rest<'_>, version: i16) -> Result<KeptMember, Malformed> {
    let mut member = KeptMember {
        id: rest.text()?,
        instance_id: if version >= 3 { rest.nullable_text()? } else { None },
        client_id: rest.text()?,
        client_host: rest.text()?,
        rebalance_timeout_ms: if version >= 1 { rest.i32()? } else { -1 },
        session_timeout_ms: rest.i32()?,
        subscription: rest.bytes()?,
        assignment: rest.bytes()?,
    };
    if version == 0 {
        member.rebalance_timeout_ms = member.session_timeout_ms;
    }
    Ok(member)
}

fn compact_member(rest: &mut Rest<'_>) -> Result<KeptMember, Malformed> {
    let member = KeptMember {
        id: rest.compact_text()?,
        instance_id: rest.compact_nullable_text()?,
        client_id: rest.compact_text()?,
        client_host: rest.compact_text()?,
        rebalance_timeout_ms: rest.i32()?,
        session_timeout_ms: rest.i32()?,
        subscription: rest.compact_bytes()?,
        assignment: rest.compact_bytes()?,
    };
    rest.tags()?;
    Ok(member)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> KeptGroup {
        let member = |id: &str, instance: Option<&str>| KeptMember {
            id: id.to_owned(),
            instance_id: instance.map(str::to_owned),
            client_id: "c".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            rebalance_timeout_ms: 300_000,
            session_timeout_ms: 45_000,
            subscription: vec![0, 1, 2],
            assignment: Vec::new(),
        };
        KeptGroup {
            protocol_type: "consumer".to_owned(),
            generation: 7,
            protocol: Some("range".to_owned()),
            leader: Some("a".to_owned()),
            since_ms: 1_700_000_000_123,
            members: vec![member("a", None), member("b", Some("i"))],
        }
    }

    #[test]
    fn what_is_written_is_read_and_what_is_cut_is_not() {
        for group in [group(), KeptGroup { generation: 3, since_ms: 5, ..KeptGroup::default() }] {
            let value = encode(&group);
            assert_eq!(decode(&value), Ok(group));
            for cut in 0..value.len() {
                assert!(decode(&value[..cut]).is_err(), "{cut}");
            }
        }
        assert_eq!(decode(b"\0\x05"), Err(Malformed));
        // A count that nothing stands behind takes no memory.
        let mut many = encode(&KeptGroup::default());
        let at = many.len() - 4;
        many[at..].copy_from_slice(&i32::MAX.to_be_bytes());
        assert_eq!(decode(&many), Err(Malformed));
    }

    #[test]
    fn every_version_is_read() {
        let mut whole = group();
        whole.members.truncate(1);
        let told = decode(&encode(&whole)).unwrap();
        let head = |version: u8| [&[0, version][..], b"\0\x08consumer\0\0\0\x07\0\x05range\0\x01a"].concat();
        let ids = b"\0\0\0\x01\0\x01a\0\x01c\0\x0a/127.0.0.1";
        let timeouts = [300_000_i32.to_be_bytes(), 45_000_i32.to_be_bytes()];
        let since = whole.since_ms.to_be_bytes();
        let bytes = b"\0\0\0\x03\0\x01\x02\0\0\0\0";
        let zero = [&head(0)[..], ids, &timeouts[1], bytes].concat();
        let read = decode(&zero).unwrap();
        assert_eq!((read.since_ms, read.members[0].rebalance_timeout_ms), (-1, 45_000));
        let one = [&head(1)[..], ids, &timeouts.concat(), bytes].concat();
        assert_eq!(decode(&one).unwrap(), KeptGroup { since_ms: -1, ..told.clone() });
        let two = [&head(2)[..], &since, ids, &timeouts.concat(), bytes].concat();
        assert_eq!(decode(&two).unwrap(), told);
        let compact = b"\x02\x02a\0\x02c\x0b/127.0.0.1";
        let four = [
            b"\0\x04\x09consumer\0\0\0\x07\x06range\x02a",
            &since[..],
            compact,
            &timeouts.concat(),
            b"\x04\0\x01\x02\x01\0\0",
        ];
        assert_eq!(decode(&four.concat()).unwrap(), told);
    }
}
