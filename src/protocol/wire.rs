//! Kafka's primitive encodings, both ways: a reader that borrows from one frame, and a writer that leaves gaps where
//! bytes from elsewhere go.
//!
//! Integers are big-endian. In flexible versions lengths are varints of `length + 1` (0: null), in others two or four
//! bytes (-1: null). A nullable struct is led by a byte: negative for null.

use std::borrow::Cow;

use super::error::{DecodeError, DecodeFault, EncodeError, EncodeFault};

/// The most bytes that an unsigned 32-bit varint takes.
const MAX_VARINT_BYTES: u32 = 5;

/// The most bytes of a string, with varint lengths too: Kafka's own clients refuse more.
const MAX_TEXT_BYTES: usize = i16::MAX as usize;

/// Elements for which an array takes room before one of them was read.
const ROOM_AHEAD: usize = 64;

/// What the elements of a message's arrays may take in memory, besides as much as the bytes it is read from. More than any
/// message in use, and little enough that many small elements in a large frame are no way to fill a server's memory: a
/// topic of two bytes can be a struct of 32 or more.
pub const ELEMENTS_BYTES: usize = 16 << 20;

/// A 128-bit id of a topic, a directory or a member. All zeros stands for "none".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// The id that names nothing.
    pub const ZERO: Self = Self([0; 16]);

    /// Whether this names nothing.
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }
}

/// Record batches as a field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records<'a> {
    /// The bytes themselves. Decoding always gives these, borrowed from the frame; encoding copies them.
    Bytes(&'a [u8]),
    /// So many bytes that somebody else sends: encoding writes their length and leaves a [`Gap`].
    Gap(u32),
}

impl Default for Records<'_> {
    fn default() -> Self {
        Self::Bytes(&[])
    }
}

impl<'a> Records<'a> {
    /// The bytes, if they are at hand.
    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Gap(_) => None,
        }
    }

    /// How many bytes these are.
    pub fn len(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Gap(len_bytes) => len_bytes as usize,
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

// ---- reading ---------------------------------------------------------------------------------------------------------

/// Takes values off the front of a frame and knows where it stands.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    end: usize,
    /// What elements of arrays may still take in memory.
    room_bytes: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their beginning. The elements of all arrays together may take as much memory as `bytes`, and
    /// [`ELEMENTS_BYTES`] more.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, end: bytes.len(), room_bytes: ELEMENTS_BYTES.saturating_add(bytes.len()) }
    }

    /// The same with other bounds for the elements: of an answer, say, that one has asked for.
    #[must_use]
    pub fn with_room(mut self, room_bytes: usize) -> Self {
        self.room_bytes = room_bytes;
        self
    }

    /// Bytes read so far: where in the frame the next value stands.
    pub fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// An error at this place.
    pub(super) fn error(&self, fault: DecodeFault) -> DecodeError {
        DecodeError { field: "", position: self.position(), fault }
    }

    /// Takes `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.error(DecodeFault::Short { needed: count, left: self.rest.len() }));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Takes `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some((taken, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.error(DecodeFault::Short { needed: N, left: self.rest.len() }));
        };
        self.rest = rest;
        Ok(*taken)
    }

    /// Takes an unsigned varint of at most 32 bits: seven bits a byte, least first.
    pub fn varint(&mut self) -> Result<u32, DecodeError> {
        let begin = self.clone();
        let mut value = 0u32;
        for group in 0..MAX_VARINT_BYTES {
            let [byte] = self.array()?;
            let bits = u32::from(byte & 0x7F);
            let shift = group * 7;
            if shift == 28 && bits > 0x0F {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(begin.error(DecodeFault::Varint))
    }

    /// Ends reading: an error if anything is left.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(self.error(DecodeFault::Trailing { left })),
        }
    }

    /// Reads all there is in `tagged`, a field that [`Reader::tag`] gave, as one value.
    pub(super) fn only<T: Wire<'a>>(&mut self, mut tagged: Self, form: Form) -> Result<T, DecodeError> {
        let value = T::decode_in(&mut tagged, form)?;
        self.room_bytes = tagged.room_bytes;
        tagged.finish()?;
        Ok(value)
    }

    /// Takes room for so many elements of a type.
    fn take_room<T>(&mut self, count: usize) -> Result<(), DecodeFault> {
        let needed = count.saturating_mul(size_of::<T>());
        let left = self.room_bytes;
        self.room_bytes = left.checked_sub(needed).ok_or(DecodeFault::Room { needed, left })?;
        Ok(())
    }

    /// A length or a count; `None` is null. `wide`: four bytes where the form is not flexible, else two.
    fn length(&mut self, form: Form, wide: bool) -> Result<Option<usize>, DecodeError> {
        let begin = self.clone();
        let length = if form.flexible {
            return Ok((self.varint()? as usize).checked_sub(1));
        } else if wide {
            i32::from_be_bytes(self.array()?)
        } else {
            i32::from(i16::from_be_bytes(self.array()?))
        };
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(begin.error(DecodeFault::NegativeLength(length))),
        }
    }

    /// Steps over the tagged fields of a struct that knows none.
    pub(super) fn skip_tags(&mut self) -> Result<(), DecodeError> {
        let count = self.tag_count()?;
        for _ in 0..count {
            self.tag()?;
        }
        Ok(())
    }

    /// The number of tagged fields that follow, not more than there can be.
    pub(super) fn tag_count(&mut self) -> Result<u32, DecodeError> {
        let begin = self.clone();
        let count = self.varint()?;
        let most = self.rest.len() / 2;
        if count as usize > most {
            return Err(begin.error(DecodeFault::Count { count: count as usize, most }));
        }
        Ok(count)
    }

    /// The next tagged field: its tag, and a reader of its bytes alone.
    pub(super) fn tag(&mut self) -> Result<(u32, Reader<'a>), DecodeError> {
        let tag = self.varint()?;
        let size = self.varint()? as usize;
        let begin = self.position();
        let bytes = self.take(size)?;
        Ok((tag, Self { rest: bytes, end: begin.saturating_add(size), room_bytes: self.room_bytes }))
    }
}

