#!/usr/bin/env bash
# One writer that rolls, drops and is killed by SIGKILL every few seconds; eight readers in other processes follow it, half
# of them to the durable end. None may see a record torn, out of order, invented or left out.
# STRATALOG_LEVEL: short for 30 s, else ten minutes.  Uses the release build where there is one, else the debug build.
set -Eeuo pipefail
trap 'echo "attach: line $LINENO ended with $?: $BASH_COMMAND" >&2' ERR
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=600
[ "${STRATALOG_LEVEL:-full}" != short ] || seconds=30
profile=()
if compgen -G "${CARGO_TARGET_DIR:-target}/release/deps/libstratalog-*.rlib" >/dev/null; then profile=(--release); fi

STRATALOG_SECONDS=$seconds cargo test --locked "${profile[@]}" --test attach
