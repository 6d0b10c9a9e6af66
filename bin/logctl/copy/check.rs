//! `--check`: both sides are read again, the copy from its disk, and their checksums compared.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use stratalog::{record::crc32c_of, transfer::drop_cached};

use super::{Flow, listing::Listing};
use crate::failure::{Code, Failure};

const BLOCK_BYTES: usize = 1 << 20;

/// Compares every file that was copied; gives how many there were. A file that retention took meanwhile is passed over.
pub(super) fn compare(
    source: &Path,
    copy: &Path,
    listing: &Listing,
    flow: &mut Flow,
) -> Result<u64, Failure> {
    let mut count = 0;
    let (mut block_a, mut block_b) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    for item in &listing.items {
        let (from, to) = (source.join(&item.name), copy.join(&item.name));
        let mut original = match File::open(&from) {
            Ok(file) => file.take(item.bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(Failure::io("open", from.display(), &error)),
        };
        let file = File::open(&to).map_err(|error| Failure::io("open", to.display(), &error))?;
        // It was synced: what is read now comes from where it lies.
        drop_cached(&file);
        let mut copied = file.take(item.bytes);
        let mut position = 0;
        while position < item.bytes {
            flow.stop.check()?;
            let one = fill(&mut original, &mut block_a)
                .map_err(|error| Failure::io("read", from.display(), &error))?;
            let other =
                fill(&mut copied, &mut block_b).map_err(|error| Failure::io("read", to.display(), &error))?;
            let (sum, other_sum) = (crc32c_of(&[one]), crc32c_of(&[other]));
            if one.len() != other.len() || sum != other_sum || one.is_empty() {
                let within = one.iter().zip(other).take_while(|(a, b)| a == b).count();
                let what = format!(
                    "{} and its copy {} differ from byte {} on",
                    from.display(),
                    to.display(),
                    position + within as u64
                );
                return Err(Failure::new(Code::Corrupt, what)
                    .hint("remove that file and go on with --resume; do not trust the disk, or the memory"));
            }
            position += one.len() as u64;
        }
        count += 1;
    }
    Ok(count)
}

fn fill<'b>(from: &mut impl Read, block: &'b mut [u8]) -> std::io::Result<&'b [u8]> {
    let mut filled = 0;
    while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(block.get(..filled).unwrap_or_default())
}
