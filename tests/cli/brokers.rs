//! `-b` and `topic`: against `logctl serve`, and against what is no broker or an old one.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use stratalog::protocol::{
    self, ApiKey, Message,
    messages::{
        api_versions::{ApiVersion, ApiVersionsResponse},
        init_producer_id::InitProducerIdResponse,
        list_offsets::{ListOffsetsPartitionResponse, ListOffsetsResponse, ListOffsetsTopicResponse},
        metadata::{
            MetadataResponse, MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
        },
        produce::{PartitionProduceResponse, ProduceResponse, TopicProduceResponse},
    },
    wire::Writer,
};

use crate::run::{Place, Ran, copy_dir, fails, logctl, numbers, ok, run, signal};

/// A server of ours on a data directory.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Served {
    /// Serves on any free port.
    #[track_caller]
    pub(crate) fn new(dir: &str, options: &[&str]) -> Self {
        Self::at(dir, "127.0.0.1:0", options)
    }

    #[track_caller]
    fn at(dir: &str, address: &str, options: &[&str]) -> Self {
        let ports = format!("{dir}.ports");
        let mut command = logctl(&["serve", dir, "--listen", address, "--ports-file", &ports]);
        let mut child = command
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address: SocketAddr = line.trim().strip_prefix("ready ").unwrap().parse().unwrap();
        assert_eq!(fs::read_to_string(ports).unwrap().trim(), address.to_string());
        Self { child, address }
    }

    pub(crate) fn brokers(&self) -> String {
        self.address.to_string()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn stop(mut self) {
        signal(&self.child, "TERM");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(args: &[&str]) -> String {
    String::from_utf8(ok(args, b"")).unwrap()
}

#[test]
fn what_is_appended_to_a_broker_is_read_from_it_and_from_its_directory() {
    let place = Place::new();
    let data = place.path("data");
    let served = Served::new(&data, &[]);
    let b = served.brokers();
    let any_time = format!("message.timestamp.after.max.ms={}", i64::MAX);
    ok(&["topic", "create", "-b", &b, "t", "--partitions", "1", "--config", &any_time], b"");
    let small = ["--batch-size", "300", "-q"];
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let lines: Vec<u8> = (0..100).flat_map(|n| format!("k{n}=v {codec} {n}\n").into_bytes()).collect();
        ok(&[&["append", "-b", &b, "t", "-K", "=", "-z", codec, "-H", "h=1"], &small[..]].concat(), &lines);
    }
    let odd = br#"{"key":null,"value":null,"headers":[]}
{"key":"","value":"","headers":[{"key":"","value":null}],"timestamp":1000}
{"key":"last","value":"of all","timestamp":99000000000000}
"#;
    ok(&["append", "-b", &b, "t", "--format", "jsonl", "-q"], odd);
    let all = text(&["cat", "-b", &b, "t", "-J"]);
    assert_eq!(all.lines().count(), 503);
    let reads: &[&[&str]] = &[
        &["-o", "150:152", "--format", "%o %k=%v %a{compression}\n"],
        &["-o", "-1", "-J", "--pretty"],
        &["-c", "3", "--csv"],
        &["-o", "@99000000000", "-J"],
        &["--grep", "zstd 9", "--count-by", "value"],
        &["--where", "value is null", "-J"],
        &["-o", "end"],
        &["--format", "%[ %| %]\n", "-o", "500"],
        &["--isolation", "committed", "--meta-only", "-o", "499"],
    ];
    let by_broker: Vec<String> =
        reads.iter().map(|read| text(&[&["cat", "-b", &b, "t"], *read].concat())).collect();
    assert_eq!(by_broker[0], "150 k50=v gzip 50 gzip\n151 k51=v gzip 51 gzip\n");
    let tails: &[&[&str]] =
        &[&[], &["-n", "0"], &["-n", "3", "-J"], &["-n", "all", "--keys-only"], &["--since", "@99000000000"]];
    let tail_by_broker: Vec<String> =
        tails.iter().map(|tail| text(&[&["tail", "-b", &b, "t"], *tail].concat())).collect();
    assert_eq!(tail_by_broker[0].lines().count(), 10);
    for (time, offset) in
        [("earliest", "0"), ("latest", "503"), ("max-timestamp", "502"), ("@99000000001", "")]
    {
        assert_eq!(text(&["offsets", "-b", &b, "t", "--time", time]), format!("t:0:{offset}\n"), "{time}");
    }
    assert_eq!(text(&["offsets", &format!("kafka://{b}/t/0")]), "t:0:503\n");
    let late = fails(&["cat", "-b", &b, "t", "-o", "504"], b"", 3, "out of range");
    assert!(late.err.contains("t/0") && late.err.contains("offsets -b"), "{}", late.err);
    served.stop();

    let dir = format!("{data}/t-0");
    assert_eq!(text(&["cat", &dir, "-J"]), all);
    for (read, by_broker) in reads.iter().zip(&by_broker) {
        assert_eq!(text(&[&["cat", &dir], *read].concat()), *by_broker, "{read:?}");
    }
    for (tail, by_broker) in tails.iter().zip(&tail_by_broker) {
        assert_eq!(text(&[&["tail", &dir], *tail].concat()), *by_broker, "{tail:?}");
    }
    ok(&["verify", &data, "--deep"], b"");
}

#[test]
fn keys_choose_partitions_and_each_is_told() {
    let place = Place::new();
    let served = Served::new(&place.path("data"), &["--override", "num.partitions=3"]);
    let b = served.brokers();
    fails(&["append", "-b", &b, "t"], b"x\n", 3, "no topic `t`");
    let made = run(
        &["append", "-b", &b, "t", "--create", "-K", "=", "--report", "%t %p %o %k\n"],
        b"a=1\nb=2\nc=3\na=4\n",
    );
    assert_eq!(made.code, Some(0), "{}", made.err);
    let mut lines: Vec<&str> = made.text().lines().collect();
    lines.sort_unstable();
    // As Kafka's own producers choose.
    assert_eq!(lines, ["t 1 0 a", "t 1 1 c", "t 1 2 a", "t 2 0 b"]);
    assert!(made.err.contains("made topic `t` with 3 partitions"), "{}", made.err);
    assert!(made.err.contains("t/1 offsets 0 to 2; t/2 offset 0, acks=all"), "{}", made.err);
    assert_eq!(text(&["cat", "-b", &b, "t", "-f", "%p:%o=%v\n"]), "1:0=1\n1:1=3\n1:2=4\n2:0=2\n");
    ok(&["append", "-b", &b, "t", "-p", "0", "-q", "--acks", "1"], &numbers(5));
    let unknown = run(&["append", "-b", &b, "t", "-p", "0", "--acks", "0"], b"6\n");
    assert!(unknown.err.contains("offsets not told"), "{}", unknown.err);
    assert_eq!(text(&["offsets", "-b", &b]), "t:0:6\nt:1:3\nt:2:1\n");
    // One of several that has no such offset hides none of the others.
    let partly = fails(&["cat", "-b", &b, "t", "-o", "5:"], b"", 8, "t/1");
    assert_eq!(partly.text(), "6\n");
    assert_eq!(text(&["tail", "-b", &b, "t", "-n", "1"]), "6\n4\n2\n");
    assert_eq!(text(&["cat", "-b", &b, "t", "-c", "2"]), "1\n2\n");
    // Where the log says the time, the report does too.
    let stamped =
        ["topic", "create", "-b", &b, "stamped", "--config", "message.timestamp.type=LogAppendTime"];
    ok(&[&stamped[..], &["--partitions", "1"]].concat(), b"");
    let report =
        ["append", "-b", &b, "stamped", "--timestamp", "-15m", "--report", "%o %d %a{timestamp-type}\n"];
    let report = String::from_utf8(ok(&report, b"x\n")).unwrap();
    assert_eq!(report, text(&["cat", "-b", &b, "stamped", "-f", "%o %d %a{timestamp-type}\n"]));
    // Those without a key are spread, a batch each.
    ok(&["append", "-b", &b, "spread", "--create", "--batch-size", "1KiB", "-q"], &numbers(5000));
    let ends = text(&["offsets", "-b", &b, "spread"]);
    let counts: Vec<u32> =
        ends.lines().map(|line| line.rsplit(':').next().unwrap().parse().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u32>(), 5000);
    assert!(counts.len() == 3 && counts.iter().all(|count| *count > 1000), "{counts:?}");
}

#[test]
fn transactions_are_read_as_in_the_directory() {
    let place = Place::new();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/kafka/4.4.0/transactions");
    let data = place.path("data");
    for entry in fs::read_dir(fixture).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        copy_dir(entry.path(), format!("{data}/{}", entry.file_name().to_str().unwrap()));
    }
    let found: Vec<String> =
        fs::read_dir(&data).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    let name = found.iter().find(|name| name.ends_with("-0")).unwrap();
    let topic = name.strip_suffix("-0").unwrap();
    let before: Vec<String> = ["committed", "uncommitted"]
        .iter()
        .map(|level| text(&["cat", &format!("{data}/{name}"), "-J", "--control", "--isolation", level]))
        .collect();
    assert_ne!(before[0].lines().count(), before[1].lines().count());
    // Records as old as these are to stay.
    let served = Served::new(&data, &["--override", "log.retention.ms=-1"]);
    for (level, before) in ["committed", "uncommitted"].iter().zip(&before) {
        let by_broker =
            text(&["cat", "-b", &served.brokers(), topic, "-J", "--control", "--isolation", level]);
        assert_eq!(by_broker, *before, "{level}");
    }
}

