//! What a topic was told about itself: words and values that stay with it, whatever they mean.
//!
//! A broker keeps these in its cluster's metadata log. Here they lie in a file of our own in the directory of the topic's
//! lowest partition, so that they come with the topic and go with it.

use std::{collections::BTreeMap, path::Path};

use super::{
    Store, names,
    private_file::{self, Unreadable},
};
use crate::{
    error::{Corruption, Error, Result},
    sys::Dir,
};

/// The file's name. A topic that was never told anything has none.
pub(super) const TOPIC_FILE: &str = ".stratalog-topic";
pub(super) const KIND: &str = "topic";

impl Store {
    /// What the topic was told by [`Store::set_topic_settings`], or when it was made: words and values. The store keeps
    /// them and does nothing with them; what they do to its logs is [`StoreLog::set_config`](crate::StoreLog::set_config).
    ///
    /// [`Error::Corrupt`] where the file is damaged: what was in it is not known then, and
    /// [`Store::set_topic_settings`] writes it anew. [`Error::UnsupportedVersion`] where a newer version wrote it.
    pub fn topic_settings(&self, topic: &str) -> Result<BTreeMap<String, String>> {
        self.inner.check_open()?;
        read(&self.first_dir(topic)?)
    }

    /// The same by the directory of the topic's lowest partition, without a store and without a lock.
    pub fn topic_settings_in(partition_dir: impl AsRef<Path>) -> Result<BTreeMap<String, String>> {
        let path = partition_dir.as_ref();
        let dir = Dir::open(path).map_err(|error| {
            if error.is_not_found() { Error::NotFound { path: path.to_owned() } } else { error.into() }
        })?;
        read(&dir)
    }

    /// Replaces all that the topic was told. When it returns, that is durable; a crash before leaves what was there.
    /// A word has no `=` and no line end in it, and does not begin with `crc32`.
    pub fn set_topic_settings(&self, topic: &str, settings: &BTreeMap<String, String>) -> Result<()> {
        let inner = &self.inner;
        let _alone = inner.changing.lock();
        inner.check_open()?;
        check_words(settings)?;
        let dir = self.first_dir(topic)?;
        if settings.is_empty() {
            if dir.remove(TOPIC_FILE)? {
                dir.sync()?;
            }
            return Ok(());
        }
        let text = private_file::render(KIND, settings);
        Ok(dir.write_replace(TOPIC_FILE, text.as_bytes(), inner.config.log.file_mode)?)
    }

    /// The directory of the topic's lowest partition.
    pub(super) fn first_dir(&self, topic: &str) -> Result<Dir> {
        let inner = &self.inner;
        let first = inner.topics.lock().get(topic).and_then(|slots| slots.keys().next().copied());
        let first = first.ok_or_else(|| Error::NotFound { path: inner.dir.path_of(topic) })?;
        Ok(inner.dir.subdir(names::dir_of(topic, first))?)
    }
}

fn read(dir: &Dir) -> Result<BTreeMap<String, String>> {
    let Some(bytes) = dir.read_small(TOPIC_FILE, private_file::MAX_BYTES)? else {
        return Ok(BTreeMap::new());
    };
    private_file::parse(KIND, &bytes).map_err(|unreadable| {
        let path = dir.path_of(TOPIC_FILE);
        match unreadable {
            Unreadable::Newer(what) => Error::UnsupportedVersion { path, what },
            Unreadable::Damaged(what) => {
                Error::Corrupt(Corruption { path, position: 0, offset: None, reason: what.to_owned() })
            }
        }
    })
}

