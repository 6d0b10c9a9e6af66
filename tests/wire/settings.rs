//! Topics' settings shown and changed, partitions added, directories and topics described.

use stratalog::{
    protocol::{
        ApiKey,
        messages::{
            alter_configs::{
                AlterConfigsRequest, AlterConfigsResource, AlterConfigsResponse, AlterableConfig,
            },
            create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic},
            describe_configs::{DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse},
            describe_log_dirs::{DescribeLogDirsRequest, DescribeLogDirsResponse},
            describe_topic_partitions::{
                DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, RequestCursor,
            },
            incremental_alter_configs as incremental,
        },
    },
    server::{Server, Settings},
};

use crate::client::{Client, batch, decode};

fn versions(api: ApiKey) -> std::ops::RangeInclusive<i16> {
    let versions = api.advertised().unwrap();
    versions.first..=versions.last
}

/// Code, how many settings, and of this one the value and where it comes from.
fn describe(
    client: &mut Client,
    version: i16,
    (kind, name): (i8, &str),
    key: &str,
) -> (i16, usize, Option<String>, i8) {
    let resource = DescribeConfigsResource {
        resource_type: kind,
        resource_name: name,
        configuration_keys: if key.is_empty() { None } else { Some(vec![key]) },
    };
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        include_documentation: true,
    };
    let id = client.send(version, &request);
    let body = client.frame_for(id, ApiKey::DescribeConfigs, version);
    let told: DescribeConfigsResponse<'_> = decode(&body, version);
    let told = &told.results[0];
    let first = told.configs.first();
    let value = first.and_then(|config| config.value.as_deref()).map(str::to_owned);
    (told.error_code, told.configs.len(), value, first.map_or(0, |config| config.config_source))
}

fn change(client: &mut Client, version: i16, name: &str, changes: &[(&str, i8, Option<&str>)]) -> i16 {
    let configs = changes
        .iter()
        .map(|(name, config_operation, value)| incremental::AlterableConfig {
            name,
            config_operation: *config_operation,
            value: *value,
        })
        .collect();
    let resource = incremental::AlterConfigsResource { resource_type: 2, resource_name: name, configs };
    let request =
        incremental::IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let id = client.send(version, &request);
    let body = client.frame_for(id, ApiKey::IncrementalAlterConfigs, version);
    decode::<incremental::IncrementalAlterConfigsResponse<'_>>(&body, version).responses[0].error_code
}

#[test]
fn settings_are_shown_changed_in_force_at_once_and_kept() {
    let temp = tempfile::tempdir().unwrap();
    let settings = || Settings::for_dir(temp.path()).unwrap();
    let server = Server::bind(settings()).unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    for version in versions(ApiKey::DescribeConfigs) {
        let told = describe(&mut client, version, (2, "t"), "max.message.bytes");
        assert_eq!(told, (0, 1, Some("1048588".to_owned()), 5));
        assert!(describe(&mut client, version, (2, "t"), "").1 > 25);
        assert!(describe(&mut client, version, (4, "1"), "").1 > 50);
        assert_eq!(describe(&mut client, version, (2, "absent"), "").0, 3);
        assert_eq!(describe(&mut client, version, (4, "7"), "").0, 42);
    }
    for version in versions(ApiKey::IncrementalAlterConfigs) {
        assert_eq!(change(&mut client, version, "t", &[("max.message.bytes", 0, Some("300"))]), 0);
        assert_eq!(client.produce("t", &batch(&[&[0; 500]])).code, 10, "in force at once");
        assert_eq!(change(&mut client, version, "t", &[("max.message.bytes", 1, None)]), 0);
        assert_eq!(client.produce("t", &batch(&[&[0; 500]])).code, 0);
        assert_eq!(change(&mut client, version, "t", &[("cleanup.policy", 2, Some("compact"))]), 0);
        let policy = describe(&mut client, 4, (2, "t"), "cleanup.policy");
        assert_eq!((policy.2.as_deref(), policy.3), (Some("delete,compact"), 1));
        assert_eq!(change(&mut client, version, "t", &[("cleanup.policy", 3, Some("compact"))]), 0);
        assert_eq!(change(&mut client, version, "t", &[("retention.ms", 2, Some("1"))]), 40);
        assert_eq!(change(&mut client, version, "t", &[("nonsense", 0, Some("1"))]), 40);
        assert_eq!(change(&mut client, version, "t", &[("retention.ms", 9, Some("1"))]), 42);
        assert_eq!(change(&mut client, version, "absent", &[("retention.ms", 0, Some("1"))]), 3);
    }
    for version in versions(ApiKey::AlterConfigs) {
        let configs = vec![AlterableConfig { name: "retention.ms", value: Some("5000") }];
        let resource = AlterConfigsResource { resource_type: 2, resource_name: "t", configs };
        let server = AlterConfigsResource { resource_type: 4, resource_name: "1", configs: Vec::new() };
        let request = AlterConfigsRequest { resources: vec![resource, server], validate_only: false };
        let id = client.send(version, &request);
        let body = client.frame_for(id, ApiKey::AlterConfigs, version);
        let told: AlterConfigsResponse<'_> = decode(&body, version);
        assert_eq!((told.responses[0].error_code, told.responses[1].error_code), (0, 42));
    }
    assert!(server.shutdown().unwrap());
    let server = Server::bind(settings()).unwrap();
    let mut client = Client::new(server.address());
    let told = describe(&mut client, 4, (2, "t"), "retention.ms");
    assert_eq!((told.2.as_deref(), told.3), (Some("5000"), 1));
}

