//! `--resume` over a copy without its mark: it was finished, perhaps just before a kill, or it is none. That it is whole is
//! proved by its bytes.

use std::{fs, path::Path};

use stratalog::{Error, LogReader, ReadOptions};

use super::{
    Flow, check,
    data_dir::{Whole, root_files},
    listing::Listing,
    partition::Done,
};
use crate::{
    failure::{Code, Failure},
    scope::{Found, partitions_of, reachable},
};

/// Proves that `copy` holds all of the log in `source`, and nothing else. Changes nothing.
pub(super) fn prove(source: &Path, copy: &Path, flow: &mut Flow) -> Result<(Listing, Done), Failure> {
    let mut listing = Listing::of(source, false)?;
    let reader = match LogReader::open(copy, ReadOptions::default()) {
        Ok(reader) => reader,
        Err(Error::NotFound { .. }) => return Err(none_of(source, copy, "it is no log")),
        Err(error) => return Err(error.into()),
    };
    let (start, end) = (reader.start(), reader.end());
    // The start is carried over when all else is there.
    if start > listing.start || end != listing.end {
        let now =
            format!("it holds offsets {start} up to {end}, the log {} up to {}", listing.start, listing.end);
        return Err(none_of(source, copy, &now));
    }
    // A writer that opened either since may have built the other files anew.
    listing.items.retain(|item| is_log(&item.name));
    let names = logs_in(copy)?;
    let listed: Vec<_> = listing.items.iter().map(|item| item.name.clone()).collect();
    if names != listed {
        return Err(none_of(source, copy, "it has other segments"));
    }
    let mut done = Done { was_finished: true, kept: listing.items.len() as u64, ..Done::default() };
    done.checked = check::compare(source, copy, &listing, flow).map_err(|failure| match failure.code {
        Code::Corrupt => none_of(source, copy, failure.what()),
        _ => failure,
    })?;
    done.files = listing.items.len() as u64;
    done.bytes = listing.total_bytes();
    Ok((listing, done))
}

/// The same for a data directory: every partition, and no other; the small files of a broker are there.
pub(super) fn prove_all(
    source: &Path,
    partitions: &[Found],
    copy: &Path,
    flow: &mut Flow,
) -> Result<Whole, Failure> {
    let (files, left) = root_files(source)?;
    let mut whole =
        Whole { partitions: Vec::new(), total: Done { was_finished: true, ..Done::default() }, left };
    let copied = partitions_of(copy).unwrap_or_default();
    let is_of_source =
        |found: &Found| partitions.iter().any(|other| other.path.file_name() == found.path.file_name());
    if let Some(other) = copied.iter().find(|found| !is_of_source(found)) {
        let what = format!("{} is not in the source", other.path.display());
        return Err(none_of(source, copy, &what));
    }
    for found in partitions {
        let Some(name) = found.path.file_name().filter(|_| reachable(&found.path).is_ok()) else { continue };
        let (listing, done) = prove(&found.path, &copy.join(name), flow)?;
        whole.total.add(&done);
        whole.partitions.push((found.path.clone(), listing, done));
    }
    // What they say changes with every start of a broker.
    for (name, bytes) in &files {
        let is_there = fs::symlink_metadata(copy.join(name)).is_ok();
        // The marker of a clean stop comes along only sometimes.
        if !is_there && !name.starts_with('.') {
            return Err(none_of(source, copy, &format!("it has no {name}")));
        }
        whole.total.files += u64::from(is_there);
        whole.total.bytes += if is_there { bytes.len() as u64 } else { 0 };
    }
    Ok(whole)
}

fn none_of(source: &Path, copy: &Path, why: &str) -> Failure {
    let what =
        format!("{} is not empty, and not a finished copy of {}: {why}", copy.display(), source.display());
    Failure::other(what).hint("copy to a directory that does not exist, or an empty one")
}

fn is_log(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|suffix| suffix == "log")
}

fn logs_in(dir: &Path) -> Result<Vec<String>, Failure> {
    let fail = |error: std::io::Error| Failure::io("list", dir.display(), &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name().to_string_lossy().into_owned();
        if is_log(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
