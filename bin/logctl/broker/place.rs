//! Which brokers are meant, and what of theirs: by `-b`, a `kafka://` target, the environment or the configuration file.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    rc::Rc,
};

use clap::{ArgMatches, parser::ValueSource};
use stratalog::Isolation;

use super::{Client, NAME, Partition, Patience};
use crate::{
    config::{self, SERVERS},
    failure::Failure,
    globals::Globals,
    stop::Stop,
    target::{Target, is_bare_name, topic_partition},
};

/// Names the brokers where nothing on the command line does.
const BROKERS_VAR: &str = "LOGCTL_BROKERS";
/// How a topic of a broker is written as a target.
const SCHEME: &str = "kafka://";

/// Options of verbs that work on brokers too.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Brokers")]
pub(crate) struct BrokerArgs {
    /// Work on brokers of Kafka instead of a directory: HOST:PORT, with commas between several; then TARGET is a topic
    #[arg(short, long, aliases = ["bootstrap-server", "bootstrap-servers", "broker-list"], value_name = "HOST:PORT", value_parser = config::servers)]
    brokers: Option<String>,
    /// A setting of the connection by librdkafka's name, as client.id=me; repeat for more
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = config::pair)]
    setting: Vec<(&'static str, String)>,
    /// Read settings of the connection from a file of librdkafka, kcat or Java's clients
    #[arg(long, value_name = "FILE")]
    client_file: Option<PathBuf>,
}

/// Whether the words of a verb may mean brokers, so that its TARGET may be a topic.
pub(crate) fn may_be_broker(of_verb: &ArgMatches, connection: &BTreeMap<&'static str, String>) -> bool {
    let is_given = |id: &str| {
        matches!(of_verb.try_contains_id(id), Ok(true))
            && of_verb.value_source(id) == Some(ValueSource::CommandLine)
    };
    let has_option = of_verb.try_contains_id("brokers").is_ok();
    let is_url = of_verb
        .try_get_raw("target")
        .ok()
        .flatten()
        .is_some_and(|mut words| words.any(|word| word.to_string_lossy().starts_with(SCHEME)));
    let is_told =
        connection.contains_key(SERVERS) || env::var_os(BROKERS_VAR).is_some_and(|list| !list.is_empty());
    has_option && (is_url || is_told || ["brokers", "setting", "client_file"].iter().any(|id| is_given(id)))
}

/// Brokers, and what of theirs is meant.
pub(crate) struct Place {
    servers: String,
    client_id: String,
    topic: Option<String>,
    partition: Option<i32>,
    client: Rc<RefCell<Client>>,
}

impl Place {
    /// The brokers that are meant; `None` where a directory is.
    pub(crate) fn find(
        args: &BrokerArgs,
        globals: &Globals,
        target: Option<&Path>,
        patience: impl FnOnce(&Stop) -> Patience,
    ) -> Result<Option<Self>, Failure> {
        let mut settings = globals.connection.clone();
        let list = env::var(BROKERS_VAR).ok().filter(|list| !list.is_empty());
        if let Some(list) = list {
            let servers =
                config::servers(&list).map_err(|what| Failure::usage(format!("{BROKERS_VAR}: {what}")))?;
            settings.insert(SERVERS, servers);
        }
        let mut said: BTreeMap<&'static str, String> = BTreeMap::new();
        if let Some(path) = &args.client_file {
            said.extend(config::client_file(path)?);
        }
        said.extend(args.setting.iter().cloned());
        said.extend(args.brokers.clone().map(|servers| (SERVERS, servers)));
        let url = target
            .and_then(Path::to_str)
            .and_then(|text| text.strip_prefix(SCHEME))
            .map(parse_url)
            .transpose()?;
        let is_meant = url.is_some() || said.contains_key(SERVERS) || {
            let may_be_topic = target.is_none_or(|target| is_bare_name(target) && !target.exists());
            globals.dir.is_none() && may_be_topic && settings.contains_key(SERVERS)
        };
        if !is_meant {
            return if globals.partition.is_some() && globals.topic.is_none() {
                Err(Failure::usage("--partition says nothing without --topic"))
            } else {
                Ok(None)
            };
        }
        settings.extend(said);
        let (mut topic, mut partition) = (globals.topic.clone(), globals.partition);
        match (url, target) {
            (Some(url), _) => {
                settings.insert(SERVERS, url.servers);
                topic = url.topic.or(topic);
                partition = url.partition.or(partition);
            }
            (None, Some(target)) => {
                if let Some(other) = &topic {
                    return Err(Failure::usage(format!(
                        "of brokers TARGET is a topic: {} or {other}, not both",
                        target.display()
                    )));
                }
                topic = Some(target.to_string_lossy().into_owned());
            }
            (None, None) => {}
        }
        refuse_what_is_not_there(&settings)?;
        if let Some(topic) = &topic {
            check_topic(topic)?;
        }
        let partition = partition
            .map(i32::try_from)
            .transpose()
            .map_err(|_| Failure::usage(format!("invalid partition: the largest is {}", i32::MAX)))?;
        let servers = settings.remove(SERVERS).unwrap_or_default();
        let client_id = settings.remove("client.id").unwrap_or_else(|| NAME.to_owned());
        let client = Client::new(&servers, &client_id, patience(&globals.stop()));
        let client = Rc::new(RefCell::new(client));
        Ok(Some(Self { servers, client_id, topic, partition, client }))
    }

