//! Says that a member of a group is alive.

message! {
    /// Request of `Heartbeat`.
    pub struct HeartbeatRequest<'a> {
        group_id: &'a str, 0..;
        generation_id: i32, 0..;
        member_id: &'a str, 0..;
        group_instance_id: Option<&'a str>, 3..;
    }

    /// Response of `Heartbeat`.
    pub struct HeartbeatResponse {
        throttle_time_ms: i32, 1..;
        error_code: i16, 0..;
    }
}

api!(Heartbeat: HeartbeatRequest<'a> => HeartbeatResponse);
