//! Tells of the cluster and its brokers.

use std::borrow::Cow;

message! {
    /// Request of `DescribeCluster`.
    pub struct DescribeClusterRequest {
        include_cluster_authorized_operations: bool, 0..;
        endpoint_type: i8 = 1, 1..;
        include_fenced_brokers: bool, 2..;
    }

    /// Response of `DescribeCluster`.
    pub struct DescribeClusterResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>>, 0..;
        endpoint_type: i8 = 1, 1..;
        cluster_id: Cow<'a, str>, 0..;
        controller_id: i32 = -1, 0..;
        brokers: Vec<DescribeClusterBroker<'a>>, 0..;
        cluster_authorized_operations: i32 = i32::MIN, 0..;
    }

    /// In [`DescribeClusterResponse`]: `brokers`.
    pub struct DescribeClusterBroker<'a> {
        broker_id: i32, 0..;
        host: Cow<'a, str>, 0..;
        port: i32, 0..;
        rack: Option<Cow<'a, str>>, 0..;
        is_fenced: bool, 2..;
    }
}

api!(DescribeCluster: DescribeClusterRequest => DescribeClusterResponse<'r>);
