//! Finds the broker that keeps a group's or a transaction's state.

use std::borrow::Cow;

message! {
    /// Request of `FindCoordinator`.
    pub struct FindCoordinatorRequest<'a> {
        key: &'a str, 0..=3;
        key_type: i8, 1..;
        coordinator_keys: Vec<&'a str>, 4..;
    }

    /// Response of `FindCoordinator`.
    pub struct FindCoordinatorResponse<'a> {
        throttle_time_ms: i32, 1..;
        error_code: i16, 0..=3;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 1..=3, null 1..=3;
        node_id: i32, 0..=3;
        host: Cow<'a, str>, 0..=3;
        port: i32, 0..=3;
        coordinators: Vec<Coordinator<'a>>, 4..;
    }

    /// In [`FindCoordinatorResponse`]: `coordinators`.
    pub struct Coordinator<'a> {
        key: Cow<'a, str>, 4..;
        node_id: i32, 4..;
        host: Cow<'a, str>, 4..;
        port: i32, 4..;
        error_code: i16, 4..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 4..;
    }
}

api!(FindCoordinator: FindCoordinatorRequest<'a> => FindCoordinatorResponse<'r>);
