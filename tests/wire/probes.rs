//! What tools ask to find out what there is, answered as by a broker that has nothing of it.

use stratalog::{
    protocol::{
        ApiKey, Message, Request,
        messages::{
            alter_client_quotas as quotas, alter_partition_reassignments as reassign, api_versions,
            create_acls, delete_acls, describe_acls, describe_client_quotas, describe_producers,
            describe_quorum, describe_transactions, describe_user_scram_credentials as scram, elect_leaders,
            list_config_resources, list_partition_reassignments, list_transactions, update_features,
        },
    },
    server::Server,
};

use crate::client::{Client, batch, decode};

fn versions(api: ApiKey) -> std::ops::RangeInclusive<i16> {
    let versions = api.advertised().unwrap();
    versions.first..=versions.last
}

/// Asks in every version.
fn ask<'a, R: Request<'a>>(client: &mut Client, request: &R, check: impl Fn(i16, &[u8])) {
    let api = <R as Message<'a>>::API;
    for version in versions(api) {
        let id = client.send(version, request);
        let body = client.frame_for(id, api, version);
        check(version, &body);
    }
}

#[test]
fn there_is_no_security() {
    let server = Server::ephemeral().unwrap();
    let client = &mut Client::new(server.address());
    ask(client, &describe_acls::DescribeAclsRequest::default(), |version, body| {
        let told: describe_acls::DescribeAclsResponse<'_> = decode(body, version);
        assert_eq!(
            (told.error_code, told.error_message.as_deref()),
            (54, Some("No Authorizer is configured."))
        );
    });
    let creations = vec![create_acls::AclCreation::default(), create_acls::AclCreation::default()];
    ask(client, &create_acls::CreateAclsRequest { creations }, |version, body| {
        let told: create_acls::CreateAclsResponse<'_> = decode(body, version);
        assert_eq!(told.results.iter().map(|result| result.error_code).collect::<Vec<_>>(), [54, 54]);
    });
    let filters = vec![delete_acls::DeleteAclsFilter::default()];
    ask(client, &delete_acls::DeleteAclsRequest { filters }, |version, body| {
        assert_eq!(
            decode::<delete_acls::DeleteAclsResponse<'_>>(body, version).filter_results[0].error_code,
            54
        );
    });
    let users = |users: &[&'static str]| scram::DescribeUserScramCredentialsRequest {
        users: Some(users.iter().map(|name| scram::UserName { name }).collect()),
    };
    ask(client, &users(&[]), |version, body| {
        let told: scram::DescribeUserScramCredentialsResponse<'_> = decode(body, version);
        assert_eq!((told.error_code, told.results.len()), (0, 0));
    });
    ask(client, &users(&["me"]), |version, body| {
        let told: scram::DescribeUserScramCredentialsResponse<'_> = decode(body, version);
        assert_eq!((told.error_code, told.results[0].error_code), (0, 91));
    });
}

#[test]
fn there_are_no_quotas() {
    let server = Server::ephemeral().unwrap();
    let client = &mut Client::new(server.address());
    ask(client, &describe_client_quotas::DescribeClientQuotasRequest::default(), |version, body| {
        let told: describe_client_quotas::DescribeClientQuotasResponse<'_> = decode(body, version);
        assert_eq!((told.error_code, told.entries.map(|entries| entries.len())), (0, Some(0)));
    });
    for (remove, code) in [(true, 0), (false, 42)] {
        let entity = vec![quotas::RequestEntityData { entity_type: "client-id", entity_name: Some("c") }];
        let ops = vec![quotas::OpData { key: "producer_byte_rate", value: 1.0, remove }];
        let entries = vec![quotas::RequestEntryData { entity, ops }];
        ask(client, &quotas::AlterClientQuotasRequest { entries, validate_only: false }, |version, body| {
            let told: quotas::AlterClientQuotasResponse<'_> = decode(body, version);
            assert_eq!(told.entries[0].error_code, code);
            assert_eq!(told.entries[0].entity[0].entity_name.as_deref(), Some("c"));
        });
    }
}

#[test]
fn each_partition_is_where_it_must_be() {
    let server = Server::ephemeral().unwrap();
    let client = &mut Client::new(server.address());
    client.topic("t");
    let partitions = vec![elect_leaders::TopicPartitions { topic: "t", partitions: vec![0, 9] }];
    let request =
        elect_leaders::ElectLeadersRequest { topic_partitions: Some(partitions), ..Default::default() };
    ask(client, &request, |version, body| {
        let told: elect_leaders::ElectLeadersResponse<'_> = decode(body, version);
        let codes: Vec<_> = told.replica_election_results[0]
            .partition_result
            .iter()
            .map(|result| result.error_code)
            .collect();
        assert_eq!(codes, [84, 3]);
    });
    let all = elect_leaders::ElectLeadersRequest { topic_partitions: None, ..Default::default() };
    ask(client, &all, |version, body| {
        let told: elect_leaders::ElectLeadersResponse<'_> = decode(body, version);
        assert_eq!((told.error_code, told.replica_election_results.len()), (0, 0));
    });
    let wanted =
        [(0, Some(vec![1])), (0, Some(vec![2])), (0, Some(vec![1, 2])), (0, None), (9, Some(vec![1]))];
    let partition =
        |(partition_index, replicas)| reassign::ReassignablePartition { partition_index, replicas };
    let partitions = wanted.into_iter().map(partition).collect();
    let request = reassign::AlterPartitionReassignmentsRequest {
        topics: vec![reassign::ReassignableTopic { name: "t", partitions }],
        ..Default::default()
    };
    ask(client, &request, |version, body| {
        let told: reassign::AlterPartitionReassignmentsResponse<'_> = decode(body, version);
        let codes: Vec<_> = told.responses[0].partitions.iter().map(|result| result.error_code).collect();
        assert_eq!((told.error_code, codes), (0, vec![0, 39, 39, 85, 3]));
    });
    let request = list_partition_reassignments::ListPartitionReassignmentsRequest::default();
    ask(client, &request, |version, body| {
        let told: list_partition_reassignments::ListPartitionReassignmentsResponse<'_> =
            decode(body, version);
        assert_eq!((told.error_code, told.topics.len()), (0, 0));
    });
}

