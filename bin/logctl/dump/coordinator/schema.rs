//! Kafka's messages by their tables: read from bytes, written as the JSON that Kafka's generated converters write.
//!
//! Of a table's fields those of the version are there, in order; from its first flexible version on a message has compact
//! lengths and ends with tagged fields, which in JSON stand in their places and only where they are not the default.

use std::fmt::Write as _;

use crate::json::{base64_encode, push_text};

/// A message or a part of one.
#[derive(Debug)]
pub(in crate::dump) struct Message {
    pub(super) fields: &'static [Field],
    /// The first version with compact lengths and tagged fields.
    pub(super) flexible_from: i16,
    pub(super) last_version: i16,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// The first and the last version that has it.
    pub(super) since: i16,
    pub(super) until: i16,
    /// Its tag, where it is a tagged field.
    pub(super) tag: Option<u32>,
    /// Of numbers, which a tagged field is not printed with.
    pub(super) default: i64,
    /// Of what may be null: that is what a tagged field is not printed with.
    pub(super) is_null_by_default: bool,
}

impl Field {
    pub(super) const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, since: 0, until: i16::MAX, tag: None, default: 0, is_null_by_default: false }
    }

    pub(super) const fn since(mut self, version: i16) -> Self {
        self.since = version;
        self
    }

    pub(super) const fn until(mut self, version: i16) -> Self {
        self.until = version;
        self
    }

    pub(super) const fn tag(mut self, tag: u32) -> Self {
        self.tag = Some(tag);
        self
    }

    pub(super) const fn default(mut self, default: i64) -> Self {
        self.default = default;
        self
    }

    pub(super) const fn null_by_default(mut self) -> Self {
        self.is_null_by_default = true;
        self
    }

    const fn is_in(&self, version: i16) -> bool {
        self.since <= version && version <= self.until
    }
}

