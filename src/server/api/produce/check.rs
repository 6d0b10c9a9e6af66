//! What is asked of a batch before it is appended, in a broker's order, and what is changed about it.

use std::borrow::Cow;

use crate::{
    Timestamp,
    record::{
        BatchBuilder, BatchError, BatchMut, BatchOptions, BatchRef, Batches, Codec, Compression, Header,
        ProducerStamp, Record, Scratch, TimestampType,
    },
    server::{
        error_code::{ErrorCode, Refusal},
        topics::TopicSettings,
    },
};

/// Records that are named in a refusal, at most: who sends a million bad ones is told of some.
const NAMED_RECORDS: usize = 1000;

/// A batch may unpack to so much, whatever its topic says: it is unpacked at once.
const UNPACKED_BYTES: u64 = 128 << 20;
/// Or to so many times as much as the largest batch of its topic.
const UNPACKED_TIMES: u64 = 16;

/// Why a batch is not appended.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) code: ErrorCode,
    pub(super) message: String,
    /// Which records of the batch, and what is wrong with each.
    pub(super) records: Vec<(i32, String)>,
}

impl Refused {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), records: Vec::new() }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code, refusal.message)
    }
}

impl From<BatchError> for Refused {
    fn from(error: BatchError) -> Self {
        let code = match &error {
            BatchError::CrcMismatch { .. } | BatchError::TooShort { .. } | BatchError::BadLength { .. } => {
                ErrorCode::CORRUPT_MESSAGE
            }
            BatchError::TooLargeDecompressed { .. } | BatchError::TooLarge { .. } => {
                ErrorCode::MESSAGE_TOO_LARGE
            }
            BatchError::CodecMissing { .. } | BatchError::UnknownCodec { .. } => {
                ErrorCode::UNSUPPORTED_COMPRESSION_TYPE
            }
            _ => ErrorCode::INVALID_RECORD,
        };
        Self::new(code, error.to_string())
    }
}

fn invalid(message: impl Into<String>) -> Refused {
    Refused::new(ErrorCode::INVALID_RECORD, message)
}

/// The batch as it is to be appended. `version` is that of the request.
pub(super) fn check<'a>(
    records: Option<&'a [u8]>,
    version: i16,
    settings: &TopicSettings,
    now: Timestamp,
) -> Result<Cow<'a, [u8]>, Refused> {
    let batch = only_batch(records.unwrap_or_default(), version)?;
    if batch.base_offset().value() != 0 {
        return Err(invalid(format!("the batch's base offset is {}, not 0", batch.base_offset())));
    }
    check_size(batch.size_bytes(), settings)?;
    batch.check_crc()?;
    batch.validate_for_append()?;
    if batch.is_transactional() {
        return Err(Refused::new(ErrorCode::INVALID_TXN_STATE, "there are no transactions here"));
    }
    if batch.producer_id() >= 0 && (batch.producer_epoch() < 0 || batch.base_sequence() < 0) {
        return Err(BatchError::BadProducer {
            producer_id: batch.producer_id(),
            epoch: batch.producer_epoch(),
            sequence: batch.base_sequence(),
        }
        .into());
    }
    let most = UNPACKED_BYTES.max(UNPACKED_TIMES * u64::from(settings.max_message_bytes));
    let mut scratch = Scratch::with_limit(most.min(settings.max_decompressed_bytes.into()));
    let largest = check_records(&batch, settings, now, &mut scratch)?;
    let codec = batch.codec()?;
    if let Some(wanted) = settings.compression.filter(|wanted| wanted.codec() != codec) {
        let made = recompressed(&batch, wanted, settings, &mut scratch)?;
        check_size(u32::try_from(made.len()).unwrap_or(u32::MAX), settings)?;
        return Ok(Cow::Owned(made));
    }
    let is_stamped = settings.log.timestamp_type == TimestampType::LogAppendTime;
    let is_true = batch.timestamp_type() == TimestampType::CreateTime && batch.max_timestamp() == largest;
    if is_stamped || is_true {
        return Ok(Cow::Borrowed(batch.as_bytes()));
    }
    let mut changed = batch.as_bytes().to_vec();
    BatchMut::parse(&mut changed)?.set_create_time(largest);
    Ok(Cow::Owned(changed))
}

