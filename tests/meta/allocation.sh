#!/bin/sh
# All memory of the library comes through base/heap: nobody else calls the C
# library's allocator, and nothing of a size unknown lives on the stack.
# usage: allocation.sh SOURCE_FOLDER
set -eu
cd "$1"
names='malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf|alloca'
names="$names|aligned_alloc|posix_memalign"
if grep -rnE "(^|[^a-zA-Z0-9_>.])($names)[ ]*\(" src --include='*.[ch]' |
  grep -v '^src/base/'; then
  echo "memory comes from pph_heap and pph_arena only"
  exit 1
fi
