//! The cluster: its brokers, the topics with their leaders, and who is asked what.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use stratalog::{
    Isolation, Timestamp,
    protocol::{
        ApiKey, Request,
        messages::{
            list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic},
            metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponsePartition},
        },
        wire::Uuid,
    },
};

use super::{
    connection::{Answer, Connection, Lost, Sent},
    error_code,
    patience::Patience,
};
use crate::failure::{Code, Failure};

/// A topic that is not there is looked for again for so long: a cluster's brokers learn of new ones one after the other.
const NEW_TOPIC: Duration = Duration::from_millis(500);

/// What a cluster tells of a topic.
#[derive(Debug, Clone)]
pub(crate) struct TopicTold {
    pub(crate) name: String,
    /// Zero where the broker gives topics none.
    pub(crate) id: Uuid,
    pub(crate) is_internal: bool,
    /// By number.
    pub(crate) partitions: Vec<MetadataResponsePartition>,
}

impl TopicTold {
    fn partition(&self, number: i32) -> Option<&MetadataResponsePartition> {
        self.partitions.iter().find(|partition| partition.partition_index == number)
    }
}

/// Partition by partition: an offset, or why there is none to be had.
pub(crate) type OffsetsTold = Vec<(i32, Result<i64, Failure>)>;

/// A cluster that is talked to.
#[derive(Debug)]
pub(crate) struct Client {
    servers: Vec<String>,
    /// What it calls itself.
    name: String,
    pub(super) patience: Patience,
    /// Addresses by node id.
    brokers: BTreeMap<i32, String>,
    controller: i32,
    connections: HashMap<String, Connection>,
    topics: BTreeMap<String, TopicTold>,
}

impl Client {
    /// For these servers; connects to none yet.
    pub(crate) fn new(servers: &str, name: &str, patience: Patience) -> Self {
        Self {
            servers: servers.split(',').map(str::to_owned).collect(),
            name: name.to_owned(),
            patience,
            brokers: BTreeMap::new(),
            controller: -1,
            connections: HashMap::new(),
            topics: BTreeMap::new(),
        }
    }

    /// How long it waits, and tries.
    pub(crate) fn patience(&self) -> &Patience {
        &self.patience
    }

    // ---- asking ------------------------------------------------------------------------------------------------------

    /// A connection to a broker, made where there is none.
    pub(super) fn connection(&mut self, address: &str) -> Result<&mut Connection, Lost> {
        if !self.connections.contains_key(address) {
            let made = Connection::open(address, &self.name, &self.patience).map_err(|lost| match lost {
                Lost::Again(failure) if !self.servers.iter().any(|server| server == address) => {
                    let hint = format!(
                        "the brokers themselves name {address} as an address of theirs (advertised.listeners)"
                    );
                    Lost::Again(failure.hint(hint))
                }
                lost => lost,
            })?;
            self.connections.insert(address.to_owned(), made);
        }
        let found = self.connections.get_mut(address);
        found.ok_or_else(|| Lost::Final(Failure::other(format!("{address}: no connection"))))
    }

    /// Sends a request to a broker, in the newest common version from `least` to `most`.
    pub(super) fn send<'a, R: Request<'a>>(
        &mut self,
        address: &str,
        request: &R,
        (least, most): (i16, i16),
    ) -> Result<Sent, Lost> {
        let (name, patience) = (self.name.clone(), self.patience.clone());
        let connection = self.connection(address)?;
        let version = connection.version(R::API, least, most)?;
        let sent = connection.send(request, version, &name, &patience);
        self.kept(address, sent)
    }

    /// Waits for what was sent; see [`Connection::receive`].
    pub(super) fn receive(&mut self, address: &str, sent: Sent, held: Duration) -> Result<Answer, Lost> {
        let patience = self.patience.clone();
        let answer = self.connection(address)?.receive(sent, held, &patience);
        self.kept(address, answer)
    }

    /// A connection that failed is not used again: nobody knows what is still on its way in it.
    fn kept<T>(&mut self, address: &str, outcome: Result<T, Lost>) -> Result<T, Lost> {
        if outcome.is_err() {
            self.connections.remove(address);
        }
        outcome
    }

    /// The brokers that are connected.
    pub(super) fn addresses(&self) -> Vec<String> {
        let mut addresses: Vec<String> = self.connections.keys().cloned().collect();
        addresses.sort();
        addresses
    }

    /// Asks one broker.
    pub(super) fn ask<'a, R: Request<'a>>(
        &mut self,
        address: &str,
        request: &R,
        versions: (i16, i16),
    ) -> Result<Answer, Lost> {
        let sent = self.send(address, request, versions)?;
        self.receive(address, sent, Duration::ZERO)
    }

