//! Groups without sockets, and with a clock that goes when it is told to.

mod coordinator;
mod properties;
mod scenes;

use std::{collections::BTreeMap, time::Duration};

use super::{
    group::{Answer, Group, Joined, Keep, Limits, State, Synced, Ticket, Turn},
    join::Join,
    requests::{Identity, Sync},
};
use crate::{
    Timestamp,
    server::{committed_offsets::KeptGroup, error_code::ErrorCode},
};

/// What was kept, and whether the next one can be.
#[derive(Debug, Default)]
struct Disk {
    kept: Vec<KeptGroup>,
    failure: Option<ErrorCode>,
}

impl Keep for Disk {
    fn keep(&mut self, group: &KeptGroup, _: bool) -> Result<(), ErrorCode> {
        if let Some(code) = self.failure {
            return Err(code);
        }
        self.kept.push(group.clone());
        Ok(())
    }
}

/// A group with everything around it.
#[derive(Debug)]
struct Bench {
    group: Group,
    disk: Disk,
    now: Duration,
    next_ticket: Ticket,
    answers: BTreeMap<Ticket, Answer>,
}

const LIMITS: Limits = Limits { max_size: 5, initial_delay: Duration::from_secs(3) };

impl Bench {
    fn new(limits: Limits) -> Self {
        Self {
            group: Group::new(limits, Timestamp::from_millis(0)),
            disk: Disk::default(),
            now: Duration::from_secs(1000),
            next_ticket: 0,
            answers: BTreeMap::new(),
        }
    }

    /// As the coordinator does it.
    fn event<R>(&mut self, event: impl FnOnce(&mut Group, &mut Turn<'_>) -> R) -> R {
        let wall = Timestamp::from_millis(i64::try_from(self.now.as_millis()).unwrap());
        let mut turn = Turn { now: self.now, wall, keep: &mut self.disk, answers: Vec::new() };
        let result = event(&mut self.group, &mut turn);
        self.group.tick(&mut turn);
        for (ticket, answer) in turn.answers {
            assert!(self.answers.insert(ticket, answer).is_none(), "a request is answered once");
        }
        result
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        self.next_ticket
    }

    fn join(&mut self, join: Join) -> Ticket {
        let ticket = self.ticket();
        self.event(|group, turn| group.join(turn, ticket, join));
        ticket
    }

    fn sync(&mut self, sync: Sync) -> Ticket {
        let ticket = self.ticket();
        self.event(|group, turn| group.sync(turn, ticket, sync));
        ticket
    }

    fn heartbeat(&mut self, id: &str, generation: i32) -> ErrorCode {
        let who = Identity { member_id: id, instance_id: None };
        self.event(|group, turn| group.heartbeat(turn, who, generation))
    }

    /// Time goes by, with a look at the group whenever it is due.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.group.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.event(|_, _| ());
            assert!(self.group.next_due() != Some(due), "what is due is done");
        }
        self.now = end;
    }

    fn joined(&mut self, ticket: Ticket) -> Option<Joined> {
        match self.answers.remove(&ticket) {
            Some(Answer::Join(joined)) => Some(joined),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    fn synced(&mut self, ticket: Ticket) -> Option<Synced> {
        match self.answers.remove(&ticket) {
            Some(Answer::Sync(synced)) => Some(synced),
            None => None,
            other => panic!("{other:?}"),
        }
    }
}

/// A consumer that joins in one step, under this name.
fn consumer(id: &str) -> Join {
    Join {
        client_id: "c".to_owned(),
        client_host: "/127.0.0.1".to_owned(),
        session_timeout: Duration::from_secs(10),
        rebalance_timeout: Duration::from_secs(60),
        protocol_type: "consumer".to_owned(),
        protocols: vec![("range".to_owned(), b"r".to_vec()), ("sticky".to_owned(), b"s".to_vec())],
        new_id: id.to_owned(),
        ..Join::default()
    }
}

/// The same, that knows its name.
fn again(id: &str) -> Join {
    Join { member_id: id.to_owned(), ..consumer("never used") }
}

fn ask(id: &str, generation: i32) -> Sync {
    Sync { member_id: id.to_owned(), generation, ..Sync::default() }
}

fn assign(id: &str, generation: i32, all: &[&str]) -> Sync {
    let assignments =
        all.iter().map(|id| ((*id).to_owned(), format!("{generation}:{id}").into_bytes())).collect();
    Sync { assignments, ..ask(id, generation) }
}

/// A stable group of these, in generation 1, the first of them its leader.
fn stable(ids: &[&str]) -> Bench {
    let mut bench = Bench::new(LIMITS);
    let tickets: Vec<_> = ids.iter().map(|id| bench.join(consumer(id))).collect();
    bench.pass(Duration::from_secs(6));
    for ticket in tickets {
        assert_eq!(bench.joined(ticket).unwrap().code, ErrorCode::NONE);
    }
    let mut asked: Vec<_> = ids.iter().skip(1).map(|id| bench.sync(ask(id, 1))).collect();
    asked.push(bench.sync(assign(ids[0], 1, ids)));
    for ticket in asked {
        assert_eq!(bench.synced(ticket).unwrap().code, ErrorCode::NONE);
    }
    assert_eq!(bench.group.state(), State::Stable);
    for id in ids {
        bench.heartbeat(id, 1);
    }
    bench
}
