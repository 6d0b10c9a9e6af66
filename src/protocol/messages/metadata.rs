//! Tells of brokers, topics and partitions.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `Metadata`.
    pub struct MetadataRequest<'a> {
        topics: Option<Vec<MetadataRequestTopic<'a>>> = Some(Vec::new()), 0.., null 1..;
        allow_auto_topic_creation: bool = true, 4..;
        include_cluster_authorized_operations: bool, 8..=10;
        include_topic_authorized_operations: bool, 8..;
    }

    /// In [`MetadataRequest`]: `topics`.
    pub struct MetadataRequestTopic<'a> {
        topic_id: Uuid, 10..;
        name: Option<&'a str> = Some(""), 0.., null 10..;
    }

    /// Response of `Metadata`.
    pub struct MetadataResponse<'a> {
        throttle_time_ms: i32, 3..;
        brokers: Vec<MetadataResponseBroker<'a>>, 0..;
        cluster_id: Option<Cow<'a, str>>, 2..;
        controller_id: i32 = -1, 1..;
        topics: Vec<MetadataResponseTopic<'a>>, 0..;
        cluster_authorized_operations: i32 = i32::MIN, 8..=10;
        error_code: i16, 13..;
    }

    /// In [`MetadataResponse`]: `brokers`.
    pub struct MetadataResponseBroker<'a> {
        node_id: i32, 0..;
        host: Cow<'a, str>, 0..;
        port: i32, 0..;
        rack: Option<Cow<'a, str>>, 1..;
    }

    /// In [`MetadataResponse`]: `topics`.
    pub struct MetadataResponseTopic<'a> {
        error_code: i16, 0..;
        name: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0.., null 12..;
        topic_id: Uuid, 10..;
        is_internal: bool, 1..;
        partitions: Vec<MetadataResponsePartition>, 0..;
        topic_authorized_operations: i32 = i32::MIN, 8..;
    }

    /// In [`MetadataResponseTopic`]: `partitions`.
    pub struct MetadataResponsePartition {
        error_code: i16, 0..;
        partition_index: i32, 0..;
        leader_id: i32, 0..;
        leader_epoch: i32 = -1, 7..;
        replica_nodes: Vec<i32>, 0..;
        isr_nodes: Vec<i32>, 0..;
        offline_replicas: Vec<i32>, 5..;
    }
}

api!(Metadata: MetadataRequest<'a> => MetadataResponse<'r>);