#[test]
fn the_quorum_is_this_node_and_features_are_what_they_are() {
    let server = Server::ephemeral().unwrap();
    let client = &mut Client::new(server.address());
    let partitions = vec![describe_quorum::RequestPartitionData { partition_index: 0 }];
    let topic = |topic_name| describe_quorum::RequestTopicData { topic_name, partitions: partitions.clone() };
    let request =
        describe_quorum::DescribeQuorumRequest { topics: vec![topic("__cluster_metadata"), topic("t")] };
    ask(client, &request, |version, body| {
        let told: describe_quorum::DescribeQuorumResponse<'_> = decode(body, version);
        let quorum = &told.topics[0].partitions[0];
        assert_eq!((told.error_code, quorum.error_code, quorum.leader_id), (0, 0, 1));
        assert_eq!(quorum.current_voters[0].replica_id, 1);
        assert_eq!(told.topics[1].partitions[0].error_code, 3);
        assert_eq!(told.nodes.len(), usize::from(version >= 2));
    });
    let software = api_versions::ApiVersionsRequest {
        client_software_name: "wire",
        client_software_version: "1",
        ..Default::default()
    };
    ask(client, &software, |version, body| {
        let told: api_versions::ApiVersionsResponse<'_> = decode(body, version);
        let levels =
            told.finalized_features.iter().map(|feature| (feature.name.as_ref(), feature.max_version_level));
        assert_eq!(
            levels.collect::<Vec<_>>(),
            if version < 3 { vec![] } else { vec![("metadata.version", 33)] }
        );
    });
    for (feature, level, code) in [
        ("metadata.version", 33, 0),
        ("metadata.version", 30, 95),
        ("share.version", 0, 0),
        ("share.version", 1, 95),
    ] {
        let update =
            update_features::FeatureUpdateKey { feature, max_version_level: level, ..Default::default() };
        let request =
            update_features::UpdateFeaturesRequest { feature_updates: vec![update], ..Default::default() };
        ask(client, &request, |version, body| {
            let told: update_features::UpdateFeaturesResponse<'_> = decode(body, version);
            let told = told.results.first().map_or(told.error_code, |result| result.error_code);
            assert_eq!(told, code, "{feature} {level} {version}");
        });
    }
}

#[test]
fn producers_are_told_and_there_are_no_transactions() {
    let server = Server::ephemeral().unwrap();
    let client = &mut Client::new(server.address());
    client.topic("t");
    assert_eq!(client.produce("t", &batch(&[b"a"])).code, 0);
    let topics = vec![describe_producers::TopicRequest { name: "t", partition_indexes: vec![0, 9] }];
    ask(client, &describe_producers::DescribeProducersRequest { topics }, |version, body| {
        let told: describe_producers::DescribeProducersResponse<'_> = decode(body, version);
        let [own, absent] = told.topics[0].partitions.as_slice() else { panic!("both are told of") };
        assert_eq!((own.error_code, own.active_producers.len(), absent.error_code), (0, 0, 3));
    });
    let request = describe_transactions::DescribeTransactionsRequest { transactional_ids: vec!["x"] };
    ask(client, &request, |version, body| {
        let told: describe_transactions::DescribeTransactionsResponse<'_> = decode(body, version);
        assert_eq!(told.transaction_states[0].error_code, 105);
    });
    let state_filters = vec!["Ongoing", "Odd"];
    let request = list_transactions::ListTransactionsRequest { state_filters, ..Default::default() };
    ask(client, &request, |version, body| {
        let told: list_transactions::ListTransactionsResponse<'_> = decode(body, version);
        assert_eq!((told.error_code, told.transaction_states.len()), (0, 0));
        assert_eq!(told.unknown_state_filters, ["Odd"]);
    });
    for (types, names) in [(vec![], 2), (vec![2], 1), (vec![4, 16], 1), (vec![32], 0)] {
        let request = list_config_resources::ListConfigResourcesRequest { resource_types: types };
        ask(client, &request, |version, body| {
            let told: list_config_resources::ListConfigResourcesResponse<'_> = decode(body, version);
            assert_eq!(
                (told.error_code, told.config_resources.len()),
                (0, if version == 0 { 0 } else { names })
            );
        });
    }
    let request = list_config_resources::ListConfigResourcesRequest { resource_types: vec![3] };
    let id = client.send(1, &request);
    let body = client.frame_for(id, ApiKey::ListConfigResources, 1);
    let told: list_config_resources::ListConfigResourcesResponse<'_> = decode(&body, 1);
    assert_eq!(told.error_code, 35);
}
