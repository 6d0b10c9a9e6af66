//! Sets quotas.

use std::borrow::Cow;

message! {
    /// Request of `AlterClientQuotas`.
    pub struct AlterClientQuotasRequest<'a> {
        entries: Vec<RequestEntryData<'a>>, 0..;
        validate_only: bool, 0..;
    }

    /// In [`AlterClientQuotasRequest`]: `entries`.
    pub struct RequestEntryData<'a> {
        entity: Vec<RequestEntityData<'a>>, 0..;
        ops: Vec<OpData<'a>>, 0..;
    }

    /// In [`RequestEntryData`]: `entity`.
    pub struct RequestEntityData<'a> {
        entity_type: &'a str, 0..;
        entity_name: Option<&'a str> = Some(""), 0..;
    }

    /// In [`RequestEntryData`]: `ops`.
    pub struct OpData<'a> {
        key: &'a str, 0..;
        value: f64, 0..;
        remove: bool, 0..;
    }

    /// Response of `AlterClientQuotas`.
    pub struct AlterClientQuotasResponse<'a> {
        throttle_time_ms: i32, 0..;
        entries: Vec<ResponseEntryData<'a>>, 0..;
    }

    /// In [`AlterClientQuotasResponse`]: `entries`.
    pub struct ResponseEntryData<'a> {
        error_code: i16, 0..;
        error_message: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
        entity: Vec<ResponseEntityData<'a>>, 0..;
    }

    /// In [`ResponseEntryData`]: `entity`.
    pub struct ResponseEntityData<'a> {
        entity_type: Cow<'a, str>, 0..;
        entity_name: Option<Cow<'a, str>> = Some(Cow::Borrowed("")), 0..;
    }
}

api!(AlterClientQuotas: AlterClientQuotasRequest<'a> => AlterClientQuotasResponse<'r>);
