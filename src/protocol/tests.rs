//! The codec as a whole: frames there and back.

use super::{
    ApiKey, DecodeFault, FrameFault, Message, frame_length,
    messages::{
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
fn lengths_that_are_none_are_told_apart() {
    assert_eq!(frame_length(*b"GET ", 100 << 20), Err(FrameFault::Http));
    assert_eq!(frame_length([0x16, 3, 1, 2], 100 << 20), Err(FrameFault::Tls));
    assert_eq!(frame_length([0xFF; 4], 100 << 20), Err(FrameFault::Negative(-1)));
    assert_eq!(frame_length([0, 0, 1, 1], 256), Err(FrameFault::TooLarge { length: 257, limit: 256 }));
    assert_eq!(frame_length([0, 0, 1, 0], 256), Ok(256));
}
