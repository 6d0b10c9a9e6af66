//! Tells the settings of topics and brokers.

use std::borrow::Cow;

message! {
    /// Request of `DescribeConfigs`.
    pub struct DescribeConfigsRequest<'a> {
        resources: Vec<DescribeConfigsResource<'a>>, 0..;
        include_synonyms: bool, 1..;
        include_documentation: bool, 3..;
    }

    /// In [`DescribeConfigsRequest`]: `resources`.
    pub struct DescribeConfigsResource<'a> {
        resource_type: i8, 0..;
        resource_name: &'a str, 0..;
        configuration_keys: Option<Vec<&'a str>> = Some(Vec::new()), 0..;
    }

    /// Response of `DescribeConfigs`.
    pub struct DescribeConfigsResponse<'a> {
        throttle_time_ms: i32, 0..;
        results: Vec<DescribeConfigsResult<'a>>, 0..;
    }

    /// In [`DescribeConfigsResponse`]: `results`.
    pub struct DescribeConfigsResult<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        resource_type: i8, 0..;
        resource_name: Cow<'a, str>, 0..;
        configs: Vec<DescribeConfigsResourceResult<'a>>, 0..;
    }

    /// In [`DescribeConfigsResult`]: `configs`.
    pub struct DescribeConfigsResourceResult<'a> {
        name: Cow<'a, str>, 0..;
        value: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        read_only: bool, 0..;
        config_source: i8 = -1, 1..;
        is_default: bool, 0..=0;
        is_sensitive: bool, 0..;
        synonyms: Vec<DescribeConfigsSynonym<'a>>, 1..;
        config_type: i8, 3..;
        documentation: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 3..;
    }

    /// In [`DescribeConfigsResourceResult`]: `synonyms`.
    pub struct DescribeConfigsSynonym<'a> {
        name: Cow<'a, str>, 1..;
        value: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 1..;
        source: i8, 1..;
    }
}

api!(DescribeConfigs: DescribeConfigsRequest<'a> => DescribeConfigsResponse<'r>);
