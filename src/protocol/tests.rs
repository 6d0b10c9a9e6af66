//! The codec as a whole: frames there and back.

use super::{
    ApiKey, DecodeFault, EncodeFault, FrameFault, Message, frame_length,
    messages::{
        api_versions::{ApiVersionsResponse, FinalizedFeatureKey},
        fetch::{FetchResponse, FetchableTopicResponse, PartitionData},
        metadata::{MetadataRequest, MetadataRequestTopic},
        produce::{PartitionProduceData, ProduceRequest, TopicProduceData},
    },
    read_request_header, read_response_header,
    wire::{Gap, Piece, Reader, Records, Writer},
    write_request, write_response,
};

fn produce(records: Records<'_>) -> ProduceRequest<'_> {
    let partition = PartitionProduceData { index: 3, records: Some(records) };
    let topic = TopicProduceData { name: "orders", partition_data: vec![partition], ..Default::default() };
    ProduceRequest { acks: -1, timeout_ms: 1500, topic_data: vec![topic], ..Default::default() }
}

#[test]
fn a_request_comes_back_and_borrows_its_records() {
    for version in [3, 8, 9, 12] {
        let mut writer = Writer::new();
        let request = produce(Records::Bytes(b"batches"));
        write_request(&mut writer, 42, Some("me"), version, &request).unwrap();
        let bytes = writer.bytes();
        let length = frame_length(*bytes.first_chunk().unwrap(), 1 << 20).unwrap();
        assert_eq!(length as usize, bytes.len() - 4);
        let (header, body) = read_request_header(&bytes[4..]).unwrap();
        assert_eq!((header.api(), header.api_version), (Some(ApiKey::Produce), version));
        assert_eq!((header.correlation_id, header.client_id), (42, Some("me")));
        let decoded = ProduceRequest::decode(body, version).unwrap();
        assert_eq!(decoded, request);
        let records = decoded.topic_data[0].partition_data[0].records.unwrap().bytes().unwrap();
        assert!(bytes.as_ptr_range().contains(&records.as_ptr()));
    }
}

#[test]
fn a_response_has_gaps_where_records_go_and_counts_them() {
    let partition = |index, records| PartitionData { partition_index: index, records, ..Default::default() };
    let partitions = vec![partition(0, Some(Records::Gap(70_000))), partition(1, Some(Records::Gap(0)))];
    let topic = FetchableTopicResponse { topic: "orders".into(), partitions, ..Default::default() };
    let response = FetchResponse { responses: vec![topic], ..Default::default() };
    for version in [4, 11, 12] {
        let mut writer = Writer::new();
        write_response(&mut writer, 7, version, &response).unwrap();
        let total = writer.total_bytes();
        assert_eq!(total, writer.bytes().len() as u64 + 70_000);
        let length = frame_length(*writer.bytes().first_chunk().unwrap(), 1 << 20).unwrap();
        assert_eq!(u64::from(length), total - 4);
        let (mut whole, mut written) = (Vec::new(), 0);
        for piece in writer.pieces() {
            match piece {
                Piece::Bytes(bytes) => {
                    whole.extend_from_slice(bytes);
                    written += bytes.len();
                }
                Piece::Gap { index, len_bytes } => {
                    assert_eq!(writer.gaps()[index], Gap { at: written, len_bytes });
                    whole.resize(whole.len() + len_bytes as usize, 0xAB);
                }
            }
        }
        let (header, body) = read_response_header(&whole[4..], ApiKey::Fetch, version).unwrap();
        assert_eq!(header.correlation_id, 7);
        let decoded = FetchResponse::decode(body, version).unwrap();
        let records = |index: usize| decoded.responses[0].partitions[index].records.unwrap().bytes().unwrap();
        assert!(records(0).len() == 70_000 && records(0).iter().all(|byte| *byte == 0xAB));
        assert!(records(1).is_empty());
    }
}

#[test]
fn an_error_says_which_field_and_where() {
    let mut writer = Writer::new();
    let topics = Some(vec![MetadataRequestTopic { name: Some("orders"), ..Default::default() }]);
    MetadataRequest { topics, ..Default::default() }.encode(&mut writer, 1).unwrap();
    let mut bytes = writer.bytes().to_vec();
    bytes[6] = 0xFF;
    let error = MetadataRequest::decode(Reader::new(&bytes), 1).unwrap_err();
    assert_eq!((error.field, error.position), ("MetadataRequestTopic.name", 6));
    assert_eq!(error.fault, DecodeFault::NotUtf8);
    assert_eq!(error.to_string(), "MetadataRequestTopic.name at byte 6: text that is not UTF-8");
}

#[test]
fn text_is_no_longer_than_kafkas_clients_take_it() {
    let long = "x".repeat(32_768);
    for (version, longest) in [(8, &long[1..]), (9, &long[1..])] {
        let request = |transactional_id| ProduceRequest { transactional_id, ..Default::default() };
        let mut writer = Writer::new();
        request(Some(longest)).encode(&mut writer, version).unwrap();
        let decoded = ProduceRequest::decode(Reader::new(writer.bytes()), version).unwrap();
        assert_eq!(decoded.transactional_id, Some(longest));
        let error = request(Some(&long)).encode(&mut Writer::new(), version).unwrap_err();
        assert_eq!(error.field, "ProduceRequest.transactional_id");
        assert_eq!(error.fault, EncodeFault::TooLong { length: 32_768 });
    }
    let mut writer = Writer::new();
    writer.put_varint(32_769);
    writer.put(long.as_bytes());
    let error = ProduceRequest::decode(Reader::new(writer.bytes()), 9).unwrap_err();
    assert_eq!((error.position, error.fault), (0, DecodeFault::TooLong { length: 32_768 }));
}

#[test]
fn null_has_a_place_only_where_the_version_has_one() {
    let request = MetadataRequest { topics: None, ..Default::default() };
    request.encode(&mut Writer::new(), 1).unwrap();
    let error = request.encode(&mut Writer::new(), 0).unwrap_err();
    assert_eq!((error.field, error.fault), ("MetadataRequest.topics", EncodeFault::Null));
    assert_eq!(error.to_string(), "MetadataRequest.topics: null where this version has none");
    let error = request.encode(&mut Writer::new(), 14).unwrap_err();
    assert_eq!(error.fault, EncodeFault::Version(14));
}

#[test]
fn what_a_version_does_not_have_is_left_out_and_comes_back_as_its_default() {
    let request = MetadataRequest { allow_auto_topic_creation: false, ..Default::default() };
    for (version, expected) in [(3, true), (4, false)] {
        let mut writer = Writer::new();
        request.encode(&mut writer, version).unwrap();
        let decoded = MetadataRequest::decode(Reader::new(writer.bytes()), version).unwrap();
        assert_eq!(decoded.allow_auto_topic_creation, expected);
    }
}

#[test]
fn tags_are_written_in_order_and_only_where_they_say_something() {
    let encoded = |response: &ApiVersionsResponse<'_>| {
        let mut writer = Writer::new();
        response.encode(&mut writer, 3).unwrap();
        writer.bytes().to_vec()
    };
    let plain = ApiVersionsResponse::default();
    assert_eq!(encoded(&plain), [0, 0, 1, 0, 0, 0, 0, 0]);
    let feature = FinalizedFeatureKey { name: "f".into(), max_version_level: 2, min_version_level: 1 };
    let telling = ApiVersionsResponse {
        finalized_features: vec![feature],
        finalized_features_epoch: 9,
        zk_migration_ready: true,
        ..Default::default()
    };
    let expected = [
        &[0, 0, 1, 0, 0, 0, 0, 3][..],
        &[1, 8, 0, 0, 0, 0, 0, 0, 0, 9],
        &[2, 8, 2, 2, b'f', 0, 2, 0, 1, 0],
        &[3, 1, 1],
    ];
    assert_eq!(encoded(&telling), expected.concat());
    assert_eq!(ApiVersionsResponse::decode(Reader::new(&expected.concat()), 3).unwrap(), telling);
}

