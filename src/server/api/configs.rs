//! `DescribeConfigs`, `AlterConfigs`, `IncrementalAlterConfigs`: the settings of topics, and of the server to look at.

use super::{Call, Fault, Outcome, read};
use crate::{
    protocol::{
        messages::{
            alter_configs::{AlterConfigsRequest, AlterConfigsResourceResponse, AlterConfigsResponse},
            describe_configs::{
                DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
                DescribeConfigsResponse, DescribeConfigsResult, DescribeConfigsSynonym,
            },
            incremental_alter_configs as incremental,
        },
        wire::Reader,
    },
    server::{
        error_code::{ErrorCode, Refusal},
        topics::{Change, Shown},
    },
};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

pub(super) fn describe(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DescribeConfigsRequest<'_> = read(call, body)?;
    let result = |resource: &DescribeConfigsResource<'_>| {
        let shown = shown(call, resource.resource_type, resource.resource_name);
        let (code, message, shown) = match shown {
            Ok(shown) => (ErrorCode::NONE, None, shown),
            Err(refusal) => (refusal.code, Some(refusal.message.into()), Vec::new()),
        };
        // No keys is all keys, as with a broker.
        let keys = resource.configuration_keys.as_ref().filter(|keys| !keys.is_empty());
        let is_wanted = |shown: &Shown| keys.is_none_or(|keys| keys.contains(&shown.name));
        DescribeConfigsResult {
            error_code: code.value(),
            error_message: message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.to_owned().into(),
            configs: shown.into_iter().filter(is_wanted).map(|shown| line(shown, &request)).collect(),
        }
    };
    let results = request.resources.iter().map(result).collect();
    call.reply(&DescribeConfigsResponse { results, ..Default::default() })
}

fn shown(call: &Call<'_>, resource_type: i8, name: &str) -> Result<Vec<Shown>, Refusal> {
    let topics = &call.broker.topics;
    match resource_type {
        TOPIC => {
            let topic = topics.by_name(name).ok_or_else(|| no_topic(name))?;
            Ok(topics.describe(&topic))
        }
        // What all brokers go by that are told nothing else: nothing was set.
        BROKER if name.is_empty() => Ok(Vec::new()),
        BROKER if name.parse() == Ok(call.broker.node_id()) => Ok(call.broker.settings().show()),
        BROKER => {
            let message = format!("This is broker {}, not {name:?}.", call.broker.node_id());
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
        }
        // They have settings with a broker; here nothing can be set.
        CLIENT_METRICS | GROUP => Ok(Vec::new()),
        _ => Err(unknown_type(resource_type)),
    }
}

fn line<'a>(shown: Shown, request: &DescribeConfigsRequest<'_>) -> DescribeConfigsResourceResult<'a> {
    let synonym = |synonym: crate::server::topics::Synonym| DescribeConfigsSynonym {
        name: synonym.name.into(),
        value: (!shown.is_sensitive).then(|| synonym.value.into()),
        source: synonym.source.wire(),
    };
    let synonyms = if request.include_synonyms { shown.synonyms } else { Vec::new() };
    DescribeConfigsResourceResult {
        name: shown.name.into(),
        value: shown.value.map(Into::into),
        read_only: shown.is_read_only,
        config_source: shown.source.wire(),
        is_sensitive: shown.is_sensitive,
        synonyms: synonyms.into_iter().map(synonym).collect(),
        config_type: shown.kind.wire(),
        documentation: request.include_documentation.then(|| shown.doc.into()),
        ..Default::default()
    }
}

pub(super) fn alter(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: AlterConfigsRequest<'_> = read(call, body)?;
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let settings: Vec<_> = resource.configs.iter().map(|config| (config.name, config.value)).collect();
        let done = check_topic(resource.resource_type).and_then(|()| {
            call.broker.topics.replace_settings(resource.resource_name, &settings, request.validate_only)
        });
        let (error_code, error_message) = outcome(done);
        responses.push(AlterConfigsResourceResponse {
            error_code,
            error_message: error_message.map(Into::into),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.into(),
        });
    }
    call.reply(&AlterConfigsResponse { responses, ..Default::default() })
}

pub(super) fn alter_some(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: incremental::IncrementalAlterConfigsRequest<'_> = read(call, body)?;
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let changes: Result<Vec<_>, Refusal> = resource
            .configs
            .iter()
            .map(|config| Ok((config.name, change_of(config)?, config.value)))
            .collect();
        let done = check_topic(resource.resource_type).and(changes).and_then(|changes| {
            call.broker.topics.change_settings(resource.resource_name, &changes, request.validate_only)
        });
        let (error_code, error_message) = outcome(done);
        responses.push(incremental::AlterConfigsResourceResponse {
            error_code,
            error_message: error_message.map(Into::into),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.into(),
        });
    }
    call.reply(&incremental::IncrementalAlterConfigsResponse { responses, ..Default::default() })
}

fn change_of(config: &incremental::AlterableConfig<'_>) -> Result<Change, Refusal> {
    Change::of_wire(config.config_operation).ok_or_else(|| {
        let message = format!("There is no operation {}.", config.config_operation);
        Refusal::new(ErrorCode::INVALID_REQUEST, message)
    })
}

fn outcome(done: Result<(), Refusal>) -> (i16, Option<String>) {
    match done {
        Ok(()) => (ErrorCode::NONE.value(), None),
        Err(refusal) => (refusal.code.value(), Some(refusal.message)),
    }
}

/// Only topics' settings are changed by request.
fn check_topic(resource_type: i8) -> Result<(), Refusal> {
    match resource_type {
        TOPIC => Ok(()),
        BROKER => Err(Refusal::new(
            ErrorCode::INVALID_REQUEST,
            "The settings of the server are changed where it was given them, and hold from its next start on.",
        )),
        _ => Err(unknown_type(resource_type)),
    }
}

fn no_topic(name: &str) -> Refusal {
    Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, format!("The topic '{name}' does not exist."))
}

fn unknown_type(resource_type: i8) -> Refusal {
    let message = format!("Resources of type {resource_type} have no settings here.");
    Refusal::new(ErrorCode::INVALID_REQUEST, message)
}
