#!/bin/sh
# The main job on the embedded default: doubles the sample picture and shows
# what became of the upsampling node and what that gained.
# usage: scripts/demo.sh [BUILD_FOLDER]
set -eu
build=${1:-build/release}
folder=examples/upscale
mkdir -p out
"$build/tools/polyphase" run "$folder/upscale.onnx" "$folder/sample.png" \
  -o out/doubled.png
"$build/tools/polyphase" bench "$folder/upscale.onnx" --compare \
  --shape picture=1x3x144x192
echo "The doubled picture: out/doubled.png (from $folder/sample.png)"
