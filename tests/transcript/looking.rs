//! Looking at what is there: tables, JSON, the bytes themselves.

use crate::session::Session;

/// Directories that a broker wrote: their times do not move.
fn data(day: &mut Session) {
    for case in ["plain", "transactions", "compacted"] {
        day.fixture(&format!("kafka/4.4.0/{case}/{case}-0"), &format!("data/{case}-0"));
    }
    day.fixture("broken/flipped-bit-sealed", "data/flipped-0");
}

#[test]
fn looking() {
    let mut day = Session::new("look");
    data(&mut day);
    day.chapter("what is there");
    day.run("logctl ls data");
    day.run("logctl ls data --sort records");
    day.run("logctl ls data/plain-0");
    day.run("logctl ls data/transactions-0");
    day.columns(50);
    day.run("logctl ls data/plain-0");
    day.columns(100);
    day.pipe("logctl ls data -J");
    day.pipe("logctl ls data/transactions-0 -J");
    day.run("logctl offsets data");
    day.run("logctl offsets data --time earliest");
    day.run("logctl offsets data/plain-0 --time max-timestamp");
    day.run("logctl offsets data/plain-0 --time 2023-11-14T23:00:00Z -J");

    day.chapter("what is in it");
    day.run("logctl info data/transactions-0");
    day.run("logctl info data/transactions-0 --segments --epochs --batches");
    day.run("logctl info data/plain-0 --segments");
    day.pipe("logctl info data/transactions-0 -J");
    day.run("logctl info data/flipped-0");
    day.run("logctl -d data info transactions-0 -J");

    day.pipe("logctl info data/transactions-0 --output json");
    day.pipe("logctl ls data --output json");

    day.chapter("settings");
    day.pipe("logctl config path");
    // Relative, so that where lines are wrapped does not depend on where the test runs.
    day.set("LOGCTL_CONFIG", "logctl.toml");
    day.run("logctl config show");
    day.prepare(
        r#"printf 'dir = "data"\noutput = "jsonl"\n\n[profiles.people]\noutput = "table"\n' >logctl.toml"#,
    );
    day.pipe("logctl config show");
    day.run("logctl info plain-0");
    day.run("logctl info plain-0 --profile people");
    day.run("logctl info plain-0 --profile nobody");
    day.prepare("printf 'colour = 3\\n' >logctl.toml");
    day.run("logctl info data/plain-0");
    day.prepare("printf 'dir = \\n' >logctl.toml");
    day.run("logctl info data/plain-0");
    day.unset("LOGCTL_CONFIG");

    day.chapter("what cannot be done");
    day.run("logctl ls nowhere");
    day.run("logctl info nowhere-0");
    day.run("logctl info data");
    day.run("logctl offsets data/plain-0 --time soon");
    day.run("logctl offsets nowhere");
    day.run("mkdir empty; logctl ls empty");
    day.run("logctl info empty");
    day.run("logctl ls /etc/hostname");
    day.finish();
}

#[test]
fn dumping() {
    let mut day = Session::new("dump");
    data(&mut day);
    day.fixture("kafka/4.4.0/store-clean/data", "store");
    day.prepare("cp data/plain-0/00000000000000000000.log data/copy.bak");
    day.prepare(
        "seq 3 | logctl append own-0 --create --timestamp 1700000000000; logctl tail own-0 --cursor mailer",
    );
    day.columns(150);
    day.chapter("in the words of Kafka's tool");
    day.run("logctl dump data/transactions-0/00000000000000000000.log | head -n 4");
    day.run("logctl dump data/compacted-0/*.log --print-data-log --max-bytes 300");
    day.run("logctl dump --files data/transactions-0/00000000000000000000.txnindex,data/transactions-0/leader-epoch-checkpoint");
    day.run("logctl dump data/plain-0/00000000000000000000.index data/plain-0/00000000000000000000.timeindex --index-sanity-check");
    day.run("logctl dump store/__consumer_offsets-0/00000000000000000000.log --offsets-decoder --skip-record-metadata | head -n 5");
    day.run("logctl dump store/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint --cluster-metadata-decoder --skip-record-metadata");
    day.run("logctl dump own-0/00000000000000000000.log --hex --skip-record-metadata");

    day.chapter("small files");
    day.run("cd store && logctl dump meta.properties .kafka_cleanshutdown recovery-point-offset-checkpoint __cluster_metadata-0/quorum-state grouped-0/partition.metadata");
    day.pipe("cd store && logctl dump -J meta.properties .kafka_cleanshutdown log-start-offset-checkpoint __cluster_metadata-0/quorum-state");
    day.pipe("cd own-0 && logctl dump .stratalog-cursor-mailer .stratalog-control");

    day.chapter("JSON lines");
    day.pipe("logctl dump data/plain-0/00000000000000000000.log --deep-iteration -J | head -n 4");
    day.pipe("logctl dump data/plain-0/00000000000000000000.index -J | head -n 3");

    day.chapter("damage, and what cannot be done");
    day.run("logctl dump data/flipped-0/00000000000000000091.log | tail -n 2");
    day.run("logctl dump nowhere.log");
    day.run("logctl dump nowhere.index store/meta.properties");
    day.run("logctl dump /etc/hostname data/copy.bak");
    day.run("logctl dump data");
    day.run("logctl dump");
    day.run("logctl dump own-0/00000000000000000000.log --offsets-decoder --transaction-log-decoder");
    day.run("logctl dump own-0/00000000000000000000.log --value-decoder-class org.example.Decoder");
    day.finish();
}
