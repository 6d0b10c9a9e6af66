//! The working day itself.

use crate::session::Session;

#[test]
fn morning() {
    let mut day = Session::new("morning");
    day.chapter("a log is made");
    day.run("logctl append orders-0");
    day.run("seq 1 5 | logctl append orders-0 --create --timestamp 1700000000000");
    day.run(
        "printf 'k1=one\\nk2=two\\n' | logctl append orders-0 -K = -H source=test --timestamp 1700000001000",
    );
    day.run("logctl cat orders-0");
    day.run("logctl cat orders-0 -J -o 5:");
    day.finish();
}
