//! A broker's whole data directory in a store's hands and back: refused while the broker runs, gone on with after a clean
//! stop and after a kill, served again with all records and, after a clean close, without a scan.

use stratalog::{AppendOptions, Error, Store, StoreConfig, record::Record};

use crate::{command::kafka_is_here, corpus, hand_over::is_of_zeros, node::Node, record::assert_same};

const TOPIC: &str = "stored";
const COUNT: usize = 3;

#[test]
fn a_data_directory_goes_from_a_broker_to_a_store_and_back() {
    if !kafka_is_here() {
        return;
    }
    let mut node = Node::new();
    node.create(TOPIC, COUNT, &[]);
    node.produce(TOPIC, 0, 60, &["none"; COUNT]);
    let refused = Store::open(node.data(), StoreConfig::default());
    assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");

    for is_killed in [false, true] {
        if is_killed {
            node.kill();
        } else {
            node.stop();
        }
        let store = Store::open(node.data(), StoreConfig::default()).unwrap();
        assert_eq!(store.was_clean(), !is_killed);
        assert_eq!(store.topics().iter().find(|topic| topic.name == TOPIC).unwrap().partitions, [0, 1, 2]);
        for partition in 0..3 {
            let log = store.log(TOPIC, partition).unwrap();
            for number in 0..40 {
                let value = format!("a store's {number}");
                log.append_records(&[Record::value_only(value.as_bytes())], AppendOptions::default())
                    .unwrap();
            }
        }
        if is_killed {
            drop(store);
            assert!(!node.has_clean_marker());
        } else {
            assert!(store.close().unwrap(), "all of it was clean, or was closed here");
            assert!(node.has_clean_marker());
        }
        let ours: Vec<_> = (0..COUNT).map(|number| corpus::read(&node.partition(TOPIC, number))).collect();

        node.start();
        for (ours, served) in ours.iter().zip(node.consume(TOPIC, COUNT)) {
            assert!(ours.len() >= 40);
            assert_same("served again", ours, &served);
        }
        let mut words = vec!["truncat", "corrupt", "stray"];
        if !is_killed {
            words.push("recovering unflushed");
        }
        let mut unexcused = node.complaints(TOPIC, &words);
        if is_killed {
            // A writer that is killed leaves the blocks that it had reserved.
            let ends: Vec<_> = ours.iter().map(|ours| ours.last().unwrap().offset + 1).collect();
            unexcused.retain(|line| !ends.iter().any(|end| is_of_zeros(line, *end)));
        }
        assert!(unexcused.is_empty(), "{unexcused:#?}");
    }
}
