#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the upscale model with bicubic on drawn pictures not trained on.

Exit status 0 if the model gains at least --least dB of PSNR on average.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

import draw

HELD_OUT_SEED = 1_000_000   # training uses neither this seed nor later ones


def bicubic(small):
    return small.resize((small.width * 2, small.height * 2),
                        Image.Resampling.BICUBIC)


def with_onnxruntime(model):
    """A function that doubles an image with ONNX Runtime."""
    import onnxruntime
    session = onnxruntime.InferenceSession(
        str(model), providers=["CPUExecutionProvider"])

    def double(small):
        planes = np.asarray(small, np.float32).transpose(2, 0, 1)[None] / 255
        made = session.run(["doubled"], {"picture": planes})[0][0]
        return draw.to_image(made.transpose(1, 2, 0))

    return double


def with_polyphase(command, model):
    """A function that doubles an image with the polyphase command."""
    def double(small):
        with tempfile.TemporaryDirectory() as folder:
            before = pathlib.Path(folder, "in.png")
            after = pathlib.Path(folder, "out.png")
            small.save(before)
            subprocess.run([command, "run", str(model), str(before),
                            "-o", str(after)],
                           check=True, stdout=subprocess.DEVNULL)
            with Image.open(after) as made:
                return made.convert("RGB")

    return double


def psnr(made, wanted):
    """Peak signal to noise ratio of 8-bit images, in dB."""
    if made.size != wanted.size:
        raise SystemExit(f"size is {made.size} where {wanted.size} is wanted")
    error = np.asarray(made, float) - np.asarray(wanted, float)
    # Equal pictures would be infinitely good: stop at 78 dB.
    return 10 * np.log10(255 ** 2 / max(np.mean(error ** 2), 1e-3))


def compare(kind, double, args):
    """Mean PSNR of bicubic and of the model on one kind of picture."""
    scores = []
    for number in range(args.count):
        large = draw.picture(kind, args.seed + number, args.size, args.size)
        small = draw.half_size(large)
        scores.append((psnr(bicubic(small), large),
                       psnr(double(small), large)))
        print(f"\r{kind} {number + 1}/{args.count}   ", end="",
              file=sys.stderr, flush=True)
    print("\r" + " " * 30 + "\r", end="", file=sys.stderr, flush=True)
    return np.mean(scores, axis=0)


def print_row(name, scores):
    print(f"| {name:<10} | {scores[0]:7.2f} | {scores[1]:7.2f} "
          f"| {scores[1] - scores[0]:+6.2f} |", flush=True)


def evaluate(double, args):
    """Prints the table and gives the mean gain in dB."""
    print("| pictures   | bicubic |   model |   gain |")
    print("| :--------- | ------: | ------: | -----: |", flush=True)
    rows = []
    for kind in draw.KINDS:
        rows.append(compare(kind, double, args))
        print_row(kind, rows[-1])
    mean = np.mean(rows, axis=0)
    print_row("mean", mean)
    return mean[1] - mean[0]


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    here = pathlib.Path(__file__).parent
    parser.add_argument("--model", type=pathlib.Path,
                        default=here / "upscale.onnx", help="model to judge")
    parser.add_argument("--polyphase", metavar="PATH",
                        help="run the model with this polyphase command "
                             "instead of ONNX Runtime")
    parser.add_argument("--count", type=int, default=25,
                        help="pictures of each kind")
    parser.add_argument("--size", type=int, default=192,
                        help="width and height of a picture, even")
    parser.add_argument("--seed", type=int, default=HELD_OUT_SEED,
                        help="seed of the first picture")
    parser.add_argument("--least", type=float, default=1.0,
                        help="gain in dB that is asked for")
    return parser.parse_args()


def main():
    args = parse_args()
    if args.polyphase:
        double = with_polyphase(args.polyphase, args.model)
    else:
        double = with_onnxruntime(args.model)
    gain = evaluate(double, args)
    enough = gain >= args.least
    print(f"{'ok' if enough else 'not enough'}: mean gain {gain:.2f} dB, "
          f"{args.least:.2f} dB asked for")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
