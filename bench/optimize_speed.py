#!/usr/bin/env python3
"""Exports nets that upsample with the official exporter, rewrites the programs
by `polyphase optimize`, checks that both give the same, and times both in the
official runtime: one thread, one process, interleaved, least of many rounds.

usage: optimize_speed.py POLYPHASE CACHE_FOLDER [--OPTION=...] [NAME...]

Programs as exported are kept in CACHE_FOLDER; options go to `optimize`. Needs a
Python with executorch, torch and numpy.
"""

import fnmatch
import os
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import nn

ROUNDS, SECONDS = 400, float(os.environ.get("SECONDS_EACH", "2.5"))


class MiGan(nn.Module):
    """Depthwise and pointwise layers, upsampling by fixed depthwise filters."""

    def __init__(self, wide):
        super().__init__()
        self.first = nn.Conv2d(4, wide, 1)
        self.stages = nn.ModuleList()
        for _ in range(3):
            self.stages.append(nn.ModuleList([
                nn.ConvTranspose2d(wide, wide, 4, 2, 1, groups=wide,
                                   bias=False),
                nn.Conv2d(wide, wide, 3, 1, 1, groups=wide),
                nn.Conv2d(wide, wide // 2, 1)]))
            wide //= 2
        self.last = nn.Conv2d(wide, 3, 1)

    def forward(self, x):
        x = self.first(x)
        for up, deep, point in self.stages:
            x = nn.functional.leaky_relu(deep(up(x)), 0.2) * 1.414
            x = nn.functional.leaky_relu(point(x), 0.2)
        return self.last(x)


class UNet(nn.Module):
    def __init__(self, a, b, c):
        super().__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU())
        self.a, self.b, self.c = block(3, a), block(a, b), block(b, c)
        self.up1 = nn.ConvTranspose2d(c, b, 2, 2)
        self.up0 = nn.ConvTranspose2d(b, a, 2, 2)
        self.d, self.e = block(2 * b, b), block(2 * a, a)
        self.last = nn.Conv2d(a, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(nn.functional.max_pool2d(a, 2))
        c = self.c(nn.functional.max_pool2d(b, 2))
        x = self.d(torch.cat([self.up1(c), b], 1))
        return self.last(self.e(torch.cat([self.up0(x), a], 1)))


class HifiGan(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.first = nn.Conv1d(80, wide, 7, padding=3)
        self.ups, self.blocks = nn.ModuleList(), nn.ModuleList()
        for k, s in ((16, 8), (16, 8), (4, 2), (4, 2)):
            self.ups.append(nn.ConvTranspose1d(wide, wide // 2, k, s,
                                               (k - s) // 2))
            wide //= 2
            self.blocks.append(nn.ModuleList(
                [nn.Conv1d(wide, wide, 3, padding=d, dilation=d)
                 for d in (1, 3)]))
        self.last = nn.Conv1d(wide, 1, 7, padding=3)

    def forward(self, x):
        x = self.first(x)
        for up, block in zip(self.ups, self.blocks):
            x = up(nn.functional.leaky_relu(x, 0.1))
            for conv in block:
                x = x + conv(nn.functional.leaky_relu(x, 0.1))
        return torch.tanh(self.last(nn.functional.leaky_relu(x, 0.1)))


def dcgan(wide):
    layers = [nn.ConvTranspose2d(100, wide, 4), nn.ReLU()]
    for _ in range(3):
        layers += [nn.ConvTranspose2d(wide, wide // 2, 4, 2, 1), nn.ReLU()]
        wide //= 2
    return nn.Sequential(*layers, nn.ConvTranspose2d(wide, 3, 4, 2, 1),
                         nn.Tanh())


def ct2d(i, o, k, s, p, size, **more):
    return (lambda: nn.ConvTranspose2d(i, o, k, s, p, **more),
            (1, i, size, size))


def ct1d(i, o, k, s, size):
    return (lambda: nn.ConvTranspose1d(i, o, k, s, (k - s) // 2),
            (1, i, size))


def nearest(wide, out, size):
    return (lambda: nn.Sequential(nn.Conv2d(wide, wide, 3, padding=1),
                                  nn.Upsample(scale_factor=2, mode="nearest"),
                                  nn.Conv2d(wide, out, 3, padding=1)),
            (1, wide, size, size))


# Name: module, shape of the input, how many times as fast it must become.
CASES = {
    "dw128_k4s2_128": (*ct2d(128, 128, 4, 2, 1, 128, groups=128), 12),
    "dw32_k4s2_64": (*ct2d(32, 32, 4, 2, 1, 64, groups=32), 4),
    "ct1d_256_128_k16s8_400": (*ct1d(256, 128, 16, 8, 400), 1.7),
    "ct1d_256_128_k12s6_200": (*ct1d(256, 128, 12, 6, 200), 1.7),
    "ct1d_512_256_k16s8_25": (*ct1d(512, 256, 16, 8, 25), 1.7),
    "ct1d_64_32_k4s2_3200": (*ct1d(64, 32, 4, 2, 3200), 0.97),
    "ct2d_128_64_k4s2_32": (*ct2d(128, 64, 4, 2, 1, 32), 1.6),
    "ct2d_256_128_k4s2_16": (*ct2d(256, 128, 4, 2, 1, 16), 1.6),
    "ct2d_64_32_k4s2_64": (*ct2d(64, 32, 4, 2, 1, 64), 0.97),
    "ct2d_128_64_k2s2_32": (*ct2d(128, 64, 2, 2, 0, 32), 0.97),
    "ct2d_64_32_k2s2_128": (*ct2d(64, 32, 2, 2, 0, 128), 0.97),
    "ct2d_64_64_k3s2_32": (*ct2d(64, 64, 3, 2, 1, 32, output_padding=1),
                           0.97),
    "ct2d_32_3_k4s2_128": (*ct2d(32, 3, 4, 2, 1, 128), 0.97),
    "ct2d_16_1_k2s2_160": (*ct2d(16, 1, 2, 2, 0, 160), 0.97),
    "ct2d_64_64_k9s3_32": (*ct2d(64, 64, 9, 3, 3, 32), 0.97),
    "ct2d_8_8_k4s2_16": (*ct2d(8, 8, 4, 2, 1, 16), 0.97),
    "odd_64_64_k2s3_32": (*ct2d(64, 64, 2, 3, 0, 32), 0.97),
    "odd_64_64_k1s2_32": (*ct2d(64, 64, 1, 2, 0, 32), 0.97),
    "odd_64_64_k5s1_32": (*ct2d(64, 64, 5, 1, 2, 32), 0.97),
    "odd_64_64_k5s2_32": (*ct2d(64, 64, 5, 2, 2, 32, output_padding=1), 0.97),
    "odd_32_32_k3s2d2_32": (*ct2d(32, 32, 3, 2, 1, 32, dilation=2), 0.97),
    "odd_64_64_g4_k4s2_32": (*ct2d(64, 64, 4, 2, 1, 32, groups=4), 0.97),
    "odd_64_3_k8s8_32": (*ct2d(64, 3, 8, 8, 0, 32), 0.97),
    "odd_64_21_k16s8_32": (*ct2d(64, 21, 16, 8, 4, 32), 0.97),
    "odd_21_21_g21_k16s8_32": (*ct2d(21, 21, 16, 8, 4, 32, groups=21), 0.97),
    "odd_1_1_k4s2_128": (*ct2d(1, 1, 4, 2, 1, 128), 0.97),
    "odd_16_2_k2s2_64": (*ct2d(16, 2, 2, 2, 0, 64), 0.97),
    "odd_48_40_k3s2_24": (*ct2d(48, 40, 3, 2, 1, 24, output_padding=1), 0.97),
    "odd_ct1d_16_1_k16s8_2000": (*ct1d(16, 1, 16, 8, 2000), 0.97),
    "odd_ct1d_64_64_k3s1_500": (*ct1d(64, 64, 3, 1, 500), 0.97),
    "odd_ct1d_32_16_k3s2_999": (*ct1d(32, 16, 3, 2, 999), 0.97),
    "nearest_64_64_64": (*nearest(64, 64, 64), 1.4),
    "nearest_32_16_128": (*nearest(32, 16, 128), 1.4),
    "net_unet_wide": (lambda: UNet(32, 64, 128), (1, 3, 128, 128), 1.3),
    "net_unet": (lambda: UNet(8, 12, 16), (1, 3, 256, 256), 1.3),
    "net_dcgan": (lambda: dcgan(512), (1, 100, 1, 1), 1.3),
    "net_migan": (lambda: MiGan(128), (1, 4, 32, 32), 1.3),
    "net_hifigan": (lambda: HifiGan(256), (1, 80, 50), 1.3),
}


def export(make, shape, path):
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackPartitioner)
    from executorch.exir import to_edge_transform_and_lower
    torch.manual_seed(1)
    module = make().eval()
    edge = to_edge_transform_and_lower(
        torch.export.export(module, (torch.randn(shape),)),
        partitioner=[XnnpackPartitioner()])
    path.write_bytes(edge.to_executorch().buffer)


def race(modules, inputs):
    """Least milliseconds of each, interleaved."""
    least = [float("inf")] * len(modules)
    end = time.perf_counter() + SECONDS
    for _ in range(ROUNDS):
        for i, module in enumerate(modules):
            begin = time.perf_counter()
            module.run_method("forward", inputs, False)  # no copy of outputs
            least[i] = min(least[i], time.perf_counter() - begin)
        if time.perf_counter() > end:
            break
    return [1000 * seconds for seconds in least]


def main():
    from executorch.extension.pybindings import portable_lib
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    polyphase, cache = arguments[0], Path(arguments[1])
    cache.mkdir(parents=True, exist_ok=True)
    portable_lib._unsafe_reset_threadpool(1)
    missed = 0
    for name, (make, shape, goal) in CASES.items():
        if not any(fnmatch.fnmatch(name, a) for a in arguments[2:] or ["*"]):
            continue
        paths = [cache / f"{name}.pte", cache / f"{name}.fast.pte"]
        if not paths[0].exists():
            export(make, shape, paths[0])
        subprocess.run([polyphase, "optimize", *options, paths[0], "-o",
                        paths[1]], check=True, stdout=subprocess.DEVNULL)
        modules = [portable_lib._load_for_executorch(str(p)) for p in paths]
        torch.manual_seed(2)
        inputs = (torch.randn(shape),)
        old, new = (m.run_method("forward", inputs)[0].clone()
                    for m in modules)
        error = float((old - new).abs().max() / old.abs().max())
        times = race(modules, inputs)
        gain = times[0] / times[1]
        word = ("WRONG" if not error < 1e-4 else
                "missed" if gain < goal else "reached")
        missed += word != "reached"
        print(f"{word:8} {name:24} {times[0]:8.3f} ms -> {times[1]:8.3f} ms, "
              f"{gain:5.2f} times, goal {goal}, differs by {error:.1e}",
              flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
