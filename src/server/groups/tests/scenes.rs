//! What happens to groups, scene by scene.

use super::*;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn three_join_share_and_one_leaves() {
    let mut bench = Bench::new(LIMITS);
    let a = bench.join(consumer("a"));
    bench.pass(secs(2));
    let b = bench.join(consumer("b"));
    // Put off, since another one came.
    bench.pass(secs(2));
    assert_eq!((bench.joined(a), bench.group.state()), (None, State::PreparingRebalance));
    let c = bench.join(consumer("c"));
    bench.pass(secs(2));
    let a = bench.joined(a);
    assert_eq!(a, None, "b's coming put it off to 6 s");
    bench.pass(secs(4));
    let told: Vec<_> = [1, b, c].into_iter().map(|ticket| bench.joined(ticket).unwrap()).collect();
    assert!(told.iter().all(|told| told.code.is_none() && told.generation == 1 && told.leader == "a"));
    assert_eq!(told.iter().map(|told| told.members.len()).collect::<Vec<_>>(), [3, 0, 0]);
    assert_eq!(told[0].protocol.as_deref(), Some("range"));
    let asked = bench.sync(ask("b", 1));
    assert_eq!(bench.synced(asked), None);
    assert_eq!(bench.heartbeat("c", 1), ErrorCode::NONE, "while the leader is at it");
    let who = Identity { member_id: "c", instance_id: None };
    let committed = bench.event(|group, turn| group.check_commit(turn, who, 1));
    assert_eq!(committed, Err(ErrorCode::REBALANCE_IN_PROGRESS));
    let led = bench.sync(assign("a", 1, &["a", "b"]));
    assert_eq!(bench.synced(asked).unwrap().assignment, b"1:b");
    assert_eq!(bench.synced(led).unwrap().assignment, b"1:a");
    let late = bench.sync(ask("c", 1));
    assert_eq!(bench.synced(late).unwrap().assignment, b"", "whom the leader forgot has nothing");
    assert_eq!(bench.disk.kept.len(), 1);
    // One leaves; the others are told, and come back.
    assert_eq!(bench.event(|group, turn| group.leave(turn, &[who])), [ErrorCode::NONE]);
    assert_eq!(bench.heartbeat("a", 1), ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(bench.heartbeat("c", 1), ErrorCode::UNKNOWN_MEMBER_ID);
    let b = bench.join(again("b"));
    assert_eq!(bench.joined(b), None);
    let a = bench.join(again("a"));
    assert_eq!(bench.joined(b).unwrap().generation, 2);
    assert_eq!(bench.joined(a).unwrap().members.len(), 2);
    assert_eq!(bench.heartbeat("a", 1), ErrorCode::ILLEGAL_GENERATION);
}

#[test]
fn an_id_is_given_out_first_and_can_be_used_for_a_session() {
    let mut bench = Bench::new(LIMITS);
    let first = Join { takes_id_first: true, ..consumer("a") };
    let asked = bench.join(first);
    let told = bench.joined(asked).unwrap();
    assert_eq!((told.code, told.member_id.as_str()), (ErrorCode::MEMBER_ID_REQUIRED, "a"));
    assert_eq!(bench.heartbeat("a", 0), ErrorCode::UNKNOWN_MEMBER_ID);
    let asked = bench.join(Join { takes_id_first: true, ..consumer("late") });
    assert_eq!(bench.joined(asked).unwrap().member_id, "late");
    let a = bench.join(again("a"));
    bench.pass(secs(3));
    assert_eq!(bench.joined(a).unwrap().generation, 1);
    bench.pass(secs(7));
    let late = bench.join(again("late"));
    assert_eq!(bench.joined(late).unwrap().code, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn who_is_not_heard_of_is_out() {
    let mut bench = stable(&["a", "b"]);
    bench.pass(secs(9));
    assert_eq!(bench.heartbeat("a", 1), ErrorCode::NONE);
    bench.pass(secs(2));
    assert_eq!(bench.heartbeat("a", 1), ErrorCode::REBALANCE_IN_PROGRESS);
    let a = bench.join(again("a"));
    assert_eq!(bench.joined(a).unwrap().members.len(), 1);
    let a = bench.sync(assign("a", 2, &["a"]));
    assert_eq!(bench.synced(a).unwrap().assignment, b"2:a");
    bench.pass(secs(11));
    assert_eq!((bench.group.state(), bench.group.generation()), (State::Empty, 3));
    let kept = bench.disk.kept.last().unwrap();
    assert_eq!((kept.generation, kept.protocol.is_none(), kept.members.len()), (3, true, 0));
}

#[test]
fn who_does_not_join_again_is_out_when_the_others_have_waited() {
    let mut bench = stable(&["a", "b", "c"]);
    let a = bench.join(again("a"));
    for _ in 0..11 {
        bench.pass(secs(5));
        for id in ["b", "c"] {
            assert_eq!(bench.heartbeat(id, 1), ErrorCode::REBALANCE_IN_PROGRESS);
        }
    }
    let c = bench.join(again("c"));
    assert_eq!(bench.joined(a), None);
    bench.pass(secs(5));
    assert_eq!(bench.joined(a).unwrap().members.len(), 2);
    assert_eq!(bench.joined(c).unwrap().leader, "a");
    assert_eq!(bench.heartbeat("b", 1), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn a_leader_that_does_not_assign_is_out() {
    let mut bench = Bench::new(Limits { initial_delay: secs(0), ..LIMITS });
    let a = bench.join(consumer("a"));
    assert_eq!(bench.joined(a).unwrap().generation, 1);
    let b = bench.join(consumer("b"));
    let a = bench.join(again("a"));
    assert_eq!(bench.joined(a).unwrap().members.len(), 2);
    assert_eq!(bench.joined(b).unwrap().generation, 2);
    let asked = bench.sync(ask("b", 2));
    for _ in 0..11 {
        bench.pass(secs(5));
        assert_eq!(bench.heartbeat("a", 2), ErrorCode::NONE);
    }
    assert_eq!(bench.synced(asked), None);
    bench.pass(secs(5));
    assert_eq!(bench.synced(asked).unwrap().code, ErrorCode::REBALANCE_IN_PROGRESS);
    let b = bench.join(again("b"));
    let told = bench.joined(b).unwrap();
    assert_eq!((told.leader.as_str(), told.members.len()), ("b", 1));
}

#[test]
fn what_cannot_be_kept_is_not_told() {
    let mut bench = Bench::new(Limits { initial_delay: secs(0), ..LIMITS });
    let a = bench.join(consumer("a"));
    assert!(bench.joined(a).is_some());
    bench.disk.failure = Some(ErrorCode::NOT_COORDINATOR);
    let asked = bench.sync(assign("a", 1, &["a"]));
    assert_eq!(bench.synced(asked).unwrap().code, ErrorCode::NOT_COORDINATOR);
    assert_eq!(bench.group.state(), State::PreparingRebalance);
    bench.disk.failure = None;
    let a = bench.join(again("a"));
    assert_eq!(bench.joined(a).unwrap().generation, 2);
    let asked = bench.sync(assign("a", 2, &["a"]));
    assert_eq!(bench.synced(asked).unwrap().assignment, b"2:a");
}

#[test]
fn a_client_that_has_gone_is_not_waited_for() {
    let mut bench = stable(&["a"]);
    let b = bench.join(consumer("b"));
    bench.event(|group, turn| group.abandon(turn, b));
    let a = bench.join(again("a"));
    assert_eq!(bench.joined(a).unwrap().members.len(), 1, "nobody knows of b any more");
    // One that is known may come back, for a session.
    let a = bench.sync(assign("a", 2, &["a"]));
    assert!(bench.synced(a).is_some());
    let a = bench.join(again("a"));
    let told = bench.joined(a).unwrap();
    assert_eq!(told.generation, 3);
    let a = bench.sync(ask("a", 3));
    assert!(bench.synced(a).is_some(), "its leader, with nothing for anybody");
    let c = bench.join(consumer("c"));
    let a = bench.join(again("a"));
    assert_eq!(bench.joined(c).unwrap().generation, 4);
    assert!(bench.joined(a).is_some());
    let c = bench.sync(ask("c", 4));
    bench.event(|group, turn| group.abandon(turn, c));
    assert_eq!(bench.heartbeat("a", 4), ErrorCode::NONE);
    bench.pass(secs(9));
    assert_eq!(bench.heartbeat("a", 4), ErrorCode::NONE);
    bench.pass(secs(2));
    assert_eq!(bench.heartbeat("a", 4), ErrorCode::REBALANCE_IN_PROGRESS);
    assert_eq!(bench.answers, BTreeMap::new());
}

#[test]
fn a_member_with_an_instance_comes_back_as_who_it_was() {
    let with = |join: Join| Join { instance_id: Some("i".to_owned()), may_skip: true, ..join };
    let mut bench = Bench::new(Limits { initial_delay: secs(0), ..LIMITS });
    let a = bench.join(with(Join { takes_id_first: true, ..consumer("a1") }));
    assert_eq!(bench.joined(a).unwrap().generation, 1, "in one step");
    let a = bench.sync(Sync { instance_id: Some("i".to_owned()), ..assign("a1", 1, &["a1"]) });
    assert_eq!(bench.synced(a).unwrap().assignment, b"1:a1");
    let a = bench.join(with(consumer("a2")));
    let told = bench.joined(a).unwrap();
    assert_eq!((told.generation, told.leader.as_str(), told.skip_assignment), (1, "a2", true));
    assert_eq!(told.members.len(), 1);
    assert_eq!(bench.disk.kept.last().unwrap().members[0].id, "a2");
    let old = Identity { member_id: "a1", instance_id: Some("i") };
    let code = bench.event(|group, turn| group.heartbeat(turn, old, 1));
    assert_eq!(code, ErrorCode::FENCED_INSTANCE_ID);
    let a = bench.sync(ask("a2", 1));
    assert_eq!(bench.synced(a).unwrap().assignment, b"1:a1", "it stands");
    // An older client is told that another leads, so that it assigns nothing.
    let a = bench.join(Join { may_skip: false, ..with(consumer("a3")) });
    let told = bench.joined(a).unwrap();
    assert_eq!((told.generation, told.leader.as_str(), told.members.len()), (1, "a2", 0));
    // What cannot be kept has not happened.
    bench.disk.failure = Some(ErrorCode::NOT_COORDINATOR);
    let a = bench.join(with(consumer("a4")));
    assert_eq!(bench.joined(a).unwrap().code, ErrorCode::NOT_COORDINATOR);
    bench.disk.failure = None;
    assert_eq!(bench.heartbeat("a3", 1), ErrorCode::NONE);
    // With other protocols there is a new generation.
    let other = Join { protocols: vec![("sticky".to_owned(), b"s".to_vec())], ..with(consumer("a5")) };
    let a = bench.join(other);
    let told = bench.joined(a).unwrap();
    assert_eq!((told.generation, told.protocol.as_deref()), (2, Some("sticky")));
    // It leaves by the name of its instance, as an administrator asks.
    let by_instance = Identity { member_id: "", instance_id: Some("i") };
    let unknown = Identity { member_id: "", instance_id: Some("j") };
    let fenced = Identity { member_id: "a1", instance_id: Some("i") };
    let codes = bench.event(|group, turn| group.leave(turn, &[unknown, fenced, by_instance]));
    assert_eq!(codes, [ErrorCode::UNKNOWN_MEMBER_ID, ErrorCode::FENCED_INSTANCE_ID, ErrorCode::NONE]);
    assert_eq!(bench.group.state(), State::Empty);
}

#[test]
fn the_protocol_is_one_that_all_know() {
    let mut bench = Bench::new(LIMITS);
    let knows = |id: &str, names: &[&str]| Join {
        protocols: names.iter().map(|name| ((*name).to_owned(), name.as_bytes().to_vec())).collect(),
        ..consumer(id)
    };
    let none = bench.join(knows("x", &[]));
    assert_eq!(bench.joined(none).unwrap().code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let a = bench.join(knows("a", &["own", "range", "sticky"]));
    let b = bench.join(knows("b", &["sticky", "range"]));
    let c = bench.join(knows("c", &["sticky", "range"]));
    let other = bench.join(knows("d", &["own"]));
    assert_eq!(bench.joined(other).unwrap().code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let other = bench.join(Join { protocol_type: "connect".to_owned(), ..consumer("e") });
    assert_eq!(bench.joined(other).unwrap().code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    bench.pass(secs(6));
    for ticket in [a, b, c] {
        let told = bench.joined(ticket).unwrap();
        assert_eq!(told.protocol.as_deref(), Some("sticky"));
        assert!(told.members.iter().all(|(_, _, told)| told == b"sticky"));
    }
    let sync = Sync { protocol: Some("range".to_owned()), ..ask("a", 1) };
    let sync = bench.sync(sync);
    assert_eq!(bench.synced(sync).unwrap().code, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
}

#[test]
fn a_full_group_takes_no_more() {
    let mut bench = stable(&["a", "b", "c", "d", "e"]);
    let f = bench.join(consumer("f"));
    assert_eq!(bench.joined(f).unwrap().code, ErrorCode::GROUP_MAX_SIZE_REACHED);
    assert_eq!(bench.group.state(), State::Stable);
}

#[test]
fn members_go_on_after_a_restart() {
    let mut bench = stable(&["a", "b"]);
    let kept = bench.disk.kept.pop().unwrap();
    bench.group = Group::of_kept(kept.clone(), LIMITS, bench.now);
    assert_eq!(bench.group.kept(), kept);
    assert_eq!(bench.heartbeat("b", 1), ErrorCode::NONE);
    let a = bench.sync(ask("a", 1));
    assert_eq!(bench.synced(a).unwrap().assignment, b"1:a");
    let who = Identity { member_id: "a", instance_id: None };
    assert_eq!(bench.event(|group, turn| group.check_commit(turn, who, 1)), Ok(()));
    assert_eq!(
        bench.event(|group, turn| group.check_commit(turn, who, 2)),
        Err(ErrorCode::ILLEGAL_GENERATION)
    );
    let nobody = Identity { member_id: "", instance_id: None };
    let committed = bench.event(|group, turn| group.check_commit(turn, nobody, -1));
    assert_eq!(committed, Err(ErrorCode::UNKNOWN_MEMBER_ID), "the group has members");
    bench.pass(secs(11));
    assert_eq!(bench.group.state(), State::Empty);
    assert_eq!(bench.event(|group, turn| group.check_commit(turn, nobody, -1)), Ok(()));
}
