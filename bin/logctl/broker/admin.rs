//! Topics and their settings: made, changed, removed, told.

use std::time::Duration;

use stratalog::protocol::{
    Request,
    messages::{
        create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic},
        create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse},
        delete_topics::{DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse},
        describe_configs::{DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse},
        incremental_alter_configs::{
            AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
            IncrementalAlterConfigsResponse,
        },
    },
};

use super::{
    client::Client,
    connection::{Answer, Lost},
    error_code,
};
use crate::failure::Failure;

/// How long a controller may take.
const TIME_MS: i32 = 30_000;
/// The kind of a resource that has settings.
const TOPIC: i8 = 2;
/// `NOT_CONTROLLER`.
const NOT_CONTROLLER: i16 = 41;
/// `TOPIC_ALREADY_EXISTS`.
const EXISTS: i16 = 36;

/// A topic that is to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewTopic {
    pub(crate) name: String,
    /// `None`: as many as the brokers give by themselves.
    pub(crate) partitions: Option<i32>,
    pub(crate) replicas: Option<i16>,
    pub(crate) settings: Vec<(String, String)>,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Made {
    /// -1 where the broker does not tell.
    New {
        partitions: i32,
        replicas: i16,
    },
    WasThere,
    Failed(Failure),
}

/// What to do with a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Set(String, String),
    /// Back to the default.
    Unset(String),
}

/// A setting of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    /// `None` where it has none, or it is a secret.
    pub(crate) value: Option<String>,
    /// Who gave it its value.
    pub(crate) origin: &'static str,
    pub(crate) is_own: bool,
    pub(crate) is_sensitive: bool,
}

fn origin(number: i8) -> &'static str {
    match number {
        1 => "topic",
        2 => "broker",
        3 => "cluster",
        4 => "static",
        5 => "default",
        _ => "unknown",
    }
}

impl Client {
    /// Asks the controller. What was sent is sent once: it may have been done.
    fn ask_controller<'a, R: Request<'a>>(
        &mut self,
        request: &R,
        versions: (i16, i16),
    ) -> Result<Answer, Failure> {
        let controller = self.controller()?;
        let sent = self.send(&controller, request, versions)?;
        self.receive(&controller, sent, Duration::from_millis(u64::from(TIME_MS.unsigned_abs()))).map_err(
            |lost| match lost {
                Lost::Again(failure) => failure.note("whether it was done is not known"),
                Lost::Final(failure) => failure,
            },
        )
    }

    /// Again where another broker is the controller by now.
    fn until_controller<T>(
        &mut self,
        mut ask: impl FnMut(&mut Self) -> Result<Result<T, Failure>, Failure>,
    ) -> Result<T, Failure> {
        let patience = self.patience.clone();
        let mut tries = patience.tries();
        loop {
            match ask(self)? {
                Ok(done) => return Ok(done),
                Err(moved) => tries.again(moved)?,
            }
            self.look(Some(&[]))?;
        }
    }

    /// Makes a topic. `is_trial`: only says what would become of it.
    pub(crate) fn create_topic(&mut self, topic: &NewTopic, is_trial: bool) -> Result<Made, Failure> {
        let configs =
            topic.settings.iter().map(|(name, value)| CreatableTopicConfig { name, value: Some(value) });
        let wanted = CreatableTopic {
            name: &topic.name,
            num_partitions: topic.partitions.unwrap_or(-1),
            replication_factor: topic.replicas.unwrap_or(-1),
            assignments: Vec::new(),
            configs: configs.collect(),
        };
        let request =
            CreateTopicsRequest { topics: vec![wanted], timeout_ms: TIME_MS, validate_only: is_trial };
        // Before version 4 nobody chooses numbers for us.
        let least = if topic.partitions.is_none() || topic.replicas.is_none() { 4 } else { 2 };
        self.until_controller(|client| {
            let answer = client.ask_controller(&request, (least, i16::MAX))?;
            let told: CreateTopicsResponse<'_> = answer.read()?;
            let Some(told) = told.topics.first() else {
                return Err(Failure::other(format!(
                    "topic `{}`: CreateTopics said nothing of it",
                    topic.name
                )));
            };
            let failure = || {
                error_code::failure(
                    told.error_code,
                    format!("topic `{}`", topic.name),
                    told.error_message.as_deref(),
                )
            };
            Ok(match told.error_code {
                0 => Ok(Made::New { partitions: told.num_partitions, replicas: told.replication_factor }),
                EXISTS => Ok(Made::WasThere),
                NOT_CONTROLLER => Err(failure()),
                _ => Ok(Made::Failed(failure())),
            })
        })
    }