#[test]
fn the_answer_to_api_versions_has_the_oldest_header() {
    let mut writer = Writer::new();
    write_response(&mut writer, 7, 4, &ApiVersionsResponse::default()).unwrap();
    let (header, body) = read_response_header(&writer.bytes()[4..], ApiKey::ApiVersions, 4).unwrap();
    assert_eq!((header.correlation_id, body.position()), (7, 4));
    // A version that nobody knows yet is read as one with tags, so that it can be answered.
    let request = [0, 18, 0, 99, 0, 0, 0, 7, 0xFF, 0xFF, 0, 1, 2, 3];
    let (header, body) = read_request_header(&request).unwrap();
    assert_eq!((header.api(), header.api_version, body.position()), (Some(ApiKey::ApiVersions), 99, 11));
}

#[test]
fn lengths_that_are_none_are_told_apart() {
    assert_eq!(frame_length(*b"GET ", 100 << 20), Err(FrameFault::Http));
    assert_eq!(frame_length([0x16, 3, 1, 2], 100 << 20), Err(FrameFault::Tls));
    assert_eq!(frame_length([0xFF; 4], 100 << 20), Err(FrameFault::Negative(-1)));
    assert_eq!(frame_length([0, 0, 1, 1], 256), Err(FrameFault::TooLarge { length: 257, limit: 256 }));
    assert_eq!(frame_length([0, 0, 1, 0], 256), Ok(256));
}
