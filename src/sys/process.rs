//! What the kernel gives this process: random bytes, and how many files it may have open.

use rustix::{
    process::{Resource, getrlimit},
    rand::{GetRandomFlags, getrandom},
};

use super::{Error, Result, error::retry};

/// Random bytes from the kernel.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += retry(|| getrandom(&mut bytes[filled..], GetRandomFlags::empty()))
            .map_err(|source| Error::new("read", "(random bytes)", source))?;
    }
    Ok(bytes)
}

/// How many descriptors this process may have open at a time; `None` where there is no limit.
pub(crate) fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_are_not_the_same_twice() {
        assert_ne!(random_bytes::<16>().unwrap(), random_bytes::<16>().unwrap());
        assert!(descriptor_limit().is_none_or(|limit| limit > 3));
    }
}