    /// Removes a topic.
    pub(crate) fn delete_topic(&mut self, name: &str) -> Result<(), Failure> {
        let request = DeleteTopicsRequest {
            topics: vec![DeleteTopicState { name: Some(name), ..Default::default() }],
            topic_names: vec![name],
            timeout_ms: TIME_MS,
        };
        self.forget(name);
        self.until_controller(|client| {
            let answer = client.ask_controller(&request, (1, i16::MAX))?;
            let told: DeleteTopicsResponse<'_> = answer.read()?;
            let told = told.responses.first().map(|told| (told.error_code, told.error_message.as_deref()));
            refused(told, format!("topic `{name}`"))
        })
    }

    /// Gives a topic more partitions.
    pub(crate) fn create_partitions(
        &mut self,
        name: &str,
        count: i32,
        is_trial: bool,
    ) -> Result<(), Failure> {
        let topic = CreatePartitionsTopic { name, count, assignments: None };
        let request =
            CreatePartitionsRequest { topics: vec![topic], timeout_ms: TIME_MS, validate_only: is_trial };
        self.forget(name);
        self.until_controller(|client| {
            let answer = client.ask_controller(&request, (0, i16::MAX))?;
            let told: CreatePartitionsResponse<'_> = answer.read()?;
            let told = told.results.first().map(|told| (told.error_code, told.error_message.as_deref()));
            refused(told, format!("topic `{name}`"))
        })
    }

    /// All settings of a topic, by name.
    pub(crate) fn settings(&mut self, name: &str) -> Result<Vec<Setting>, Failure> {
        let resource =
            DescribeConfigsResource { resource_type: TOPIC, resource_name: name, configuration_keys: None };
        let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
        let answer = self.ask_any(&request, (1, i16::MAX))?;
        let told: DescribeConfigsResponse<'_> = answer.read()?;
        let Some(told) = told.results.first() else {
            return Err(Failure::other(format!("topic `{name}`: DescribeConfigs said nothing of it")));
        };
        if told.error_code != 0 {
            return Err(error_code::failure(
                told.error_code,
                format!("topic `{name}`"),
                told.error_message.as_deref(),
            ));
        }
        let mut settings: Vec<_> = told
            .configs
            .iter()
            .map(|config| Setting {
                name: config.name.to_string(),
                value: config.value.as_deref().filter(|_| !config.is_sensitive).map(str::to_owned),
                origin: origin(config.config_source),
                is_own: config.config_source == 1,
                is_sensitive: config.is_sensitive,
            })
            .collect();
        settings.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(settings)
    }

    /// Changes settings of a topic.
    pub(crate) fn change_settings(
        &mut self,
        name: &str,
        changes: &[Change],
        is_trial: bool,
    ) -> Result<(), Failure> {
        let config = |change: &'_ Change| match change {
            Change::Set(name, value) => (name.clone(), 0, Some(value.clone())),
            Change::Unset(name) => (name.clone(), 1, None),
        };
        let told: Vec<_> = changes.iter().map(config).collect();
        let configs = told.iter().map(|(name, config_operation, value)| AlterableConfig {
            name,
            config_operation: *config_operation,
            value: value.as_deref(),
        });
        let resource =
            AlterConfigsResource { resource_type: TOPIC, resource_name: name, configs: configs.collect() };
        let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: is_trial };
        self.until_controller(|client| {
            let answer = client.ask_controller(&request, (0, i16::MAX))?;
            let told: IncrementalAlterConfigsResponse<'_> = answer.read()?;
            let told = told.responses.first().map(|told| (told.error_code, told.error_message.as_deref()));
            refused(told, format!("topic `{name}`"))
        })
    }
}

/// What a controller said: done, to be asked of another, or refused.
fn refused(told: Option<(i16, Option<&str>)>, what: String) -> Result<Result<(), Failure>, Failure> {
    let Some((code, said)) = told else {
        return Err(Failure::other(format!("{what}: nothing was said of it")));
    };
    match code {
        0 => Ok(Ok(())),
        NOT_CONTROLLER => Ok(Err(error_code::failure(code, what, said))),
        _ => Err(error_code::failure(code, what, said)),
    }
}
