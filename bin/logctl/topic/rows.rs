//! What several actions print.

use crate::{
    broker::admin::Setting,
    failure::Failure,
    output::Output,
    report::{Cell, Column, Rows},
};

/// A topic, wherever it is.
#[derive(Debug, Clone)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) id: Option<String>,
    /// The broker's own.
    pub(super) is_internal: bool,
    /// By number.
    pub(super) partitions: Vec<Partition>,
}

/// One of its partitions; of a directory's it is not told who leads.
#[derive(Debug, Clone)]
pub(super) struct Partition {
    pub(super) number: i32,
    pub(super) leader: Option<i32>,
    pub(super) replicas: Option<Vec<i32>>,
    pub(super) in_sync: Option<Vec<i32>>,
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
}

const TOPICS: &[Column] = &[
    Column::text("topic", "TOPIC"),
    Column::number("partitions", "PARTITIONS"),
    Column::number("replicas", "REPLICAS"),
    Column::text("topic_id", "TOPIC-ID"),
    Column::field("internal"),
];

const PARTITIONS: &[Column] = &[
    Column::text("topic", "TOPIC"),
    Column::number("partition", "PARTITION"),
    Column::number("start", "START"),
    Column::number("end", "END"),
    Column::number("leader", "LEADER"),
    Column::text("replicas", "REPLICAS"),
    Column::text("in_sync", "IN-SYNC"),
];

const SETTINGS: &[Column] = &[
    Column::text("topic", "TOPIC"),
    Column::text("key", "KEY"),
    Column::text("value", "VALUE"),
    Column::text("origin", "ORIGIN"),
];

/// A row for each topic.
pub(super) fn topics(topics: &[Topic], out: &mut Output, with_headings: bool) -> Result<(), Failure> {
    let mut rows = Rows::new("topic", TOPICS);
    for topic in topics {
        let replicas =
            topic.partitions.iter().filter_map(|partition| Some(partition.replicas.as_ref()?.len()));
        rows.push([
            Cell::text(&topic.name),
            Cell::number(topic.partitions.len()),
            Cell::maybe(replicas.max()),
            topic.id.as_deref().map_or(Cell::Absent, Cell::text),
            Cell::Flag(topic.is_internal),
        ]);
    }
    rows.print(out, with_headings)
}

/// A row for each partition.
pub(super) fn partitions(topic: &Topic, out: &mut Output, with_headings: bool) -> Result<(), Failure> {
    let mut rows = Rows::new("partition", PARTITIONS);
    let is_json = out.is_json();
    let nodes = |nodes: &Option<Vec<i32>>| match nodes {
        None => Cell::Absent,
        Some(nodes) => {
            let list = nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            Cell::Bare(if is_json { format!("[{list}]") } else { list })
        }
    };
    for partition in &topic.partitions {
        rows.push([
            Cell::text(&topic.name),
            Cell::number(partition.number),
            Cell::maybe(partition.start),
            Cell::maybe(partition.end),
            // None leads it.
            Cell::maybe(partition.leader.filter(|leader| *leader >= 0)),
            nodes(&partition.replicas),
            nodes(&partition.in_sync),
        ]);
    }
    rows.print(out, with_headings)
}

/// A row for each setting.
pub(super) fn settings(
    topic: &str,
    settings: &[Setting],
    out: &mut Output,
    with_headings: bool,
) -> Result<(), Failure> {
    let mut rows = Rows::new("setting", SETTINGS);
    for setting in settings {
        let value = match &setting.value {
            _ if setting.is_sensitive => Cell::text("********"),
            Some(value) => Cell::text(value),
            None => Cell::Absent,
        };
        rows.push([Cell::text(topic), Cell::text(&setting.name), value, Cell::text(setting.origin)]);
    }
    rows.print(out, with_headings)
}
