"""confluent-kafka: librdkafka, the newest that its wheel brings."""

import sys
import time

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from lines import PATIENCE_SECONDS, decode, record, serve

address = sys.argv[1]
producers = {}
consumers = []


def producer(codec, acks, idempotent):
    name = (codec, acks, idempotent)
    if name not in producers:
        settings = {
            "bootstrap.servers": address,
            "compression.type": codec,
            "acks": acks,
            "enable.idempotence": idempotent,
            "linger.ms": 500,
            "message.max.bytes": 1000000,
        }
        producers[name] = Producer(settings)
    return producers[name]


def produce(job):
    told = [None] * len(job["records"])

    def note(at):
        def delivered(error, message):
            told[at] = error or message

        return delivered

    sender = producer(job["codec"], job["acks"], job["idempotent"])
    for at, one in enumerate(job["records"]):
        sender.produce(
            job["topic"],
            decode(one["value"]),
            decode(one["key"]),
            job["partition"],
            on_delivery=note(at),
            timestamp=one["timestamp"],
            headers=[(name, decode(value)) for name, value in one["headers"]],
        )
    if sender.flush(PATIENCE_SECONDS):
        raise TimeoutError("not all were acknowledged")
    for one in told:
        if isinstance(one, confluent_kafka.KafkaError):
            raise KafkaException(one)
    return {"offsets": [one.offset() for one in told]}


def consumer():
    if not consumers:
        settings = {
            "bootstrap.servers": address,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
        }
        consumers.append(Consumer(settings))
    return consumers[0]


def at_time(reader, job):
    wanted = TopicPartition(job["topic"], job["partition"], job["time"])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            start = reader.offsets_for_times([wanted], PATIENCE_SECONDS)[0]
            if start.error:
                raise KafkaException(start.error)
            return start
        except KafkaException as error:
            # It answers out of what it knows of a topic, which a lost connection can leave empty for a while.
            unknown = error.args[0].code() == confluent_kafka.KafkaError._UNKNOWN_PARTITION
            if not unknown or time.monotonic() > deadline:
                raise
            print("asked again:", error, file=sys.stderr)
            time.sleep(0.2)


def consume(job):
    reader = consumer()
    if "time" in job:
        start = at_time(reader, job)
    else:
        start = TopicPartition(job["topic"], job["partition"], job["offset"])
    reader.assign([start])
    records = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not records or records[-1]["offset"] < job["until"] - 1:
        message = reader.poll(1)
        if message is not None and message.error():
            # It tells of a broker that went away, and goes on by itself.
            if not message.error().retriable() and message.error().code() not in (-195, -187, -185):
                raise KafkaException(message.error())
        elif message is not None:
            records.append(
                record(
                    message.offset(), message.timestamp()[1], message.key(), message.value(), message.headers()
                )
            )
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(records)} records came")
    reader.unassign()
    return {"records": records}


def ends(job):
    first, end = consumer().get_watermark_offsets(
        TopicPartition(job["topic"], job["partition"]), timeout=PATIENCE_SECONDS
    )
    return {"first": first, "end": end}


greeting = {
    "client": "confluent-kafka",
    "version": f"{confluent_kafka.__version__}, librdkafka {confluent_kafka.libversion()[0]}",
    "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
    "idempotent": True,
    "cannot": [],
}
serve(greeting, {"produce": produce, "consume": consume, "ends": ends})
