//! The crate `rdkafka`. `../python/lines.py` describes the contract.

use std::{
    collections::HashMap,
    env,
    error::Error,
    io::{self, BufRead, Write},
    sync::mpsc::{self, Sender},
    thread,
    time::{Duration, Instant},
};

use base64::prelude::{BASE64_STANDARD, Engine};
use rdkafka::{
    ClientConfig, ClientContext, Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    message::{DeliveryResult, Header, Headers, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, Producer, ProducerContext},
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

type Failure = Box<dyn Error>;
type Told = (usize, Result<i64, KafkaError>);

/// Hands on what became of each record, by its number.
struct Reports(Sender<Told>);

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, number: Box<usize>) {
        let told = match result {
            Ok(message) => Ok(message.offset()),
            Err((error, _)) => Err(error.clone()),
        };
        // Nobody listens only once the job has failed.
        let _ = self.0.send((*number, told));
    }
}

struct Client {
    address: String,
    producers: HashMap<String, (BaseProducer<Reports>, mpsc::Receiver<Told>)>,
    consumer: BaseConsumer,
}

fn main() -> Result<(), Failure> {
    let address = env::args().nth(1).ok_or("the address is missing")?;
    let consumer = ClientConfig::new()
        .set("bootstrap.servers", &address)
        .set("group.id", "none")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "error")
        .create()?;
    let mut client = Client { address, producers: HashMap::new(), consumer };
    let mut out = io::stdout().lock();
    let (_, version) = rdkafka::util::get_rdkafka_version();
    let greeting = json!({
        "client": "rdkafka", "version": format!("0.39.0, librdkafka {version}"), "idempotent": true, "cannot": [],
        "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
    });
    writeln!(out, "{greeting}")?;
    for line in io::stdin().lock().lines() {
        let job: Value = serde_json::from_str(&line?)?;
        let answer = match job["do"].as_str() {
            Some("produce") => client.produce(&job),
            Some("consume") => client.consume(&job),
            Some("ends") => client.ends(&job),
            _ => Err("no such job".into()),
        };
        let answer = answer.unwrap_or_else(|error| json!({"error": error.to_string()}));
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

impl Client {
    fn produce(&mut self, job: &Value) -> Result<Value, Failure> {
        let (topic, partition) = place(job)?;
        let codec = job["codec"].as_str().ok_or("no codec")?;
        let name = format!("{codec} {} {}", job["acks"], job["idempotent"]);
        if !self.producers.contains_key(&name) {
            let (tell, told) = mpsc::channel();
            let producer = ClientConfig::new()
                .set("bootstrap.servers", &self.address)
                .set("compression.type", codec)
                .set("acks", job["acks"].to_string())
                .set("enable.idempotence", job["idempotent"].to_string())
                .set("linger.ms", "500")
                .create_with_context(Reports(tell))?;
            self.producers.insert(name.clone(), (producer, told));
        }
        let (producer, told) = &self.producers[&name];
        let records = job["records"].as_array().ok_or("no records")?;
        for (number, record) in records.iter().enumerate() {
            let (key, value) = (decode(&record["key"])?, decode(&record["value"])?);
            let mut headers = OwnedHeaders::new();
            for header in record["headers"].as_array().ok_or("no headers")? {
                let value = decode(&header[1])?;
                headers = headers.insert(Header { key: header[0].as_str().ok_or("no name")?, value: value.as_ref() });
            }
            let sent = BaseRecord {
                topic,
                partition: Some(partition),
                payload: value.as_deref(),
                key: key.as_deref(),
                timestamp: record["timestamp"].as_i64(),
                headers: Some(headers),
                delivery_opaque: Box::new(number),
            };
            producer.send(sent).map_err(|(error, _)| error)?;
        }
        producer.flush(PATIENCE)?;
        let mut offsets = vec![-1; records.len()];
        for _ in 0..records.len() {
            let (number, offset) = told.recv_timeout(PATIENCE)?;
            offsets[number] = offset?;
        }
        Ok(json!({"offsets": offsets}))
    }

    fn consume(&self, job: &Value) -> Result<Value, Failure> {
        let (topic, partition) = place(job)?;
        let until = job["until"].as_i64().ok_or("no end")?;
        let mut from = TopicPartitionList::new();
        if let Some(time) = job["time"].as_i64() {
            let mut asked = TopicPartitionList::new();
            asked.add_partition_offset(topic, partition, Offset::Offset(time))?;
            // Right after its broker went away it has no leader of the partition yet.
            let started = Instant::now();
            from = loop {
                match self.consumer.offsets_for_times(asked.clone(), PATIENCE) {
                    Ok(found) => break found,
                    Err(error) if started.elapsed() > PATIENCE => return Err(error.into()),
                    Err(error) => match error.rdkafka_error_code() {
                        Some(
                            RDKafkaErrorCode::UnknownPartition
                            | RDKafkaErrorCode::BrokerTransportFailure
                            | RDKafkaErrorCode::AllBrokersDown,
                        ) => thread::sleep(Duration::from_millis(100)),
                        _ => return Err(error.into()),
                    },
                }
            };
        } else {
            let offset = job["offset"].as_i64().ok_or("no offset")?;
            from.add_partition_offset(topic, partition, Offset::Offset(offset))?;
        }
        self.consumer.assign(&from)?;
        let mut records = Vec::new();
        let started = Instant::now();
        let mut next = 0;
        while next < until {
            match self.consumer.poll(Duration::from_secs(1)) {
                // It tells of a broker that went away, and goes on by itself.
                None
                | Some(Err(KafkaError::MessageConsumption(
                    RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::AllBrokersDown,
                ))) => {}
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(message)) => {
                    next = message.offset() + 1;
                    let headers: Vec<_> = message
                        .headers()
                        .into_iter()
                        .flat_map(Headers::iter)
                        .map(|header| json!([header.key, encode(header.value)]))
                        .collect();
                    records.push(json!({
                        "offset": message.offset(),
                        "timestamp": message.timestamp().to_millis(),
                        "key": encode(message.key()),
                        "value": encode(message.payload()),
                        "headers": headers,
                    }));
                }
            }
            if started.elapsed() > PATIENCE {
                return Err(format!("{} records came", records.len()).into());
            }
        }
        self.consumer.unassign()?;
        Ok(json!({"records": records}))
    }

    fn ends(&self, job: &Value) -> Result<Value, Failure> {
        let (topic, partition) = place(job)?;
        let (first, end) = self.consumer.fetch_watermarks(topic, partition, PATIENCE)?;
        Ok(json!({"first": first, "end": end}))
    }
}

fn place(job: &Value) -> Result<(&str, i32), Failure> {
    let partition = job["partition"].as_i64().ok_or("no partition")?;
    Ok((job["topic"].as_str().ok_or("no topic")?, i32::try_from(partition)?))
}

fn decode(text: &Value) -> Result<Option<Vec<u8>>, Failure> {
    Ok(text.as_str().map(|text| BASE64_STANDARD.decode(text)).transpose()?)
}

fn encode(bytes: Option<&[u8]>) -> Value {
    bytes.map(|bytes| BASE64_STANDARD.encode(bytes)).into()
}
