//! Who holds a log now, told by verbs that take no lock.

use std::path::Path;

use stratalog::{Error, LockHolder, lock_holder};

use crate::{failure::Failure, output::Output, target::Target};

/// Who holds the lock that a writer of this log needs; `None` for a file by itself.
pub(crate) fn holder_of(target: &Target) -> Result<Option<LockHolder>, Failure> {
    if target.is_file { Ok(None) } else { holder_at(&target.path) }
}

fn holder_at(path: &Path) -> Result<Option<LockHolder>, Failure> {
    match lock_holder(path) {
        Err(Error::NotFound { .. }) => Ok(None),
        found => Ok(found?),
    }
}

/// `free`, or who.
pub(crate) fn lock_text(holder: Option<&LockHolder>) -> String {
    holder.map_or_else(|| "free".to_owned(), |holder| format!("held by {holder}"))
}

/// Beside a plan that is only looked at: carrying it out would be refused now. Nothing where the log is free.
pub(crate) fn tell_locked(target: &Target, out: &mut Output) -> Result<(), Failure> {
    let Some(holder) = holder_of(target)? else { return Ok(()) };
    let path = &target.path;
    if out.is_json() {
        out.object("lock")
            .text("path", &path.to_string_lossy())
            .bare("locked", true)
            .text("lock_file", &holder.path.to_string_lossy())
            .maybe("pid", holder.pid)
            .text("lock", &lock_text(Some(&holder)))
            .end();
        return out.spill();
    }
    let text = format!("{}: locked now, held by {holder}: a change would be refused\n", path.display());
    out.foreign(text.as_bytes())
}