/// A running `tail -f`, and its lines.
fn follow(args: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child =
        logctl(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    (child, lines)
}

fn next(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line
}

#[test]
fn a_follower_sees_all_partitions_and_outlives_the_server() {
    let place = Place::new();
    let data = place.path("data");
    let mut served = Served::new(&data, &[]);
    let b = served.brokers();
    let (mut tail, mut lines) = follow(&["tail", "-b", &b, "t", "-F", "-n", "all", "--format", "%p %v\n"]);
    let mut said = BufReader::new(tail.stderr.take().unwrap());
    assert!(next(&mut said).contains("waiting: no topic `t`"));
    ok(&["topic", "create", "-b", &b, "t", "--partitions", "2"], b"");
    for partition in ["1", "0", "1"] {
        let value = format!("to {partition}\n");
        ok(&["append", "-b", &b, "t", "-p", partition, "-q"], value.as_bytes());
        assert_eq!(next(&mut lines), format!("{partition} {value}"));
    }
    served.kill();
    let served = Served::at(&data, &b, &[]);
    ok(&["append", "-b", &b, "t", "-p", "0", "-q"], b"after\n");
    assert_eq!(next(&mut lines), "0 after\n");
    signal(&tail, "INT");
    assert_eq!(tail.wait().unwrap().code(), Some(130));
    drop(served);
}

#[test]
fn a_place_is_kept_in_a_file() {
    let place = Place::new();
    let served = Served::new(&place.path("data"), &[]);
    let (b, file) = (served.brokers(), place.path("at"));
    ok(&["append", "-b", &b, "t", "--create", "-q"], &numbers(3));
    let kept = ["tail", "-b", &b, "t", "-n", "all", "--cursor-file", &file];
    assert_eq!(text(&kept), "1\n2\n3\n");
    assert_eq!(text(&kept), "");
    ok(&["append", "-b", &b, "t", "-q"], b"4\n");
    assert_eq!(text(&kept), "4\n");
    fails(&["tail", "-b", &b, "t", "--cursor", "x"], b"", 2, "--cursor-file");
}

#[test]
fn a_server_that_is_killed_costs_no_record_and_doubles_none() {
    let place = Place::new();
    let data = place.path("data");
    let mut served = Served::new(&data, &[]);
    let b = served.brokers();
    ok(&["topic", "create", "-b", &b, "t", "--partitions", "1"], b"");
    let mut child = logctl(&["append", "-b", &b, "t", "--batch-size", "200", "--report", "%o\n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut reports = BufReader::new(child.stdout.take().unwrap());
    let feeding = thread::spawn(move || {
        for n in 0..3000 {
            input.write_all(format!("{n}\n").as_bytes()).unwrap();
        }
    });
    for _ in 0..3 {
        // Somewhere in the middle of the stream, whatever of it is on its way.
        for _ in 0..100 {
            assert!(next(&mut reports).ends_with('\n'));
        }
        served.kill();
        served = Served::at(&data, &b, &[]);
    }
    let mut rest = String::new();
    reports.read_to_string(&mut rest).unwrap();
    feeding.join().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{said}");
    let expected: Vec<String> = (0..3000).map(|n| format!("{n}={n}")).collect();
    assert_eq!(text(&["cat", "-b", &b, "t", "-f", "%o=%v\n"]).lines().collect::<Vec<_>>(), expected);
    assert!(said.contains("appended 3000 records"), "{said}");
}

#[test]
fn ctrl_c_appends_what_was_read_and_tells_it() {
    let place = Place::new();
    let served = Served::new(&place.path("data"), &[]);
    let b = served.brokers();
    let mut child = logctl(&["append", "-b", &b, "t", "--create", "--report", "%o\n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&numbers(10)).unwrap();
    let mut reports = BufReader::new(child.stdout.take().unwrap());
    for offset in 0..10 {
        assert_eq!(next(&mut reports), format!("{offset}\n"));
    }
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("appended 10 records"), "{said}");
    drop(input);
}

#[test]
fn topics_of_a_broker_and_of_a_directory() {
    let place = Place::new();
    let data = place.path("data");
    let served = Served::new(&data, &[]);
    let b = served.brokers();
    let by_broker = topics_made_and_changed(&["-b", &b]);
    // What looks needs no lock; what changes is refused while somebody serves it.
    assert!(text(&["topic", "ls", "--dir", &data]).contains("kept"));
    fails(&["topic", "create", "--dir", &data, "x"], b"", 5, "-b HOST:PORT");
    served.stop();
    let other = place.path("other");
    let by_dir = topics_made_and_changed(&["--dir", &other]);
    let plain = |text: &str| -> Vec<String> {
        let parsed = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        // Who leads and how many copies there are only a cluster tells.
        parsed
            .map(|mut value| {
                for field in ["leader", "replicas", "in_sync", "topic_id"] {
                    value.as_object_mut().unwrap().remove(field);
                }
                value.to_string()
            })
            .collect()
    };
    assert_eq!(plain(&by_broker), plain(&by_dir));
    // One place's topics are the other's.
    assert_eq!(plain(&text(&["topic", "describe", "--dir", &data, "-J"])), plain(&by_broker));
    let served = Served::new(&other, &[]);
    assert_eq!(plain(&text(&["topic", "describe", "-b", &served.brokers(), "-J"])), plain(&by_broker));
}

fn topics_made_and_changed(at: &[&str]) -> String {
    let topic = |words: &[&str]| run(&[&["topic"], words, at].concat(), b"");
    let says = |words: &[&str], code: i32, says: &str| -> Ran {
        let ran = topic(words);
        assert_eq!(ran.code, Some(code), "{words:?} {at:?}: {}{}", ran.text(), ran.err);
        assert!(
            ran.err.contains(says) || ran.text().contains(says),
            "{words:?} {at:?}: {}{}",
            ran.text(),
            ran.err
        );
        ran
    };
    says(
        &["create", "kept", "gone", "--partitions", "2", "--config", "retention.ms=1000000"],
        0,
        "made topic kept with 2 partitions",
    );
    says(&["create", "kept"], 1, "--if-not-exists");
    says(&["create", "kept", "--if-not-exists"], 0, "is there already");
    says(&["create", "trial", "--dry-run"], 0, "would make topic trial");
    says(&["create", "no such"], 2, "invalid topic name");
    assert_ne!(topic(&["create", "bad", "--config", "retention.ms=x"]).code, Some(0));
    says(&["ls"], 0, "gone");
    assert!(!says(&["ls"], 0, "kept").text().contains("trial"));
    says(&["alter", "kept", "--set", "max.message.bytes=2000000", "--partitions", "3"], 1, "--yes");
    says(&["config", "kept"], 0, "retention.ms");
    assert!(!topic(&["config", "kept"]).text().contains("max.message"));
    let plan = says(
        &[
            "alter",
            "kept",
            "--set",
            "max.message.bytes=2000000",
            "--unset",
            "retention.ms",
            "--partitions",
            "3",
            "--yes",
        ],
        0,
        "changed topic `kept`",
    );
    assert!(plan.text().contains("(partitions)") && plan.text().contains("1000000"), "{}", plan.text());
    assert_ne!(topic(&["alter", "kept", "--partitions", "3", "--yes"]).code, Some(0));
    assert_ne!(topic(&["alter", "kept", "--set", "nonsense=1", "--yes"]).code, Some(0));
    says(&["rm", "gone"], 1, "nothing was changed");
    says(&["rm", "gone", "absent", "--yes"], 8, "no topic `absent`");
    says(&["describe", "gone"], 3, "no topic `gone`");
    says(&["alter", "kept"], 2, "nothing to change");
    topic(&["describe", "kept", "-J"]).text().to_owned()
}

#[test]
fn the_brokers_are_named_in_many_ways_and_a_directory_goes_first() {
    let place = Place::new();
    let served = Served::new(&place.path("data"), &[]);
    let b = served.brokers();
    ok(&["append", "-b", &b, "t", "--create", "-q"], b"of the broker\n");
    let dir = place.log("t-0", b"of the directory\n", &["-q"]);
    let reads = |args: &[&str], vars: &[(&str, &str)]| -> String {
        let output = logctl(args).envs(vars.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let config = place.path("config.toml");
    fs::write(&config, format!("[profiles.there]\nbrokers = \"{b}\"\n")).unwrap();
    let client = place.path("client.properties");
    fs::write(&client, format!("bootstrap.servers={b}\n")).unwrap();
    let of_broker = "of the broker\n";
    assert_eq!(reads(&["cat", "t"], &[("LOGCTL_BROKERS", &b)]), of_broker);
    assert_eq!(reads(&["cat", "-t", "t", "-p", "0"], &[("LOGCTL_BROKERS", &b)]), of_broker);
    assert_eq!(reads(&["cat", "t", "--profile", "there"], &[("LOGCTL_CONFIG", &config)]), of_broker);
    assert_eq!(reads(&["cat", "t", "--client-file", &client], &[]), of_broker);
    assert_eq!(reads(&["cat", "t", "-X", &format!("bootstrap.servers={b}")], &[]), of_broker);
    assert_eq!(reads(&["cat", &format!("kafka://{b}/t")], &[]), of_broker);
    assert_eq!(reads(&["cat", "-b", &format!("127.0.0.1:1,{b}"), "t"], &[]), of_broker);
    assert_eq!(reads(&["cat", "-b", &b, "t"], &[("LOGCTL_DIR", "/nowhere")]), of_broker);
    assert_eq!(reads(&["cat", &dir], &[("LOGCTL_BROKERS", &b)]), "of the directory\n");
    fails(&["cat", "-b", &b, "-d", &dir, "t"], b"", 2, "give one of them");
    fails(&["cat", "-b", &b], b"", 2, "no topic given");
    fails(&["cat", "-b", &b, "t", "-t", "u"], b"", 2, "not both");
    fails(&["cat", &dir, "-p", "0"], b"", 2, "--partition says nothing without --topic");
    fails(&["cat", "-b", &b, "t-0"], b"", 3, "t -p 0");
    for option in ["--sync=never", "--expect=3", "--segment-bytes=1m", "--min-free=1g"] {
        fails(&["append", "-b", &b, "t", option], b"", 2, "not a broker's topic");
    }
    fails(&["append", &dir, "--acks", "1"], b"", 2, "--sync");
    // What is asked for and not there is never left out in silence.
    for setting in ["security.protocol=SSL", "security.protocol=SASL_PLAINTEXT"] {
        fails(&["cat", "-b", &b, "t", "-X", setting], b"", 2, "neither TLS nor SASL");
    }
    let completed = logctl(&["--", "logctl", "cat", "-b", &b, ""])
        .env("LOGCTL_COMPLETE", "bash")
        .env("_LOGCTL_COMPLETE_INDEX", "4")
        .output()
        .unwrap();
    let completed = String::from_utf8(completed.stdout).unwrap();
    assert!(completed.lines().any(|word| word.trim_end() == "t"), "{completed}");
}

/// A broker that says that it leads a partition, and once it is asked for it, that another does.
fn moved(to: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap();
    let has_refused = Arc::new(AtomicBool::new(false));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, has_refused) = (stream.unwrap(), Arc::clone(&has_refused));
            thread::spawn(move || answer_as_moved(stream, (here, to), &has_refused));
        }
    });
    here.to_string()
}

fn answer_as_moved(mut stream: TcpStream, (here, to): (SocketAddr, SocketAddr), has_refused: &AtomicBool) {
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut frame).unwrap();
        let (header, _) = protocol::read_request_header(&frame).unwrap();
        let (api, version, id) = (header.api().unwrap(), header.api_version, header.correlation_id);
        let mut answer = Writer::new();
        match api {
            ApiKey::ApiVersions => {
                let known =
                    |api: ApiKey, max_version| ApiVersion { api_key: api.key(), min_version: 0, max_version };
                // Metadata of this version has no topic ids: names are asked for.
                let api_keys = vec![
                    known(ApiKey::ApiVersions, 5),
                    known(ApiKey::Metadata, 9),
                    known(ApiKey::Produce, 9),
                    known(ApiKey::ListOffsets, 5),
                    known(ApiKey::InitProducerId, 1),
                ];
                let told = ApiVersionsResponse { api_keys, ..Default::default() };
                protocol::write_response(&mut answer, id, version, &told).unwrap();
            }
            ApiKey::Metadata => {
                let broker = |node_id, at: SocketAddr| MetadataResponseBroker {
                    node_id,
                    host: at.ip().to_string().into(),
                    port: at.port().into(),
                    ..Default::default()
                };
                let partition = MetadataResponsePartition {
                    leader_id: if has_refused.load(Ordering::Acquire) { 2 } else { 1 },
                    ..Default::default()
                };
                let topic = MetadataResponseTopic {
                    name: Some("t".into()),
                    partitions: vec![partition],
                    ..Default::default()
                };
                let told = MetadataResponse {
                    brokers: vec![broker(1, here), broker(2, to)],
                    topics: vec![topic],
                    ..Default::default()
                };
                protocol::write_response(&mut answer, id, version, &told).unwrap();
            }
            ApiKey::InitProducerId => {
                // Refused, as by an authorizer: what cannot be numbered is sent all the same.
                let told = InitProducerIdResponse { error_code: 31, ..Default::default() };
                protocol::write_response(&mut answer, id, version, &told).unwrap();
            }
            ApiKey::ListOffsets => {
                has_refused.store(true, Ordering::Release);
                let partition = ListOffsetsPartitionResponse { error_code: 6, ..Default::default() };
                let topic = ListOffsetsTopicResponse { name: "t".into(), partitions: vec![partition] };
                let told = ListOffsetsResponse { topics: vec![topic], ..Default::default() };
                protocol::write_response(&mut answer, id, version, &told).unwrap();
            }
            ApiKey::Produce => {
                has_refused.store(true, Ordering::Release);
                let partition = PartitionProduceResponse { error_code: 6, ..Default::default() };
                let topic = TopicProduceResponse {
                    name: "t".into(),
                    partition_responses: vec![partition],
                    ..Default::default()
                };
                let told = ProduceResponse { responses: vec![topic], ..Default::default() };
                protocol::write_response(&mut answer, id, version, &told).unwrap();
            }
            other => panic!("{other}"),
        }
        stream.write_all(answer.bytes()).unwrap();
    }
}

