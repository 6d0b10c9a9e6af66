"""aiokafka."""

import asyncio
import json
import sys
import time

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from lines import PATIENCE_SECONDS, decode, record, say

address = sys.argv[1]
producers = {}
consumers = []


async def producer(codec, acks, idempotent):
    name = (codec, acks, idempotent)
    if name not in producers:
        sender = AIOKafkaProducer(
            bootstrap_servers=address,
            compression_type=None if codec == "none" else codec,
            acks="all" if acks == -1 else acks,
            enable_idempotence=idempotent,
            linger_ms=100,
            max_batch_size=200_000,
        )
        await sender.start()
        producers[name] = sender
    return producers[name]


async def produce(job):
    sender = await producer(job["codec"], job["acks"], job["idempotent"])
    sent = [
        await sender.send(
            job["topic"],
            value=decode(one["value"]),
            key=decode(one["key"]),
            headers=[(name, decode(value)) for name, value in one["headers"]],
            partition=job["partition"],
            timestamp_ms=one["timestamp"],
        )
        for one in job["records"]
    ]
    await sender.flush()
    told = [await asyncio.wait_for(one, PATIENCE_SECONDS) for one in sent]
    return {"offsets": [one.offset if one else None for one in told]}


async def consumer():
    if not consumers:
        reader = AIOKafkaConsumer(
            bootstrap_servers=address, group_id=None, enable_auto_commit=False, auto_offset_reset="none"
        )
        await reader.start()
        consumers.append(reader)
    return consumers[0]


async def consume(job):
    reader = await consumer()
    partition = TopicPartition(job["topic"], job["partition"])
    reader.assign([partition])
    offset = job.get("offset")
    if "time" in job:
        offset = (await reader.offsets_for_times({partition: job["time"]}))[partition].offset
    reader.seek(partition, offset)
    records = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not records or records[-1]["offset"] < job["until"] - 1:
        for one in (await reader.getmany(timeout_ms=500)).get(partition, ()):
            records.append(record(one.offset, one.timestamp, one.key, one.value, one.headers))
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(records)} records came")
    return {"records": records}


async def ends(job):
    reader = await consumer()
    partition = TopicPartition(job["topic"], job["partition"])
    return {
        "first": (await reader.beginning_offsets([partition]))[partition],
        "end": (await reader.end_offsets([partition]))[partition],
    }


async def main():
    jobs = {"produce": produce, "consume": consume, "ends": ends}
    say(
        {
            "client": "aiokafka",
            "version": aiokafka.__version__,
            "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
            "idempotent": True,
            "cannot": ["null record"],
        }
    )
    loop = asyncio.get_running_loop()
    # The loop goes on while it waits for a line: connections are kept as in a program that does other things.
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        job = json.loads(line)
        try:
            say(await jobs[job["do"]](job))
        except Exception as error:  # whatever it is, the other side tells it
            say({"error": repr(error)})


asyncio.run(main())
