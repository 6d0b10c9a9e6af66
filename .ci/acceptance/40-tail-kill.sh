#!/usr/bin/env bash
# A follower reads along while another process appends a million numbered lines, rolls every MiB, and is killed by
# SIGKILL and started again ten times, each time going on after what the log holds. The follower must have every number
# once, in order, none torn.  LOGCTL: the release binary.  STRATALOG_LEVEL: short, or full for ten such runs.
set -Eeuo pipefail
trap 'echo "tail-kill: line $LINENO ended with $?: $BASH_COMMAND" >&2' ERR

logctl=${LOGCTL:?the path of the release binary}
level=${STRATALOG_LEVEL:-short}
count=1000000
kills=10
patience_seconds=120
work=$(mktemp -d "${TMPDIR:-/tmp}/stratalog-tail.XXXXXX")
follower= appender=

fail() { echo "tail-kill: $*" >&2; exit 1; }

leave() {
  local pid
  for pid in $follower $appender; do kill -KILL "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap leave EXIT

seen() { wc -l <"$1"; }

# Numbers from $1 on, in small portions with pauses that differ, so that a kill meets the appender at any point.
feed() {
  local next=$1 last
  while [ "$next" -le "$count" ]; do
    last=$((next + 499 + RANDOM % 2000))
    [ "$last" -le "$count" ] || last=$count
    seq "$next" "$last" 2>/dev/null || return 0
    next=$((last + 1))
    sleep "0.00$((RANDOM % 8))"
  done
}

append() { # log, first number: leaves the process id in $appender
  # A process substitution, not a pipe: $! is then logctl itself.
  "$logctl" append "$1" --segment-bytes 1MiB --batch-size 16KiB < <(feed "$2") &
  appender=$!
}

# Waits until $2 lines are in $1. Fails when nothing new came for a long time.
wait_for() {
  local had=-1 now since=$SECONDS
  while now=$(seen "$1"); [ "$now" -lt "$2" ]; do
    if [ "$now" -ne "$had" ]; then had=$now since=$SECONDS; fi
    [ $((SECONDS - since)) -lt "$patience_seconds" ] || fail "the follower stands at $now lines and waits for $2"
    kill -0 "$follower" 2>/dev/null || fail "the follower ended at $now lines: $(tail -n 3 "$1.err")"
    sleep 0.01
  done
}

next_number() { # log
  local last
  last=$("$logctl" tail -n 1 "$1")
  echo $((${last:-0} + 1))
}

round() {
  local log=$work/numbers-0 out=$work/followed kill_count met=0 next segments result
  rm -rf "$log" "$out" "$out.err"
  "$logctl" append "$log" --create </dev/null
  # A background process of a script has SIGINT ignored: give it the default back, as a terminal would.
  env --default-signal=INT "$logctl" tail -f "$log" >"$out" 2>"$out.err" &
  follower=$!

  for kill_count in $(seq "$kills"); do
    next=$(next_number "$log")
    append "$log" "$next"
    # At a different distance each time, always before the numbers run out.
    wait_for "$out" $((kill_count * (count / (kills + 1)) - RANDOM))
    if kill -KILL "$appender" 2>/dev/null; then met=$((met + 1)); fi
    result=0
    wait "$appender" 2>/dev/null || result=$?
    appender=
    [ "$result" -eq 137 ] || fail "appender $kill_count was not killed but ended with $result"
  done
  [ "$met" -eq "$kills" ] || fail "only $met of $kills appenders were alive to be killed"

  append "$log" "$(next_number "$log")"
  wait "$appender" || fail "the last appender failed"
  appender=
  wait_for "$out" "$count"
  # A line more would come at once: the last appender has ended, and all it wrote is there to be read.
  sleep 0.5
  kill -INT "$follower" 2>/dev/null || fail "the follower ended by itself: $(tail -n 3 "$out.err")"
  result=0
  wait "$follower" || result=$?
  follower=
  case $result in 0 | 130) ;; *) fail "the follower ended with $result: $(tail -n 3 "$out.err")" ;; esac

  cmp "$out" <(seq 1 "$count") || fail "the follower missed, repeated or tore a line; see the first difference above"
  "$logctl" cat "$log" | cmp - <(seq 1 "$count") || fail "the log holds something else than was appended"
  "$logctl" verify "$log" >/dev/null || fail "verify finds fault with the log"
  segments=$(find "$log" -name '*.log' | wc -l)
  [ "$segments" -gt 5 ] || fail "only $segments segments: the log did not roll every MiB"
  echo "$count lines followed over $kills kills and $segments segments"
}

rounds=1
[ "$level" = short ] || rounds=10
for _ in $(seq "$rounds"); do round; done
