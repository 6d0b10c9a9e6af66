//! SIGKILL thirty times: the page cache stays, so everything that was acknowledged at all is there.

use std::time::Duration;

use super::{
    observed::open_and_read,
    writer::{Order, POLICIES, Writer},
};

const KILLS: u64 = 6;

#[expect(
    clippy::unnecessary_wraps,
    reason = "the other parts can be impossible on a machine; this one never is"
)]
pub(crate) fn run() -> Result<(), String> {
    let temp = super::disks::scratch();
    for policy in POLICIES {
        let dir = temp.path().join(policy).join("t-0");
        let mut acknowledged = 0;
        for nth in 0..KILLS {
            let seed = nth * 31 + 7;
            let writer = Writer::start(&Order { dir: dir.clone(), policy: policy.to_owned(), seed }, &[]);
            std::thread::sleep(Duration::from_millis(20 + (seed * 37) % 200));
            let told = writer.kill();
            let what = format!("{policy}, kill {nth}");
            assert!(!told.failed && !told.unopened, "{what}: {told:?}");
            if told.lines == 0 {
                continue;
            }
            let found = open_and_read(&dir, &what);
            acknowledged = told.written.max(acknowledged);
            assert!(found.end > acknowledged, "{what}: ends at {}, {acknowledged} told", found.end - 1);
            assert!(found.start >= told.start, "{what}: the start went back to {}", found.start);
        }
        println!("sigkill: {policy}: {KILLS} kills, {acknowledged} records acknowledged");
        assert!(acknowledged > 0, "{policy}: no writer came to anything");
    }
    Ok(())
}
