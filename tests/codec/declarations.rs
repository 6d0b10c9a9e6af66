//! Every declaration against Kafka's layout: each field by name, type and place, in every version.

use std::collections::{BTreeMap, BTreeSet};

use stratalog::protocol::{
    ApiKey, Versions,
    messages::{request, response},
    wire::{FieldShape, Shape},
};

use crate::layout::{Direction, Layout, Node, layouts};

/// What the layouts have and is not declared: spoken between brokers, for share and streams groups, for a quorum's
/// members, for delegation tokens.
const NOT_DECLARED: &[&str] = &[
    "AddRaftVoter",
    "AllocateProducerIds",
    "AlterPartition",
    "AlterShareGroupOffsets",
    "AssignReplicasToDirs",
    "BeginQuorumEpoch",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ControllerRegistration",
    "CreateDelegationToken",
    "DeleteShareGroupOffsets",
    "DeleteShareGroupState",
    "DescribeDelegationToken",
    "DescribeShareGroupOffsets",
    "EndQuorumEpoch",
    "Envelope",
    "ExpireDelegationToken",
    "FetchSnapshot",
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "ReadShareGroupStateSummary",
    "RemoveRaftVoter",
    "RenewDelegationToken",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupDescribe",
    "ShareGroupHeartbeat",
    "StreamsGroupDescribe",
    "StreamsGroupHeartbeat",
    "StreamsGroupTopologyDescriptionUpdate",
    "UnregisterBroker",
    "UnregisterController",
    "UpdateRaftVoter",
    "Vote",
    "WriteShareGroupState",
];

#[test]
fn each_field_of_each_version_is_where_kafka_has_it() {
    let mut compared = 0;
    for layout in layouts() {
        let Some(api) = ApiKey::from_key(layout.key) else { continue };
        let declaration = match layout.direction {
            Direction::Request => request(api),
            Direction::Response => response(api),
        };
        for version in layout.first..=layout.last {
            let found = at_version(&declaration.shape, version, api.is_flexible(version), false);
            let place = format!("{api} {:?} {version}", layout.direction);
            compare(&place, &found, &layout.fields);
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared} compared");
}

#[test]
fn names_versions_and_headers_are_kafkas() {
    let mut names = BTreeMap::new();
    let mut versions = BTreeMap::<(i16, Direction), BTreeSet<i16>>::new();
    for Layout { key, name, direction, first, last, header_version, .. } in layouts() {
        versions.entry((key, direction)).or_default().extend(first..=last);
        if let Some(api) = ApiKey::from_key(key) {
            for version in first..=last {
                let expected = match direction {
                    Direction::Request => api.request_header_version(version),
                    Direction::Response => api.response_header_version(version),
                };
                assert_eq!(header_version, expected, "header of {api} {direction:?} {version}");
            }
        }
        names.insert(key, name);
    }
    for api in ApiKey::ALL {
        assert_eq!(names.get(&api.key()).map(String::as_str), Some(api.name()));
        let Versions { first, last } = api.versions();
        for direction in [Direction::Request, Direction::Response] {
            assert_eq!(versions[&(api.key(), direction)], (first..=last).collect(), "{api} {direction:?}");
        }
    }
    let missing = names.iter().filter(|(key, _)| ApiKey::from_key(**key).is_none());
    let missing = missing.map(|(_, name)| name.as_str()).collect::<BTreeSet<_>>();
    assert_eq!(missing, NOT_DECLARED.iter().copied().collect());
}

#[test]
fn only_declared_versions_are_advertised() {
    for api in ApiKey::ALL {
        let Some(advertised) = api.advertised() else { continue };
        // The one exception is written at the table.
        let first = if *api == ApiKey::Produce { 0 } else { api.versions().first };
        assert!(first <= advertised.first && advertised.last <= api.versions().last, "{api}");
    }
}

#[test]
fn a_difference_is_found() {
    let map = |fields: &[(&str, &str)]| {
        Node::Map(
            fields.iter().map(|(name, kind)| (String::from(*name), Node::Text((*kind).into()))).collect(),
        )
    };
    let kafka = map(&[("a", "INT32"), ("b", "INT32")]);
    for ours in [
        map(&[("b", "INT32"), ("a", "INT32")]),
        map(&[("a", "INT32")]),
        map(&[("a", "INT32"), ("b", "INT64")]),
    ] {
        assert!(std::panic::catch_unwind(|| compare("here", &ours, &kafka)).is_err());
    }
    compare("here", &kafka, &kafka.clone());
}

/// Panics at the first difference, naming the way there.
fn compare(place: &str, ours: &Node, kafka: &Node) {
    match (ours, kafka) {
        (Node::Map(ours), Node::Map(kafka)) => {
            let names =
                |entries: &[(String, Node)]| entries.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            assert_eq!(names(ours), names(kafka), "fields at {place}, ours first");
            for ((name, ours), (_, kafka)) in ours.iter().zip(kafka) {
                compare(&format!("{place} / {name}"), ours, kafka);
            }
        }
        (Node::List(ours), Node::List(kafka)) if ours.len() == kafka.len() => {
            ours.iter().zip(kafka).for_each(|(ours, kafka)| compare(place, ours, kafka));
        }
        _ => assert_eq!(ours, kafka, "at {place}, ours first"),
    }
}

/// A shape as the layouts would say it.
fn at_version(shape: &Shape, version: i16, flexible: bool, nullable: bool) -> Node {
    let compact = if flexible { "COMPACT_" } else { "" };
    match shape {
        Shape::Plain(kind @ ("STRING" | "BYTES" | "RECORDS")) => {
            Node::Text(format!("{compact}{}{kind}", if nullable { "NULLABLE_" } else { "" }))
        }
        Shape::Plain(kind) => Node::Text((*kind).to_owned()),
        Shape::Nullable(inner) => at_version(inner, version, flexible, nullable),
        Shape::Array(element) => {
            let kind = format!("{compact}ARRAY{}", if nullable { " nullable" } else { "" });
            Node::List(vec![at_version(element, version, flexible, false), Node::Text(kind)])
        }
        Shape::Struct(fields) => {
            let there = fields.iter().filter(|field| field.versions.contains(version)).collect::<Vec<_>>();
            let entry = |field: &FieldShape| {
                let nullable = matches!(field.shape, Shape::Nullable(_)) && field.null.contains(version);
                let name = field.name.strip_prefix("r#").unwrap_or(field.name);
                (name.to_owned(), at_version(&field.shape, version, flexible, nullable))
            };
            let mut entries = there
                .iter()
                .filter(|field| field.tag.is_none())
                .map(|field| entry(field))
                .collect::<Vec<_>>();
            let tagged = there.iter().filter_map(|field| {
                let tag = field.tag?;
                Some((tag.to_string(), Node::Map(vec![entry(field)])))
            });
            if flexible {
                entries.push(("tagged".to_owned(), Node::Map(tagged.collect())));
            }
            Node::Map(entries)
        }
    }
}
