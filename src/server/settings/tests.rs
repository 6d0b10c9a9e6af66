use super::*;

fn properties(text: &str) -> Layers {
    let mut layers = Layers::new();
    layers.properties("server.properties", text);
    layers
}

fn complaints(layers: Layers) -> String {
    layers.resolve().unwrap_err().to_string()
}

#[test]
fn a_brokers_file_is_understood() {
    let settings = properties(
        "process.roles=broker,controller\nnode.id=7\ncontroller.quorum.voters=7@localhost:9093\n\
         listeners=PLAINTEXT://:9092,CONTROLLER://:9093\nadvertised.listeners=PLAINTEXT://localhost:9092\n\
         controller.listener.names=CONTROLLER\n\
         listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL\n\
         num.network.threads=3\nnum.io.threads=8\nlog.dirs=/tmp/kraft-combined-logs\nnum.partitions=1\n\
         log.retention.hours=168\nlog.segment.bytes=1073741824\nnope.nope=1\n",
    )
    .resolve()
    .unwrap();
    assert_eq!(settings.node_id, Some(7));
    assert_eq!(settings.listeners, [Listener::parse("PLAINTEXT://:9092").unwrap()]);
    assert_eq!(settings.advertised, [Listener::parse("PLAINTEXT://localhost:9092").unwrap()]);
    assert_eq!(settings.data_dir(), std::path::Path::new("/tmp/kraft-combined-logs"));
    let warnings = settings.warnings().join("\n");
    for part in [
        "server.properties:1: process.roles has no effect: this node is all there is",
        "server.properties:8: num.network.threads has no effect: connections have threads of their own",
        "server.properties:14: unknown setting nope.nope",
        "CONTROLLER://:9093 is a controller's",
    ] {
        assert!(warnings.contains(part), "{part}\n{warnings}");
    }
    assert!(!warnings.contains("log.retention"), "{warnings}");
}

#[test]
fn the_strongest_layer_wins_and_says_so() {
    let mut layers = Layers::new();
    layers.set_override("num.partitions=6");
    layers.flag("--dir", "log.dirs", "/flag");
    layers.environment([
        ("KAFKA_NUM_PARTITIONS".to_owned(), "5".to_owned()),
        ("KAFKA_LOG_DIRS".to_owned(), "/env".to_owned()),
        ("STRATALOG_FETCH_MAX_BYTES".to_owned(), "2 MiB".to_owned()),
        ("KAFKA_FETCH_MAX_BYTES".to_owned(), "1 MiB".to_owned()),
        ("STRATALOG_ACKNOWLEDGE_AT".to_owned(), "written".to_owned()),
        ("KAFKA_HEAP_OPTS".to_owned(), "-Xmx1g".to_owned()),
        ("KAFKA_LOG_RETENTION_HOURS".to_owned(), "1".to_owned()),
        ("HOME".to_owned(), "/".to_owned()),
    ]);
    layers.properties(
        "a.properties",
        "num.partitions=4\nlog.retention.ms=5\nmax.connections=9\nmax.connections=8\n",
    );
    let settings = layers.resolve().unwrap();
    assert_eq!(settings.partition_count, 6);
    assert_eq!(settings.data_dir(), std::path::Path::new("/flag"));
    assert_eq!(settings.fetch_max_bytes, 2 << 20);
    assert_eq!(settings.max_connections, 8);
    assert!(settings.warnings().is_empty(), "{:?}", settings.warnings());
    let printed = settings.print();
    for line in [
        "num.partitions=6  # --override\n",
        "log.dirs=/flag  # --dir\n",
        "fetch.max.bytes=2097152  # environment STRATALOG_FETCH_MAX_BYTES\n",
        "stratalog.acknowledge.at=written  # environment STRATALOG_ACKNOWLEDGE_AT\n",
        "max.connections=8  # a.properties:4\n",
        "queued.max.requests=500  # default, no effect\n",
        "log.segment.bytes=1073741824  # default\n",
    ] {
        assert!(printed.contains(line), "{line}{printed}");
    }
    // The hours of a stronger layer beat the milliseconds of a weaker one.
    let shown = super::super::topics::TopicSettings::new(
        super::super::topics::Overrides::new(),
        &settings.values,
        &settings.log,
        settings.idle_sync,
    );
    assert_eq!(shown.log.retention.age, Some(Duration::from_secs(3600)));
    assert!(!shown.is_durable);
}

