//! `DeleteTopics`: by name, or by id.

use super::{Call, Fault, Outcome, read};
use crate::{
    Uuid,
    protocol::{
        messages::delete_topics::{DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse},
        wire::{self, Reader},
    },
    server::error_code::{ErrorCode, Refusal},
};

pub(super) fn carry_out(call: &Call<'_>, body: Reader<'_>) -> Result<Outcome, Fault> {
    let request: DeleteTopicsRequest<'_> = read(call, body)?;
    let by_name = request.topic_names.iter().map(|name| (Some(*name), wire::Uuid::ZERO));
    let by_either = request.topics.iter().map(|topic| (topic.name, topic.topic_id));
    let responses = by_name.chain(by_either).map(|(name, id)| delete(call, name, id)).collect();
    call.reply(&DeleteTopicsResponse { responses, ..Default::default() })
}

fn delete<'a>(call: &Call<'_>, name: Option<&'a str>, id: wire::Uuid) -> DeletableTopicResult<'a> {
    let topics = &call.broker.topics;
    let found = match (name, id.is_zero()) {
        (Some(_), false) | (None, true) => {
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, "A topic is named by its name or by its id."))
        }
        (Some(name), true) => Ok(name.to_owned()),
        (None, false) => topics
            .by_id(Uuid::from_bytes(id.0))
            .map(|topic| topic.name().to_owned())
            .ok_or_else(|| Refusal::new(ErrorCode::UNKNOWN_TOPIC_ID, "There is no topic of this id.")),
    };
    let told = found.as_ref().ok().cloned();
    let deleted = found.and_then(|name| {
        let id = topics.by_name(&name).map_or(wire::Uuid::ZERO, |topic| wire::Uuid(topic.id().bytes()));
        topics.delete(&name)?;
        // Another topic of its name begins anew. That the topic is gone stands whatever comes of this.
        if let Err(refusal) = call.broker.offsets.forget_topic(&name, call.broker.now()) {
            tracing::warn!(topic = name, %refusal, "offsets committed for a deleted topic stay");
        }
        Ok(id)
    });
    let (code, message, topic_id) = match deleted {
        Ok(id) => (ErrorCode::NONE, None, id),
        Err(refusal) => (refusal.code, Some(refusal.message.into()), id),
    };
    // Older versions cannot say that there is no name.
    let name =
        told.map(Into::into).or(if call.version() < 6 { Some("".into()) } else { name.map(Into::into) });
    DeletableTopicResult { name, topic_id, error_code: code.value(), error_message: message }
}
