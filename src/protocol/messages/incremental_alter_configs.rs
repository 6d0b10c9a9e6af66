//! Changes single settings of topics and brokers.

use std::borrow::Cow;

message! {
    /// Request of `IncrementalAlterConfigs`.
    pub struct IncrementalAlterConfigsRequest<'a> {
        resources: Vec<AlterConfigsResource<'a>>, 0..;
        validate_only: bool, 0..;
    }

    /// In [`IncrementalAlterConfigsRequest`]: `resources`.
    pub struct AlterConfigsResource<'a> {
        resource_type: i8, 0..;
        resource_name: &'a str, 0..;
        configs: Vec<AlterableConfig<'a>>, 0..;
    }

    /// In [`AlterConfigsResource`]: `configs`.
    pub struct AlterableConfig<'a> {
        name: &'a str, 0..;
        config_operation: i8, 0..;
        value: Option<&'a str> = Some(""), 0..;
    }

    /// Response of `IncrementalAlterConfigs`.
    pub struct IncrementalAlterConfigsResponse<'a> {
        throttle_time_ms: i32, 0..;
        responses: Vec<AlterConfigsResourceResponse<'a>>, 0..;
    }

    /// In [`IncrementalAlterConfigsResponse`]: `responses`.
    pub struct AlterConfigsResourceResponse<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        resource_type: i8, 0..;
        resource_name: Cow<'a, str>, 0..;
    }
}

api!(IncrementalAlterConfigs: IncrementalAlterConfigsRequest<'a> => IncrementalAlterConfigsResponse<'r>);
