#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Trains the small 2x upscale net on drawn pictures and writes upscale.onnx.

The net ends in a transposed convolution that sees the picture itself beside
the features.  Its picture part starts as bicubic interpolation and its
feature part near zero, so training starts from bicubic and only has to learn
what bicubic gets wrong.
"""
import argparse
import copy
import math
import pathlib
import time

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import draw

WIDTH = 32                  # channels of the features
BODY = 4                    # convolutions after the head
VALIDATION_SEED = 500_000   # far from the seeds trained on


class Upscale(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(3, WIDTH, 5, padding=2)
        self.body = nn.ModuleList(
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in range(BODY))
        self.up = nn.ConvTranspose2d(WIDTH + 3, 3, 6, stride=2, padding=2)
        start_as_bicubic(self.up)

    def forward(self, picture):
        x = torch.relu(self.head(picture))
        for layer in self.body:
            x = torch.relu(layer(x))
        return self.up(torch.cat([x, picture], 1))


def cubic(x, a=-0.5):
    """Keys' cubic interpolation kernel."""
    x = abs(x)
    if x < 1:
        return (a + 2) * x ** 3 - (a + 3) * x ** 2 + 1
    if x < 2:
        return a * (x ** 3 - 5 * x ** 2 + 8 * x - 4)
    return 0.0


def bicubic_taps():
    """Six taps: two phases of three, each phase summing to one.

    Bicubic by two has four taps a phase.  The outermost (0.02) is left out:
    a 6x6 kernel then splits into four phases of 3x3, and training makes up
    for the missing tap.
    """
    taps = np.array([cubic((k - 2.5) / 2) for k in range(6)])
    taps[0::2] /= taps[0::2].sum()
    taps[1::2] /= taps[1::2].sum()
    return torch.tensor(np.outer(taps, taps), dtype=torch.float32)


def start_as_bicubic(up):
    with torch.no_grad():
        up.bias.zero_()
        up.weight.mul_(0.05)
        up.weight[WIDTH:] = 0
        for channel in range(3):
            up.weight[WIDTH + channel, channel] = bicubic_taps()


def to_tensor(image):
    return torch.from_numpy(np.asarray(image).copy()).permute(2, 0, 1)


def draw_pairs(first_seed, count, name):
    """Small and large pictures, an equal number of every kind, as bytes."""
    small, large = [], []
    for number in range(count):
        for kind in draw.KINDS:
            image = draw.picture(kind, first_seed + number)
            large.append(to_tensor(image))
            small.append(to_tensor(draw.half_size(image)))
        if number % 50 == 49 or number == count - 1:
            print(f"drew {len(large)} {name} pictures", flush=True)
    return torch.stack(small), torch.stack(large)


def crop(rng, pairs, size):
    """A random part of a random pair, randomly turned and recoloured."""
    small, large = pairs
    pick = rng.integers(len(small))
    top = rng.integers(small.shape[2] - size + 1)
    left = rng.integers(small.shape[3] - size + 1)
    turns, flip = int(rng.integers(4)), rng.random() < 0.5
    order = torch.from_numpy(rng.permutation(3))
    out = []
    for scale, whole in ((1, small[pick]), (2, large[pick])):
        part = whole[order,
                     top * scale:(top + size) * scale,
                     left * scale:(left + size) * scale]
        part = torch.rot90(part, turns, (1, 2))
        out.append(part.flip(2) if flip else part)
    return out


def batch(rng, pairs, count, size):
    crops = [crop(rng, pairs, size) for _ in range(count)]
    small, large = zip(*crops)
    return torch.stack(small) / 255.0, torch.stack(large) / 255.0


def charbonnier(made, wanted):
    """L1 with a rounded tip, so that small errors settle."""
    return torch.sqrt((made - wanted) ** 2 + 1e-6).mean()


