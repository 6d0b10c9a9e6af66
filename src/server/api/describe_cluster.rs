//! `DescribeCluster`: the one broker.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::describe_cluster::{
            DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
        },
        wire::Reader,
    },
    server::error_code::ErrorCode,
};

const BROKERS: i8 = 1;

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DescribeClusterRequest = read(call, body)?;
    if request.endpoint_type != BROKERS {
        let response = DescribeClusterResponse {
            error_code: ErrorCode::MISMATCHED_ENDPOINT_TYPE.value(),
            error_message: Some("This is a broker, and no controller of others.".into()),
            ..Default::default()
        };
        return call.reply(&response);
    }
    let node_id = call.broker.node_id();
    let response = DescribeClusterResponse {
        cluster_id: call.broker.cluster_id().into(),
        controller_id: node_id,
        brokers: vec![DescribeClusterBroker {
            broker_id: node_id,
            host: call.advertised.host.as_str().into(),
            port: call.advertised.port.into(),
            ..Default::default()
        }],
        ..Default::default()
    };
    call.reply(&response)
}
