//! Any bytes as record batches: parsed, checked, unpacked within a limit, every record walked. The checksum is made right
//! first, so that what lies behind it is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stratalog::record::{Batches, CRC_AT, CRC_START, Scratch, crc32c, probe};

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    if let Ok(Some(found)) = probe(&bytes)
        && let Some(batch) = bytes.get_mut(..found.size_bytes as usize)
        && batch.len() > CRC_START
    {
        let crc = crc32c(&batch[CRC_START..]);
        batch[CRC_AT..CRC_START].copy_from_slice(&crc.to_be_bytes());
    }
    let mut scratch = Scratch::with_limit(1 << 20);
    for batch in Batches::new(&bytes) {
        let Ok(batch) = batch else { break };
        let _ = batch.check_crc();
        let _ = batch.validate_for_append();
        let _ = batch.validate_for_preserve();
        let Ok(records) = batch.records(&mut scratch) else { continue };
        for record in records {
            let Ok(record) = record else { break };
            assert!(record.offset() <= batch.last_offset());
            record.headers().for_each(drop);
        }
    }
});
