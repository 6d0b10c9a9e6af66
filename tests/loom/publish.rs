//! The order of the control page: whatever a reader takes from it was true together at some moment.

use loom::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::{real, unfenced};

const OPENING: u64 = 1;
const OPEN: u64 = 2;
const WORDS: usize = 14;

type Page = [AtomicU64; WORDS];

/// A page of generation 1, open, with an active segment at 0 and no record.
fn page() -> Arc<Page> {
    let page: Page = std::array::from_fn(|_| AtomicU64::new(0));
    page[real::publish::STATE].store(OPEN, Ordering::Relaxed);
    page[real::publish::GENERATION].store(1, Ordering::Relaxed);
    Arc::new(page)
}

fn storing(page: &Page) -> impl FnMut(usize, u64) {
    |word, value| page[word].store(value, Ordering::Release)
}

/// The end in a segment: as many bytes as records, in the model.
fn end(count: u64) -> u64 {
    count << 32 | count
}

/// Runs a writer beside a reader that loads once.
macro_rules! model {
    ($module:ident, $writer:expr, $check:expr) => {
        || {
            let page = page();
            let other = Arc::clone(&page);
            let writer = thread::spawn(move || $writer(&other));
            let seen = $module::publish::load(|word| page[word].load(Ordering::Relaxed));
            if let Some(seen) = seen {
                $check((seen.state, seen.generation), (seen.start, seen.durable, seen.written), seen.active);
            }
            writer.join().unwrap();
        }
    };
}

/// Records are written, made durable, and dropped.
fn append_and_drop(page: &Page) {
    real::publish::store_written(storing(page), (0, end(5)), false, 5);
    page[real::publish::DURABLE].store(5, Ordering::Release);
    page[real::publish::START].store(5, Ordering::Release);
}

fn ends_keep_their_order(
    _: (u64, u64),
    (start, durable, written): (u64, u64, u64),
    active: Option<(u64, u64)>,
) {
    assert!(start <= durable, "start {start} above durable {durable}");
    assert!(durable <= written, "durable {durable} above written {written}");
    let in_segment = active.map_or(written, |(base, end)| base + (end >> 32));
    assert!(durable <= in_segment, "durable {durable} above the segment's end {in_segment}");
}

/// A segment at 5 begins, and grows.
fn roll(page: &Page) {
    real::publish::store_written(storing(page), (0, end(5)), false, 5);
    real::publish::store_written(storing(page), (5, end(0)), true, 5);
    real::publish::store_written(storing(page), (5, end(2)), false, 7);
}

fn end_is_of_its_segment(_: (u64, u64), _: (u64, u64, u64), active: Option<(u64, u64)>) {
    let possible = [(0, end(0)), (0, end(5)), (5, end(0)), (5, end(2))];
    assert!(active.is_none_or(|active| possible.contains(&active)), "torn: {active:?}");
}

/// The log is cut by the next writer: its ends are below those of the one before.
fn cut_and_open(page: &Page) {
    real::publish::store_written(storing(page), (0, end(9)), false, 9);
    real::publish::store_opening(storing(page), OPENING, 2);
    real::publish::store_written(storing(page), (0, end(3)), false, 3);
    page[real::publish::STATE].store(OPEN, Ordering::Release);
}

fn values_are_of_their_generation(
    (state, generation): (u64, u64),
    _: (u64, u64, u64),
    active: Option<(u64, u64)>,
) {
    let possible: &[u64] = match (state, generation) {
        (OPEN, 1) => &[end(0), end(9)],
        (OPEN, 2) => &[end(3)],
        // Not believed.
        _ => return,
    };
    let (_, found) = active.unwrap();
    assert!(possible.contains(&found), "generation {generation} with the end {found:x}");
}

/// `load` tries again for long: the model need not follow it there.
fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(4);
    bounded.check(model);
}

#[test]
fn start_durable_written_never_cross() {
    check(model!(real, append_and_drop, ends_keep_their_order));
}

#[test]
fn an_end_is_never_taken_for_another_segments() {
    check(model!(real, roll, end_is_of_its_segment));
}

#[test]
fn no_value_of_one_writer_is_taken_for_anothers() {
    check(model!(real, cut_and_open, values_are_of_their_generation));
}

#[test]
fn unfenced_ends() {
    if !crate::is_to_fail() {
        return;
    }
    check(model!(unfenced, append_and_drop, ends_keep_their_order));
}

#[test]
fn unfenced_segments() {
    if !crate::is_to_fail() {
        return;
    }
    check(model!(unfenced, roll, end_is_of_its_segment));
}

#[test]
fn unfenced_generations() {
    if !crate::is_to_fail() {
        return;
    }
    check(model!(unfenced, cut_and_open, values_are_of_their_generation));
}

#[test]
fn without_the_fence_each_of_them_fails() {
    for (test, reason) in [
        ("publish::unfenced_ends", "above"),
        ("publish::unfenced_segments", "torn"),
        ("publish::unfenced_generations", "with the end"),
    ] {
        let said = crate::failure_of(test);
        assert!(said.contains(reason), "{test}: {said}");
    }
}

/// Stores that are no releases.
fn append_relaxed(page: &Page) {
    let store = |word: usize, value| page[word].store(value, Ordering::Relaxed);
    real::publish::store_written(store, (0, end(5)), false, 5);
    page[real::publish::DURABLE].store(5, Ordering::Relaxed);
    page[real::publish::START].store(5, Ordering::Relaxed);
}

#[test]
fn relaxed_ends() {
    if !crate::is_to_fail() {
        return;
    }
    check(model!(real, append_relaxed, ends_keep_their_order));
}

#[test]
fn with_relaxed_stores_the_ends_cross() {
    let said = crate::failure_of("publish::relaxed_ends");
    assert!(said.contains("above"), "{said}");
}
