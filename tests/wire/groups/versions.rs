//! Every version of what members ask.

use stratalog::{protocol::ApiKey, server::Server};

use super::*;

fn last(api: ApiKey) -> i16 {
    api.advertised().unwrap().last
}

#[test]
fn a_group_of_one_in_every_version() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::bind(settings(temp.path(), "")).unwrap();
    Client::new(server.address()).topic("t");
    for version in 0..=last(ApiKey::JoinGroup) {
        let group = format!("g{version}");
        let other = |api| version.min(last(api));
        let mut member = Member::new(&server);
        assert_eq!(member.heartbeat(other(ApiKey::Heartbeat), &group), 25, "version {version}");
        assert_eq!(member.join(version, &group), 0, "version {version}");
        assert_eq!((member.generation, member.led.len()), (1, 1));
        assert!(member.id.starts_with("wire-"));
        assert_eq!(member.commit(&group, 1), 27, "there is no assignment yet");
        let assigned = member.sync(other(ApiKey::SyncGroup), &group);
        assert_eq!(assigned, (0, format!("for {}", member.id).into_bytes()));
        assert_eq!(member.heartbeat(other(ApiKey::Heartbeat), &group), 0);
        assert_eq!(member.commit(&group, 1), 0);
        let leave = other(ApiKey::LeaveGroup);
        let left = member.leave(leave, &group);
        assert_eq!(left, (0, (leave >= 3).then_some(0)));
        let again = member.leave(leave, &group);
        assert_eq!(again, if leave >= 3 { (0, Some(25)) } else { (25, None) });
        assert_eq!(member.commit(&group, 2), 25);
        assert_eq!(member.sync(other(ApiKey::SyncGroup), &group).0, 25);
    }
}

#[test]
fn what_is_wrong_is_said_in_every_version() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::bind(settings(temp.path(), "group.max.session.timeout.ms=50000\n")).unwrap();
    for version in 0..=last(ApiKey::JoinGroup) {
        let mut member = Member::new(&server);
        assert_eq!(member.join(version, ""), 24);
        assert_eq!(member.join(version, "g"), 26, "its session is too long");
        let leave = version.min(last(ApiKey::LeaveGroup));
        assert_eq!(member.leave(leave, "").0, 24);
        assert_eq!(member.heartbeat(version.min(last(ApiKey::Heartbeat)), ""), 24);
        assert_eq!(member.sync(version.min(last(ApiKey::SyncGroup)), "").0, 24);
        member.id = "unknown".to_owned();
        let join = JoinGroupRequest {
            group_id: "g",
            session_timeout_ms: 10_000,
            member_id: "unknown",
            protocol_type: "consumer",
            ..Default::default()
        };
        let code = call(&mut member.client, version, &join, |body| {
            decode::<JoinGroupResponse<'_>>(body, version).error_code
        });
        assert_eq!(code, 25);
        let none = JoinGroupRequest { member_id: "", ..join };
        let code = call(&mut member.client, version, &none, |body| {
            decode::<JoinGroupResponse<'_>>(body, version).error_code
        });
        assert_eq!(code, 23, "it knows no protocol");
    }
}
