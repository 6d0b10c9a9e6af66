"""What every client program speaks, whatever its language: JSON lines.

First it says what it is and what it cannot express; then it answers each line of standard input by one line.

    {"client", "version", "codecs": [...], "idempotent": bool, "cannot": [...]}

`cannot` names of these: "timestamp" (it takes the time itself), "null header" (a header's value), "null record" (neither
key nor value), "empty record" (no key, an empty value).

    {"do": "produce", "topic", "partition", "codec", "acks": -1|0|1, "idempotent", "records": [RECORD, ...]}
        -> {"offsets": [...]}      (of no meaning with acks 0); the records go in as few batches as the client makes of it
    {"do": "consume", "topic", "partition", "offset" | "time", "until"}
        -> {"records": [RECORD, ...]}   from that offset, or the first of that time or later, up to the one before `until`
    {"do": "ends", "topic", "partition"}
        -> {"first", "end"}
    anything that fails -> {"error"}

RECORD is {"offset", "timestamp", "key", "value", "headers": [[name, value], ...]}, bytes in base64, null for null. A
client that only prints headers gives "headers_text" instead: name=value, comma between, NULL for null; base64 as well.
Producers and consumers are kept from job to job, as a program that runs for long has them.
"""

import base64
import json
import sys

# How long a client waits for what must come.
PATIENCE_SECONDS = 90


def encode(data):
    return None if data is None else base64.b64encode(data).decode()


def decode(text):
    return None if text is None else base64.b64decode(text)


def record(offset, timestamp, key, value, headers):
    named = [[name, encode(data)] for name, data in headers or ()]
    return {"offset": offset, "timestamp": timestamp, "key": encode(key), "value": encode(value), "headers": named}


def say(answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def serve(greeting, jobs):
    say(greeting)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            say(jobs[job["do"]](job))
        except Exception as error:  # whatever it is, the other side tells it
            say({"error": repr(error)})