#[test]
fn a_leader_that_has_moved_is_found_again() {
    let place = Place::new();
    let served = Served::new(&place.path("data"), &[]);
    ok(&["topic", "create", "-b", &served.brokers(), "t", "--partitions", "1"], b"");
    let made = run(&["append", "-b", &moved(served.address), "t"], &numbers(3));
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(made.err.contains("t/0 offsets 0 to 2"), "{}", made.err);
    assert_eq!(text(&["cat", "-b", &moved(served.address), "t"]), "1\n2\n3\n");
    assert_eq!(text(&["tail", "-b", &moved(served.address), "t", "-n", "1"]), "3\n");
    assert_eq!(text(&["offsets", "-b", &moved(served.address), "t"]), "t:0:3\n");
}

/// Answers each connection once, with these bytes.
fn answering(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&bytes);
        }
    });
    address
}

#[test]
fn what_is_no_broker_is_told_and_ends_in_time() {
    // Nobody listens: of a port that was just given back.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let verbs: &[&[&str]] = &[
        &["cat", "t"],
        &["tail", "t"],
        &["tail", "t", "-f"],
        &["offsets", "t"],
        &["append", "t"],
        &["topic", "ls"],
    ];
    for verb in verbs {
        fails(&[*verb, &["-b", &free]].concat(), b"x\n", 6, "cannot connect");
    }
    let web = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
    fails(&["cat", "-b", &web, "t"], b"", 6, "another protocol");
    let tls = answering(vec![0x15, 3, 3, 0, 2, 2, 80]);
    fails(&["cat", "-b", &tls, "t"], b"", 7, "speaks TLS");
    let closing = answering(Vec::new());
    fails(&["cat", "-b", &closing, "t"], b"", 6, "PLAINTEXT listener");
    let nonsense = answering([&[0, 0, 0, 12][..], &[0, 0, 0, 1], &[255; 8]].concat());
    fails(&["cat", "-b", &nonsense, "t"], b"", 6, "no broker");
    // Who never answers is given up when --timeout is over.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    fails(&["cat", "-b", &address, "t", "--timeout", "1s"], b"", 124, "--timeout");
}

