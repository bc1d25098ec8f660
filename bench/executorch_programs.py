"""Programs to time in ExecuTorch's runtime: nets that upsample, exported by the
official exporter, and fixtures with stored results. Needs executorch, torch and
numpy; used by optimize_speed.py and run_speed.py."""

import fnmatch
import json
import multiprocessing
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from executorch.extension.pybindings import portable_lib
from torch import nn


LEAST_MS = 0.02  # what takes less is not compared
TURN_MS, TURN_RUNS, TURN_LEAST = 2, 10, 3


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


@dataclass
class Program:
    name: str
    path: Path
    inputs: list[np.ndarray]
    constants: list[Path] = field(default_factory=list)
    method: str = "forward"
    goal: float = 0.97  # how many times as fast `optimize` must make it
    tolerance: float = 1e-4


def make_net(name: str, cache: Path) -> Program:
    make, shape, goal = CASES[name]
    path = cache / f"{name}.pte"
    if not path.exists():
        export(make, shape, path)
    torch.manual_seed(2)
    return Program(name, path, [torch.randn(shape).numpy()], goal=goal)


def read_fixture(folder: Path, case: dict) -> Program | None:
    """The first call of a stored program; None where Python cannot run it."""
    files = [folder / name for name in case["files"]]
    constants = [path for path in files if path.suffix == ".ptd"]
    if files[0].suffix != ".pte" or len(constants) > 1:
        return None
    step = case["steps"][0]
    return Program(case["name"], files[0],
                   [np.load(folder / name) for name in step["in"]], constants,
                   step["method"], tolerance=max(case["tolerance"], 1e-4))


def read_command_line(seconds: float):
    """What is no option; other options; --fixtures; --seconds."""
    arguments, options, fixtures = [], [], None
    for argument in sys.argv[1:]:
        if argument.startswith("--fixtures="):
            fixtures = Path(argument.partition("=")[2])
        elif argument.startswith("--seconds="):
            seconds = float(argument.partition("=")[2])
        else:
            (options if argument.startswith("--") else
             arguments).append(argument)
    return arguments, options, fixtures, seconds


def median(times):
    """Of sorted times."""
    return times[len(times) // 2]


def list_programs(cache: Path, fixtures: Path | None, names: list[str]):
    """The nets, then the fixtures, whose names fit."""
    cache.mkdir(parents=True, exist_ok=True)

    def fits(name):
        return any(fnmatch.fnmatch(name, pattern) for pattern in names or "*")

    for name in filter(fits, CASES):
        yield make_net(name, cache)
    cases = (json.loads((fixtures / "cases.json").read_text())
             if fixtures else [])
    for case in cases:
        program = (read_fixture(fixtures, case) if fits(case["name"])
                   else None)
        if program:
            yield program


def optimize(polyphase: str, program: Program, cache: Path,
             options: list[str]) -> Program:
    """The program rewritten, its files in the cache."""
    path = cache / f"{program.name}.fast.pte"
    arguments, constants = [], []
    for old in program.constants:
        constants.append(cache / f"{old.stem}.fast.ptd")
        arguments += ["--constants", old, "--constants-out", constants[-1]]
    subprocess.run([polyphase, "optimize", *options, program.path, "-o", path,
                    *arguments], check=True, stdout=subprocess.DEVNULL)
    return Program(program.name, path, program.inputs, constants,
                   program.method)


class Official:
    """A program in the official runtime, on one thread."""

    def __init__(self, program: Program):
        portable_lib._unsafe_reset_threadpool(1)
        paths = [str(path) for path in [program.path, *program.constants]]
        self.module = portable_lib._load_for_executorch(*paths)
        self.method = program.method
        # What is not an array of the program's type is a number.
        self.inputs = tuple(torch.from_numpy(array) if array.ndim
                            else array.item() for array in program.inputs)

    def run(self):
        """Input in, run; outputs are not copied."""
        return self.module.run_method(self.method, self.inputs, False)

    def find_part(self):
        """What runs without handing inputs in: on what lies where they were,
        which is not good for indices."""
        def execute():
            return self.module.plan_execute(self.method, False)
        try:
            self.run()
            execute()
            execute()
        except RuntimeError:
            return self.run
        return execute

    def outputs(self) -> list[np.ndarray]:
        return [np.array(value.float() if isinstance(value, torch.Tensor)
                         else value, np.float64) for value in self.run()]


def runs(program: Program) -> bool:
    """False: refused by the runtime."""
    try:
        Official(program).run()
    except RuntimeError:
        return False
    return True


def worst_error(found, right) -> float:
    """The largest difference in units of the largest number."""
    if len(found) != len(right):
        return float("inf")
    worst = 0.0
    for a, b in zip(found, right):
        if a.shape != b.shape or not np.isfinite(a).all():
            return float("inf")
        if a.size:
            worst = max(worst, float(np.abs(a - b).max() /
                                     max(1e-30, np.abs(b).max())))
    return worst


def race(runs, seconds: float) -> list[list[float]]:
    """Sorted milliseconds of each, in turns, another first in every round. A
    turn is three runs or more: what is large is not always cold."""
    times = [[] for _ in runs]
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        for k in range(len(runs)):
            i = (k + rounds) % len(runs)
            turn = 0.0
            for run in range(TURN_RUNS):
                begin = time.perf_counter_ns()
                runs[i]()
                times[i].append(1e-6 * (time.perf_counter_ns() - begin))
                turn += times[i][-1]
                if run + 1 >= TURN_LEAST and turn > TURN_MS:
                    break
        rounds += 1
    return [sorted(one) for one in times]


def in_child(function, *arguments):
    """What the function gives in a process of its own; None if that died. (As
    exported, some programs crash the runtime.)"""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(False)
    child = context.Process(target=lambda: there.send(function(*arguments)))
    child.start()
    there.close()
    try:
        answer = here.recv()
    except EOFError:
        answer = None
    child.join()
    return answer