    /// Asks whichever broker answers: one that is connected first, then the others.
    pub(super) fn ask_any<'a, R: Request<'a>>(
        &mut self,
        request: &R,
        versions: (i16, i16),
    ) -> Result<Answer, Lost> {
        let mut addresses = self.addresses();
        for address in self.servers.iter().chain(self.brokers.values()) {
            if !addresses.contains(address) {
                addresses.push(address.clone());
            }
        }
        let mut first = None;
        for address in addresses {
            match self.ask(&address, request, versions) {
                Err(Lost::Again(failure)) => {
                    first.get_or_insert(failure);
                }
                outcome => return outcome,
            }
        }
        Err(Lost::Again(first.unwrap_or_else(|| Failure::unreachable("there is no broker to ask"))))
    }

    /// Whether whoever is asked speaks an API.
    pub(super) fn speaks(&mut self, api: ApiKey) -> bool {
        self.connections.values().any(|connection| connection.speaks(api))
    }

    // ---- the cluster -------------------------------------------------------------------------------------------------

    /// What there is of these topics, or of all. A name that is not there is left out.
    pub(crate) fn look(&mut self, names: Option<&[&str]>) -> Result<Vec<TopicTold>, Failure> {
        let patience = self.patience.clone();
        let mut tries = patience.tries();
        loop {
            match self.look_once(names) {
                Ok((told, None)) => return Ok(told),
                Ok((_, Some(failure))) | Err(Lost::Again(failure)) => {
                    // Where nobody answers there is nothing to wait for, unless somebody did before.
                    if self.brokers.is_empty() {
                        return Err(failure);
                    }
                    tries.again(failure)?;
                }
                Err(Lost::Final(failure)) => return Err(failure),
            }
        }
    }

