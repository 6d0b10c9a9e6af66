//! What records hold: enough to tell whether one is whole, where it belongs and who wrote it.

/// A small generator of numbers that differ.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Where a record came from: the writer's number, its place in the call, and how many the call had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) run: u64,
    pub(crate) place: u64,
    pub(crate) count: u64,
}

impl Origin {
    pub(crate) fn is_last(self) -> bool {
        self.place + 1 == self.count
    }
}

pub(crate) fn value(offset: i64, origin: Origin) -> Vec<u8> {
    let Origin { run, place, count } = origin;
    let len = usize::try_from(40 + (offset.unsigned_abs() * 7919) % 600).unwrap();
    format!("{offset} {run} {place} {count} ").into_bytes().into_iter().cycle().take(len).collect()
}

/// Reads what [`value`] made; an error where a byte of it is not so.
pub(crate) fn check(offset: i64, found: &[u8]) -> Result<Origin, String> {
    let text = String::from_utf8_lossy(found);
    let mut fields = text.split(' ').map(|field| field.parse::<u64>().ok());
    let mut next = || fields.next().flatten();
    let wrong = || format!("the record at {offset} is torn or another's: {text:?}");
    let (Some(said), Some(run), Some(place), Some(count)) = (next(), next(), next(), next()) else {
        return Err(wrong());
    };
    let origin = Origin { run, place, count };
    if said != offset.unsigned_abs() || value(offset, origin) != found {
        return Err(wrong());
    }
    Ok(origin)
}

/// Never zero.
pub(crate) fn hash(value: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    value.iter().fold(0xCBF2_9CE4_8422_2325, step) | 1
}
