#!/usr/bin/env bash
# The power is cut for real, while a writer runs with rolls, retention and each policy in turn: an ext4 in an image file on
# a reflinking xfs is cloned, mounted, opened and verified. Needs root, loop devices, xfsprogs and e2fsprogs.
# STRATALOG_LEVEL: short for 20 cuts, else 100.  Uses the release build where there is one, else the debug build.
set -Eeuo pipefail
trap 'echo "power-cut: line $LINENO ended with $?: $BASH_COMMAND" >&2' ERR
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cuts=100
[ "${STRATALOG_LEVEL:-full}" != short ] || cuts=20
profile=()
if compgen -G "${CARGO_TARGET_DIR:-target}/release/deps/libstratalog-*.rlib" >/dev/null; then profile=(--release); fi

STRATALOG_POWER=require STRATALOG_POWER_CUTS=$cuts cargo test --locked "${profile[@]}" --test power -- power-cuts