/// What a field holds.
#[derive(Debug)]
pub(super) enum Kind {
    I8,
    I16,
    U16,
    I32,
    I64,
    F64,
    Flag,
    Uuid,
    Text,
    NullableText,
    Bytes,
    NullableBytes,
    Many(&'static Kind),
    NullableMany(&'static Kind),
    Part(&'static Message),
    NullablePart(&'static Message),
    /// A number that is printed as the name in its place.
    Named(&'static [&'static str]),
    /// Bytes that a consumer wrote; in a group of consumers they are printed as this message.
    Member(fn(&[u8]) -> Option<String>),
}

/// Bytes still to be read. Errors are the texts of Kafka's exceptions.
pub(in crate::dump) struct Reader<'a> {
    rest: &'a [u8],
}

/// What Kafka's tool prints where a buffer ends inside a number: an exception without a text.
const UNDERFLOW: &str = "null";

impl<'a> Reader<'a> {
    pub(in crate::dump) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The version or type that stands in front.
    pub(super) fn version(&mut self) -> Option<i16> {
        self.number::<2>().ok().map(i16::from_be_bytes)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (number, rest) = self.rest.split_first_chunk().ok_or(UNDERFLOW)?;
        self.rest = rest;
        Ok(*number)
    }

    pub(super) fn varint(&mut self) -> Result<u32, String> {
        let mut value = 0_u32;
        for index in 0..5 {
            let [byte] = self.number()?;
            let bits = u32::from(byte & 0x7F);
            value |= bits.wrapping_shl(7 * index);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        let text = "Varint is too long, the most significant bit in the 5th byte is set, converting value:";
        Err(format!("{text} {value:x}"))
    }

    pub(super) const fn left_bytes(&self) -> usize {
        self.rest.len()
    }

    /// A length or count; negative for null.
    fn length(&mut self, flexible: bool, short: bool) -> Result<i64, String> {
        Ok(match (flexible, short) {
            (true, _) => i64::from(self.varint()?) - 1,
            (false, true) => i64::from(i16::from_be_bytes(self.number()?)),
            (false, false) => i64::from(i32::from_be_bytes(self.number()?)),
        })
    }

    fn take(&mut self, length: i64) -> Result<&'a [u8], String> {
        let taken = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let (taken, rest) = taken.ok_or_else(|| {
            let left = self.rest.len();
            format!("Error reading byte array of {length} byte(s): only {left} byte(s) available")
        })?;
        self.rest = rest;
        Ok(taken)
    }
}

/// How a message is read: with which version.
#[derive(Clone, Copy)]
struct Context {
    version: i16,
    flexible: bool,
    /// The message is a classic group of consumers.
    of_consumers: bool,
}

impl Message {
    /// Reads the message, and its JSON. Bytes behind it are left.
    pub(in crate::dump) fn to_json(&self, reader: &mut Reader<'_>, version: i16) -> Result<String, String> {
        let mut out = Vec::new();
        let flexible = version >= self.flexible_from;
        self.read(reader, Context { version, flexible, of_consumers: false }, &mut out)?;
        String::from_utf8(out).map_err(|error| error.to_string())
    }

    /// Appends the JSON; true where every field is the default.
    fn read(&self, reader: &mut Reader<'_>, mut context: Context, out: &mut Vec<u8>) -> Result<bool, String> {
        let mut is_default = true;
        let mut texts: Vec<Option<Vec<u8>>> = Vec::with_capacity(self.fields.len());
        for field in self.fields {
            if field.tag.is_some() || !field.is_in(context.version) {
                texts.push(None);
                continue;
            }
            let mut text = Vec::new();
            is_default &= field.read(reader, context, &mut text)?;
            context.of_consumers |= field.name == "protocolType" && text == b"\"consumer\"";
            texts.push(Some(text));
        }
        if context.flexible {
            for _ in 0..reader.varint()? {
                let (tag, size) = (reader.varint()?, reader.varint()?);
                let known = self.fields.iter().zip(&mut texts);
                match known
                    .into_iter()
                    .find(|(field, _)| field.tag == Some(tag) && field.is_in(context.version))
                {
                    Some((field, text)) => {
                        let mut json = Vec::new();
                        let is_same = field.read(reader, context, &mut json)?;
                        *text = (!is_same).then_some(json);
                        is_default &= is_same;
                    }
                    None => {
                        reader.take(i64::from(size))?;
                    }
                }
            }
        }
        let mut separator = b'{';
        for (field, text) in self.fields.iter().zip(texts) {
            let Some(text) = text else { continue };
            out.push(separator);
            separator = b',';
            push_text(out, field.name);
            out.push(b':');
            out.extend_from_slice(&text);
        }
        if separator == b'{' {
            out.push(b'{');
        }
        out.push(b'}');
        Ok(is_default)
    }
}

impl Field {
    fn read(&self, reader: &mut Reader<'_>, context: Context, out: &mut Vec<u8>) -> Result<bool, String> {
        let from = out.len();
        let is_default = self.kind.read(self, reader, context, out)?;
        Ok(if self.is_null_by_default { out.get(from..) == Some(b"null") } else { is_default })
    }

    fn null(&self) -> String {
        format!("non-nullable field {} was serialized as null", self.name)
    }
}

impl Kind {
    /// Appends the JSON of a value; true where it is the default.
    fn read(
        &self,
        field: &Field,
        reader: &mut Reader<'_>,
        context: Context,
        out: &mut Vec<u8>,
    ) -> Result<bool, String> {
        let number = match self {
            Self::I8 | Self::Named(_) => i64::from(i8::from_be_bytes(reader.number()?)),
            Self::I16 => i64::from(i16::from_be_bytes(reader.number()?)),
            Self::U16 => i64::from(u16::from_be_bytes(reader.number()?)),
            Self::I32 => i64::from(i32::from_be_bytes(reader.number()?)),
            Self::I64 => i64::from_be_bytes(reader.number()?),
            Self::F64 | Self::Flag | Self::Uuid => return self.read_fixed(reader, out),
            Self::Text | Self::NullableText => {
                let length = reader.length(context.flexible, true)?;
                if length < 0 {
                    return null(matches!(self, Self::NullableText), field, out);
                }
                if length > i64::from(i16::MAX) {
                    return Err(format!("string field {} had invalid length {length}", field.name));
                }
                let text = reader.take(length)?;
                push_string(&String::from_utf8_lossy(text), out);
                return Ok(text.is_empty());
            }
            Self::Bytes | Self::NullableBytes | Self::Member(_) => {
                let length = reader.length(context.flexible, false)?;
                if length < 0 {
                    return null(matches!(self, Self::NullableBytes), field, out);
                }
                let bytes = reader.take(length)?;
                match self {
                    Self::Member(json)
                        if context.of_consumers
                            && let Some(json) = json(bytes) =>
                    {
                        out.extend_from_slice(json.as_bytes());
                    }
                    _ => {
                        out.push(b'"');
                        base64_encode(bytes, out);
                        out.push(b'"');
                    }
                }
                return Ok(bytes.is_empty());
            }
            Self::Many(kind) | Self::NullableMany(kind) => {
                let count = reader.length(context.flexible, false)?;
                if count < 0 {
                    return null(matches!(self, Self::NullableMany(_)), field, out);
                }
                let left = reader.rest.len();
                if usize::try_from(count).map_or(true, |count| count > left) {
                    return Err(format!(
                        "Tried to allocate a collection of size {count}, but there are only {left} bytes remaining."
                    ));
                }
                let mut separator = b'[';
                for _ in 0..count {
                    out.push(separator);
                    separator = b',';
                    kind.read(field, reader, context, out)?;
                }
                if count == 0 {
                    out.push(b'[');
                }
                out.push(b']');
                return Ok(count == 0);
            }
            Self::Part(message) => {
                if context.version > message.last_version {
                    return Err(format!("Can't read version {} of {}", context.version, field.name));
                }
                return message.read(reader, context, out);
            }
            Self::NullablePart(message) => {
                // A byte in front; where the field is a tagged one, with other values.
                let is_null = match field.tag {
                    Some(_) => reader.varint()? == 0,
                    None => reader.number::<1>()? == [0xFF],
                };
                if is_null {
                    return null(true, field, out);
                }
                return message.read(reader, context, out);
            }
        };
        match self {
            Self::Named(names) => {
                let name = usize::try_from(number).ok().and_then(|number| names.get(number));
                push_text(out, name.map_or(number.to_string().as_str(), |name| *name));
            }
            _ => out.extend_from_slice(number.to_string().as_bytes()),
        }
        Ok(number == field.default)
    }
}

impl Kind {
    /// The same of what has a fixed size and is no whole number.
    fn read_fixed(&self, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<bool, String> {
        Ok(match self {
            Self::F64 => {
                let number = f64::from_be_bytes(reader.number()?);
                out.extend_from_slice(java_double(number).as_bytes());
                number == 0.0
            }
            Self::Flag => {
                let [byte] = reader.number()?;
                out.extend_from_slice(if byte == 0 { b"false" } else { b"true" });
                byte == 0
            }
            _ => {
                let uuid: [u8; 16] = reader.number()?;
                push_uuid(uuid, out);
                uuid == [0; 16]
            }
        })
    }
}

/// A number as Java prints it: with a point always, and with an exponent below 0.001 and from ten millions on.
fn java_double(number: f64) -> String {
    let size = number.abs();
    if number.is_nan() {
        return "\"NaN\"".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" }.to_owned();
    }
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{number:?}");
    }
    let text = format!("{number:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

/// Null is the default of no field but of those that say so.
fn null(is_allowed: bool, field: &Field, out: &mut Vec<u8>) -> Result<bool, String> {
    if !is_allowed {
        return Err(field.null());
    }
    out.extend_from_slice(b"null");
    Ok(false)
}

/// 22 characters of the alphabet that is safe in URLs.
fn push_uuid(uuid: [u8; 16], out: &mut Vec<u8>) {
    let mut text = Vec::with_capacity(24);
    base64_encode(&uuid, &mut text);
    out.push(b'"');
    out.extend(text.iter().filter(|byte| **byte != b'=').map(|byte| match byte {
        b'+' => b'-',
        b'/' => b'_',
        byte => *byte,
    }));
    out.push(b'"');
}

/// A string as Kafka's JSON library escapes it: only what must be, with capital digits.
fn push_string(text: &str, out: &mut Vec<u8>) {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            c if c < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(json, "\\u{:04X}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    out.extend_from_slice(json.as_bytes());
}