#[test]
fn everything_wrong_is_said_at_once() {
    let mut layers =
        properties("num.partitions=0\nlisteners=SSL://:9093,PLAINTEXT://nowhere\nlog.dirs=/a,/b\n");
    layers.toml("server.toml", "num.partitons = 3\n");
    layers.toml("broken.toml", "= 3\n");
    layers.set_override("nothing");
    layers.set_override("log.segment.bytes=1 fortnight");
    let said = complaints(layers);
    for part in [
        "server.properties:1: Invalid value 0 for configuration num.partitions: Value must be at least 1",
        "SSL is not served, PLAINTEXT is",
        "no port",
        "2 data directories; one can be served",
        "server.toml:1: unknown setting num.partitons; did you mean num.partitions?",
        "broken.toml: ",
        "--override nothing: not KEY=VALUE",
        "\"fortnight\" in \"1 fortnight\" is no unit here",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(complaints(Layers::new()).contains("no data directory"));
    assert!(complaints(properties("log.dir=/a\nlisteners=CONTROLLER://:9093")).contains("none is left"));
    let odd = "log.dir=/a\nadvertised.listeners=PLAINTEXT://0.0.0.0:9092,OTHER://h:1";
    let said = complaints(properties(odd));
    assert!(
        said.contains("no address that a client can connect to") && said.contains("OTHER is none"),
        "{said}"
    );
}

#[test]
fn more_copies_are_not_promised_in_silence() {
    let settings =
        properties("log.dirs=/a\nmin.insync.replicas=2\ndefault.replication.factor=3\n").resolve().unwrap();
    let warnings = settings.warnings().join("\n");
    assert!(warnings.contains("server.properties:2: min.insync.replicas=2: there is one copy"), "{warnings}");
    assert!(warnings.contains("default.replication.factor=3"), "{warnings}");
}

#[test]
fn the_defaults_are_kafkas() {
    let settings = Settings::for_dir("/data").unwrap();
    assert!(settings.warnings().is_empty());
    assert_eq!(settings.partition_count, 1);
    assert_eq!(settings.request_max_bytes, 104_857_600);
    assert_eq!(settings.fetch_max_bytes, 57_671_680);
    assert_eq!(settings.idle_timeout, Some(Duration::from_secs(600)));
    assert_eq!(settings.offsets_retention, Duration::from_secs(7 * 24 * 3600));
    assert_eq!(settings.offsets_partitions, 50);
    assert!(settings.auto_create && settings.delete_enable);
    assert_eq!(settings.print().lines().filter(|line| line.starts_with("log.dirs=/data")).count(), 1);
    let shown = settings.show();
    assert!(shown.is_sorted_by(|a, b| a.name < b.name));
    let of = |name| shown.iter().find(|shown| shown.name == name).unwrap();
    assert_eq!(
        (of("num.partitions").source, of("num.partitions").value.as_deref()),
        (Source::Default, Some("1"))
    );
    assert_eq!(of("listeners").source, Source::Server);
    assert_eq!(of("listeners").synonyms.len(), 2);
}

/// The table in `docs/SETTINGS.md` is what is gone by.
#[test]
fn every_setting_is_documented_as_it_is() {
    let text = include_str!("../../../docs/SETTINGS.md");
    let default = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    for key in super::super::topics::TOPIC_KEYS {
        let line = format!("| `{}` | {} | {} |", key.name, key.kind.name(), default(key.default));
        let found = text.lines().find(|found| found.starts_with(&line));
        let found = found.unwrap_or_else(|| panic!("no line {line}"));
        let effect = match key.effect {
            super::super::topics::Effect::Kept(reason) => format!("| kept: {reason} |"),
            _ => "| yes |".to_owned(),
        };
        assert!(found.ends_with(&effect), "{found}\n{effect}");
        assert!(key.synonyms.iter().all(|(name, _)| found.contains(name)), "{found}");
    }
    for key in KEYS {
        let doc = if key.use_of == UseOf::Nothing {
            format!("No effect: {}.", key.doc)
        } else {
            key.doc.to_owned()
        };
        let default = default(key.default.unwrap_or_default());
        let line = format!("| `{}` | {} | {default} | {doc} |", key.name, key.kind.name());
        assert!(text.lines().any(|found| found == line), "no line {line}");
    }
}
