//! Kafka's own layouts, `fixtures/protocol/requests.jsonl`: what its classes say about every request and response.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// JSON with objects in the order of the file: the order of fields is what this is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Text(String),
    Number(i64),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    pub(crate) fn entries(&self) -> &[(String, Node)] {
        match self {
            Self::Map(entries) => entries,
            other => panic!("not an object: {other:?}"),
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("not text: {other:?}"),
        }
    }

    fn number(&self) -> i16 {
        match self {
            Self::Number(number) => i16::try_from(*number).unwrap(),
            other => panic!("not a number: {other:?}"),
        }
    }

    fn entry(&self, name: &str) -> Option<&Node> {
        self.entries().iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a number, an array or an object")
            }

            fn visit_str<E>(self, text: &str) -> Result<Node, E> {
                Ok(Node::Text(text.to_owned()))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Node, E> {
                i64::try_from(number).map(Node::Number).map_err(E::custom)
            }

            fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
                Ok(Node::Number(number))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Node, A::Error> {
                let mut list = Vec::new();
                while let Some(element) = sequence.next_element()? {
                    list.push(element);
                }
                Ok(Node::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Node::Map(entries))
            }
        }

        deserializer.deserialize_any(Any)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Direction {
    Request,
    Response,
}

/// One message in versions that look alike.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) key: i16,
    pub(crate) name: String,
    pub(crate) direction: Direction,
    pub(crate) first: i16,
    pub(crate) last: i16,
    pub(crate) header_version: i16,
    pub(crate) fields: Node,
}

/// All of them; headers, which have no key, are left out.
pub(crate) fn layouts() -> Vec<Layout> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/protocol/requests.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let layouts = text.lines().filter(|line| !line.is_empty()).filter_map(layout).collect::<Vec<_>>();
    assert!(layouts.len() > 400, "{} layouts", layouts.len());
    layouts
}

fn layout(line: &str) -> Option<Layout> {
    let node = serde_json::from_str::<Node>(line).unwrap();
    let entry = |name| node.entry(name).unwrap_or_else(|| panic!("no {name}: {line}"));
    let key = node.entry("api")?.number();
    let versions = entry("versions").text();
    let (first, last) = versions.split_once('-').unwrap_or((versions, versions));
    let direction = match entry("direction").text() {
        "request" => Direction::Request,
        "response" => Direction::Response,
        other => panic!("direction {other}"),
    };
    Some(Layout {
        key,
        name: entry("name").text().to_owned(),
        direction,
        first: first.parse().unwrap(),
        last: last.parse().unwrap(),
        header_version: entry("headerVersion").number(),
        fields: entry("fields").clone(),
    })
}