#[test]
fn partitions_are_added_and_described() {
    let server = Server::ephemeral().unwrap();
    let mut client = Client::new(server.address());
    let mut names: Vec<_> = ["b", "a"].into();
    for name in &names {
        client.topic(name);
    }
    names.sort_unstable();
    for (version, count) in versions(ApiKey::CreatePartitions).zip(2..) {
        let topics = |count| vec![CreatePartitionsTopic { name: "b", count, assignments: None }];
        let mut ask = |count, validate_only| {
            let request =
                CreatePartitionsRequest { topics: topics(count), validate_only, ..Default::default() };
            let id = client.send(version, &request);
            let body = client.frame_for(id, ApiKey::CreatePartitions, version);
            decode::<CreatePartitionsResponse<'_>>(&body, version).results[0].error_code
        };
        assert_eq!((ask(count, true), ask(count, false), ask(count, false), ask(1, false)), (0, 0, 37, 37));
    }
    // a-0, b-0 to b-4: two at a time.
    let mut seen = Vec::new();
    let mut from: Option<(String, i32)> = None;
    loop {
        let cursor =
            from.as_ref().map(|(name, index)| RequestCursor { topic_name: name, partition_index: *index });
        let request =
            DescribeTopicPartitionsRequest { response_partition_limit: 2, cursor, ..Default::default() };
        let id = client.send(0, &request);
        let body = client.frame_for(id, ApiKey::DescribeTopicPartitions, 0);
        let told: DescribeTopicPartitionsResponse<'_> = decode(&body, 0);
        for topic in &told.topics {
            let name = topic.name.clone().unwrap();
            seen.extend(
                topic.partitions.iter().map(|partition| format!("{name}-{}", partition.partition_index)),
            );
        }
        match told.next_cursor {
            Some(next) => from = Some((next.topic_name.into_owned(), next.partition_index)),
            None => break,
        }
    }
    assert_eq!(seen, ["a-0", "b-0", "b-1", "b-2", "b-3", "b-4"]);
    assert_eq!(client.produce("a", &batch(&[b"v"])).code, 0);
    for version in versions(ApiKey::DescribeLogDirs) {
        let id = client.send(version, &DescribeLogDirsRequest { topics: None });
        let body = client.frame_for(id, ApiKey::DescribeLogDirs, version);
        let told: DescribeLogDirsResponse<'_> = decode(&body, version);
        let sizes: Vec<_> =
            told.results[0].topics.iter().map(|topic| (&*topic.name, topic.partitions.len())).collect();
        assert_eq!(sizes, [("a", 1), ("b", 5)]);
        assert!(told.results[0].topics[0].partitions[0].partition_size > 61);
    }
}
