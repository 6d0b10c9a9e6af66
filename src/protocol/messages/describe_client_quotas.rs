//! Lists quotas.

use std::borrow::Cow;

message! {
    /// Request of `DescribeClientQuotas`.
    pub struct DescribeClientQuotasRequest<'a> {
        components: Vec<ComponentData<'a>>, 0..;
        strict: bool, 0..;
    }

    /// In [`DescribeClientQuotasRequest`]: `components`.
    pub struct ComponentData<'a> {
        entity_type: &'a str, 0..;
        match_type: i8, 0..;
        r#match: Option<&'a str> = Some(""), 0..;
    }

    /// Response of `DescribeClientQuotas`.
    pub struct DescribeClientQuotasResponse<'a> {
        throttle_time_ms: i32, 0..;
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        entries: Option<Vec<EntryData<'a>>> = Some(Vec::new()), 0..;
    }

    /// In [`DescribeClientQuotasResponse`]: `entries`.
    pub struct EntryData<'a> {
        entity: Vec<EntityData<'a>>, 0..;
        values: Vec<ValueData<'a>>, 0..;
    }

    /// In [`EntryData`]: `entity`.
    pub struct EntityData<'a> {
        entity_type: Cow<'a, str>, 0..;
        entity_name: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
    }

    /// In [`EntryData`]: `values`.
    pub struct ValueData<'a> {
        key: Cow<'a, str>, 0..;
        value: f64, 0..;
    }
}

api!(DescribeClientQuotas: DescribeClientQuotasRequest<'a> => DescribeClientQuotasResponse<'r>);
