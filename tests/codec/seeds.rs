//! What fuzzing begins with: each message in each version, as Kafka's layouts have it.

use std::{fs, path::Path};

use stratalog::protocol::ApiKey;

use crate::{
    layout::{Direction, layouts},
    random::{Random, body},
};

#[test]
#[ignore = "writes fuzz/corpus: run by hand or by the long CI before fuzzing"]
fn seeds_for_fuzzing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let folder = |goal: &str| {
        let folder = corpus.join(goal);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    let (frames, requests, responses) = (folder("frame"), folder("request"), folder("response"));
    let mut random = Random(0x5EED);
    let mut written = 0;
    for layout in layouts() {
        let Some(api) = ApiKey::from_key(layout.key) else { continue };
        for version in layout.first..=layout.last {
            let body = body(&layout, &mut random);
            let [key, version_byte] = [layout.key, version].map(|number| u8::try_from(number).unwrap());
            let name = format!("{api}-{version}");
            let chosen = [&[key, version_byte][..], &body].concat();
            if layout.direction == Direction::Response {
                fs::write(responses.join(name), chosen).unwrap();
                continue;
            }
            fs::write(requests.join(&name), chosen).unwrap();
            let tags: &[u8] = if api.request_header_version(version) == 2 { &[0] } else { &[] };
            let header = [0, key, 0, version_byte, 0, 0, 0, 7, 0, 1, b'c'];
            fs::write(frames.join(&name), [&header[..], tags, &body].concat()).unwrap();
            written += 1;
        }
    }
    assert!(written > 150, "{written} requests");
}
