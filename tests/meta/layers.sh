#!/bin/sh
# Layers: an #include only points down (docs/architecture.md has the picture).
# usage: layers.sh SOURCE_FOLDER
set -eu
cd "$1"

# Folder: what it may include besides itself. Kernels and operators know no
# graph; graph, pass, onnx and pte know no kernel and no operator.
rules='base:
geometry: base
kernel: base
op: base geometry kernel
graph: base geometry
pass: base geometry graph
onnx: base geometry graph
pte: base geometry graph
optimize: base geometry graph pass pte
backend: base geometry graph kernel op
runtime: base geometry graph pass onnx pte optimize backend kernel op
api: base geometry graph pass onnx pte optimize backend kernel op runtime'

find src include -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.inc' \) |
  LC_ALL=C sort |
  xargs awk -v rules="$rules" '
    function bad(what) {
      printf "%s:%d: %s: %s\n", FILENAME, FNR, what, $0
      failed = 1
    }
    BEGIN {
      count = split(rules, lines, "\n")
      for (i = 1; i <= count; i++) {
        split(lines[i], halves, ":")
        known[halves[1]] = 1
        n = split(halves[2], below, " ")
        for (j = 1; j <= n; j++)
          may[halves[1], below[j]] = 1
      }
    }
    FNR == 1 {
      split(FILENAME, path, "/")
      folder = path[1] == "src" ? path[2] : "public"
      if (folder != "public" && !(folder in known))
        bad("folder without a rule")
    }
    !/^[ \t]*#[ \t]*include[ \t]*[<"]/ { next }
    {
      name = $0
      sub(/^[^<"]*[<"]/, "", name)
      sub(/[>"].*/, "", name)
      if (name == "xnnpack.h" && FILENAME !~ /^src\/backend\/xnnpack[^\/]*$/)
        bad("only backend/xnnpack*.c may include xnnpack.h")
      if (name ~ /protobuf-c|\.pb-c\.h$/ && folder != "onnx")
        bad("only onnx may include protobuf headers")
      if ($0 ~ /</ || name ~ /\.pb-c\.h$/)
        next
      if (split(name, parts, "/") < 2)
        bad("no folder in the name")
      else if (parts[1] == "polyphase" || parts[1] == folder)
        next
      else if (folder == "public")
        bad("public headers include public headers only")
      else if (!((folder, parts[1]) in may))
        bad(folder " may not include " parts[1])
    }
    END { exit failed }'

# Examples are what a user writes: public headers only.
if [ -d examples ] &&
  grep -rnE '#[ ]*include[ ]*"' examples --include='*.[ch]' |
  grep -vE '"polyphase/'; then
  echo "examples may include public headers only"
  exit 1
fi
