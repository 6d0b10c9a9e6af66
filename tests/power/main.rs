//! Real ends of a writer: the power goes, SIGKILL, a sync that the kernel says failed.
//!
//! The writer is this binary again, told by its environment what to do; it says on standard output what it has been
//! acknowledged. What every record holds follows from its offset, so that any record found can be checked.
//!
//! `STRATALOG_POWER_CUTS`: how often the power is cut, 10 by default. `STRATALOG_POWER=require`: what this machine cannot
//! do (loop devices, mounting, strace) is a failure; otherwise the reason is printed and the rest goes on.

#![expect(
    clippy::unwrap_used,
    reason = "all of it is a test; clippy knows only the functions that are marked as one"
)]

mod cuts;
mod disks;
mod failed_sync;
mod kills;
mod observed;
mod writer;

fn main() {
    if let Some(order) = writer::Order::from_environment() {
        writer::run(&order);
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // What `cargo test` passes on to every binary.
    if arguments.iter().any(|argument| argument == "--list") {
        return;
    }
    let filter = arguments.into_iter().find(|argument| !argument.starts_with('-'));
    for (name, part) in [
        ("sigkill", kills::run as fn() -> Result<(), String>),
        ("failed-sync", failed_sync::run),
        ("power-cuts", cuts::run),
    ] {
        if filter.as_ref().is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        match part() {
            Ok(()) => println!("{name}: ok"),
            Err(why) if std::env::var("STRATALOG_POWER").is_ok_and(|wish| wish == "require") => {
                panic!("{name} cannot be done here and is required: {why}")
            }
            Err(why) => println!("{name}: skipped: {why}"),
        }
    }
}