// ---- writing ---------------------------------------------------------------------------------------------------------

/// A place in written bytes where bytes from elsewhere go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The foreign bytes go before the written byte of this index.
    pub at: usize,
    /// How many they are; may be 0.
    pub len_bytes: u32,
}

/// Gathers encoded values; [`Records::Gap`]s are remembered and not filled.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
}

impl Writer {
    /// An empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// A writer that uses the memory of `buffer`, whose content is dropped.
    pub fn reusing(mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { bytes: buffer, gaps: Vec::new() }
    }

    /// What was written, without what goes into the gaps.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The gaps in the order of the fields that left them.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The written bytes and the gaps.
    pub fn into_parts(self) -> (Vec<u8>, Vec<Gap>) {
        (self.bytes, self.gaps)
    }

    /// Bytes written and left open together.
    pub fn total_bytes(&self) -> u64 {
        self.gaps.iter().fold(self.bytes.len() as u64, |sum, gap| sum + u64::from(gap.len_bytes))
    }

    /// What was written, cut where gaps are, each gap between its neighbours.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        pieces(&self.bytes, &self.gaps)
    }

    /// Appends bytes as they are.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends an unsigned varint.
    pub fn put_varint(&mut self, value: u32) {
        let (bytes, count) = varint(value);
        self.bytes.extend(bytes.iter().take(count));
    }

    /// Overwrites four written bytes: a length that was not known before.
    pub(super) fn patch(&mut self, at: usize, bytes: [u8; 4]) {
        if let Some(place) = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *place = bytes;
        }
    }

    /// A length or a count, or null.
    fn put_length(&mut self, length: Option<usize>, form: Form, wide: bool) -> Result<(), EncodeError> {
        let too_long = |length| EncodeError { field: "", fault: EncodeFault::TooLong { length } };
        let signed = match length {
            None => -1,
            Some(length) => i32::try_from(length).map_err(|_| too_long(length))?,
        };
        if form.flexible {
            self.put_varint(signed.wrapping_add(1).cast_unsigned());
        } else if wide {
            self.put(&signed.to_be_bytes());
        } else {
            let short = i16::try_from(signed).map_err(|_| too_long(length.unwrap_or(0)))?;
            self.put(&short.to_be_bytes());
        }
        Ok(())
    }

    /// Appends a tagged field whose bytes `write` appends.
    pub(super) fn put_tag(
        &mut self,
        tag: u32,
        write: impl FnOnce(&mut Self) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.put_varint(tag);
        let begin = self.bytes.len();
        write(self)?;
        let length = self.bytes.len() - begin;
        let length = u32::try_from(length)
            .map_err(|_| EncodeError { field: "", fault: EncodeFault::TooLong { length } })?;
        let (bytes, count) = varint(length);
        self.bytes.splice(begin..begin, bytes.into_iter().take(count));
        self.gaps.iter_mut().rev().take_while(|gap| gap.at >= begin).for_each(|gap| gap.at += count);
        Ok(())
    }
}

