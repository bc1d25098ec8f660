#!/bin/sh
# Runs every fuzz target for some seconds, starting from its corpus; what is
# found new stays in the build folder, a crash ends the script.
# usage: scripts/fuzz.sh BUILD_FOLDER SECONDS
set -eu
build=$1 seconds=$2
for target in "$build"/fuzz/fuzz_*; do
  [ -f "$target" ] && [ -x "$target" ] || continue
  name=${target##*/}
  echo "$name: $seconds seconds"
  mkdir -p "$build/corpus/$name"
  seeds=
  [ -d "fuzz/corpus/$name" ] && seeds="fuzz/corpus/$name"
  "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=20 \
    -artifact_prefix="$build/$name-" "$build/corpus/$name" $seeds
done