#[test]
fn an_old_broker_is_asked_in_its_own_version() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut versions = Vec::new();
        // A broker that knows versions 0 and 1 of the question, and Metadata up to 3.
        loop {
            let mut length = [0; 4];
            if stream.read_exact(&mut length).is_err() {
                return versions;
            }
            let mut frame = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut frame).unwrap();
            let (header, _) = protocol::read_request_header(&frame).unwrap();
            assert_eq!(header.api(), Some(ApiKey::ApiVersions));
            versions.push(header.api_version);
            let known =
                |api: ApiKey, max_version| ApiVersion { api_key: api.key(), min_version: 0, max_version };
            let is_known = header.api_version <= 1;
            let answer = ApiVersionsResponse {
                error_code: if is_known { 0 } else { 35 },
                api_keys: vec![known(ApiKey::ApiVersions, 1), known(ApiKey::Metadata, 3)],
                ..Default::default()
            };
            let mut body = Writer::new();
            body.put(&header.correlation_id.to_be_bytes());
            answer.encode(&mut body, if is_known { header.api_version } else { 0 }).unwrap();
            let mut whole = u32::try_from(body.bytes().len()).unwrap().to_be_bytes().to_vec();
            whole.extend_from_slice(body.bytes());
            stream.write_all(&whole).unwrap();
        }
    });
    fails(
        &["cat", "-b", &address, "t"],
        b"",
        1,
        "no common version of Metadata: the broker speaks 0-3, logctl 4-13",
    );
    assert_eq!(asked.join().unwrap(), [5, 1]);
}

/// The server that an example talks to, where it talks to one.
pub(crate) fn serve_for(example: &str, data: &str) -> Option<Served> {
    example.contains("localhost:9092").then(|| Served::new(data, &["--override", "log.retention.ms=-1"]))
}