/// A stretch of an encoded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'w> {
    /// Written bytes, at least one.
    Bytes(&'w [u8]),
    /// Bytes from elsewhere: the gap of this number, so many bytes.
    Gap {
        /// Which of the gaps, from 0.
        index: usize,
        /// How many bytes go there; may be 0.
        len_bytes: u32,
    },
}

/// Cuts `bytes` at `gaps`, which rise.
pub fn pieces<'w>(bytes: &'w [u8], gaps: &'w [Gap]) -> impl Iterator<Item = Piece<'w>> {
    let ends = gaps.iter().map(|gap| gap.at).chain([bytes.len()]);
    let begins = [0].into_iter().chain(gaps.iter().map(|gap| gap.at));
    begins.zip(ends).enumerate().flat_map(move |(index, (begin, end))| {
        let written = bytes.get(begin..end).filter(|written| !written.is_empty()).map(Piece::Bytes);
        let gap = gaps.get(index).map(|gap| Piece::Gap { index, len_bytes: gap.len_bytes });
        written.into_iter().chain(gap)
    })
}

fn varint(mut value: u32) -> ([u8; MAX_VARINT_BYTES as usize], usize) {
    let mut bytes = [0; MAX_VARINT_BYTES as usize];
    let mut count = 0;
    for byte in &mut bytes {
        count += 1;
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            *byte = low & 0x7F;
            break;
        }
        *byte = low | 0x80;
    }
    (bytes, count)
}

// ---- values ----------------------------------------------------------------------------------------------------------

/// How a value is to be read or written.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The version of the message.
    pub version: i16,
    /// Whether lengths are varints and structs end with tagged fields.
    pub flexible: bool,
    /// Whether the field at hand may be null.
    pub nullable: bool,
}