/// The one batch that a request has for a partition. Bytes behind it that are no whole batch are passed over, as a broker
/// does.
fn only_batch(records: &[u8], version: i16) -> Result<BatchRef<'_>, Refused> {
    let mut batches = Batches::new(records);
    let Some(first) = batches.next() else {
        return Err(invalid("the request has no record batch for this partition"));
    };
    let batch = first?;
    if batch.codec() == Ok(Codec::Zstd) && version < 7 {
        return Err(Refused::new(
            ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
            "zstd is known from version 7 of Produce on",
        ));
    }
    match batches.next() {
        None => Ok(batch),
        Some(_) => Err(invalid("the request has more than one record batch for this partition")),
    }
}

fn check_size(size_bytes: u32, settings: &TopicSettings) -> Result<(), Refused> {
    let most = settings.max_message_bytes;
    if size_bytes <= most {
        return Ok(());
    }
    let message = format!("the batch has {size_bytes} bytes, max.message.bytes is {most}");
    Err(Refused::new(ErrorCode::MESSAGE_TOO_LARGE, message))
}

/// Looks at every record. Returns the largest timestamp.
fn check_records(
    batch: &BatchRef<'_>,
    settings: &TopicSettings,
    now: Timestamp,
    scratch: &mut Scratch,
) -> Result<Timestamp, Refused> {
    let has_own_time = settings.log.timestamp_type == TimestampType::CreateTime;
    let is_appended_time = batch.timestamp_type() == TimestampType::LogAppendTime;
    let mut largest = Timestamp::NONE;
    let (mut keyless, mut untimely) = (Vec::new(), Vec::new());
    for (index, record) in (0_i32..).zip(batch.records(scratch)?) {
        let record = record?;
        if record.offset_delta() != index {
            return Err(invalid(format!("record {index} of the batch has offset {}", record.offset_delta())));
        }
        if settings.is_compacted && record.key().is_none() && keyless.len() < NAMED_RECORDS {
            keyless.push((index, "a compacted topic takes no record without a key".to_owned()));
        }
        let time = record.timestamp();
        let wrong = if has_own_time && time != Timestamp::NONE {
            is_untimely(time, now, settings)
        } else {
            is_appended_time.then(|| "the producer calls its time the log's".to_owned())
        };
        if let Some(wrong) = wrong.filter(|_| untimely.len() < NAMED_RECORDS) {
            untimely.push((index, wrong));
        }
        largest = largest.max(time);
    }
    // The time comes first where both are wrong.
    for (code, records) in [(ErrorCode::INVALID_TIMESTAMP, untimely), (ErrorCode::INVALID_RECORD, keyless)] {
        if !records.is_empty() {
            let message = "One or more records have been rejected".to_owned();
            return Err(Refused { code, message, records });
        }
    }
    Ok(largest)
}

/// What is wrong with a record's time, if anything.
fn is_untimely(time: Timestamp, now: Timestamp, settings: &TopicSettings) -> Option<String> {
    let (time, now) = (time.millis(), now.millis());
    let is_early = settings.before_max_ms.is_some_and(|most| time < now.saturating_sub(most));
    let is_late = settings.after_max_ms.is_some_and(|most| time > now.saturating_add(most));
    (is_early || is_late).then(|| format!("timestamp {time} is out of the range allowed around {now}"))
}

/// The same records in a batch of another codec.
fn recompressed(
    batch: &BatchRef<'_>,
    wanted: Compression,
    settings: &TopicSettings,
    scratch: &mut Scratch,
) -> Result<Vec<u8>, Refused> {
    let producer = ProducerStamp {
        id: batch.producer_id(),
        epoch: batch.producer_epoch(),
        base_sequence: batch.base_sequence(),
    };
    let options = BatchOptions {
        compression: wanted,
        producer: (producer.id >= 0).then_some(producer),
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options);
    let mut headers = Vec::new();
    for record in batch.records(scratch)? {
        let record = record?;
        headers.clear();
        for header in record.headers() {
            let key = header.key_str().ok_or_else(|| invalid("the name of a header is not UTF-8"))?;
            headers.push(Header { key, value: header.value });
        }
        let mut copy = Record::new().timestamp(record.timestamp()).headers(&headers);
        copy.key = record.key();
        copy.value = record.value();
        if wanted == Compression::NONE && builder.is_full(&copy, settings.max_message_bytes.into()) {
            let most = settings.max_message_bytes;
            let message =
                format!("unpacked the batch has more than {most} bytes, which is max.message.bytes");
            return Err(Refused::new(ErrorCode::MESSAGE_TOO_LARGE, message));
        }
        builder.push(copy)?;
    }
    Ok(builder.finish()?.to_vec())
}
