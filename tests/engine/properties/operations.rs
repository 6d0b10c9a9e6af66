//! What a case is made of: settings, operations, and how proptest draws them.

use proptest::{collection::vec, option, prelude::*, sample::select};
use stratalog::{FsyncPolicy, Preallocate, record::Codec};

/// The settings that shape files.
#[derive(Clone, Debug)]
pub struct Settings {
    pub segment_bytes: u32,
    pub index_interval_bytes: u32,
    pub segment_index_bytes: u32,
    pub roll_after_ms: Option<u64>,
    pub preallocate: Preallocate,
    pub fsync: FsyncPolicy,
    pub codec: Codec,
    pub is_append_time: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            segment_bytes: 4096,
            index_interval_bytes: 0,
            segment_index_bytes: 800,
            roll_after_ms: None,
            preallocate: Preallocate::Stepped,
            fsync: FsyncPolicy::Never,
            codec: Codec::None,
            is_append_time: false,
        }
    }
}

/// One record to be appended.
#[derive(Clone, Debug)]
pub struct Draft {
    pub timestamp: Option<i64>,
    pub key: Option<u8>,
    /// Its length; `None` is a null value.
    pub value: Option<usize>,
    pub headers: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Nothing,
    Right,
    Wrong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    Delete,
    /// Keeps so many 256ths.
    Truncate(u8),
    Zero,
    Garbage(u8),
    /// What an earlier close or drop left under this name.
    Stale(u8),
    /// So many bytes more.
    Odd(u8),
    ExtendZeros(u16),
}

#[derive(Clone, Debug)]
pub enum Op {
    Append {
        records: Vec<Draft>,
        expected: Expected,
        is_deferred: bool,
    },
    /// Whole batches, one for each list, stamped by the log.
    Batches {
        batches: Vec<Vec<Draft>>,
        codec: Codec,
        expected: Expected,
    },
    /// Whole batches with their own offsets: each begins `gap` after the one before and spans `hidden` offsets more than
    /// it has records.
    Preserve {
        batches: Vec<(u64, u8, Vec<Draft>)>,
        epochs_on: u8,
    },
    Control {
        gap: u8,
    },
    Roll,
    Sync,
    Retain {
        bytes: Option<u64>,
        age_ms: Option<u64>,
    },
    Maintain {
        advance_ms: u64,
    },
    AdvanceStart(u8),
    NextEpoch,
    Attach,
    Reopen {
        is_clean: bool,
        harm: Vec<(u8, Harm)>,
    },
    /// Reads in between: places as 65536ths of what there is.
    Look {
        at: u16,
        time: u16,
        last: u8,
        max_bytes: u32,
    },
}

pub const NOW_MS: i64 = 1_700_000_000_000;

fn timestamps() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        2 => Just(None),
        6 => (-2000_i64..2000).prop_map(|by| Some(NOW_MS + by)),
        2 => (0_i64..50).prop_map(Some),
        1 => select(vec![Some(-1), Some(i64::MAX), Some(0), Some(NOW_MS * 1000)]),
    ]
}

fn drafts() -> impl Strategy<Value = Draft> {
    let value = prop_oneof![
        12 => (0_usize..40).prop_map(Some),
        2 => (200_usize..1500).prop_map(Some),
        1 => (3000_usize..5000).prop_map(Some),
        1 => Just(None),
    ];
    (timestamps(), option::of(any::<u8>()), value, 0_u8..3)
        .prop_map(|(timestamp, key, value, headers)| Draft { timestamp, key, value, headers })
}

/// The codecs that this build has.
fn available() -> Vec<Codec> {
    Codec::ALL.into_iter().filter(|codec| codec.is_available()).collect()
}

fn codecs() -> impl Strategy<Value = Codec> {
    prop_oneof![3 => Just(Codec::None), 2 => select(available())]
}

pub fn settings() -> impl Strategy<Value = Settings> {
    let fsync = select(vec![
        FsyncPolicy::Never,
        FsyncPolicy::Never,
        FsyncPolicy::Commit,
        FsyncPolicy::EveryBytes(500),
        FsyncPolicy::EveryRecords(7),
        FsyncPolicy::Interval(std::time::Duration::from_millis(500)),
    ]);
    (
        select(vec![1024_u32, 4096, 4096, 16384]),
        select(vec![0_u32, 100, 4096]),
        select(vec![24_u32, 800, 800, 10 << 20]),
        select(vec![None, None, Some(1000_u64)]),
        select(vec![Preallocate::Stepped, Preallocate::Whole, Preallocate::Off]),
        fsync,
        codecs(),
        prop::bool::weighted(0.1),
    )
        .prop_map(
            |(
                segment_bytes,
                index_interval_bytes,
                segment_index_bytes,
                roll_after_ms,
                preallocate,
                fsync,
                codec,
                is_append_time,
            )| {
                Settings {
                    segment_bytes,
                    index_interval_bytes,
                    segment_index_bytes,
                    roll_after_ms,
                    preallocate,
                    fsync,
                    codec,
                    is_append_time,
                }
            },
        )
}

fn harms() -> impl Strategy<Value = Harm> {
    prop_oneof![
        Just(Harm::Delete),
        any::<u8>().prop_map(Harm::Truncate),
        Just(Harm::Zero),
        any::<u8>().prop_map(Harm::Garbage),
        any::<u8>().prop_map(Harm::Stale),
        (1_u8..12).prop_map(Harm::Odd),
        (1_u16..5000).prop_map(Harm::ExtendZeros),
    ]
}

pub fn ops() -> impl Strategy<Value = Op> {
    let expected =
        || prop_oneof![4 => Just(Expected::Nothing), 1 => Just(Expected::Right), 1 => Just(Expected::Wrong)];
    let gaps = prop_oneof![
        4 => Just(0_u64),
        4 => 1_u64..9,
        1 => select(vec![70_000_u64, 1 << 30, 3 << 30]),
    ];
    prop_oneof![
        8 => (vec(drafts(), 1..6), expected(), any::<bool>())
            .prop_map(|(records, expected, is_deferred)| Op::Append { records, expected, is_deferred }),
        3 => (vec(vec(drafts(), 1..4), 1..4), codecs(), expected())
            .prop_map(|(batches, codec, expected)| Op::Batches { batches, codec, expected }),
        3 => (vec((gaps, 0_u8..4, vec(drafts(), 1..3)), 1..3), prop_oneof![3 => Just(0_u8), 1 => 1_u8..3])
            .prop_map(|(batches, epochs_on)| Op::Preserve { batches, epochs_on }),
        1 => (0_u8..4).prop_map(|gap| Op::Control { gap }),
        2 => Just(Op::Roll),
        2 => Just(Op::Sync),
        1 => (option::of(0_u64..20_000), option::of(1_u64..5000))
            .prop_map(|(bytes, age_ms)| Op::Retain { bytes, age_ms }),
        2 => (0_u64..3000).prop_map(|advance_ms| Op::Maintain { advance_ms }),
        1 => any::<u8>().prop_map(Op::AdvanceStart),
        1 => Just(Op::NextEpoch),
        1 => Just(Op::Attach),
        3 => (any::<bool>(), vec((any::<u8>(), harms()), 0..4))
            .prop_map(|(is_clean, harm)| Op::Reopen { is_clean, harm }),
        6 => (any::<u16>(), any::<u16>(), 0_u8..20, select(vec![0_u32, 1, 100, 1000, 100_000]))
            .prop_map(|(at, time, last, max_bytes)| Op::Look { at, time, last, max_bytes }),
    ]
}
