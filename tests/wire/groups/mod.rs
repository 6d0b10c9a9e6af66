//! Consumer groups: members that join, share, leave, come back and are described.

mod admin;
#[cfg(feature = "cli")]
mod kills;
mod members;
mod versions;

use stratalog::{
    protocol::{
        ApiKey, Message, Request,
        messages::{
            heartbeat::{HeartbeatRequest, HeartbeatResponse},
            join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse},
            leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity},
            offset_commit::{
                OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
                OffsetCommitResponse,
            },
            sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse},
        },
    },
    server::{Layers, Server, Settings},
};

use crate::client::{Client, decode};

/// Over a directory, where a group waits for nobody who may come.
fn settings(dir: &std::path::Path, more: &str) -> Settings {
    let mut layers = Layers::new();
    layers.flag("listeners", "listeners", "PLAINTEXT://127.0.0.1:0");
    layers.flag("log.dirs", "log.dirs", dir.to_str().unwrap());
    layers.properties("f", "group.initial.rebalance.delay.ms=0\noffsets.topic.num.partitions=2\n");
    layers.properties("more", more);
    layers.resolve().unwrap()
}

/// Sends a request and takes from the body of its answer what is wanted.
fn call<'a, R: Request<'a>, T>(
    client: &mut Client,
    version: i16,
    request: &R,
    take: impl FnOnce(&[u8]) -> T,
) -> T {
    let id = client.send(version, request);
    take(&client.frame_for(id, <R as Message<'a>>::API, version))
}

/// A member, and the connection that it asks on.
struct Member {
    client: Client,
    id: String,
    instance: Option<&'static str>,
    generation: i32,
    /// All members, where it leads.
    led: Vec<String>,
}

impl Member {
    fn new(server: &Server) -> Self {
        let client = Client::new(server.address());
        Self { client, id: String::new(), instance: None, generation: -1, led: Vec::new() }
    }

    fn send_join(&mut self, version: i16, group: &str) -> i32 {
        let subscription = b"\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff";
        let request = JoinGroupRequest {
            group_id: group,
            session_timeout_ms: 60_000,
            rebalance_timeout_ms: 120_000,
            member_id: &self.id,
            group_instance_id: self.instance,
            protocol_type: "consumer",
            protocols: vec![JoinGroupRequestProtocol { name: "range", metadata: subscription }],
            ..Default::default()
        };
        self.client.send(version, &request)
    }

    /// The code.
    fn joined(&mut self, id: i32, version: i16) -> i16 {
        let body = self.client.frame_for(id, ApiKey::JoinGroup, version);
        let told: JoinGroupResponse<'_> = decode(&body, version);
        if told.error_code == 0 || told.error_code == 79 {
            self.id = told.member_id.into_owned();
        }
        self.generation = told.generation_id;
        self.led = told.members.iter().map(|member| member.member_id.clone().into_owned()).collect();
        told.error_code
    }

    /// Joins, in two steps where the version has it so, and waits for the answer.
    fn join(&mut self, version: i16, group: &str) -> i16 {
        let id = self.send_join(version, group);
        match self.joined(id, version) {
            79 => {
                let id = self.send_join(version, group);
                self.joined(id, version)
            }
            code => code,
        }
    }

    fn send_sync(&mut self, version: i16, group: &str) -> i32 {
        let assignments: Vec<_> =
            self.led.iter().map(|id| (id.clone(), format!("for {id}").into_bytes())).collect();
        let request = SyncGroupRequest {
            group_id: group,
            generation_id: self.generation,
            member_id: &self.id,
            group_instance_id: self.instance,
            protocol_type: Some("consumer"),
            protocol_name: Some("range"),
            assignments: assignments
                .iter()
                .map(|(member_id, assignment)| SyncGroupRequestAssignment { member_id, assignment })
                .collect(),
        };
        self.client.send(version, &request)
    }

    fn synced(&mut self, id: i32, version: i16) -> (i16, Vec<u8>) {
        let body = self.client.frame_for(id, ApiKey::SyncGroup, version);
        let told: SyncGroupResponse<'_> = decode(&body, version);
        (told.error_code, told.assignment.into_owned())
    }

    fn sync(&mut self, version: i16, group: &str) -> (i16, Vec<u8>) {
        let id = self.send_sync(version, group);
        self.synced(id, version)
    }

    fn heartbeat(&mut self, version: i16, group: &str) -> i16 {
        let request = HeartbeatRequest {
            group_id: group,
            generation_id: self.generation,
            member_id: &self.id,
            group_instance_id: self.instance,
        };
        call(&mut self.client, version, &request, |body| {
            decode::<HeartbeatResponse>(body, version).error_code
        })
    }

    /// The code of all and that of the one, where the version has it.
    fn leave(&mut self, version: i16, group: &str) -> (i16, Option<i16>) {
        let member =
            MemberIdentity { member_id: &self.id, group_instance_id: self.instance, reason: Some("enough") };
        let request = LeaveGroupRequest { group_id: group, member_id: &self.id, members: vec![member] };
        call(&mut self.client, version, &request, |body| {
            let told: LeaveGroupResponse<'_> = decode(body, version);
            (told.error_code, told.members.first().map(|member| member.error_code))
        })
    }

    /// Commits an offset in partition 0 of `t`.
    fn commit(&mut self, group: &str, offset: i64) -> i16 {
        let partition = OffsetCommitRequestPartition {
            committed_offset: offset,
            ..OffsetCommitRequestPartition::default()
        };
        let topic = OffsetCommitRequestTopic { name: "t", partitions: vec![partition], ..Default::default() };
        let request = OffsetCommitRequest {
            group_id: group,
            generation_id_or_member_epoch: self.generation,
            member_id: &self.id,
            group_instance_id: self.instance,
            topics: vec![topic],
            ..Default::default()
        };
        call(&mut self.client, 7, &request, |body| {
            decode::<OffsetCommitResponse<'_>>(body, 7).topics[0].partitions[0].error_code
        })
    }
}

/// A group of one, which has its assignment.
fn alone(server: &Server, group: &str) -> Member {
    let mut member = Member::new(server);
    assert_eq!(member.join(9, group), 0);
    assert_eq!(member.sync(5, group).0, 0);
    member
}
