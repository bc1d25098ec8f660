#!/bin/sh
# Runs every real model of the shared data once, on random inputs of small
# shapes where shapes are open, under a checker such as valgrind.
# usage: scripts/check-models.sh POLYPHASE MODELS_FOLDER [CHECKER...]
set -u
polyphase=$1 models=$2
shift 2
failures=0

# run MODEL SHAPE_OPTIONS...: `check` against itself loads, plans and runs it.
run() {
  model=$1
  shift
  [ -f "$models/$model.onnx" ] || { echo "skipped: $model"; return; }
  if $checker "$polyphase" check "$models/$model.onnx" "$models/$model.onnx" \
    --polyphase always --threads 2 "$@" >/dev/null; then
    echo "clean: $model"
  else
    echo "FAILED: $model"
    failures=$((failures + 1))
  fi
}

checker=$*
run lyragan-stream/lyragan-stream
run gtcrn/gtcrn
run gtcrn/gtcrn_simple
run fsrcnn-x2/fsrcnn-x2 --shape 0=1x24x32x1
run hifigan-v3/hifigan-v3 --shape mel=1x80x6
run hifigan-v3-tf2onnx/hifigan-v3-tf2onnx --shape input=1x80x6
run realcugan-se-up2x/realcugan-se-up2x --shape in0=1x3x60x64
run realesr-animevideov3-x4/realesr-animevideov3-x4 --shape data=1x3x16x12
run ppocr-det-onnx/ch_ppocr_mobile_v2.0_det_infer --shape x=1x3x64x96
run ppocr-det-onnx/en_PP-OCRv3_det_infer --shape x=1x3x64x96
run ppocrv5-det/ppocrv5-det --shape x=1x3x64x96
run fastestdet-onnx/FastestDet
run selfie-segmentation/selfie-segmentation
run deepfilternet3-erb-dec/deepfilternet3-erb-dec --shape emb=1x8x512 \
  --shape e3=1x64x8x8 --shape e2=1x64x8x8 --shape e1=1x64x8x16 \
  --shape e0=1x64x8x32
run sed-gen-unet-onnx/unet
run portrait-segmentation/prisma_nchw
run agllnet-lowlight-onnx/agllnet_256x256
run waifu2x-upconv7-onnx/scale2.0x_model
run waifu2x-upconv7-onnx/noise1_scale2.0x_model
run acnet-onnx/ACNetHDNL0
exit "$failures"
