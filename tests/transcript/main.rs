//! A working day with `logctl`, as a person at a terminal sees it and as a script behind a pipe does.
//!
//! Lives here: sessions of commands in a pseudo-terminal (a real one, with its window size, its colours and its Ctrl-C)
//! and in pipes, and the files in `golden/` that say what came of them. Not here: what a verb does (`tests/cli`); these
//! files hold how it looks. `UPDATE_GOLDEN=1 cargo test --test transcript` writes them anew, to be read before they are
//! kept.
//!
//! Holds always: nothing here waits for a length of time, only for something to be seen; what differs from run to run
//! (paths, times of the clock, rates) is made the same before it is compared; and of what may be longer or shorter than
//! the next time nothing is shown in a window, where lines would be wrapped elsewhere.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod changing;
mod golden;
mod help;
mod live;
mod looking;
mod normal;
mod plumbing;
mod records;
mod screen;
mod session;
mod terminal;
