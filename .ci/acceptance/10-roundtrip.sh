#!/usr/bin/env bash
# Five million lines go in and come out the same; as JSON lines they go into a second log with small segments, and both
# logs then tell the same.  LOGCTL: the release binary.  STRATALOG_LEVEL: short, or full for every codec.
set -Eeuo pipefail
trap 'echo "roundtrip: line $LINENO ended with $?: $BASH_COMMAND" >&2' ERR

logctl=${LOGCTL:?the path of the release binary}
level=${STRATALOG_LEVEL:-short}
count=5000000
segment=16MiB
work=$(mktemp -d "${TMPDIR:-/tmp}/stratalog-roundtrip.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { echo "roundtrip: $*" >&2; exit 1; }

# What two logs must have in common. The topic is the directory's name; where a batch begins depends on how the input
# happened to arrive, and the codec is the writer's choice.
common() { sed -E 's/"topic":"[^"]*",?//; s/"batch":\{[^}]*\},?//'; }

lines=$work/lines-0
seq 1 "$count" | "$logctl" append "$lines" --create
"$logctl" cat "$lines" | cmp - <(seq 1 "$count") || fail "cat does not give back the lines that were appended"
"$logctl" verify "$lines" >/dev/null || fail "verify finds fault with $lines"

codecs=(none)
[ "$level" = short ] || codecs=(none gzip snappy lz4 zstd)
for codec in "${codecs[@]}"; do
  again=$work/again-$codec-0
  "$logctl" cat "$lines" -J | "$logctl" append "$again" --create --format jsonl --segment-bytes "$segment" -z "$codec"
  cmp <("$logctl" cat "$lines" -J | common) <("$logctl" cat "$again" -J | common) ||
    fail "codec $codec: the second log tells something else"
  told=$("$logctl" cat "$again" -J | wc -l)
  [ "$told" -eq "$count" ] || fail "codec $codec: $told records of $count"
  "$logctl" verify "$again" >/dev/null || fail "verify finds fault with $again"
  segments=$(find "$again" -name '*.log' | wc -l)
  # Uncompressed, five million records of at least eight bytes do not fit one segment: the size was heeded.
  [ "$codec" != none ] || [ "$segments" -gt 1 ] || fail "--segment-bytes $segment was not heeded: one segment"
  largest=$(find "$again" -name '*.log' -printf '%s\n' | sort -n | tail -n 1)
  [ "$largest" -le $((16 * 1024 * 1024)) ] || fail "codec $codec: a segment of $largest bytes"
  echo "$codec: $count records the same, $segments segments"
  rm -rf "$again"
done