    /// The brokers, as they are named in messages.
    pub(crate) fn servers(&self) -> &str {
        &self.servers
    }

    /// The client.
    pub(crate) fn client(&self) -> &Rc<RefCell<Client>> {
        &self.client
    }

    /// Another client for the same brokers, for another thread.
    pub(crate) fn another_client(&self, patience: Patience) -> Client {
        Client::new(&self.servers, &self.client_id, patience)
    }

    /// The topic that is named.
    pub(crate) fn named_topic(&self) -> Option<&str> {
        self.topic.as_deref()
    }

    /// The topic; a mistake where none is named.
    pub(crate) fn topic(&self) -> Result<&str, Failure> {
        self.topic.as_deref().ok_or_else(|| {
            Failure::usage("no topic given")
                .hint("name it as TARGET or with --topic; `logctl topic ls -b` lists what there is")
        })
    }

    /// The partitions of a topic that are meant.
    pub(crate) fn partitions(&self, topic: &str) -> Result<Vec<Target>, Failure> {
        let told = self.client.borrow_mut().topic(topic)?;
        let of = |number: i32| {
            let number = u32::try_from(number).unwrap_or(0);
            let path = format!("{SCHEME}{}/{topic}/{number}", self.servers);
            Target { path: path.into(), is_file: false, partition: Some((topic.to_owned(), number)) }
        };
        let numbers: Vec<i32> = told.partitions.iter().map(|partition| partition.partition_index).collect();
        match self.partition {
            None => Ok(numbers.into_iter().map(of).collect()),
            Some(number) if numbers.contains(&number) => Ok(vec![of(number)]),
            Some(number) => Err(Failure::not_found(format!("topic `{topic}` has no partition {number}"))
                .hint(format!(
                    "it has {}, from 0 on",
                    crate::output::counted(numbers.len() as u64, "partition")
                ))),
        }
    }

    /// Asks where a partition begins and ends.
    pub(crate) fn open(&self, target: &Target, isolation: Isolation) -> Result<Partition, Failure> {
        let (topic, number) = target.partition.clone().unwrap_or_default();
        Partition::open(Rc::clone(&self.client), &topic, i32::try_from(number).unwrap_or(i32::MAX), isolation)
    }
}

/// Refuses a name that no topic can have.
pub(crate) fn check_topic(topic: &str) -> Result<(), Failure> {
    if topic_partition(&format!("{topic}-0")).is_some_and(|(name, _)| name == topic) {
        return Ok(());
    }
    Err(Failure::usage(format!("invalid topic name {topic:?}"))
        .hint("with brokers TARGET is a topic: up to 249 letters, digits, `.`, `_` and `-`"))
}

/// What a `kafka://` target says.
#[derive(Debug, PartialEq, Eq)]
struct Url {
    servers: String,
    topic: Option<String>,
    partition: Option<u32>,
}

fn parse_url(rest: &str) -> Result<Url, Failure> {
    let wrong = |what: &str| {
        Failure::usage(format!("{SCHEME}{rest}: {what}"))
            .hint("write kafka://HOST:PORT/TOPIC or kafka://HOST:PORT/TOPIC/PARTITION")
    };
    let mut parts = rest.split('/');
    let servers = config::servers(parts.next().unwrap_or_default()).map_err(|what| wrong(&what))?;
    let topic = parts.next().filter(|topic| !topic.is_empty()).map(str::to_owned);
    let partition = match parts.next() {
        None | Some("") => None,
        Some(number) => Some(number.parse().map_err(|_| wrong("the partition is no number"))?),
    };
    match parts.next() {
        None => Ok(Url { servers, topic, partition }),
        Some(_) => Err(wrong("too many parts")),
    }
}

/// Encryption and users are not built: who asks for them must not be served without.
fn refuse_what_is_not_there(settings: &BTreeMap<&'static str, String>) -> Result<(), Failure> {
    match settings.get("security.protocol").map(String::as_str) {
        None | Some("PLAINTEXT") => Ok(()),
        Some(protocol) => Err(Failure::usage(format!(
            "security.protocol is {protocol}, and this version of logctl has neither TLS nor SASL"
        ))
        .hint(
            "name a PLAINTEXT listener with -X security.protocol=PLAINTEXT, or bring a tunnel of your own",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_brokers() {
        let url = |text: &str| parse_url(text).map(|url| (url.servers, url.topic, url.partition)).ok();
        let of = |servers: &str, topic: Option<&str>, partition| {
            Some((servers.to_owned(), topic.map(str::to_owned), partition))
        };
        assert_eq!(url("a:1/orders/3"), of("a:1", Some("orders"), Some(3)));
        assert_eq!(url("a,b:2/orders"), of("a:9092,b:2", Some("orders"), None));
        assert_eq!(url("[::1]:9/"), of("[::1]:9", None, None));
        for text in ["", "/orders", "a:0/orders", "a/orders/x", "a/orders/1/2", "a/orders/-1"] {
            assert_eq!(url(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let with = |protocol: &str| BTreeMap::from([("security.protocol", protocol.to_owned())]);
        assert!(refuse_what_is_not_there(&BTreeMap::new()).is_ok());
        assert!(refuse_what_is_not_there(&with("PLAINTEXT")).is_ok());
        for protocol in ["SSL", "SASL_PLAINTEXT", "SASL_SSL"] {
            assert!(refuse_what_is_not_there(&with(protocol)).is_err_and(|f| f.what().contains(protocol)));
        }
    }
}
