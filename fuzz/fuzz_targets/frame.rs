//! Any bytes as what follows a frame's length: the header of a request, then its body in the version that it names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stratalog::protocol::{frame_length, messages::request, read_request_header};

fuzz_target!(|bytes: &[u8]| {
    if let Some(length) = bytes.first_chunk() {
        if let Ok(length) = frame_length(*length, 1 << 20) {
            assert!(length <= 1 << 20);
        }
    }
    let Ok((header, body)) = read_request_header(bytes) else { return };
    assert!(body.position() + body.rest().len() == bytes.len());
    let Some(api) = header.api() else { return };
    match (request(api).decode)(body, header.api_version) {
        Ok(()) => assert!(api.versions().contains(header.api_version)),
        Err(error) => assert!(error.position <= bytes.len() && !error.to_string().is_empty()),
    }
});
