//! Bytes that are cut off, damaged or made up: an error with its place, no panic, no memory for what is only announced.

use allocation_counter::measure;
use stratalog::protocol::{
    ApiKey, DecodeError, DecodeFault, Message, frame_length,
    messages::{
        Declaration, metadata::MetadataRequest, offset_fetch::OffsetFetchRequest, produce::ProduceRequest,
        request, response,
    },
    read_request_header, read_response_header,
    wire::{ELEMENTS_BYTES, Reader, Writer},
    write_request,
};

use crate::{
    layout::{Direction, layouts},
    random::{Random, body},
};

/// Memory that a byte of a frame may come to: the largest structs hold some twenty bytes for one of the wire, a vector
/// may have grown to twice its content, and the old half is there while it grows.
const MOST_FOR_A_BYTE: usize = 80;
/// And for a frame, however small.
const MOST_FOR_A_FRAME: usize = 16 << 10;

/// Reads `bytes` and panics if that takes more memory than they justify.
fn read(declaration: &Declaration, bytes: &[u8], version: i16) -> Result<(), DecodeError> {
    let mut result = Ok(());
    let taken = measure(|| result = (declaration.decode)(Reader::new(bytes), version));
    let most = bytes.len() * MOST_FOR_A_BYTE + MOST_FOR_A_FRAME;
    assert!(
        taken.bytes_max <= most as u64,
        "{} bytes for {}, version {version}: {bytes:?}",
        taken.bytes_max,
        bytes.len()
    );
    if let Err(error) = &result {
        assert!(error.position <= bytes.len(), "{error}");
        assert!(!error.field.is_empty() || matches!(error.fault, DecodeFault::Trailing { .. }), "{error}");
        assert!(error.to_string().len() < 200);
    }
    result
}

/// Structs within structs, in ordinary fields and in tagged ones: they share the room of the message.
#[test]
fn the_room_of_a_message_is_for_all_its_arrays_together() {
    // Topics without a name, each with partitions of which nothing is there but zeros.
    let (topics, partitions) = (2_000_u32, 2_000_u32);
    let mut bytes = vec![0; 1 + 2 + 4];
    let mut writer = Writer::new();
    writer.put_varint(topics + 1);
    for _ in 0..topics {
        writer.put(&[1]);
        writer.put_varint(partitions + 1);
        for _ in 0..partitions {
            // An index, no records, no tags.
            writer.put(&[0, 0, 0, 0, 0, 0]);
        }
        writer.put(&[0]);
    }
    bytes.extend(writer.bytes());
    bytes.push(0);
    let mut error = None;
    let taken = measure(|| error = (request(ApiKey::Produce).decode)(Reader::new(&bytes), 9).err());
    let error = error.unwrap();
    assert!(matches!(error.fault, DecodeFault::Room { .. }), "{error}");
    let most = ELEMENTS_BYTES + bytes.len() + (1 << 20);
    assert!(taken.bytes_max <= most as u64, "{} of {most}", taken.bytes_max);
    assert!((request(ApiKey::Produce).decode)(Reader::new(&bytes).with_room(usize::MAX), 9).is_ok());
}

/// A few bodies of every message and version.
fn each(rounds: usize, mut look: impl FnMut(&str, &Declaration, i16, Vec<u8>, &mut Random)) {
    let mut random = Random(0xBAD);
    for layout in layouts() {
        let Some(api) = ApiKey::from_key(layout.key) else { continue };
        let declaration = match layout.direction {
            Direction::Request => request(api),
            Direction::Response => response(api),
        };
        for version in layout.first..=layout.last {
            let place = format!("{api} {:?} {version}", layout.direction);
            for _ in 0..rounds {
                let bytes = body(&layout, &mut random);
                look(&place, &declaration, version, bytes, &mut random);
            }
        }
    }
}

