//! Asks which client metrics are wanted.

use std::borrow::Cow;

use crate::protocol::wire::Uuid;

message! {
    /// Request of `GetTelemetrySubscriptions`.
    pub struct GetTelemetrySubscriptionsRequest {
        client_instance_id: Uuid, 0..;
    }

    /// Response of `GetTelemetrySubscriptions`.
    pub struct GetTelemetrySubscriptionsResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        client_instance_id: Uuid, 0..;
        subscription_id: i32, 0..;
        accepted_compression_types: Vec<i8>, 0..;
        push_interval_ms: i32, 0..;
        telemetry_max_bytes: i32, 0..;
        delta_temporality: bool, 0..;
        requested_metrics: Vec<Cow<'a, str>>, 0..;
    }
}

api!(GetTelemetrySubscriptions: GetTelemetrySubscriptionsRequest => GetTelemetrySubscriptionsResponse<'r>);
