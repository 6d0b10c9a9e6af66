//! Members at work while the server is killed and started again: what a group has committed never goes backwards.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use stratalog::protocol::{
    self,
    messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse},
    wire::Writer,
};

use super::*;
use crate::serve::serve;

const MEMBERS: usize = 3;
const GROUPS: [&str; 2] = ["g", "h"];
const KILLS: usize = 3;
const PARTITIONS: u8 = 4;

/// The newest offset that was acknowledged, by group and partition.
type Ledger = Mutex<BTreeMap<(&'static str, u8), i64>>;

/// The body of the answer; `None` where the connection broke.
fn ask<'a, R: Request<'a>>(stream: &mut TcpStream, version: i16, request: &R) -> Option<Vec<u8>> {
    let mut writer = Writer::new();
    protocol::write_request(&mut writer, 1, Some("wire"), version, request).unwrap();
    stream.write_all(writer.bytes()).ok()?;
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    stream.read_exact(&mut frame).ok()?;
    let (_, body) = protocol::read_response_header(&frame, <R as Message<'a>>::API, version).unwrap();
    Some(body.rest().to_vec())
}

/// A member: what it is called in its group, and its connection.
struct Worker<'a> {
    group: &'static str,
    stream: TcpStream,
    id: String,
    ledger: &'a Ledger,
    is_over: &'a AtomicBool,
}

impl Worker<'_> {
    /// The generation, and what it was assigned. `None` in vain: to be tried once more.
    fn join(&mut self) -> Option<(i32, Vec<u8>)> {
        let join = JoinGroupRequest {
            group_id: self.group,
            session_timeout_ms: 2000,
            rebalance_timeout_ms: 2000,
            member_id: &self.id,
            protocol_type: "consumer",
            protocols: vec![JoinGroupRequestProtocol { name: "range", metadata: b"" }],
            ..Default::default()
        };
        let body = ask(&mut self.stream, 5, &join)?;
        let told: JoinGroupResponse<'_> = decode(&body, 5);
        self.id = if matches!(told.error_code, 0 | 79) {
            told.member_id.clone().into_owned()
        } else {
            String::new()
        };
        if told.error_code != 0 {
            return None;
        }
        let share = |at: usize| -> Vec<u8> {
            (0..PARTITIONS).filter(|number| usize::from(*number) % told.members.len() == at).collect()
        };
        let shares: Vec<_> = (0..told.members.len()).map(share).collect();
        let assignments = told.members.iter().zip(&shares);
        let sync = SyncGroupRequest {
            group_id: self.group,
            generation_id: told.generation_id,
            member_id: &told.member_id,
            assignments: assignments
                .map(|(member, assignment)| SyncGroupRequestAssignment {
                    member_id: &member.member_id,
                    assignment,
                })
                .collect(),
            ..Default::default()
        };
        let body = ask(&mut self.stream, 3, &sync)?;
        let synced: SyncGroupResponse<'_> = decode(&body, 3);
        (synced.error_code == 0).then(|| (told.generation_id, synced.assignment.into_owned()))
    }

    /// Goes on from what was committed, until the group or the connection is another.
    fn work(&mut self, generation: i32, mine: &[u8]) -> Option<()> {
        let mut next = BTreeMap::new();
        for number in mine {
            let known = self.ledger.lock().unwrap().get(&(self.group, *number)).copied().unwrap_or(-1);
            let topic = OffsetFetchRequestTopic { name: "t", partition_indexes: vec![i32::from(*number)] };
            let request =
                OffsetFetchRequest { group_id: self.group, topics: Some(vec![topic]), ..Default::default() };
            let body = ask(&mut self.stream, 5, &request)?;
            let told: OffsetFetchResponse<'_> = decode(&body, 5);
            let found = told.topics[0].partitions[0].committed_offset;
            assert!(found >= known, "{} {number}: {found} after {known} was acknowledged", self.group);
            next.insert(*number, found + 1);
        }
        while !self.is_over.load(Ordering::Relaxed) {
            let heartbeat = HeartbeatRequest {
                group_id: self.group,
                generation_id: generation,
                member_id: &self.id,
                ..Default::default()
            };
            let body = ask(&mut self.stream, 3, &heartbeat)?;
            if decode::<HeartbeatResponse>(&body, 3).error_code != 0 {
                return Some(());
            }
            for (number, offset) in &mut next {
                let partition = OffsetCommitRequestPartition {
                    partition_index: i32::from(*number),
                    committed_offset: *offset,
                    ..Default::default()
                };
                let topic =
                    OffsetCommitRequestTopic { name: "t", partitions: vec![partition], ..Default::default() };
                let request = OffsetCommitRequest {
                    group_id: self.group,
                    generation_id_or_member_epoch: generation,
                    member_id: &self.id,
                    topics: vec![topic],
                    ..Default::default()
                };
                let body = ask(&mut self.stream, 7, &request)?;
                let told: OffsetCommitResponse<'_> = decode(&body, 7);
                if told.topics[0].partitions[0].error_code != 0 {
                    return Some(());
                }
                let mut ledger = self.ledger.lock().unwrap();
                let newest = ledger.entry((self.group, *number)).or_insert(*offset);
                *newest = (*newest).max(*offset);
                *offset += 1;
            }
        }
        Some(())
    }
}

fn run(group: &'static str, address: &Mutex<SocketAddr>, ledger: &Ledger, is_over: &AtomicBool) {
    let mut id = String::new();
    while !is_over.load(Ordering::Relaxed) {
        let to = *address.lock().unwrap();
        let Ok(stream) = TcpStream::connect(to) else {
            thread::sleep(Duration::from_millis(1));
            continue;
        };
        let mut worker = Worker { group, stream, id, ledger, is_over };
        for _ in 0..20 {
            if let Some((generation, mine)) = worker.join()
                && worker.work(generation, &mine).is_none()
            {
                break;
            }
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        id = worker.id;
    }
}

#[test]
fn what_was_committed_never_goes_backwards() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("data");
    let arguments = [
        "--override",
        "num.partitions=4",
        "--override",
        "group.min.session.timeout.ms=1",
        "--override",
        "group.initial.rebalance.delay.ms=0",
    ];
    let mut served = serve(&[], &dir, &arguments);
    Client::new(served.address).topic("t");
    let address = Mutex::new(served.address);
    let (ledger, is_over) = (Ledger::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        for group in GROUPS {
            for _ in 0..MEMBERS {
                scope.spawn(|| run(group, &address, &ledger, &is_over));
            }
        }
        let sum = || ledger.lock().unwrap().values().sum::<i64>();
        for round in 0..=KILLS {
            // All of them get on, however slow the machine is.
            let before = sum();
            for _ in 0..60_000 {
                let ledger = ledger.lock().unwrap();
                if ledger.len() == GROUPS.len() * usize::from(PARTITIONS)
                    && ledger.values().sum::<i64>() > before + 20
                {
                    break;
                }
                drop(ledger);
                thread::sleep(Duration::from_millis(1));
            }
            if sum() <= before {
                is_over.store(true, Ordering::Relaxed);
                panic!("nothing is committed any more");
            }
            if round < KILLS {
                served.kill();
                served = serve(&[], &dir, &arguments);
                *address.lock().unwrap() = served.address;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(ledger.lock().unwrap().len(), GROUPS.len() * usize::from(PARTITIONS));
}
