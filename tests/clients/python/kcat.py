"""kcat, the command of Debian's package, once for each job and kind of record."""

import itertools
import re
import subprocess
import sys

from lines import PATIENCE_SECONDS, decode, encode, serve

address = sys.argv[1]
KEY_END = b"\x01key\x02"
RECORD_END = b"\x01record\x02"


def kcat(arguments, given=b""):
    ran = subprocess.run(
        ["kcat", "-b", address, *arguments], input=given, capture_output=True, timeout=PATIENCE_SECONDS * 2
    )
    said = ran.stderr.decode(errors="replace")
    if ran.returncode:
        raise RuntimeError(f"kcat {arguments}: {ran.returncode}: {said}")
    return ran.stdout, said


def kind(one):
    """What one run can send: its headers are all the same, and -Z makes null of all that is empty."""
    return one["headers"], one["value"] is None


def produce(job):
    offsets = []
    for (headers, null), records in itertools.groupby(job["records"], kind):
        arguments = ["-P", "-t", job["topic"], "-p", str(job["partition"]), "-z", job["codec"]]
        arguments += ["-X", f"acks={job['acks']}", "-X", f"enable.idempotence={str(job['idempotent']).lower()}"]
        arguments += ["-X", "linger.ms=100", "-vv", "-K", KEY_END.decode(), "-D", RECORD_END.decode()]
        for name, value in headers:
            value = decode(value)
            arguments += ["-H", name if value is None else f"{name}={value.decode()}"]
        if null:
            arguments.append("-Z")
        lines = b""
        for one in records:
            if one["key"] is not None:
                lines += decode(one["key"]) + KEY_END
            lines += (decode(one["value"]) or b"") + RECORD_END
        _, said = kcat(arguments, lines)
        offsets += [int(offset) for offset in re.findall(r"Message delivered to partition \d+ \(offset (-?\d+)\)", said)]
    return {"offsets": offsets}


def consume(job):
    start = f"s@{job['time']}" if "time" in job else str(job["offset"])
    arguments = ["-C", "-t", job["topic"], "-p", str(job["partition"]), "-o", start, "-e", "-q"]
    out, _ = kcat([*arguments, "-f", r"%o %T %K %S %h\n%k%s\n"])
    records = []
    at = 0
    while at < len(out) and (not records or records[-1]["offset"] < job["until"] - 1):
        end = out.index(b"\n", at)
        offset, timestamp, key_length, value_length, headers = out[at:end].split(b" ", 4)
        at = end + 1
        parts = []
        for length in (int(key_length), int(value_length)):
            parts.append(None if length < 0 else out[at : at + length])
            at += max(length, 0)
        if out[at : at + 1] != b"\n":
            raise ValueError(f"after offset {offset} comes {out[at:at + 20]}")
        at += 1
        records.append(
            {
                "offset": int(offset),
                "timestamp": int(timestamp),
                "key": encode(parts[0]),
                "value": encode(parts[1]),
                "headers_text": encode(headers),
            }
        )
    return {"records": records}


def ends(job):
    def asked(when):
        out, _ = kcat(["-Q", "-t", f"{job['topic']}:{job['partition']}:{when}"])
        return int(out.split()[-1])

    return {"first": asked(-2), "end": asked(-1)}


version = re.search(r"Version (.*)", kcat(["-V"])[0].decode()).group(1)
greeting = {
    "client": "kcat",
    "version": re.sub(r" \(.*(librdkafka [0-9.]+).*", r", \1", version),
    "codecs": ["none", "gzip", "snappy", "lz4", "zstd"],
    "idempotent": True,
    "cannot": ["timestamp", "null record", "empty record"],
}
serve(greeting, {"produce": produce, "consume": consume, "ends": ends})
