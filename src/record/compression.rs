//! The codecs by name and number, and the levels each of them has.

use std::{fmt, str::FromStr};

/// What a batch's records are compressed with (attribute bits 0 to 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Codec {
    /// Not compressed.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy blocks in the framing of Kafka's clients; one bare block is read too.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

impl Codec {
    /// All of them, by number.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The number in the attribute bits.
    pub const fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// The codec with a number; `None` where there is none (5 and up).
    pub const fn from_id(id: u8) -> Option<Self> {
        match id {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Kafka's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// True where this build has the codec (the crate's feature of its name; none is always there).
    pub const fn is_available(self) -> bool {
        match self {
            Self::None => true,
            Self::Gzip => cfg!(feature = "gzip"),
            Self::Snappy => cfg!(feature = "snappy"),
            Self::Lz4 => cfg!(feature = "lz4"),
            Self::Zstd => cfg!(feature = "zstd"),
        }
    }

    /// The lowest and the highest level, by Kafka's settings `compression.*.level`; `None` where there are no levels.
    const fn levels(self) -> Option<(i32, i32)> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some((1, 9)),
            Self::Lz4 => Some((1, 17)),
            Self::Zstd => Some((-131_072, 22)),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Codec {
    type Err = CompressionError;

    fn from_str(name: &str) -> Result<Self, CompressionError> {
        Self::ALL
            .into_iter()
            .find(|codec| codec.name() == name)
            .ok_or_else(|| CompressionError::UnknownName { name: name.to_owned() })
    }
}

/// A codec and how hard it tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Compression {
    codec: Codec,
    level: Option<i32>,
}

impl Compression {
    /// Not compressed.
    pub const NONE: Self = Self { codec: Codec::None, level: None };

    /// The codec at its default level.
    pub const fn new(codec: Codec) -> Self {
        Self { codec, level: None }
    }

    /// The codec at a level within Kafka's range for it: gzip 1 to 9 (or -1, its default), lz4 1 to 17, zstd -131072
    /// to 22. The lz4 in this crate has one way to compress, so its level is checked and changes nothing.
    pub const fn with_level(codec: Codec, level: i32) -> Result<Self, CompressionError> {
        match codec.levels() {
            None => Err(CompressionError::NoLevels { codec }),
            Some(_) if matches!(codec, Codec::Gzip) && level == -1 => Ok(Self::new(codec)),
            Some((lowest, highest)) if level < lowest || level > highest => {
                Err(CompressionError::BadLevel { codec, level, lowest, highest })
            }
            Some(_) => Ok(Self { codec, level: Some(level) }),
        }
    }

    /// The codec.
    pub const fn codec(self) -> Codec {
        self.codec
    }

    /// The level; `None` for the codec's default.
    pub const fn level(self) -> Option<i32> {
        self.level
    }
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Self {
        Self::new(codec)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level {
            None => f.write_str(self.codec.name()),
            Some(level) => write!(f, "{}:{level}", self.codec.name()),
        }
    }
}

/// Reads `CODEC` or `CODEC:LEVEL`: `zstd`, `zstd:3`, `none`.
impl FromStr for Compression {
    type Err = CompressionError;

    fn from_str(text: &str) -> Result<Self, CompressionError> {
        let Some((name, level)) = text.split_once(':') else { return Ok(Self::new(text.parse()?)) };
        let codec: Codec = name.parse()?;
        let Ok(level) = level.parse() else {
            return Err(CompressionError::NotALevel { text: level.to_owned() });
        };
        Self::with_level(codec, level)
    }
}

/// Why a text or a level names no compression.
#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompressionError {
    /// There is no such codec.
    #[error(
        "unknown compression {name:?}: none, gzip, snappy, lz4 or zstd, with :LEVEL where the codec has levels"
    )]
    UnknownName {
        /// What was given.
        name: String,
    },
    /// The level is not a number.
    #[error("compression level {text:?} is not a number")]
    NotALevel {
        /// What was given.
        text: String,
    },
    /// The level is out of range.
    #[error("{codec} level {level} is out of range: {lowest} to {highest}")]
    BadLevel {
        /// The codec.
        codec: Codec,
        /// What was given.
        level: i32,
        /// The lowest there is.
        lowest: i32,
        /// The highest there is.
        highest: i32,
    },
    /// The codec has no levels.
    #[error("{codec} has no levels")]
    NoLevels {
        /// The codec.
        codec: Codec,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_go_both_ways() {
        for codec in Codec::ALL {
            assert_eq!(Codec::from_id(codec.id()), Some(codec));
            assert_eq!(codec.name().parse(), Ok(codec));
        }
        assert_eq!(Codec::from_id(5), None);
        assert_eq!(Codec::from_id(255), None);
    }

    #[test]
    fn compression_is_read_with_its_range() {
        assert_eq!("zstd:3".parse(), Compression::with_level(Codec::Zstd, 3));
        assert_eq!("zstd:3".parse::<Compression>().unwrap().to_string(), "zstd:3");
        assert_eq!("gzip:-1".parse(), Ok(Compression::new(Codec::Gzip)));
        assert_eq!("none".parse(), Ok(Compression::NONE));
        for bad in [
            "zstd:23",
            "zstd:-131073",
            "gzip:0",
            "gzip:10",
            "lz4:18",
            "lz4:0",
            "snappy:1",
            "none:1",
            "zstd:",
            "zstd:x",
            "ZSTD",
            "",
            ":3",
            "zstd:99999999999",
        ] {
            assert!(bad.parse::<Compression>().is_err(), "{bad}");
        }
        for good in ["zstd:22", "zstd:-131072", "gzip:1", "gzip:9", "lz4:17", "lz4:1"] {
            assert!(good.parse::<Compression>().is_ok(), "{good}");
        }
    }
}
