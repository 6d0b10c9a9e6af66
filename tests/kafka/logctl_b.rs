//! `logctl -b` against a real broker: what it appends the broker serves, what others produced it reads, and its topics are
//! the broker's.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use crate::{
    CODECS,
    command::{kafka_is_here, logctl, ok, run},
    corpus,
    node::Node,
    record::{Told, assert_same},
};

fn cat(at: &[&str]) -> Vec<Told> {
    ok(&[&["cat", "-J"], at].concat(), b"").lines().map(Told::by_logctl).collect()
}

#[test]
fn a_broker_serves_what_was_appended_to_it_and_is_read() {
    if !kafka_is_here() {
        return;
    }
    let node = Node::new();
    let b = node.address();
    node.create("ours", CODECS.len(), &[]);
    node.create("theirs", CODECS.len(), &[]);
    let records = corpus::records(0, 1500);
    for (number, codec) in CODECS.iter().enumerate() {
        let number = number.to_string();
        let place = ["append", "-b", b, "ours", "-p", &number, "--format", "jsonl", "-q"];
        ok(&[&place[..], &["-z", codec, "--batch-size", "8KiB"]].concat(), &corpus::lines(&records));
    }
    node.produce("theirs", 0, 1500, &CODECS);
    for topic in ["ours", "theirs"] {
        let served = node.consume(topic, CODECS.len());
        for (number, (served, codec)) in served.iter().zip(CODECS).enumerate() {
            let what = format!("{topic}, {codec}");
            if topic == "ours" {
                assert_same(&what, &records, served);
            }
            let number = number.to_string();
            let place = ["-b", b, topic, "-p", &number];
            assert_same(&what, &cat(&place), served);
            // From the middle of a batch, up to the middle of another.
            assert_same(&what, &cat(&[&place[..], &["-o", "701:1203"]].concat()), &served[701..1203]);
            assert_same(&what, &cat(&[&place[..], &["-o", "-7"]].concat()), &served[served.len() - 7..]);
            // The first that is not older, as far as the broker says.
            let at = format!("@{}", served[900].timestamp);
            let found = ok(&[&["offsets"], &place[..], &["--time", &at]].concat(), b"");
            let first = served.iter().find(|told| told.timestamp >= served[900].timestamp).unwrap().offset;
            assert_eq!(found, format!("{topic}:{number}:{first}\n"), "{what}");
            let from = usize::try_from(first).unwrap();
            assert_same(&what, &cat(&[&place[..], &["-o", &at]].concat()), &served[from..]);
        }
        let ends = (0..CODECS.len()).map(|number| format!("{topic}:{number}:1500")).collect::<Vec<_>>();
        assert_eq!(ok(&["offsets", "-b", b, topic], b"").lines().collect::<Vec<_>>(), ends);
    }
    // A large record alone in its batch comes whole, whatever is asked for.
    let large = vec![b'x'; 900_000];
    ok(&["append", "-b", b, "ours", "-p", "0", "-q"], &large);
    assert_eq!(ok(&["cat", "-b", b, "ours", "-p", "0", "-o", "-1"], b"").trim_end().len(), large.len());
    let too_large = run(
        &mut logctl(&["append", "-b", b, "ours", "-p", "0", "--batch-size", "2MiB"]),
        &vec![b'x'; 1_500_000],
    );
    assert_eq!(too_large.code, Some(1), "{}", too_large.err);
    assert!(
        too_large.err.contains("MESSAGE_TOO_LARGE") && too_large.err.contains("max.message.bytes"),
        "{}",
        too_large.err
    );
}

#[test]
fn a_broker_is_followed_and_its_topics_are_managed() {
    if !kafka_is_here() {
        return;
    }
    let node = Node::new();
    let b = node.address();
    let fails = |args: &[&str], code: i32, says: &str| {
        let ran = run(&mut logctl(args), b"x\n");
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(says), "{args:?}: {}", ran.err);
    };
    fails(&["append", "-b", b, "t"], 3, "no topic `t`");
    let made =
        ok(&["topic", "create", "-b", b, "t", "--partitions", "3", "--config", "retention.ms=7200000"], b"");
    assert_eq!(made, "made topic t with 3 partitions\n");
    fails(&["topic", "create", "-b", b, "t"], 1, "--if-not-exists");
    fails(&["topic", "create", "-b", b, "u", "--config", "retention.ms=x"], 1, "INVALID_CONFIG");
    fails(&["topic", "create", "-b", b, "u", "--replication-factor", "3"], 1, "INVALID_REPLICATION_FACTOR");
    // To where Kafka's own producers send these keys.
    let placed =
        ok(&["append", "-b", b, "t", "-K", "=", "--report", "%p:%o %k\n", "-q"], b"a=1\nb=2\nc=3\na=4\n");
    let mut placed: Vec<&str> = placed.lines().collect();
    placed.sort_unstable();
    assert_eq!(placed, ["1:0 a", "1:1 c", "1:2 a", "2:0 b"]);

    let mut tail = logctl(&["tail", "-b", b, "t", "-n", "1", "-f", "--format", "%p:%o %v\n"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tail.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(next(), "1:2 4\n");
    assert_eq!(next(), "2:0 2\n");
    for (partition, expected) in [("0", "0:0 first\n"), ("2", "2:1 first\n")] {
        ok(&["append", "-b", b, "t", "-p", partition, "-q", "-z", "lz4"], b"first\n");
        assert_eq!(next(), expected);
    }
    tail.kill().unwrap();
    tail.wait().unwrap();

    let change = ["topic", "alter", "-b", b, "t", "--set", "max.message.bytes=2000000", "--partitions", "4"];
    fails(&change, 1, "--yes");
    ok(&[&change[..], &["--unset", "retention.ms", "--yes"]].concat(), b"");
    fails(&["topic", "alter", "-b", b, "t", "--partitions", "2", "--yes"], 1, "INVALID_PARTITIONS");
    let settings = ok(&["topic", "config", "-b", b, "t", "-J"], b"");
    assert_eq!(
        settings,
        "{\"type\":\"setting\",\"topic\":\"t\",\"key\":\"max.message.bytes\",\"value\":\"2000000\",\"origin\":\"topic\"}\n"
    );
    assert!(ok(&["topic", "config", "-b", b, "t", "--all"], b"").contains("retention.ms"));
    let described = ok(&["topic", "describe", "-b", b, "t", "-J"], b"");
    assert_eq!(
        described.lines().filter(|line| line.contains("\"type\":\"partition\"")).count(),
        4,
        "{described}"
    );
    assert!(ok(&["topic", "ls", "-b", b], b"").lines().any(|line| line.starts_with("t ")));
    fails(&["topic", "rm", "-b", b, "t"], 1, "nothing was changed");
    ok(&["topic", "rm", "-b", b, "t", "--yes"], b"");
    fails(&["cat", "-b", b, "t"], 3, "no topic `t`");
}
