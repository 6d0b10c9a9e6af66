//! Several members, and what happens to them.

use stratalog::{
    protocol::messages::describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse},
    server::Server,
};

use super::*;

/// Asks until something is so, however slow the machine is.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("never: {what}");
}

/// How many a group has.
fn members(client: &mut Client, group: &str) -> usize {
    let request = DescribeGroupsRequest { groups: vec![group], ..Default::default() };
    call(client, 5, &request, |body| decode::<DescribeGroupsResponse<'_>>(body, 5).groups[0].members.len())
}

#[test]
fn three_share_and_go_on_after_a_kill_of_the_server() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::bind(settings(temp.path(), "")).unwrap();
    Client::new(server.address()).topic("t");
    let mut first = alone(&server, "g");
    let mut others = [Member::new(&server), Member::new(&server)];
    let mut waiting = Vec::new();
    for (at, other) in others.iter_mut().enumerate() {
        let id = other.send_join(5, "g");
        assert_eq!(other.joined(id, 5), 79, "it is told its id first");
        let id = other.send_join(5, "g");
        waiting.push(id);
        until("the first is told", || first.heartbeat(4, "g") == 27);
        // It is waited for until both have come: the second one's id was given out before.
        if at == 0 {
            assert_eq!(first.commit("g", 3), 0, "what was read before can be committed");
        }
    }
    // The third may still be on its way: it then joins a group of two, and there is one more generation.
    let mut rounds = 0;
    loop {
        let id = first.send_join(9, "g");
        assert_eq!(first.joined(id, 9), 0);
        if first.led.len() == 3 {
            break;
        }
        until("the third has come", || first.heartbeat(4, "g") == 27);
        rounds += 1;
        assert!(rounds < 2);
    }
    for (other, id) in others.iter_mut().zip(&waiting) {
        assert_eq!(other.joined(*id, 5), 0);
        if other.generation != first.generation {
            let id = other.send_join(5, "g");
            assert_eq!(other.joined(id, 5), 0);
        }
        assert!(other.led.is_empty());
    }
    let asked: Vec<_> = others.iter_mut().map(|other| other.send_sync(3, "g")).collect();
    assert_eq!(first.sync(5, "g").1, format!("for {}", first.id).into_bytes());
    for (other, id) in others.iter_mut().zip(asked) {
        let assigned = format!("for {}", other.id).into_bytes();
        assert_eq!(other.synced(id, 3), (0, assigned));
    }
    drop(server);

    let server = Server::bind(settings(temp.path(), "")).unwrap();
    for member in others.iter_mut().chain([&mut first]) {
        member.client = Client::new(server.address());
        assert_eq!(member.heartbeat(4, "g"), 0, "it is as it was");
    }
    assert_eq!(first.commit("g", 4), 0);
    assert_eq!(others[0].sync(5, "g").1, format!("for {}", others[0].id).into_bytes());
    assert_eq!(others[1].leave(5, "g"), (0, Some(0)));
    assert_eq!(first.heartbeat(4, "g"), 27);
    assert!(server.shutdown().unwrap());
}

#[test]
fn a_member_that_is_silent_is_out_and_one_that_has_gone_is_not_waited_for() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::bind(settings(temp.path(), "group.min.session.timeout.ms=1\n")).unwrap();
    let mut stays = alone(&server, "g");
    // One whose session is short, and that asks once more, in vain.
    let mut silent = Member::new(&server);
    let join = JoinGroupRequest {
        group_id: "g",
        session_timeout_ms: 300,
        rebalance_timeout_ms: 120_000,
        protocol_type: "consumer",
        protocols: vec![JoinGroupRequestProtocol { name: "range", metadata: b"" }],
        ..Default::default()
    };
    let id = silent.client.send(2, &join);
    until("it is there", || stays.heartbeat(4, "g") == 27);
    assert_eq!(stays.join(9, "g"), 0);
    assert_eq!((silent.joined(id, 2), stays.led.len()), (0, 2));
    until("it is out", || stays.heartbeat(4, "g") == 27);
    assert_eq!(stays.join(9, "g"), 0);
    assert_eq!((stays.led.len(), stays.sync(5, "g").0), (1, 0));
    assert_eq!(silent.heartbeat(4, "g"), 25);
    // One that goes while it waits.
    let mut gone = Member::new(&server);
    gone.send_join(0, "g");
    until("it is there", || stays.heartbeat(4, "g") == 27);
    drop(gone);
    let mut client = Client::new(server.address());
    until("only the other is left", || members(&mut client, "g") == 1);
    assert_eq!(stays.join(9, "g"), 0);
    assert_eq!(stays.led.len(), 1);
    assert_eq!(stays.sync(5, "g").0, 0);
}

#[test]
fn a_static_member_comes_back_under_another_id() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::bind(settings(temp.path(), "")).unwrap();
    let mut old = Member::new(&server);
    old.instance = Some("i");
    assert_eq!(old.join(5, "g"), 0);
    assert!(old.id.starts_with("i-"));
    let was = old.sync(5, "g");
    let mut new = Member::new(&server);
    new.instance = Some("i");
    let id = new.send_join(9, "g");
    assert_eq!(new.joined(id, 9), 0);
    assert_eq!((new.generation, new.led.len()), (1, 1));
    assert_eq!(new.sync(5, "g"), was, "what it had stands");
    assert_eq!((old.heartbeat(4, "g"), new.heartbeat(4, "g")), (82, 0));
    let unnamed = MemberIdentity { member_id: "", group_instance_id: Some("i"), reason: None };
    let request = LeaveGroupRequest { group_id: "g", members: vec![unnamed], ..Default::default() };
    let code = call(&mut old.client, 5, &request, |body| {
        decode::<LeaveGroupResponse<'_>>(body, 5).members[0].error_code
    });
    assert_eq!((code, new.heartbeat(4, "g")), (0, 25));
}

#[test]
fn who_waits_is_answered_when_the_server_stops() {
    let temp = tempfile::tempdir().unwrap();
    let server = Server::bind(settings(temp.path(), "")).unwrap();
    let mut stays = alone(&server, "g");
    let mut waits = Member::new(&server);
    let id = waits.send_join(3, "g");
    until("it is there", || stays.heartbeat(4, "g") == 27);
    assert!(server.shutdown().unwrap());
    assert_eq!(waits.joined(id, 3), 16, "it looks for the coordinator anew");
}
