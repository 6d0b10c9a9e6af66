//! Kafka's own command-line tools against `logctl serve`, and one data directory served by a broker and by us in turns.

use std::fs;

use tempfile::TempDir;

use crate::{
    CODECS,
    command::{kafka, kafka_is_here, run},
    node::{Node, consume_from, produce_to},
    ours::Ours,
    record::assert_same,
};

const TOPIC: &str = "turns";

#[test]
fn kafkas_tools_work_against_our_server() {
    if !kafka_is_here() {
        return;
    }
    let place = TempDir::new().unwrap();
    let ours = Ours::start(&place.path().join("data"));
    let tool_of = |name: &str, args: &[&str], input: &str| {
        let all = [&["tool", name, "--bootstrap-server", &ours.address], args].concat();
        let ran = run(&mut kafka(&all), input.as_bytes());
        assert_eq!(ran.code, Some(0), "{all:?}:\n{}{}", ran.text(), ran.err);
        ran.text().to_owned()
    };
    let tool = |name: &str, args: &str| tool_of(name, &args.split(' ').collect::<Vec<_>>(), "");

    let said = tool("topics", "--create --topic tools --partitions 3 --config retention.ms=-1");
    assert!(said.contains("Created topic tools."), "{said}");
    tool("topics", "--alter --topic tools --partitions 5");
    let said = tool("topics", "--describe --topic tools");
    assert!(said.contains("PartitionCount: 5\tReplicationFactor: 1\tConfigs: retention.ms=-1"), "{said}");
    assert!(said.contains("Partition: 4\tLeader: 1\tReplicas: 1\tIsr: 1"), "{said}");

    tool("configs", "--alter --entity-type topics --entity-name tools --add-config max.message.bytes=200000");
    let said = tool("configs", "--describe --entity-type topics --entity-name tools");
    let wanted = "max.message.bytes=200000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=200000, DEFAULT_CONFIG:message.max.bytes=1048588}";
    assert!(said.contains(wanted) && said.contains("retention.ms=-1"), "{said}");
    let said = tool("configs", "--describe --all --entity-type brokers --entity-name 1");
    assert!(said.contains("auto.create.topics.enable=true"), "{said}");

    tool("topics", "--create --topic lines --partitions 1");
    let lines: Vec<String> = (0..40).map(|n| format!("k{n}:value {n}")).collect();
    let producer = ["--topic", "lines", "--reader-property", "parse.key=true"];
    let producer = [&producer[..], &["--reader-property", "key.separator=:"]].concat();
    tool_of("console-producer", &producer, &(lines.join("\n") + "\n"));
    let said = tool("console-consumer", "--topic lines --partition 0 --offset 7 --max-messages 33");
    let wanted: Vec<String> = (7..40).map(|n| format!("value {n}")).collect();
    assert_eq!(said.lines().collect::<Vec<_>>(), wanted);
    let said = tool("org.apache.kafka.tools.VerifiableProducer", "--topic lines --max-messages 60");
    assert_eq!(said.matches("producer_send_success").count(), 60, "{said}");
    let said = tool("producer-perf", "--topic tools --num-records 3000 --record-size 100 --throughput -1");
    assert!(said.contains("3000 records sent"), "{said}");
    assert_eq!(tool("get-offsets", "--topic lines").trim(), "lines:0:100");
    let counts = tool("get-offsets", "--topic tools");
    let ends = counts.lines().map(|line| line.rsplit(':').next().unwrap().parse::<u32>().unwrap());
    assert_eq!((counts.lines().count(), ends.sum::<u32>()), (5, 3000), "{counts}");

    let wanted = place.path().join("delete.json");
    fs::write(&wanted, r#"{"partitions":[{"topic":"lines","partition":0,"offset":30}],"version":1}"#)
        .unwrap();
    let said = tool_of("delete-records", &["--offset-json-file", wanted.to_str().unwrap()], "");
    assert!(said.contains("partition: lines-0\tlow_watermark: 30"), "{said}");
    assert_eq!(tool("get-offsets", "--topic lines --time earliest").trim(), "lines:0:30");
    let said = tool("log-dirs", "--describe --topic-list lines");
    assert!(said.contains(r#""partition":"lines-0""#) && said.contains(r#""error":null"#), "{said}");
    let said = tool_of("api-versions", &[], "");
    assert!(said.contains("Produce(0): 0 to 13 [usable: 13]"), "{said}");

    tool("topics", "--delete --topic tools");
    assert_eq!(tool("topics", "--list").trim(), "lines");
    ours.stop();
}

/// A broker's directory served by us, stopped and killed, and by the broker again: the same records at the same offsets, and
/// what clients produced to either.
#[test]
fn a_directory_is_served_by_a_broker_and_by_us_in_turns() {
    if !kafka_is_here() {
        return;
    }

    let mut node = Node::new();
    node.create(TOPIC, CODECS.len(), &[]);
    node.produce(TOPIC, 0, 300, &CODECS);
    let mut before = node.consume(TOPIC, CODECS.len());
    for (round, is_killed) in [(1, false), (2, true)] {
        node.stop();
        let ours = Ours::start(&node.data());
        let same = |what: &str, address: &str, before: &[Vec<_>]| {
            let served = consume_from(address, TOPIC, CODECS.len());
            for ((before, served), codec) in before.iter().zip(&served).zip(CODECS) {
                assert_same(&format!("round {round}, {what}, {codec}"), before, &served[..before.len()]);
            }
            served
        };
        same("by us", &ours.address, &before);
        produce_to(&ours.address, TOPIC, 1000 * round, 200, &CODECS);
        before = same("by us, with ours", &ours.address, &before);
        if is_killed {
            ours.kill();
        } else {
            ours.stop();
        }
        node.start();
        let served = same("by the broker", node.address(), &before);
        assert!(served.iter().zip(&before).all(|(served, before)| served.len() == before.len()));
        node.produce(TOPIC, 1000 * round + 500, 100, &CODECS);
        before = node.consume(TOPIC, CODECS.len());
        assert!(before.iter().all(|records| records.len() == 300 * (round + 1)));
        if !is_killed {
            // Behind a killed server's last batch lies room that it reserved, which a broker cuts off and tells of.
            assert_eq!(node.complaints(TOPIC, &["corrupt"]), [""; 0]);
        }
    }
}
