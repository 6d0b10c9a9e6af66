//! Two data directories: the same partitions, each the same, and by bytes the same files beside them.

use std::{collections::BTreeMap, path::Path};

use super::{By, Compared, Difference, Place, bytes, compare};
use crate::{failure::Failure, globals::Globals, scope::Found, target::Target};

/// The total, and the first difference of each partition that differs.
pub(super) fn compare_all(
    (a, partitions_a): (&Path, Vec<Found>),
    (b, partitions_b): (&Path, Vec<Found>),
    by: By,
    ignore_epoch: bool,
    globals: &Globals,
) -> Result<(Compared, Vec<Difference>), Failure> {
    let by_name = |partitions: Vec<Found>| {
        let named = |found: Found| ((found.topic, found.partition), found.path);
        partitions.into_iter().map(named).collect::<BTreeMap<_, _>>()
    };
    let (partitions_a, partitions_b) = (by_name(partitions_a), by_name(partitions_b));
    let (mut total, mut differences) = (Compared::default(), Vec::new());
    for (name, path_a) in &partitions_a {
        let Some(path_b) = partitions_b.get(name) else {
            let here = Place { file: path_a.clone(), ..Place::default() };
            let there = Place { file: b.join(dir_name(name)), ..Place::default() };
            differences.push(missing(name, "A", here, there));
            continue;
        };
        let target = |path: &Path| Target::new(path.to_owned(), false);
        let compared = compare(&target(path_a), &target(path_b), by, ignore_epoch, globals)?;
        add(&mut total, &compared);
        total.partitions += 1;
        differences.extend(compared.difference);
    }
    for (name, path_b) in partitions_b.iter().filter(|(name, _)| !partitions_a.contains_key(*name)) {
        let here = Place { file: a.join(dir_name(name)), ..Place::default() };
        let there = Place { file: path_b.clone(), ..Place::default() };
        differences.push(missing(name, "B", here, there));
    }
    if by == By::Bytes {
        let target = |path: &Path| Target::new(path.to_owned(), false);
        let compared = bytes::compare(&target(a), &target(b), globals)?;
        add(&mut total, &compared);
        differences.extend(compared.difference);
    }
    Ok((total, differences))
}

fn dir_name((topic, partition): &(String, u32)) -> String {
    format!("{topic}-{partition}")
}

fn missing(name: &(String, u32), side: &str, a: Place, b: Place) -> Difference {
    let detail = format!("{} is only in {side}", dir_name(name));
    Difference { kind: "missing-partition", detail, a, b }
}

fn add(total: &mut Compared, more: &Compared) {
    total.files += more.files;
    total.batches += more.batches;
    total.records += more.records;
    total.bytes += more.bytes;
}
