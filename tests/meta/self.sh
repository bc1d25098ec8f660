#!/bin/sh
# The checks themselves: each must pass on a good tree and fail on one breach.
# usage: self.sh SOURCE_FOLDER C_COMPILER
set -eu
meta=$1/tests/meta cc=$2
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

plant() { # FILE TEXT
  mkdir -p "$tree/$(dirname "$1")"
  printf '%b' "$2" >"$tree/$1"
}
fresh() {
  rm -rf "$tree"
  mkdir -p "$tree/src" "$tree/tools" "$tree/tests" "$tree/include/polyphase"
  plant include/polyphase/a.h 'int pph_a(void);\n'
  plant src/graph/graph.h '#include "base/heap.h"\n#include "polyphase/a.h"\n'
  plant src/backend/xnnpack.c '#include <xnnpack.h>\n#include "op/op.h"\n'
}
expect() { # RESULT SCRIPT WHAT
  if "$meta/$2.sh" "$tree" "$cc" >"$tree.out" 2>&1; then found=pass
  else found=fail; fi
  if [ "$found" != "$1" ]; then
    echo "$2 on $3: $found, should $1"
    cat "$tree.out"
    exit 1
  fi
  rm -f "$tree.out"
}
breach() { # SCRIPT FILE TEXT
  fresh
  expect pass "$1" "a good tree"
  plant "$2" "$3"
  expect fail "$1" "$2: $3"
}
repeat() { # COUNT TEXT
  awk 'BEGIN { for (n = ARGV[1]; n > 0; n--) printf "%s", ARGV[2] }' "$1" "$2"
}

breach layers src/kernel/k.c '#include "graph/graph.h"\n'
breach layers src/op/o.c '#  include "graph/graph.h"\n'
breach layers src/pass/p.c '#include "kernel/k.h"\n'
breach layers src/onnx/o.c '#include "op/o.h"\n'
breach layers src/graph/g.c '#include "backend/backend.h"\n'
breach layers src/base/b.c '#include "geometry/geometry.h"\n'
breach layers src/backend/native.c '#include <xnnpack.h>\n'
breach layers src/graph/g.c '#include "onnx_subset.pb-c.h"\n'
breach layers src/graph/g.c '#include "graph.h"\n'
breach layers src/new/n.c 'int pph_n;\n'
breach layers include/polyphase/b.h '#include "base/heap.h"\n'
breach layers examples/e.c '#include "base/heap.h"\n'
breach headers include/polyphase/b.h 'size_t pph_b(void);\n'
command -v "${CXX:-c++}" >/dev/null &&
  breach headers include/polyphase/b.h 'int pph_b(int class);\n'
breach names tools/graph.h '\n'
breach sizes src/graph/g.c "$(repeat 81 x)"'\n'
breach sizes src/graph/g.c "$(repeat 801 '\n')"
breach sizes src/graph/g.c "int f(int a,\n  int b) {\n$(repeat 58 '\n')}\n"
breach sizes tools/t.c '// TO''DO: more\n'
breach allocation src/graph/g.c 'x = malloc(3);\n'
fresh
plant src/graph/g.c "// $(repeat 70 'é')\nint f(void) {\n$(repeat 58 '\n')}\n"
expect pass sizes "wide characters and a function of 60 lines"

printf 'int pph_a, pph_b, pph_c, pph_d, pph_e, pph_f, pph_g, pph_h, pph_i, pph_j;
%s\n' 'static int own; int *pph_k(void) { return &own; }' >"$tree/good.c"
printf 'int stray;\n' >"$tree/bad.c"
for name in good bad; do
  "$cc" -c "$tree/$name.c" -o "$tree/$name.o"
  ar rcs "$tree/lib$name.a" "$tree/good.o" "$tree/$name.o"
done
"$meta/symbols.sh" "$tree/libgood.a"
if "$meta/symbols.sh" "$tree/libbad.a" >/dev/null; then
  echo "symbols does not see a stray symbol"
  exit 1
fi
