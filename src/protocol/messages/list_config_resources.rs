//! Lists what has settings.

use std::borrow::Cow;

message! {
    /// Request of `ListConfigResources`.
    pub struct ListConfigResourcesRequest {
        resource_types: Vec<i8>, 1..;
    }

    /// Response of `ListConfigResources`.
    pub struct ListConfigResourcesResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        config_resources: Vec<ConfigResource<'a>>, 0..;
    }

    /// In [`ListConfigResourcesResponse`]: `config_resources`.
    pub struct ConfigResource<'a> {
        resource_name: Cow<'a, str>, 0..;
        resource_type: i8 = 16, 1..;
    }
}

api!(ListConfigResources: ListConfigResourcesRequest => ListConfigResourcesResponse<'r>);
