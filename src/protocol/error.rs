//! What can be wrong with bytes from the wire, and with values that shall become such.

use std::fmt;

/// Bytes that are not the message they should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The field, after the name of its struct: `TopicProduceData.name`. Empty where no field is at fault.
    pub field: &'static str,
    /// The byte in the frame (length prefix not counted) where the faulty value begins.
    pub position: usize,
    /// What is wrong there.
    pub fault: DecodeFault,
}

/// What is wrong with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeFault {
    /// The frame ends before the value does.
    Short {
        /// Bytes that the value takes.
        needed: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A length below -1.
    NegativeLength(i32),
    /// More elements than the rest of the frame can hold.
    Count {
        /// Elements announced.
        count: usize,
        /// Elements possible.
        most: usize,
    },
    /// Elements that would take more memory than a message of this size may.
    Room {
        /// Bytes that they would take.
        needed: usize,
        /// Bytes that are left to the message.
        left: usize,
    },
    /// Text of more than 32,767 bytes.
    TooLong {
        /// Bytes announced.
        length: usize,
    },
    /// A varint of more than 32 bits.
    Varint,
    /// Text that is not UTF-8.
    NotUtf8,
    /// Null where there is none in this version.
    Null,
    /// Bytes after the end.
    Trailing {
        /// How many.
        left: usize,
    },
    /// A version of the API that is not declared here.
    Version(i16),
}

impl DecodeError {
    /// The same error, with the field named if none was.
    #[must_use]
    pub(super) fn in_field(mut self, field: &'static str) -> Self {
        if self.field.is_empty() {
            self.field = field;
        }
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.field.is_empty() { "frame" } else { self.field };
        write!(f, "{field} at byte {}: {}", self.position, self.fault)
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for DecodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { needed, left } => write!(f, "needs {needed} bytes, {left} are left"),
            Self::NegativeLength(length) => write!(f, "length {length}"),
            Self::Count { count, most } => write!(f, "{count} elements, the rest can hold {most}"),
            Self::Room { needed, left } => {
                write!(f, "elements of {needed} bytes in memory, {left} are left to the message")
            }
            Self::TooLong { length } => write!(f, "text of {length} bytes, 32767 are allowed"),
            Self::Varint => write!(f, "a varint of more than 32 bits"),
            Self::NotUtf8 => write!(f, "text that is not UTF-8"),
            Self::Null => write!(f, "null where this version has none"),
            Self::Trailing { left } => write!(f, "{left} bytes after the end"),
            Self::Version(version) => write!(f, "version {version} is not known"),
        }
    }
}

/// A value that has no encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodeError {
    /// The field, after the name of its struct. Empty where no field is at fault.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: EncodeFault,
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeFault {
    /// Longer than its length field can say.
    TooLong {
        /// Bytes or elements.
        length: usize,
    },
    /// Null where there is none in this version.
    Null,
    /// A version of the API that is not declared here.
    Version(i16),
}

impl EncodeError {
    /// The same error, with the field named if none was.
    #[must_use]
    pub(super) fn in_field(mut self, field: &'static str) -> Self {
        if self.field.is_empty() {
            self.field = field;
        }
        self
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.field.is_empty() { "frame" } else { self.field };
        match self.fault {
            EncodeFault::TooLong { length } => write!(f, "{field}: too long: {length}"),
            EncodeFault::Null => write!(f, "{field}: null where this version has none"),
            EncodeFault::Version(version) => write!(f, "{field}: version {version} is not known"),
        }
    }
}

impl std::error::Error for EncodeError {}
