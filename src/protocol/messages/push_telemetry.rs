//! Sends client metrics.

use crate::protocol::wire::Uuid;

message! {
    /// Request of `PushTelemetry`.
    pub struct PushTelemetryRequest<'a> {
        client_instance_id: Uuid, 0..;
        subscription_id: i32, 0..;
        terminating: bool, 0..;
        compression_type: i8, 0..;
        metrics: &'a [u8], 0..;
    }

    /// Response of `PushTelemetry`.
    pub struct PushTelemetryResponse {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
    }
}

api!(PushTelemetry: PushTelemetryRequest<'a> => PushTelemetryResponse);
