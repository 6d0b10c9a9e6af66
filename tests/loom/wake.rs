//! The waiters' flag: a reader of another process never sleeps through what the writer published.

use loom::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::{looking, real, relaxed};

/// The kernel's side: to sleep on a word is one step with the look whether it is still what it was.
macro_rules! model {
    ($module:ident, $atomic:ty, $publishes:expr, $readers:expr) => {
        || {
            let words = Arc::new((<$atomic>::new(0), <$atomic>::new(0)));
            let end = Arc::new(AtomicU64::new(0));
            let bed = Arc::new((Mutex::new(()), Condvar::new()));
            let readers: Vec<_> = (0..$readers)
                .map(|_| {
                    let (words, end, bed) = (Arc::clone(&words), Arc::clone(&end), Arc::clone(&bed));
                    thread::spawn(move || {
                        let wanted = $publishes;
                        // As a page is loaded.
                        let look = || {
                            let value = end.load(Ordering::Relaxed);
                            loom::sync::atomic::fence(Ordering::Acquire);
                            value >= wanted
                        };
                        while !look() {
                            let words = $module::wake::WakeWords { flag: &words.0, word: &words.1 };
                            words.wait(look, |word, before| {
                                let mut asleep = bed.0.lock().unwrap();
                                while word.load(Ordering::Relaxed) == before {
                                    asleep = bed.1.wait(asleep).unwrap();
                                }
                            });
                        }
                    })
                })
                .collect();
            for value in 1..=$publishes {
                end.store(value, Ordering::Release);
                let words = $module::wake::WakeWords { flag: &words.0, word: &words.1 };
                words.published(|_| {
                    let _asleep = bed.0.lock().unwrap();
                    bed.1.notify_all();
                });
            }
            for reader in readers {
                // Who sleeps for ever is found by loom: nobody can go on.
                reader.join().unwrap();
            }
        }
    };
}

type Atomic = loom::sync::atomic::AtomicU32;

#[test]
fn no_reader_sleeps_through_a_publish() {
    loom::model(model!(real, Atomic, 1, 1));
}

#[test]
fn no_reader_sleeps_through_the_second_of_two() {
    loom::model(model!(real, Atomic, 2, 1));
}

#[test]
fn two_readers_are_both_woken() {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(3);
    bounded.check(model!(real, Atomic, 1, 2));
}

#[test]
fn with_relaxed_exchanges() {
    if !crate::is_to_fail() {
        return;
    }
    loom::model(model!(relaxed, relaxed::AtomicU32, 1, 1));
}

#[test]
fn exchanges_that_order_nothing_lose_wake_ups() {
    let said = crate::failure_of("wake::with_relaxed_exchanges");
    assert!(said.contains("deadlock"), "{said}");
}

#[test]
fn with_a_look_first() {
    if !crate::is_to_fail() {
        return;
    }
    loom::model(model!(looking, looking::AtomicU32, 1, 1));
}

#[test]
fn a_look_in_the_place_of_an_exchange_loses_wake_ups() {
    let said = crate::failure_of("wake::with_a_look_first");
    assert!(said.contains("deadlock"), "{said}");
}
