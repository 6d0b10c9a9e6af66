//! How a template prints a number: decimal, hexadecimal, or as raw bytes.

use crate::output::push_decimal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberFormat {
    Decimal,
    /// As many hexadecimal digits as needed.
    Hex,
    /// Exactly so many hexadecimal digits, the upper ones dropped.
    HexDigits(usize),
    /// So many bytes, the upper ones dropped.
    BigEndian(usize),
    LittleEndian(usize),
    /// `true` unless zero.
    Bool,
}

impl NumberFormat {
    /// The format with this name, as in `%o{hex64}`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ascii" | "number" => Self::Decimal,
            "hex" => Self::Hex,
            "hex64" => Self::HexDigits(16),
            "hex32" => Self::HexDigits(8),
            "hex16" => Self::HexDigits(4),
            "hex8" => Self::HexDigits(2),
            "hex4" => Self::HexDigits(1),
            "big64" => Self::BigEndian(8),
            "big32" => Self::BigEndian(4),
            "big16" => Self::BigEndian(2),
            "little64" => Self::LittleEndian(8),
            "little32" => Self::LittleEndian(4),
            "little16" => Self::LittleEndian(2),
            "big8" | "little8" | "byte" => Self::BigEndian(1),
            "bool" => Self::Bool,
            _ => return None,
        })
    }

    /// True where bytes are printed that need not be text.
    pub(super) fn is_raw(self) -> bool {
        matches!(self, Self::BigEndian(_) | Self::LittleEndian(_))
    }

    pub(super) fn push(self, out: &mut Vec<u8>, number: i64) {
        match self {
            Self::Decimal => push_decimal(out, number),
            Self::Hex => out.extend_from_slice(format!("{number:x}").as_bytes()),
            Self::HexDigits(digits) => {
                let all = format!("{number:016x}");
                out.extend_from_slice(all.as_bytes().get(16 - digits..).unwrap_or_default());
            }
            Self::BigEndian(bytes) => {
                out.extend_from_slice(number.to_be_bytes().get(8 - bytes..).unwrap_or_default());
            }
            Self::LittleEndian(bytes) => {
                out.extend_from_slice(number.to_le_bytes().get(..bytes).unwrap_or_default());
            }
            Self::Bool => out.extend_from_slice(if number == 0 { b"false" } else { b"true" }),
        }
    }
}
