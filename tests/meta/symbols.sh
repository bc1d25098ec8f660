#!/bin/sh
# Every global symbol of the static library starts with pph_. Left out: what
# protobuf-c generates, and what sanitizers add.
# usage: symbols.sh LIBRARY
set -eu

list=$(nm -A -g --defined-only "$1" 2>/dev/null)
count=$(printf '%s\n' "$list" | grep -c ' pph_') || count=0
if [ "$count" -lt 10 ]; then
  echo "only $count pph_ symbols in $1: is it the library?"
  exit 1
fi
printf '%s\n' "$list" | awk '
  NF < 3 || $1 ~ /\.pb-c\.c/ { next }
  $NF ~ /^(pph_|__odr_|__asan|__ubsan|__tsan|__sanitizer|__sancov)/ { next }
  { print "no pph_ prefix: " $0; failed = 1 }
  END { exit failed }'
