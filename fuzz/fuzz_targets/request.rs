//! Any bytes as the body of a request: the first two choose the API and the version. What can be read can be written, and is
//! then read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stratalog::protocol::{ApiKey, messages::request, wire::Reader};

fuzz_target!(|bytes: &[u8]| {
    let [key, version, body @ ..] = bytes else { return };
    let Some(api) = ApiKey::from_key(i16::from(*key)) else { return };
    let (declaration, version) = (request(api), i16::from(*version));
    let once = match (declaration.recode)(Reader::new(body), version) {
        Ok(once) => once,
        Err(error) => return assert!(error.position <= body.len() && !error.to_string().is_empty()),
    };
    let encoded = once.encoded.expect("what was read can be written");
    let twice = (declaration.recode)(Reader::new(&encoded), version).expect("what was written can be read");
    assert_eq!(once.text, twice.text);
    assert_eq!(Ok(encoded), twice.encoded);
});
