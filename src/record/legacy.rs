//! The message formats before 2: told apart by the byte they share with it, and named; reading them is not here yet.

/// True for message formats 0 and 1, which Kafka wrote before 0.11.
pub fn is_legacy(magic: i8) -> bool {
    matches!(magic, 0 | 1)
}

/// Whose message format has this number, for people.
pub fn message_format(magic: i8) -> &'static str {
    match magic {
        0 => "of Kafka before 0.10",
        1 => "of Kafka 0.10",
        2 => "of Kafka since 0.11",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BatchError;

    #[test]
    fn the_error_names_the_format() {
        assert!(is_legacy(0) && is_legacy(1) && !is_legacy(2) && !is_legacy(-1));
        let text = BatchError::UnsupportedMagic { magic: 1 }.to_string();
        assert!(text.contains("message format 1"), "{text}");
    }
}