#[test]
fn no_prefix_and_no_continuation_is_taken_for_the_message() {
    each(2, |place, declaration, version, mut bytes, _| {
        for end in 0..bytes.len() {
            let error = read(declaration, &bytes[..end], version).unwrap_err();
            assert!(!matches!(error.fault, DecodeFault::Trailing { .. }), "{place}: {error}");
        }
        read(declaration, &bytes, version).unwrap();
        let position = bytes.len();
        bytes.push(0);
        let error = read(declaration, &bytes, version).unwrap_err();
        assert_eq!((error.position, error.fault), (position, DecodeFault::Trailing { left: 1 }), "{place}");
    });
}

#[test]
fn damaged_bytes_are_refused_or_read_as_something_that_can_be_written() {
    each(6, |place, declaration, version, mut bytes, random| {
        for _ in 0..=random.below(3) {
            if bytes.is_empty() {
                return;
            }
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.bytes(1)[0],
                _ => drop(bytes.remove(at)),
            }
        }
        if read(declaration, &bytes, version).is_err() {
            return;
        }
        let once = (declaration.recode)(Reader::new(&bytes), version).unwrap();
        let encoded = once.encoded.unwrap();
        let twice = (declaration.recode)(Reader::new(&encoded), version).unwrap();
        assert_eq!((&once.text, Ok(&encoded)), (&twice.text, twice.encoded.as_ref()), "{place}: {bytes:?}");
    });
}

#[test]
fn announced_lengths_take_no_memory() {
    each(1, |_, declaration, version, bytes, _| {
        for at in 0..bytes.len() {
            for lie in [
                &[0x7F, 0xFF, 0xFF, 0xFF][..],
                &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F],
                &[0x00, 0x10, 0, 0],
                &[0x7F, 0xFF],
            ] {
                let mut bytes = bytes.clone();
                let end = bytes.len().min(at + lie.len());
                bytes.splice(at..end, lie.iter().copied());
                let _ = read(declaration, &bytes, version);
            }
        }
    });
}

#[test]
fn noise_is_refused_or_read() {
    let mut random = Random(0x0015E);
    each(20, |_, declaration, version, _, _| {
        let count = random.below(200);
        let mut bytes = random.bytes(count);
        // Small numbers are lengths that fit: without them noise does not get far.
        for byte in &mut bytes {
            *byte = if random.below(3) > 0 { *byte % 4 } else { *byte };
        }
        let _ = read(declaration, &bytes, version);
    });
}

#[test]
fn as_many_elements_as_fit_are_read_and_no_more_are_tried() {
    // An empty name and no tags: two bytes each, the most that a frame can be blown up.
    let count = 100_000_u32;
    let mut writer = Writer::new();
    writer.put_varint(count + 1);
    let mut bytes = writer.bytes().to_vec();
    for _ in 0..count {
        bytes.extend([1, 0]);
    }
    bytes.extend([0, 0, 0, 0]);
    read(&request(ApiKey::Metadata), &bytes, 9).unwrap();
    let topics = MetadataRequest::decode(Reader::new(&bytes), 9).unwrap().topics.unwrap();
    assert_eq!(topics.len(), count as usize);
    // Forty times as many: what they would take is more than any message needs.
    let count = 4_000_000_u32;
    let mut writer = Writer::new();
    writer.put_varint(count + 1);
    let mut many = writer.bytes().to_vec();
    many.resize(many.len() + 2 * count as usize, 0);
    many[4..].chunks_exact_mut(2).for_each(|name| name[0] = 1);
    many.extend([0, 0, 0, 0]);
    let mut error = None;
    let taken = measure(|| error = (request(ApiKey::Metadata).decode)(Reader::new(&many), 9).err());
    assert!(matches!(error.unwrap().fault, DecodeFault::Room { .. }));
    assert!(taken.bytes_max <= 1 << 20, "{}", taken.bytes_max);
    let count = 100_000_u32;
    let cut = &bytes[..bytes.len() / 2];
    let fault = DecodeFault::Count { count: count as usize, most: (cut.len() - 3) / 2 };
    let error = read(&request(ApiKey::Metadata), cut, 9).unwrap_err();
    assert_eq!(error, DecodeError { field: "MetadataRequest.topics", position: 0, fault });
}

