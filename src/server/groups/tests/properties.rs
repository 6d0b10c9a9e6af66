//! Whatever members, clients and disks do: what holds of a group all the time.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The longest that any member wants to have for a rebalance; nobody waits for longer.
const LONGEST: Duration = Duration::from_secs(60);

/// What is done next: by whom, what, and how long after.
type Step = (usize, u8, u64);

/// A client of the group.
#[derive(Debug, Default)]
struct Client {
    instance_id: Option<String>,
    /// What it believes to be.
    id: String,
    generation: i32,
    /// All members, where it leads.
    led: Option<Vec<String>>,
    waits: Option<(Ticket, Duration)>,
}

#[derive(Debug)]
struct Play {
    bench: Bench,
    clients: Vec<Client>,
    next_id: u32,
    /// Who led a generation, and what each member was to have by what it is called there.
    led: BTreeMap<i32, BTreeMap<String, Vec<u8>>>,
    /// Answers that mean something to their client at once.
    asked_in: BTreeMap<Ticket, (usize, i32, String)>,
}

impl Play {
    fn step(&mut self, (who, what, ms): Step) {
        self.pass(Duration::from_millis(ms));
        let who = who % self.clients.len();
        match what {
            0..=2 => self.join(who),
            3..=5 => self.sync(who),
            6 | 7 => {
                let client = &self.clients[who];
                let member = Identity { member_id: &client.id, instance_id: client.instance_id.as_deref() };
                let generation = client.generation;
                let state = self.bench.group.state();
                let code = self.bench.event(|group, turn| group.heartbeat(turn, member, generation));
                if code.is_none() {
                    assert!(matches!(state, State::Stable | State::CompletingRebalance));
                }
            }
            8 => {
                let client = &self.clients[who];
                let member = Identity { member_id: &client.id, instance_id: client.instance_id.as_deref() };
                self.bench.event(|group, turn| group.leave(turn, &[member]));
            }
            9 => self.gone(who),
            10 => {
                self.gone(who);
                self.clients[who].id.clear();
            }
            11 => self.bench.disk.failure = Some(ErrorCode::NOT_COORDINATOR),
            12 => self.bench.disk.failure = None,
            _ => self.restart(),
        }
        self.look();
    }

    /// The connection of a client breaks.
    fn gone(&mut self, who: usize) {
        if let Some((ticket, _)) = self.clients[who].waits.take() {
            self.bench.event(|group, turn| group.abandon(turn, ticket));
        }
    }

    fn restart(&mut self) {
        for who in 0..self.clients.len() {
            self.clients[who].waits = None;
        }
        let limits = self.bench.group.limits;
        self.bench.group = match self.bench.disk.kept.last() {
            Some(kept) => Group::of_kept(kept.clone(), limits, self.bench.now),
            None => Group::new(limits, Timestamp::from_millis(0)),
        };
    }

    fn join(&mut self, who: usize) {
        if self.clients[who].waits.is_some() {
            return;
        }
        self.next_id += 1;
        let client = &self.clients[who];
        let seconds = [5, 20, 60][who % 3];
        let join = Join {
            member_id: client.id.clone(),
            instance_id: client.instance_id.clone(),
            rebalance_timeout: Duration::from_secs(seconds),
            takes_id_first: who.is_multiple_of(2),
            may_skip: true,
            ..consumer(&format!("m{}", self.next_id))
        };
        let ticket = self.bench.join(join);
        self.clients[who].waits = Some((ticket, self.bench.now));
    }

    fn sync(&mut self, who: usize) {
        let client = &mut self.clients[who];
        if client.waits.is_some() || client.id.is_empty() || client.generation < 1 {
            return;
        }
        let generation = client.generation;
        let led = client.led.take().unwrap_or_default();
        let is_completing = self.bench.group.state() == State::CompletingRebalance;
        let leads = is_completing
            && self.bench.group.generation() == generation
            && self.bench.group.leader.as_deref() == Some(client.id.as_str());
        let assignments: Vec<_> =
            led.iter().map(|id| (id.clone(), format!("{generation}:{id}").into_bytes())).collect();
        if leads {
            self.led.insert(generation, assignments.iter().cloned().collect());
        }
        let sync =
            Sync { assignments, instance_id: client.instance_id.clone(), ..ask(&client.id, generation) };
        let id = client.id.clone();
        let ticket = self.bench.sync(sync);
        self.asked_in.insert(ticket, (who, generation, id));
        self.clients[who].waits = Some((ticket, self.bench.now));
    }

    /// In steps from one time that means something to the next.
    fn pass(&mut self, time: Duration) {
        let end = self.bench.now + time;
        while let Some(due) = self.bench.group.next_due().filter(|due| *due <= end) {
            self.bench.pass(due.saturating_sub(self.bench.now));
            self.look();
        }
        self.bench.pass(end.saturating_sub(self.bench.now));
        self.look();
    }