    /// Once; with the failure of a topic that cannot be told now.
    fn look_once(&mut self, names: Option<&[&str]>) -> Result<(Vec<TopicTold>, Option<Failure>), Lost> {
        let topics = names.map(|names| {
            names
                .iter()
                .map(|name| MetadataRequestTopic { name: Some(*name), ..Default::default() })
                .collect()
        });
        let request = MetadataRequest { topics, allow_auto_topic_creation: false, ..Default::default() };
        // From version 4 on a look makes no topics; from 1 on null stands for all of them.
        let answer = self.ask_any(&request, (4, i16::MAX))?;
        let told: MetadataResponse<'_> = answer.read()?;
        let brokers = told.brokers.iter().map(|broker| {
            let host = if broker.host.contains(':') {
                format!("[{}]", broker.host)
            } else {
                broker.host.to_string()
            };
            (broker.node_id, format!("{host}:{}", broker.port))
        });
        self.brokers = brokers.collect();
        self.controller = told.controller_id;
        let (mut found, mut unready) = (Vec::new(), None);
        for topic in told.topics {
            let name = topic.name.as_deref().unwrap_or_default().to_owned();
            match topic.error_code {
                0 => {}
                code if error_code::is_absent(code) => {
                    self.topics.remove(&name);
                    continue;
                }
                code => {
                    let failure = error_code::failure(code, format!("topic `{name}`"), None);
                    if !error_code::may_pass(code) {
                        return Err(Lost::Final(failure));
                    }
                    unready = Some(failure);
                    continue;
                }
            }
            let mut partitions = topic.partitions;
            partitions.sort_by_key(|partition| partition.partition_index);
            let told = TopicTold {
                name: name.clone(),
                id: topic.topic_id,
                is_internal: topic.is_internal,
                partitions,
            };
            self.topics.insert(name, told.clone());
            found.push(told);
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((found, unready))
    }

    /// A topic that must be there.
    pub(crate) fn topic(&mut self, name: &str) -> Result<TopicTold, Failure> {
        if let Some(known) = self.topics.get(name) {
            return Ok(known.clone());
        }
        let patience = self.patience.clone();
        let mut tries = patience.tries();
        loop {
            if let Some(found) = self.look(Some(&[name]))?.pop() {
                return Ok(found);
            }
            let there = self.servers.join(",");
            let failure = Failure::not_found(format!("no topic `{name}` on {there}"));
            let failure = match name.rsplit_once('-').filter(|(_, number)| number.parse::<i32>().is_ok()) {
                Some((topic, number)) => failure
                    .hint(format!("a partition of a broker is named by TOPIC -p N: {topic} -p {number}")),
                None => failure
                    .hint("`logctl topic ls -b` lists what there is, `logctl topic create -b` makes one"),
            };
            tries.again_within(NEW_TOPIC, failure)?;
        }
    }

    /// The broker that leads a partition now; `None` where none does.
    pub(super) fn leader(&mut self, topic: &str, partition: i32) -> Result<Option<String>, Failure> {
        let told = self.topic(topic)?;
        let Some(found) = told.partition(partition) else {
            let noun = if told.partitions.len() == 1 { "partition" } else { "partitions" };
            return Err(Failure::not_found(format!("topic `{topic}` has no partition {partition}"))
                .hint(format!("it has {} {noun}, from 0 on", told.partitions.len())));
        };
        Ok(self.brokers.get(&found.leader_id).cloned())
    }

    /// The broker that changes topics.
    pub(super) fn controller(&mut self) -> Result<String, Failure> {
        if self.brokers.is_empty() {
            self.look(Some(&[]))?;
        }
        let known = self.brokers.get(&self.controller).or_else(|| self.brokers.values().next());
        Ok(known.or(self.servers.first()).cloned().unwrap_or_default())
    }

    /// What was known of a topic's leaders no longer holds.
    pub(super) fn forget(&mut self, topic: &str) {
        self.topics.remove(topic);
    }

    /// A topic's id where the broker gave it one.
    pub(super) fn id(&self, topic: &str) -> Uuid {
        self.topics.get(topic).map_or(Uuid::ZERO, |told| told.id)
    }

    // ---- offsets -----------------------------------------------------------------------------------------------------

    /// Offset and timestamp that `at` stands for in each partition of a topic: a time, or one of [`EARLIEST`] and the like.
    /// -1 where there is none.
    pub(crate) fn list_offsets(
        &mut self,
        topic: &str,
        partitions: &[i32],
        at: i64,
        isolation: Isolation,
    ) -> Result<OffsetsTold, Failure> {
        let mut found: BTreeMap<i32, Result<i64, Failure>> = BTreeMap::new();
        let mut left = partitions.to_vec();
        let patience = self.patience.clone();
        let mut tries = patience.tries();
        while !left.is_empty() {
            let mut by_leader: BTreeMap<String, Vec<i32>> = BTreeMap::new();
            let mut failure = Failure::new(Code::Unreachable, format!("{topic}: a partition has no leader"));
            for partition in std::mem::take(&mut left) {
                match self.leader(topic, partition)? {
                    Some(leader) => by_leader.entry(leader).or_default().push(partition),
                    None => left.push(partition),
                }
            }
            for (leader, partitions) in by_leader {
                match self.list_offsets_of(&leader, topic, &partitions, at, isolation) {
                    Ok(told) => {
                        for (partition, code, offset) in told {
                            let refused = || {
                                error_code::failure(code, format!("{topic}/{partition}: ListOffsets"), None)
                            };
                            if code == 0 {
                                found.insert(partition, Ok(offset));
                            } else if error_code::may_pass(code) {
                                failure = refused();
                                left.push(partition);
                            } else {
                                found.insert(partition, Err(refused()));
                            }
                        }
                    }
                    Err(Lost::Again(lost)) => {
                        failure = lost;
                        left.extend(partitions);
                    }
                    Err(Lost::Final(failure)) => return Err(failure),
                }
            }
            if !left.is_empty() {
                self.forget(topic);
                tries.again(failure)?;
            }
        }
        Ok(found.into_iter().collect())
    }

    fn list_offsets_of(
        &mut self,
        leader: &str,
        topic: &str,
        partitions: &[i32],
        at: i64,
        isolation: Isolation,
    ) -> Result<Vec<(i32, i16, i64)>, Lost> {
        let partition = |index: &i32| ListOffsetsPartition {
            partition_index: *index,
            timestamp: at,
            ..Default::default()
        };
        let wanted = ListOffsetsTopic { name: topic, partitions: partitions.iter().map(partition).collect() };
        let request = ListOffsetsRequest {
            replica_id: -1,
            isolation_level: isolation_number(isolation),
            topics: vec![wanted],
            timeout_ms: 30_000,
        };
        let least = match at {
            NEWEST => 7,
            _ if isolation == Isolation::Committed => 2,
            _ => 1,
        };
        let answer = self.ask(leader, &request, (least, i16::MAX))?;
        let told: ListOffsetsResponse<'_> = answer.read()?;
        let of_topic = told.topics.iter().find(|told| told.name == topic);
        let told: Vec<_> = of_topic
            .map_or(&[][..], |told| &told.partitions)
            .iter()
            .map(|told| (told.partition_index, told.error_code, told.offset))
            .collect();
        // Who is asked for something answers it, or the next try would ask for ever.
        let missing = partitions.iter().find(|index| !told.iter().any(|(told, ..)| told == *index));
        match missing {
            None => Ok(told),
            Some(index) => {
                Err(Lost::Final(Failure::other(format!("{leader}: ListOffsets left out {topic}/{index}"))))
            }
        }
    }

    /// The same for one partition.
    pub(crate) fn offset(
        &mut self,
        topic: &str,
        partition: i32,
        at: i64,
        isolation: Isolation,
    ) -> Result<i64, Failure> {
        let mut told = self.list_offsets(topic, &[partition], at, isolation)?;
        told.pop().map_or_else(
            || Err(Failure::other(format!("{topic}/{partition}: no offset was told"))),
            |(_, told)| told,
        )
    }
}

/// `ListOffsets` takes these for times.
pub(crate) const LATEST: i64 = -1;
pub(crate) const EARLIEST: i64 = -2;
/// Of the record with the largest timestamp.
pub(crate) const NEWEST: i64 = -3;

/// The number of an isolation level in a request.
pub(super) fn isolation_number(isolation: Isolation) -> i8 {
    match isolation {
        Isolation::Uncommitted => 0,
        Isolation::Committed => 1,
    }
}

/// A time as it is asked for: times before 1970 stand for 1970, for smaller numbers have meanings of their own.
pub(crate) fn asked(at: Timestamp) -> i64 {
    at.millis().max(0)
}