#[test]
fn faults_are_told_apart() {
    let produce = |bytes: &[u8], version| ProduceRequest::decode(Reader::new(bytes), version).unwrap_err();
    let error = produce(&[0xFF, 0xFE], 3);
    assert_eq!(error.fault, DecodeFault::NegativeLength(-2));
    assert_eq!((error.field, error.position), ("ProduceRequest.transactional_id", 0));
    for long in [&[0xFF, 0xFF, 0xFF, 0xFF, 0x1F][..], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01]] {
        assert_eq!(produce(long, 9).fault, DecodeFault::Varint);
    }
    assert_eq!(produce(&[5, b'a'], 9).fault, DecodeFault::Short { needed: 4, left: 1 });
    for version in [-1, 2, 14, i16::MAX] {
        assert_eq!(produce(&[], version).fault, DecodeFault::Version(version));
    }
    // No topics at all is `null` from version 2 on.
    let nobody = [0, 1, b'g', 0xFF, 0xFF, 0xFF, 0xFF];
    let error = OffsetFetchRequest::decode(Reader::new(&nobody), 1).unwrap_err();
    assert_eq!(
        (error.field, error.position, error.fault),
        ("OffsetFetchRequest.topics", 3, DecodeFault::Null)
    );
    assert_eq!(OffsetFetchRequest::decode(Reader::new(&nobody), 2).unwrap().topics, None);
}

#[test]
fn unknown_tags_are_stepped_over() {
    let mut writer = Writer::new();
    MetadataRequest::default().encode(&mut writer, 12).unwrap();
    let mut bytes = writer.bytes().to_vec();
    assert_eq!(bytes.pop(), Some(0));
    let known = bytes.len();
    bytes.extend([2, 0, 1, 0xAA, 0xE4, 0x07, 2, 0xBB, 0xCC]);
    assert_eq!(MetadataRequest::decode(Reader::new(&bytes), 12).unwrap(), MetadataRequest::default());
    // One that says it is longer than the frame, and more of them than there can be.
    bytes[known + 6] = 3;
    let error = MetadataRequest::decode(Reader::new(&bytes), 12).unwrap_err();
    let fault = DecodeFault::Short { needed: 3, left: 2 };
    assert_eq!((error.field, error.position, error.fault), ("MetadataRequest.tags", known + 7, fault));
    bytes[known] = 5;
    let error = MetadataRequest::decode(Reader::new(&bytes), 12).unwrap_err();
    assert_eq!(error.fault, DecodeFault::Count { count: 5, most: 4 });
}

#[test]
fn headers_that_are_cut_or_noise_are_refused() {
    let mut writer = Writer::new();
    write_request(&mut writer, 5, Some("client"), 12, &MetadataRequest::default()).unwrap();
    let frame = &writer.bytes()[4..];
    let (_, body) = read_request_header(frame).unwrap();
    for end in 0..body.position() {
        let error = read_request_header(&frame[..end]).unwrap_err();
        assert!(error.position <= end && error.field == "RequestHeader", "{error}");
        let _ = read_response_header(&frame[..end], ApiKey::Metadata, 12);
    }
    let mut random = Random(1);
    for _ in 0..10_000 {
        let count = random.below(40);
        let mut bytes = random.bytes(count);
        if let Some([high, low]) = bytes.first_chunk_mut() {
            (*high, *low) = (0, *low % 80);
        }
        let taken = measure(|| {
            let _ = read_request_header(&bytes);
            let _ = read_response_header(&bytes, ApiKey::Fetch, 12);
        });
        assert_eq!(taken.count_total, 0);
        if let Some(length) = bytes.first_chunk() {
            let _ = frame_length(*length, 100 << 20);
        }
    }
}
