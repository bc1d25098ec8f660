#!/bin/sh
# Each public header compiles alone, as C11 and (where there is a C++ compiler)
# as C++17.
# usage: headers.sh SOURCE_FOLDER C_COMPILER
set -eu
source=$1 cc=$2 cxx=${CXX:-c++}
strict='-Wall -Wextra -Wpedantic -Wundef -Werror -fsyntax-only'

if ! command -v "$cxx" >/dev/null; then
  echo "no C++ compiler: C11 only"
  cxx=
fi
for header in "$source"/include/polyphase/*.h; do
  name=polyphase/${header##*/}
  printf '#include "%s"\n#include "%s"\n' "$name" "$name" |
    "$cc" -std=c11 $strict -Wstrict-prototypes -I "$source/include" -x c -
  [ -z "$cxx" ] || printf '#include "%s"\n' "$name" |
    "$cxx" -std=c++17 $strict -I "$source/include" -x c++ -
done
