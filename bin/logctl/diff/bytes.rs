//! By bytes: the same names, the same lengths, the same bytes.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use stratalog::inspect::{LogFile, Piece};

use super::{Compared, Difference, Place, Watch};
use crate::{failure::Failure, globals::Globals, target::Target};

const BLOCK_BYTES: usize = 1 << 20;

pub(super) fn compare(a: &Target, b: &Target, globals: &Globals) -> Result<Compared, Failure> {
    let (files_a, files_b) = if a.is_file {
        // Two files are compared whatever they are called.
        let one = |target: &Target| files_of(&target.path).map(|len| (target.path.clone(), len));
        let name = String::new();
        (BTreeMap::from([(name.clone(), one(a)?)]), BTreeMap::from([(name, one(b)?)]))
    } else {
        (list(&a.path)?, list(&b.path)?)
    };
    let total = files_a.values().map(|(_, len)| len).sum();
    let mut watch = Watch::new(globals, "diff", total);
    let mut done = Compared::default();
    for (name, (path_a, _)) in &files_a {
        let Some((path_b, _)) = files_b.get(name) else {
            done.difference = Some(only_in(("A", path_a), (b, name), true));
            return Ok(done);
        };
        if let Some(found) = compare_files(path_a, path_b, &mut done, &mut watch)? {
            done.difference = Some(found);
            return Ok(done);
        }
        done.files += 1;
    }
    if let Some((name, (path_b, _))) = files_b.iter().find(|(name, _)| !files_a.contains_key(*name)) {
        done.difference = Some(only_in(("B", path_b), (a, name), false));
    }
    Ok(done)
}

fn only_in((side, path): (&str, &Path), (other, name): (&Target, &str), is_a: bool) -> Difference {
    let here = Place { file: path.to_owned(), ..Place::default() };
    let there = Place { file: other.path.join(name), ..Place::default() };
    let (a, b) = if is_a { (here, there) } else { (there, here) };
    Difference { kind: "missing-file", detail: format!("{name} is only in {side}"), a, b }
}

fn files_of(path: &Path) -> Result<u64, Failure> {
    fs::metadata(path)
        .map(|found| found.len())
        .map_err(|error| Failure::io("look at", path.display(), &error))
}

/// Every regular file by its name; ours are private, and say of one directory what need not hold of another.
fn list(dir: &Path) -> Result<BTreeMap<String, (PathBuf, u64)>, Failure> {
    let fail = |error: std::io::Error| Failure::io("list", dir.display(), &error);
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let metadata = match entry.metadata() {
            Ok(found) => found,
            // Retention took it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(fail(error)),
        };
        if name != ".lock" && !name.starts_with(".stratalog-") && metadata.is_file() {
            files.insert(name, (entry.path(), metadata.len()));
        }
    }
    Ok(files)
}

fn compare_files(
    a: &Path,
    b: &Path,
    done: &mut Compared,
    watch: &mut Watch,
) -> Result<Option<Difference>, Failure> {
    let open = |path: &Path| File::open(path).map_err(|error| Failure::io("open", path.display(), &error));
    let (mut file_a, mut file_b) = (open(a)?, open(b)?);
    let (mut block_a, mut block_b) = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    let mut position = 0;
    loop {
        watch.tick(done.bytes)?;
        let (bytes_a, bytes_b) = (fill(&mut file_a, &mut block_a, a)?, fill(&mut file_b, &mut block_b, b)?);
        let same = bytes_a.iter().zip(bytes_b).take_while(|(a, b)| a == b).count();
        done.bytes += same as u64;
        if same == bytes_a.len() && same == bytes_b.len() {
            if same == 0 {
                return Ok(None);
            }
            position += same as u64;
            continue;
        }
        position += same as u64;
        let (kind, detail) = match (bytes_a.get(same), bytes_b.get(same)) {
            (Some(one), Some(other)) => ("bytes", format!("{one:#04x} in A, {other:#04x} in B")),
            (None, _) => ("length", format!("A ends here, B goes on (to {} bytes)", files_of(b)?)),
            (_, None) => ("length", format!("B ends here, A goes on (to {} bytes)", files_of(a)?)),
        };
        let place = |path: &Path| Place {
            file: path.to_owned(),
            position: Some(position),
            offset: batch_at(path, position),
        };
        return Ok(Some(Difference { kind, detail, a: place(a), b: place(b) }));
    }
}

/// A whole block, or what is left.
fn fill<'b>(file: &mut File, block: &'b mut [u8], path: &Path) -> Result<&'b [u8], Failure> {
    let mut filled = 0;
    while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::io("read", path.display(), &error)),
        }
    }
    Ok(block.get(..filled).unwrap_or_default())
}

/// The base offset of the batch that has a byte at `position`, where the file is a `.log` and one does.
fn batch_at(path: &Path, position: u64) -> Option<stratalog::Offset> {
    if path.extension().is_none_or(|suffix| suffix != "log") {
        return None;
    }
    let file = LogFile::open(path).ok()?;
    let mut pieces = file.pieces();
    while let Ok(Some(piece)) = pieces.next_piece() {
        if let Piece::Batch(entry) = piece {
            let end = entry.position.saturating_add(u64::from(entry.header.size_bytes()));
            if entry.position > position {
                return None;
            }
            if end > position {
                return Some(entry.header.base_offset());
            }
        }
    }
    None
}
