#!/bin/sh
# Makes the binary fuzz corpora: from fuzz/corpus/fuzz_text, and the containers,
# payloads and programs that tests/test_container.c, tests/test_xnn_import.c and
# tests/test_pte_export.c build.
# usage: scripts/make-seeds.sh BUILD_FOLDER
set -eu
build=$1
corpus=fuzz/corpus
choice=0
for text in "$corpus"/fuzz_text/*.txt; do
  name=$(basename "$text" .txt)
  "$build/fuzz/make_seeds" "$text" "$corpus/fuzz_import/$name.onnx" || continue
  "$build/fuzz/make_seeds" "$text" "$corpus/fuzz_model/$name.bin" $choice
  choice=$(((choice + 1) % 8))
done
PPH_WRITE_SEEDS="$corpus/fuzz_pte" "$build/tests/test_container"
PPH_WRITE_SEEDS="$corpus/fuzz_xnn_payload" "$build/tests/test_xnn_import"
PPH_WRITE_SEEDS="$corpus/fuzz_optimize" "$build/tests/test_pte_export"
