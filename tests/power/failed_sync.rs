//! F115: the kernel says that a sync failed, and never says so again. Nothing may be acknowledged after it, and the next
//! open reads the disk itself.

use std::process::Command;

use super::{
    observed::open_and_read,
    writer::{Order, Writer},
};

pub(crate) fn run() -> Result<(), String> {
    let traced = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    match traced {
        Err(error) => return Err(format!("strace: {error}")),
        Ok(status) if !status.success() => return Err("strace may not trace here".to_owned()),
        Ok(_) => {}
    }
    let temp = super::disks::scratch();
    let mut doubted = 0;
    for nth in 1..=12 {
        let policy = ["commit", "records"][nth % 2];
        let dir = temp.path().join(nth.to_string()).join("t-0");
        let inject = format!("inject=fdatasync:error=EIO:when={nth}");
        let trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", &inject];
        let order = Order { dir: dir.clone(), policy: policy.to_owned(), seed: 1234 + nth as u64 };
        let told = Writer::start(&order, &trace).wait();
        let what = format!("fdatasync {nth} fails under {policy}");
        assert!(told.failed || told.unopened, "{what}: the writer took no notice: {told:?}");
        assert!(!told.after_failure, "{what}: acknowledged after it: {told:?}");
        let found = open_and_read(&dir, &what);
        assert!(found.end > told.durable, "{what}: ends at {}, {told:?}", found.end - 1);
        let says_so =
            found.report.warnings.iter().any(|warning| warning.contains("read from the disk itself"));
        assert!(says_so || !told.failed, "{what}: the open says nothing: {:?}", found.report);
        doubted += usize::from(says_so);
    }
    println!("failed-sync: {doubted} of 12 opens read the disk itself");
    assert!(doubted >= 10);
    Ok(())
}
