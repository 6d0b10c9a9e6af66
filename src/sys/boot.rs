//! The identity of this boot: shared memory and "the page cache still has it" mean nothing across one.

use std::sync::OnceLock;

/// The kernel's random id of this boot; `None` where `/proc` is not readable. It outlives every process, so it is read once.
pub(crate) fn boot_id() -> Option<[u8; 16]> {
    static ID: OnceLock<Option<[u8; 16]>> = OnceLock::new();
    *ID.get_or_init(|| parse(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?))
}

/// A UUID in its usual text form.
fn parse(text: &str) -> Option<[u8; 16]> {
    let mut digits = text.trim().bytes().filter(|byte| *byte != b'-');
    let mut id = [0_u8; 16];
    for byte in &mut id {
        let high = char::from(digits.next()?).to_digit(16)?;
        let low = char::from(digits.next()?).to_digit(16)?;
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    digits.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_id_is_sixteen_bytes_of_hex() {
        let id = parse("7d444840-9dc0-11d1-b245-5ffdce74fad2\n").unwrap();
        assert_eq!(id[..4], [0x7d, 0x44, 0x48, 0x40]);
        assert_eq!(id[15], 0xd2);
        assert_eq!(parse("7d444840"), None);
        assert_eq!(parse("7d444840-9dc0-11d1-b245-5ffdce74fad2-00"), None);
        assert_eq!(parse("zz444840-9dc0-11d1-b245-5ffdce74fad2"), None);
        assert_eq!(boot_id(), boot_id());
    }
}
