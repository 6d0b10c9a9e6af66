//! Settings of a store.

use crate::{
    config::{LogConfig, OpenMode},
    error::{Error, Result},
    sys,
};

/// What is left to the rest of the process where the number of descriptors follows from its limit.
const LEFT_TO_OTHERS: u64 = 128;
/// What is taken where there is no limit.
const WITHOUT_LIMIT: u64 = 1 << 16;
/// More does not follow from any limit.
const MOST_BY_LIMIT: u64 = 1 << 20;
/// The least a store can work with.
const LEAST_DESCRIPTORS: u64 = 16;
/// Descriptors of a log that is open for writing: its directory, lock, records and two indexes, and one to spare.
const DESCRIPTORS_PER_LOG: u64 = 6;

/// How a [`Store`](crate::Store) is opened.
///
/// Make one with [`StoreConfig::default`] and change fields.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The settings of logs that have none of their own. Its `open` says whether the data directory may be made where it
    /// is missing (or is empty, or holds no data directory); topics are made by
    /// [`Store::create_topic`](crate::Store::create_topic) alone.
    pub log: LogConfig,
    /// How many file descriptors the store may hold, about: three quarters for logs that are open for writing (six each),
    /// a quarter for sealed segments that are being read. Logs used longest ago are closed to keep to it, and opened
    /// again when used. At least 16; default: three quarters of what the process may have (`RLIMIT_NOFILE`), or all but
    /// 128 where that is less.
    pub descriptors: Option<u64>,
    /// The cluster that the data directory belongs to. A new one is made for it, an existing one is refused where it says
    /// another. Default: whatever it says; a random one for a new directory.
    pub cluster_id: Option<String>,
    /// The same for the broker's number. Default: whatever it says; 1 for a new directory.
    pub node_id: Option<i32>,
}

impl StoreConfig {
    /// Says which setting makes no sense, if one does.
    pub fn validate(&self) -> Result<()> {
        self.log.validate()?;
        let invalid = |name, reason: String| Err(Error::InvalidConfig { name, reason });
        if let Some(few) = self.descriptors.filter(|few| *few < LEAST_DESCRIPTORS) {
            return invalid("descriptors", format!("{few} is less than {LEAST_DESCRIPTORS}"));
        }
        if let Some(node) = self.node_id.filter(|node| *node < 0) {
            return invalid("node_id", format!("{node} is negative"));
        }
        if self
            .cluster_id
            .as_deref()
            .is_some_and(|id| id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return invalid("cluster_id", "must be ASCII letters, digits and signs".to_owned());
        }
        Ok(())
    }

    pub(super) fn may_create(&self) -> bool {
        self.log.open == OpenMode::CreateIfMissing
    }

    /// The settings of a log in the store: its directory is there.
    pub(super) fn of_logs(&self) -> LogConfig {
        LogConfig { open: OpenMode::MustExist, ..self.log.clone() }
    }

    pub(super) fn bounds(&self) -> Bounds {
        let descriptors = self.descriptors.unwrap_or_else(|| by_limit(sys::descriptor_limit()));
        Bounds {
            logs: (descriptors / 4 * 3 / DESCRIPTORS_PER_LOG).max(1),
            segments: (descriptors / 4).max(2),
        }
    }
}

/// How much may be open at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) logs: u64,
    pub(super) segments: u64,
}

fn by_limit(limit: Option<u64>) -> u64 {
    let Some(limit) = limit else { return WITHOUT_LIMIT };
    (limit / 4 * 3).min(limit.saturating_sub(LEFT_TO_OTHERS)).clamp(LEAST_DESCRIPTORS, MOST_BY_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senseless_settings_are_named() {
        let check = |change: fn(&mut StoreConfig), name: &str| {
            let mut config = StoreConfig::default();
            config.validate().unwrap();
            change(&mut config);
            match config.validate() {
                Err(Error::InvalidConfig { name: found, .. }) => assert_eq!(found, name),
                other => panic!("{name}: {other:?}"),
            }
        };
        check(|c| c.descriptors = Some(15), "descriptors");
        check(|c| c.node_id = Some(-1), "node_id");
        check(|c| c.cluster_id = Some(String::new()), "cluster_id");
        check(|c| c.cluster_id = Some("a\nversion=9".to_owned()), "cluster_id");
        check(|c| c.log.segment_bytes = 0, "segment_bytes");
    }

    #[test]
    fn bounds_follow_from_the_descriptors() {
        let bounds = |descriptors| StoreConfig { descriptors, ..StoreConfig::default() }.bounds();
        assert_eq!(bounds(Some(16)), Bounds { logs: 2, segments: 4 });
        assert_eq!(bounds(Some(8000)), Bounds { logs: 1000, segments: 2000 });
        assert_eq!(by_limit(Some(1024)), 768);
        assert_eq!(by_limit(Some(256)), 128);
        assert_eq!(by_limit(Some(64)), 16);
        assert_eq!(by_limit(None), 1 << 16);
        assert!(by_limit(Some(u64::MAX)) <= 1 << 20);
    }
}