pub(super) fn check_words(settings: &BTreeMap<String, String>) -> Result<()> {
    let is_bad =
        |word: &&String| word.is_empty() || word.starts_with("crc32") || word.contains(['=', '\n', '\r']);
    if let Some(word) = settings.keys().find(is_bad) {
        let reason = format!("{word:?} is no word that can be kept");
        return Err(Error::InvalidConfig { name: "topic settings", reason });
    }
    let bytes: usize = settings.iter().map(|(word, value)| word.len() + 2 * value.len() + 2).sum();
    if bytes > private_file::MAX_BYTES - 100 {
        let reason = format!("{bytes} bytes; at most {} can be kept", private_file::MAX_BYTES - 100);
        return Err(Error::InvalidConfig { name: "topic settings", reason });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{config::OpenMode, store::StoreConfig};

    fn open(path: &Path) -> Store {
        let mut config = StoreConfig::default();
        config.log.open = OpenMode::CreateIfMissing;
        Store::open(path, config).unwrap()
    }

    fn told(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(word, value)| ((*word).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_a_topic_is_told_stays_with_it_and_goes_with_it() {
        let temp = tempfile::tempdir().unwrap();
        let store = open(temp.path());
        let first = told(&[("cleanup.policy", "compact"), ("x", "\n=")]);
        store.create_topic_with("t", 2, &first).unwrap();
        store.create_topic("silent", 1).unwrap();
        assert_eq!(store.topic_settings("t").unwrap(), first);
        assert_eq!(Store::topic_settings_in(temp.path().join("t-0")).unwrap(), first);
        assert!(matches!(Store::topic_settings_in(temp.path().join("x-0")), Err(Error::NotFound { .. })));
        assert_eq!(store.topic_settings("silent").unwrap(), told(&[]));
        let second = told(&[("retention.ms", "-1")]);
        store.set_topic_settings("t", &second).unwrap();
        store.create_partitions("t", 4).unwrap();
        drop(store);
        let store = open(temp.path());
        assert_eq!(store.topic_settings("t").unwrap(), second);
        store.set_topic_settings("t", &told(&[])).unwrap();
        assert!(!temp.path().join("t-0").join(TOPIC_FILE).exists());
        store.set_topic_settings("t", &first).unwrap();
        store.delete_topic("t").unwrap();
        store.create_topic("t", 1).unwrap();
        assert_eq!(store.topic_settings("t").unwrap(), told(&[]), "another topic of the same name");
        assert!(matches!(store.topic_settings("absent"), Err(Error::NotFound { .. })));
        assert!(matches!(
            store.set_topic_settings("t", &told(&[("a=b", "")])),
            Err(Error::InvalidConfig { .. })
        ));
    }

    #[test]
    fn a_damaged_file_is_no_empty_one() {
        let temp = tempfile::tempdir().unwrap();
        let store = open(temp.path());
        store.create_topic_with("t", 1, &told(&[("retention.ms", "-1")])).unwrap();
        let path = temp.path().join("t-0").join(TOPIC_FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("-1", "-2")).unwrap();
        assert!(matches!(store.topic_settings("t"), Err(Error::Corrupt(_))));
        fs::write(&path, text.replace("topic 1", "topic 9")).unwrap();
        assert!(matches!(store.topic_settings("t"), Err(Error::UnsupportedVersion { .. })));
        store.set_topic_settings("t", &told(&[("a", "b")])).unwrap();
        assert_eq!(store.topic_settings("t").unwrap(), told(&[("a", "b")]));
    }

    #[test]
    fn more_partitions_share_the_topics_id() {
        let temp = tempfile::tempdir().unwrap();
        let store = open(temp.path());
        let id = store.create_topic("t", 1).unwrap();
        for few in [-1, 0, 1] {
            assert!(matches!(store.create_partitions("t", few), Err(Error::InvalidTopic { .. })), "{few}");
        }
        store.create_partitions("t", 3).unwrap();
        assert_eq!(store.topics()[0].partitions, [0, 1, 2]);
        for partition in 0..3 {
            let text =
                fs::read_to_string(temp.path().join(format!("t-{partition}/partition.metadata"))).unwrap();
            assert_eq!(text, format!("version: 0\ntopic_id: {id}"));
        }
        store.log("t", 2).unwrap().append_records(&[], crate::AppendOptions::default()).unwrap_err();
        assert_eq!(store.log("t", 2).unwrap().end().unwrap().value(), 0);
        assert!(store.close().unwrap(), "the new ones are as clean as the old ones");
        assert_eq!(open(temp.path()).topics()[0].partitions, [0, 1, 2]);
    }
}
