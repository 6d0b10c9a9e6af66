//! A client's program, which is asked in JSON lines. `python/lines.py` describes the contract.

use std::{
    env,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// A client gives up for itself long before.
const LONGEST: Duration = Duration::from_secs(300);

/// Those of every level, and the one of the long form.
const SHORT: [&str; 6] = ["kcat", "confluent-kafka", "kafka-python", "aiokafka", "kafkajs", "java"];
const FULL: &str = "rdkafka";

/// True where the long form is asked for.
pub(crate) fn is_full() -> bool {
    env::var_os("STRATALOG_LEVEL").is_some_and(|level| level == "full")
}

/// The clients to test: installed by now. Says on standard error what is passed over.
#[track_caller]
pub(crate) fn installed() -> Vec<String> {
    let say = |line: String| {
        // Past the capture of a test's output: who runs the tests should see what was not tested.
        let _ = std::io::stderr().write_all(format!("test passed over: {line}\n").as_bytes());
    };
    let asked = env::var("STRATALOG_CLIENTS").unwrap_or_default();
    let mut names: Vec<String> = match asked.as_str() {
        "" => {
            say("STRATALOG_CLIENTS says which clients to install and test: require, found, or their names"
                .to_owned());
            return Vec::new();
        }
        "require" | "found" => SHORT.map(str::to_owned).to_vec(),
        names => names.split(',').map(str::to_owned).collect(),
    };
    if matches!(asked.as_str(), "require" | "found") && is_full() {
        names.push(FULL.to_owned());
    }
    names.retain(|name| {
        let fetched = script(&["fetch", name]).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&fetched.stderr);
        assert!(fetched.status.success() || asked == "found", "{name} cannot be installed: {said}");
        if !fetched.status.success() {
            say(format!("{name} cannot be installed: {}", said.trim()));
        }
        fetched.status.success()
    });
    names
}

/// The script beside this file. What it installs lies beside the build, where it is found again.
fn script(arguments: &[&str]) -> Command {
    let mut command = Command::new(here().join("clients"));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    command.args(arguments).env("CARGO_TARGET_DIR", target).env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    command
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// A running client.
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) codecs: Vec<String>,
    is_idempotent: bool,
    cannot: Vec<String>,
    child: Child,
    jobs: ChildStdin,
    answers: Receiver<String>,
    said: PathBuf,
}

impl Client {
    #[track_caller]
    pub(crate) fn start(name: &str, address: SocketAddr, place: &Path) -> Self {
        let said = place.join(format!("{name}.stderr"));
        let mut command = script(&["run", name, &address.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&said).unwrap());
        // In a group of its own, which ends with the value: what the script starts may not be one process.
        let mut child = command.process_group(0).spawn().unwrap();
        let jobs = child.stdin.take().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let mut client = Self {
            name: name.to_owned(),
            version: String::new(),
            codecs: Vec::new(),
            is_idempotent: false,
            cannot: Vec::new(),
            child,
            jobs,
            answers,
            said,
        };
        let greeting = client.answer("greeting");
        greeting["version"].as_str().unwrap().clone_into(&mut client.version);
        client.codecs = texts(&greeting["codecs"]);
        client.cannot = texts(&greeting["cannot"]);
        client.is_idempotent = greeting["idempotent"].as_bool().unwrap();
        client
    }

    /// False for what it has no words for: "timestamp"; "null header", its value; "null record", neither key nor value;
    /// "empty record", no key and an empty value.
    pub(crate) fn can(&self, what: &str) -> bool {
        !self.cannot.iter().any(|one| one == what)
    }

    #[track_caller]
    fn answer(&self, what: &str) -> Value {
        match self.answers.recv_timeout(LONGEST) {
            Ok(line) => serde_json::from_str(&line).unwrap(),
            Err(error) => {
                let said = fs::read_to_string(&self.said).unwrap_or_default();
                panic!("{}: no answer to {what}: {error}; it said {said}", self.name)
            }
        }
    }

    #[track_caller]
    fn ask(&mut self, job: &Value) -> Value {
        let mut line = job.to_string();
        line.push('\n');
        self.jobs.write_all(line.as_bytes()).unwrap();
        let what: String = line.chars().take(120).collect();
        let answer = self.answer(&what);
        if let Some(error) = answer["error"].as_str() {
            let said = fs::read_to_string(&self.said).unwrap_or_default();
            panic!("{}: {what}: {error}; it said {said}", self.name);
        }
        answer
    }

    /// Produces; gives the offsets, which tell nothing where `acks` is 0.
    #[track_caller]
    pub(crate) fn produce(
        &mut self,
        topic: &str,
        partition: usize,
        how: &Produce<'_>,
        records: &[Value],
    ) -> Vec<i64> {
        let answer = self.ask(&json!({
            "do": "produce", "topic": topic, "partition": partition, "codec": how.codec, "acks": how.acks,
            "idempotent": how.is_idempotent && self.is_idempotent, "records": records,
        }));
        answer["offsets"].as_array().unwrap().iter().map(|offset| offset.as_i64().unwrap_or(-1)).collect()
    }

    /// Reads from an offset or a time up to, and without, the offset `until`.
    #[track_caller]
    pub(crate) fn consume(&mut self, topic: &str, partition: usize, from: From, until: usize) -> Vec<Value> {
        let mut job = json!({"do": "consume", "topic": topic, "partition": partition, "until": until});
        match from {
            From::Offset(offset) => job["offset"] = offset.into(),
            From::Time(time) => job["time"] = time.into(),
        }
        let mut answer = self.ask(&job);
        match answer["records"].take() {
            Value::Array(records) => records,
            other => panic!("{other}"),
        }
    }

    /// The first offset and the one behind the last.
    #[track_caller]
    pub(crate) fn ends(&mut self, topic: &str, partition: usize) -> (u64, u64) {
        let answer = self.ask(&json!({"do": "ends", "topic": topic, "partition": partition}));
        (answer["first"].as_u64().unwrap(), answer["end"].as_u64().unwrap())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.child.id())]).status();
        let _ = self.child.wait();
    }
}

/// How to produce.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Produce<'a> {
    pub(crate) codec: &'a str,
    pub(crate) acks: i16,
    pub(crate) is_idempotent: bool,
}

/// Where to begin.
#[derive(Debug, Clone, Copy)]
pub(crate) enum From {
    Offset(usize),
    Time(i64),
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}