def learning_rate(step, steps, highest):
    """A short linear start, then a half cosine down to nearly zero."""
    warm = min(200, steps // 10 + 1)
    if step < warm:
        return highest * (step + 1) / warm
    return highest * (0.01 + 0.99 * 0.5 * (
        1 + math.cos(math.pi * (step - warm) / max(1, steps - warm))))


def psnr(net, pairs):
    """Mean PSNR over whole pictures, in dB."""
    total = 0.0
    with torch.no_grad():
        for small, large in zip(*pairs):
            made = (net(small[None] / 255.0) * 255).round().clamp(0, 255)
            error = ((made[0] - large) ** 2).mean().item()
            total += 10 * math.log10(255 ** 2 / max(error, 1e-3))
    return total / len(pairs[0])


def average_into(slow, net, keep=0.998):
    """Keeps a running mean of the weights, which is better than the last."""
    with torch.no_grad():
        for kept, new in zip(slow.parameters(), net.parameters()):
            kept.lerp_(new, 1 - keep)


def train(net, pairs, held_out, args):
    """Gives the running mean of the trained weights."""
    rng = np.random.default_rng(args.seed)
    adam = torch.optim.Adam(net.parameters(), lr=args.rate)
    slow = copy.deepcopy(net)
    start = time.time()
    print(f"start: PSNR {psnr(net, held_out):.2f} dB", flush=True)
    for step in range(args.steps):
        for group in adam.param_groups:
            group["lr"] = learning_rate(step, args.steps, args.rate)
        small, large = batch(rng, pairs, args.batch, args.crop)
        loss = charbonnier(net(small), large)
        adam.zero_grad()
        loss.backward()
        adam.step()
        average_into(slow, net)
        if (step + 1) % args.report == 0 or step + 1 == args.steps:
            print(f"step {step + 1}/{args.steps}  loss {loss.item():.5f}  "
                  f"PSNR {psnr(slow, held_out):.2f} dB  "
                  f"{time.time() - start:.0f} s", flush=True)
            save_onnx(slow, args.out)
    return slow


def weights(layer, name):
    """The two initializers of a layer."""
    return [numpy_helper.from_array(layer.weight.detach().numpy(),
                                    f"{name}.weight"),
            numpy_helper.from_array(layer.bias.detach().numpy(),
                                    f"{name}.bias")]


def conv_and_relu(layer, name, source):
    pad = layer.padding[0]
    conv = helper.make_node(
        "Conv", [source, f"{name}.weight", f"{name}.bias"], [f"{name}.sum"],
        name=name, kernel_shape=list(layer.kernel_size), pads=[pad] * 4)
    relu = helper.make_node("Relu", [f"{name}.sum"], [f"{name}.out"],
                            name=f"{name}.relu")
    return [conv, relu]


def net_to_onnx(net):
    """The net as an ONNX model with height and width left open."""
    nodes = conv_and_relu(net.head, "head", "picture")
    kept, last = weights(net.head, "head"), "head.out"
    for number, layer in enumerate(net.body, 1):
        name = f"body{number}"
        nodes += conv_and_relu(layer, name, last)
        kept += weights(layer, name)
        last = f"{name}.out"
    nodes.append(helper.make_node("Concat", [last, "picture"], ["seen"],
                                  name="concat", axis=1))
    nodes.append(helper.make_node(
        "ConvTranspose", ["seen", "up.weight", "up.bias"], ["doubled"],
        name="up", kernel_shape=[6, 6], strides=[2, 2], pads=[2] * 4))
    kept += weights(net.up, "up")
    graph = helper.make_graph(
        nodes, "upscale",
        [helper.make_tensor_value_info(
            "picture", TensorProto.FLOAT, [1, 3, "height", "width"])],
        [helper.make_tensor_value_info(
            "doubled", TensorProto.FLOAT, [1, 3, "height2", "width2"])],
        kept)
    return helper.make_model(
        graph, producer_name="polyphase examples/upscale", ir_version=8,
        opset_imports=[helper.make_opsetid("", 17)])


def save_onnx(net, path):
    model = net_to_onnx(net)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(path))


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    here = pathlib.Path(__file__).parent
    parser.add_argument("--out", type=pathlib.Path,
                        default=here / "upscale.onnx", help="model to write")
    parser.add_argument("--steps", type=int, default=14000,
                        help="training steps")
    parser.add_argument("--batch", type=int, default=16,
                        help="picture parts in a step")
    parser.add_argument("--crop", type=int, default=32,
                        help="width of a part before doubling")
    parser.add_argument("--rate", type=float, default=1.5e-3,
                        help="highest learning rate")
    parser.add_argument("--pictures", type=int, default=500,
                        help="training pictures of each kind")
    parser.add_argument("--seed", type=int, default=1, help="random seed")
    parser.add_argument("--report", type=int, default=500,
                        help="steps between reports")
    parser.add_argument("--threads", type=int, default=1,
                        help="CPU threads")
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    pairs = draw_pairs(0, args.pictures, "training")
    held_out = draw_pairs(VALIDATION_SEED, 6, "validation")
    net = train(Upscale(), pairs, held_out, args)
    save_onnx(net, args.out)
    print(f"wrote {args.out} ({args.out.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