    /// Answers go to their clients, and everything is as it has to be.
    fn look(&mut self) {
        for who in 0..self.clients.len() {
            let Some((ticket, since)) = self.clients[who].waits else { continue };
            let Some(answer) = self.bench.answers.remove(&ticket) else {
                assert!(self.bench.now <= since + LONGEST, "client {who} waits for too long");
                continue;
            };
            self.clients[who].waits = None;
            match answer {
                Answer::Join(joined) => self.joined(who, joined),
                Answer::Sync(synced) => self.synced(ticket, &synced),
            }
        }
        // What is left was for those who have gone.
        self.bench.answers.clear();
        self.group();
    }

    fn joined(&mut self, who: usize, joined: Joined) {
        let client = &mut self.clients[who];
        match joined.code {
            ErrorCode::NONE => {
                assert!(joined.generation >= 1);
                let is_leader = joined.leader == joined.member_id;
                assert!(is_leader || joined.members.is_empty());
                assert!(
                    joined.members.is_empty()
                        || joined.members.iter().any(|(id, ..)| *id == joined.member_id)
                );
                client.id = joined.member_id;
                client.generation = joined.generation;
                client.led = is_leader.then(|| joined.members.into_iter().map(|(id, ..)| id).collect());
            }
            ErrorCode::MEMBER_ID_REQUIRED => client.id = joined.member_id,
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_INSTANCE_ID => client.id.clear(),
            ErrorCode::GROUP_MAX_SIZE_REACHED
            | ErrorCode::REBALANCE_IN_PROGRESS
            | ErrorCode::NOT_COORDINATOR => {}
            code => panic!("{code:?}"),
        }
    }

    /// Who is told an assignment is told the one that its generation's leader gave it, and after that was kept.
    fn synced(&mut self, ticket: Ticket, synced: &Synced) {
        let (who, generation, id) = self.asked_in.remove(&ticket).unwrap();
        if !synced.code.is_none() {
            return;
        }
        assert!(
            self.bench.disk.kept.iter().any(|kept| kept.generation == generation && !kept.members.is_empty())
        );
        let mine = self.led[&generation].get(&id);
        // Who was replaced goes on with what its forerunner had.
        if self.clients[who].instance_id.is_none() {
            assert_eq!(&synced.assignment, mine.unwrap_or(&Vec::new()), "client {who} as {id}");
        }
    }

    fn group(&self) {
        let group = &self.bench.group;
        let kept = &self.bench.disk.kept;
        assert!(kept.is_sorted_by_key(|kept| kept.generation), "generations only grow");
        assert!(group.members.len() <= group.limits.max_size + 1);
        let is_waiting = |is_so: fn(&super::super::member::Member) -> bool| group.members.values().any(is_so);
        match group.state() {
            State::Empty => assert!(group.members.is_empty() && group.leader.is_none()),
            State::PreparingRebalance => assert!(!is_waiting(|member| member.syncing.is_some())),
            State::CompletingRebalance => assert!(!is_waiting(|member| member.joining.is_some())),
            State::Stable => {
                assert!(!is_waiting(|member| member.joining.is_some() || member.syncing.is_some()));
                let same = kept.last().unwrap();
                assert_eq!(same.generation, group.generation());
                assert_eq!(same.members.len(), group.members.len());
            }
            State::Dead => panic!("nobody has removed it"),
        }
        assert!(
            group.members.is_empty()
                || group.leader.as_ref().is_some_and(|id| group.members.contains_key(id))
        );
        for (instance_id, id) in &group.instances {
            assert_eq!(group.members[id].instance_id.as_ref(), Some(instance_id));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_waits_for_ever_and_each_has_what_its_leader_gave(
        steps in prop::collection::vec((0_usize..6, 0_u8..14, prop_oneof![Just(0_u64), 0..400_u64, 0..12_000_u64]), 1..120),
        delay in prop_oneof![Just(0_u64), Just(3)],
    ) {
        let limits = Limits { max_size: 4, initial_delay: Duration::from_secs(delay) };
        let clients = (0..6).map(|who| Client {
            instance_id: (who >= 4).then(|| format!("i{who}")),
            ..Client::default()
        });
        let mut play = Play {
            bench: Bench::new(limits),
            clients: clients.collect(),
            next_id: 0,
            led: BTreeMap::new(),
            asked_in: BTreeMap::new(),
        };
        for step in steps {
            play.step(step);
        }
        // When all are silent, all are answered, and then the group is empty.
        play.bench.disk.failure = None;
        play.pass(LONGEST * 10);
        prop_assert!(play.clients.iter().all(|client| client.waits.is_none()), "{play:?}");
        prop_assert_eq!(play.bench.group.state(), State::Empty);
    }
}