/// What a type looks like on the wire, for tests and documents that look at the declarations.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A value of its own, by Kafka's name for it: `INT32`, `STRING`, `RECORDS`.
    Plain(&'static str),
    /// The same, or null where the field says so.
    Nullable(&'static Shape),
    /// Any number of these.
    Array(&'static Shape),
    /// Fields in order, the tagged ones after the others.
    Struct(&'static [FieldShape]),
}

/// A declared field.
#[derive(Clone, Copy, Debug)]
pub struct FieldShape {
    /// Its name, with words separated by `_`.
    pub name: &'static str,
    /// The versions that have it.
    pub versions: super::Versions,
    /// The versions in which it may be null, if its shape is [`Shape::Nullable`].
    pub null: super::Versions,
    /// Its tag, if it is a tagged field.
    pub tag: Option<u32>,
    /// What it holds.
    pub shape: Shape,
}

/// A value that has an encoding.
pub trait Wire<'a>: Sized {
    /// What it looks like.
    const SHAPE: Shape;

    /// The fewest bytes that any value takes.
    fn min_bytes(form: Form) -> usize;

    /// Takes one off the reader.
    fn decode_in(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError>;

    /// Appends it to the writer.
    fn encode_in(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError>;
}

/// A value whose encoding has a null.
pub trait WireNullable<'a>: Wire<'a> {
    /// The bytes of null.
    fn null_bytes(form: Form) -> usize {
        Self::min_bytes(form)
    }

    /// Takes one, or null, off the reader.
    fn decode_nullable(reader: &mut Reader<'a>, form: Form) -> Result<Option<Self>, DecodeError>;

    /// Appends one, or null, to the writer.
    fn encode_nullable(value: Option<&Self>, writer: &mut Writer, form: Form) -> Result<(), EncodeError>;
}

impl<'a, T: WireNullable<'a>> Wire<'a> for Option<T> {
    const SHAPE: Shape = Shape::Nullable(&T::SHAPE);

    fn min_bytes(form: Form) -> usize {
        if form.nullable { T::null_bytes(form) } else { T::min_bytes(form) }
    }

    fn decode_in(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        if form.nullable { T::decode_nullable(reader, form) } else { T::decode_in(reader, form).map(Some) }
    }

    fn encode_in(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        match self {
            _ if form.nullable => T::encode_nullable(self.as_ref(), writer, form),
            Some(value) => value.encode_in(writer, form),
            None => Err(EncodeError { field: "", fault: EncodeFault::Null }),
        }
    }
}

macro_rules! plain {
    ($($type:ty, $name:literal, $count:literal, $read:expr, $write:expr;)*) => {$(
        impl<'a> Wire<'a> for $type {
            const SHAPE: Shape = Shape::Plain($name);

            fn min_bytes(_: Form) -> usize {
                $count
            }

            fn decode_in(reader: &mut Reader<'a>, _: Form) -> Result<Self, DecodeError> {
                reader.array::<$count>().map($read)
            }

            fn encode_in(&self, writer: &mut Writer, _: Form) -> Result<(), EncodeError> {
                writer.put(&$write(*self));
                Ok(())
            }
        }
    )*};
}

plain! {
    bool, "BOOLEAN", 1, |[byte]| byte != 0, |value| [u8::from(value)];
    i8, "INT8", 1, i8::from_be_bytes, i8::to_be_bytes;
    i16, "INT16", 2, i16::from_be_bytes, i16::to_be_bytes;
    u16, "UINT16", 2, u16::from_be_bytes, u16::to_be_bytes;
    i32, "INT32", 4, i32::from_be_bytes, i32::to_be_bytes;
    i64, "INT64", 8, i64::from_be_bytes, i64::to_be_bytes;
    f64, "FLOAT64", 8, f64::from_be_bytes, f64::to_be_bytes;
    Uuid, "UUID", 16, Uuid, |Uuid(bytes)| bytes;
}

/// Types that are a length and so many bytes.
macro_rules! lengthy {
    ($($type:ty, $name:literal, $wide:literal, $short:literal, $read:expr, $write:expr;)*) => {$(
        impl<'a> Wire<'a> for $type {
            const SHAPE: Shape = Shape::Plain($name);

            fn min_bytes(form: Form) -> usize {
                if form.flexible { 1 } else { $short }
            }

            fn decode_in(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
                let begin = reader.clone();
                Self::decode_nullable(reader, form)?.ok_or_else(|| begin.error(DecodeFault::Null))
            }

            fn encode_in(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
                Self::encode_nullable(Some(self), writer, form)
            }
        }

        impl<'a> WireNullable<'a> for $type {
            fn decode_nullable(reader: &mut Reader<'a>, form: Form) -> Result<Option<Self>, DecodeError> {
                let start = reader.clone();
                let Some(length) = reader.length(form, $wide)? else { return Ok(None) };
                if !$wide && length > MAX_TEXT_BYTES {
                    return Err(start.error(DecodeFault::TooLong { length }));
                }
                let begin = reader.clone();
                let bytes = reader.take(length)?;
                let read: fn(&'a [u8]) -> Option<Self> = $read;
                read(bytes).map(Some).ok_or_else(|| begin.error(DecodeFault::NotUtf8))
            }

            fn encode_nullable(
                value: Option<&Self>,
                writer: &mut Writer,
                form: Form,
            ) -> Result<(), EncodeError> {
                let Some(value) = value else { return writer.put_length(None, form, $wide) };
                let length = value.len();
                if !$wide && length > MAX_TEXT_BYTES {
                    return Err(EncodeError { field: "", fault: EncodeFault::TooLong { length } });
                }
                writer.put_length(Some(length), form, $wide)?;
                let write: fn(&Self, &mut Writer) = $write;
                write(value, writer);
                Ok(())
            }
        }
    )*};
}

lengthy! {
    &'a str, "STRING", false, 2,
        |bytes| str::from_utf8(bytes).ok(), |value, writer| writer.put(value.as_bytes());
    Cow<'a, str>, "STRING", false, 2,
        |bytes| str::from_utf8(bytes).ok().map(Cow::Borrowed), |value, writer| writer.put(value.as_bytes());
    &'a [u8], "BYTES", true, 4,
        Some, |value, writer| writer.put(value);
    Cow<'a, [u8]>, "BYTES", true, 4,
        |bytes| Some(Cow::Borrowed(bytes)), |value, writer| writer.put(value);
    Records<'a>, "RECORDS", true, 4,
        |bytes| Some(Records::Bytes(bytes)),
        |value, writer| match *value {
            Records::Bytes(bytes) => writer.put(bytes),
            Records::Gap(len_bytes) => writer.gaps.push(Gap { at: writer.bytes.len(), len_bytes }),
        };
}

impl<'a, T: Wire<'a>> Wire<'a> for Vec<T> {
    const SHAPE: Shape = Shape::Array(&T::SHAPE);

    fn min_bytes(form: Form) -> usize {
        if form.flexible { 1 } else { 4 }
    }

    fn decode_in(reader: &mut Reader<'a>, form: Form) -> Result<Self, DecodeError> {
        let begin = reader.clone();
        Self::decode_nullable(reader, form)?.ok_or_else(|| begin.error(DecodeFault::Null))
    }

    fn encode_in(&self, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        Self::encode_nullable(Some(self), writer, form)
    }
}

impl<'a, T: Wire<'a>> WireNullable<'a> for Vec<T> {
    fn decode_nullable(reader: &mut Reader<'a>, form: Form) -> Result<Option<Self>, DecodeError> {
        let begin = reader.clone();
        let Some(count) = reader.length(form, true)? else { return Ok(None) };
        // No more elements than the bytes at hand can be, and little room before they were seen to be there.
        let form = Form { nullable: false, ..form };
        let most = reader.rest.len() / T::min_bytes(form).max(1);
        if count > most {
            return Err(begin.error(DecodeFault::Count { count, most }));
        }
        reader.take_room::<T>(count).map_err(|fault| begin.error(fault))?;
        let mut elements = Self::with_capacity(count.min(ROOM_AHEAD));
        for _ in 0..count {
            if elements.len() == elements.capacity() {
                // Once, and no more than room was taken for.
                elements.reserve_exact(count - elements.len());
            }
            elements.push(T::decode_in(reader, form)?);
        }
        Ok(Some(elements))
    }

    fn encode_nullable(value: Option<&Self>, writer: &mut Writer, form: Form) -> Result<(), EncodeError> {
        writer.put_length(value.map(Vec::len), form, true)?;
        let form = Form { nullable: false, ..form };
        value.into_iter().flatten().try_for_each(|element| element.encode_in(writer, form))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_those_of_the_reader() {
        for value in [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, 0x001F_FFFF, 0x0020_0000, 0x0FFF_FFFF, u32::MAX] {
            let mut writer = Writer::new();
            writer.put_varint(value);
            let significant = (32 - value.leading_zeros()).max(1);
            assert_eq!(writer.bytes().len(), significant.div_ceil(7) as usize);
            let mut reader = Reader::new(writer.bytes());
            assert_eq!((reader.varint(), reader.finish()), (Ok(value), Ok(())));
        }
    }

    #[test]
    fn a_gap_in_a_tagged_field_stays_where_it_is() {
        let mut writer = Writer::new();
        let form = Form { version: 0, flexible: true, nullable: false };
        Records::Gap(9).encode_in(&mut writer, form).unwrap();
        writer.put_tag(0, |writer| Records::Gap(7).encode_in(writer, form)).unwrap();
        assert_eq!(writer.bytes(), [10, 0, 1, 8]);
        assert_eq!(writer.gaps(), [Gap { at: 1, len_bytes: 9 }, Gap { at: 4, len_bytes: 7 }]);
    }
}
