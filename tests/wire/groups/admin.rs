//! Groups as administrators see them.

use stratalog::{
    protocol::messages::{
        delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse},
        describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse},
        list_groups::{ListGroupsRequest, ListGroupsResponse},
        offset_delete::{
            OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic, OffsetDeleteResponse,
        },
    },
    server::Server,
};

use super::*;

/// Code, state, protocol and how many members.
fn describe(client: &mut Client, version: i16, group: &str) -> (i16, String, String, usize) {
    let request = DescribeGroupsRequest { groups: vec![group], include_authorized_operations: true };
    call(client, version, &request, |body| {
        let told: DescribeGroupsResponse<'_> = decode(body, version);
        let told = &told.groups[0];
        assert_eq!(told.group_id, group);
        if let Some(member) = told.members.first() {
            assert_eq!((member.client_id.as_ref(), member.client_host.as_ref()), ("wire", "/127.0.0.1"));
            assert_eq!(member.member_assignment.as_ref(), format!("for {}", member.member_id).as_bytes());
            assert!(!member.member_metadata.is_empty());
        }
        (
            told.error_code,
            told.group_state.clone().into_owned(),
            told.protocol_data.clone().into_owned(),
            told.members.len(),
        )
    })
}

fn list(client: &mut Client, version: i16, states: &[&str], types: &[&str]) -> Vec<String> {
    let request = ListGroupsRequest { states_filter: states.to_vec(), types_filter: types.to_vec() };
    call(client, version, &request, |body| {
        let told: ListGroupsResponse<'_> = decode(body, version);
        assert_eq!(told.error_code, 0);
        told.groups.iter().map(|group| group.group_id.clone().into_owned()).collect()
    })
}

fn delete(client: &mut Client, version: i16, group: &str) -> i16 {
    let request = DeleteGroupsRequest { groups_names: vec![group] };
    call(client, version, &request, |body| {
        decode::<DeleteGroupsResponse<'_>>(body, version).results[0].error_code
    })
}

/// The code of all, and of each partition.
fn forget(client: &mut Client, group: &str, topics: &[&str]) -> (i16, Vec<i16>) {
    let topic = |name: &&'static str| OffsetDeleteRequestTopic {
        name,
        partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
    };
    let topics: Vec<&'static str> = topics
        .iter()
        .map(|name| {
            if *name == "t" {
                "t"
            } else if *name == "u" {
                "u"
            } else {
                "absent"
            }
        })
        .collect();
    let request = OffsetDeleteRequest { group_id: group, topics: topics.iter().map(topic).collect() };
    call(client, 0, &request, |body| {
        let told: OffsetDeleteResponse<'_> = decode(body, 0);
        (told.error_code, told.topics.iter().map(|topic| topic.partitions[0].error_code).collect())
    })
}

#[test]
fn groups_are_listed_described_and_deleted_in_every_version() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::bind(settings(temp.path(), "")).unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    let mut member = alone(&server, "live");
    let mut plain = Member::new(&server);
    assert_eq!(plain.commit("plain", 7), 0, "it chooses its partitions itself");
    for version in 0..=6 {
        let stable = (0, "Stable".to_owned(), "range".to_owned(), 1);
        assert_eq!(describe(&mut client, version, "live"), stable);
        assert_eq!(describe(&mut client, version, "plain"), (0, "Empty".to_owned(), String::new(), 0));
        let code = if version < 6 { 0 } else { 69 };
        assert_eq!(describe(&mut client, version, "absent"), (code, "Dead".to_owned(), String::new(), 0));
    }
    for version in 0..=5 {
        assert_eq!(list(&mut client, version, &[], &[]), ["live", "plain"]);
    }
    assert_eq!(list(&mut client, 4, &["stable"], &[]), ["live"]);
    assert_eq!(list(&mut client, 5, &["Empty"], &["Classic"]), ["plain"]);
    assert_eq!(list(&mut client, 5, &[], &["consumer"]), Vec::<String>::new());
    for version in 0..=3 {
        assert_eq!(delete(&mut client, version, "live"), 68);
        assert_eq!(delete(&mut client, version, "plain"), 0);
        assert_eq!(delete(&mut client, version, "plain"), 69);
        assert_eq!(delete(&mut client, version, ""), 24);
        assert_eq!(plain.commit("plain", 7), 0);
    }
    assert_eq!(member.leave(5, "live"), (0, Some(0)));
    assert_eq!(describe(&mut client, 6, "live").1, "Empty");
    assert_eq!(delete(&mut client, 2, "live"), 0);
    assert_eq!(list(&mut client, 5, &[], &[]), ["plain"]);
    assert!(server.shutdown().unwrap());
    let server = Server::bind(settings(temp.path(), "")).unwrap();
    assert_eq!(list(&mut Client::new(server.address()), 5, &[], &[]), ["plain"]);
}

#[test]
fn offsets_that_members_read_on_from_are_not_deleted() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::bind(settings(temp.path(), "")).unwrap();
    let mut client = Client::new(server.address());
    client.topic("t");
    client.topic("u");
    let mut member = alone(&server, "g");
    assert_eq!(member.commit("g", 7), 0);
    assert_eq!(forget(&mut client, "g", &["t", "absent", "u"]), (0, vec![86, 3, 0]));
    assert_eq!(member.leave(5, "g").0, 0);
    assert_eq!(forget(&mut client, "g", &["t"]), (0, vec![0]));
    assert_eq!(forget(&mut client, "nobody", &["t"]).0, 69);
    assert_eq!(forget(&mut client, "", &["t"]).0, 24);
}
