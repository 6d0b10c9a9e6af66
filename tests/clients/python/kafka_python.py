"""kafka-python."""

import sys
import time

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from lines import PATIENCE_SECONDS, decode, record, serve

address = sys.argv[1]
producers = {}
consumers = []


def producer(codec, acks, idempotent):
    name = (codec, acks, idempotent)
    if name not in producers:
        producers[name] = KafkaProducer(
            bootstrap_servers=address,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == -1 else acks,
            enable_idempotence=idempotent,
            linger_ms=500,
            batch_size=200_000,
            max_block_ms=PATIENCE_SECONDS * 1000,
        )
    return producers[name]


def produce(job):
    sender = producer(job["codec"], job["acks"], job["idempotent"])
    sent = [
        sender.send(
            job["topic"],
            value=decode(one["value"]),
            key=decode(one["key"]),
            headers=[(name, decode(value)) for name, value in one["headers"]],
            partition=job["partition"],
            timestamp_ms=one["timestamp"],
        )
        for one in job["records"]
    ]
    sender.flush(PATIENCE_SECONDS)
    return {"offsets": [one.get(PATIENCE_SECONDS).offset for one in sent]}


def consumer():
    if not consumers:
        consumers.append(
            KafkaConsumer(
                bootstrap_servers=address,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                allow_auto_create_topics=False,
            )
        )
    return consumers[0]


def consume(job):
    reader = consumer()
    partition = TopicPartition(job["topic"], job["partition"])
    reader.assign([partition])
    offset = job.get("offset")
    if "time" in job:
        offset = reader.offsets_for_times({partition: job["time"]})[partition].offset
    reader.seek(partition, offset)
    records = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not records or records[-1]["offset"] < job["until"] - 1:
        for one in reader.poll(timeout_ms=500).get(partition, ()):
            records.append(record(one.offset, one.timestamp, one.key, one.value, one.headers))
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(records)} records came")
    return {"records": records}


def ends(job):
    partition = TopicPartition(job["topic"], job["partition"])
    reader = consumer()
    return {
        "first": reader.beginning_offsets([partition])[partition],
        "end": reader.end_offsets([partition])[partition],
    }


greeting = {
    "client": "kafka-python",
    "version": kafka.__version__,
    "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
    "idempotent": True,
    "cannot": ["null header", "null record"],
}
serve(greeting, {"produce": produce, "consume": consume, "ends": ends})
