#!/usr/bin/env python3
"""Compiles models with stored results to ExecuTorch programs, runs these in the
official runtime on one thread, and compares.

usage: executorch_check.py POLYPHASE MODELS_FOLDER [--compare | --open]
                           [NAME...]

A model is FOLDER/.../NAME.onnx with inputs and outputs in NAME.caseN/. Needs a
Python with executorch, torch and numpy (a virtual environment of its own). With
--compare each program is also timed against one without phases, interleaved.
With --open, lengths that a model leaves open stay so in the program, from half
of the case's on (of a batch, 1 and 2), and it runs at both ends and in between;
what is right is what POLYPHASE says of the model.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from executorch.extension.pybindings import portable_lib

ABSOLUTE, RELATIVE, ROUNDS = 2e-4, 2e-3, 15


def command(*arguments):
    return subprocess.run([str(a) for a in arguments], capture_output=True,
                          text=True)


def read_values(polyphase, model, folder, what):
    """Names and arrays in the model's order; None where a file is missing."""
    done = command(polyphase, "info", model, "--json")
    if done.returncode:
        return None
    told = json.loads(done.stdout)
    case = folder / "case.json"
    names = json.loads(case.read_text())[what + "s"] if case.exists() else {}
    names = {tensor: stem for stem, tensor in names.items()}
    values = []
    for value in told[what + "s"]:
        stem = names.get(value["name"],
                         re.sub(r"[^A-Za-z0-9_]", "_", value["name"]))
        path = folder / f"{'in' if what == 'input' else 'out'}.{stem}.npy"
        if not path.exists():
            return None
        values.append((value["name"], np.load(path)))
    return values


def shape_options(inputs):
    return [f"--shape={i}=" + "x".join(map(str, array.shape))
            for i, (_, array) in enumerate(inputs) if array.ndim]


class Program:
    """A compiled model. The runtime reads the file's bytes while it lives."""

    def __init__(self, polyphase, model, inputs, folder, *options):
        target = Path(folder) / "model.pte"
        done = command(polyphase, "compile", model, "-o", target, *options)
        self.refusal = done.stderr.strip() if done.returncode else None
        if self.refusal:
            return
        self.bytes = target.read_bytes()
        self.module = portable_lib._load_for_executorch_from_buffer(
            self.bytes)
        self.take(inputs)

    def take(self, inputs):
        self.inputs = tuple(torch.from_numpy(np.ascontiguousarray(array))
                            for _, array in inputs)

    def run(self):
        return self.module.run_method("forward", self.inputs)


def find_worst(found, expected):
    worst = 0.0
    for tensor, (_, right) in zip(found, expected):
        array = tensor.numpy()
        if array.shape != right.shape:
            return float("inf")
        room = ABSOLUTE + RELATIVE * np.abs(right)
        worst = max(worst, float((np.abs(array - right) / room).max()))
    return worst


def race(first, second):
    """Least milliseconds of each, interleaved."""
    least = [float("inf")] * 2
    end = time.perf_counter() + 20
    for _ in range(ROUNDS):
        for i, program in enumerate((first, second)):
            begin = time.perf_counter()
            program.run()
            least[i] = min(least[i], time.perf_counter() - begin)
        if time.perf_counter() > end:
            break
    return [1000 * seconds for seconds in least]


def check(polyphase, model, folder, compares):
    """A word and a line about one case."""
    inputs = read_values(polyphase, model, folder, "input")
    outputs = read_values(polyphase, model, folder, "output")
    if inputs is None or outputs is None:
        return "skipped", "it is not read, or its files have other names"
    with tempfile.TemporaryDirectory() as place:
        shapes = shape_options(inputs)
        program = Program(polyphase, model, inputs, place, *shapes)
        if program.refusal:
            return "refused", program.refusal
        worst = find_worst(program.run(), outputs)
        line = f"{worst:.3f} of the tolerance"
        if compares:
            plain = Program(polyphase, model, inputs, place,
                            "--polyphase=never", *shapes)
            mine, theirs = race(program, plain)
            line += (f"; {mine:.2f} ms with phases, {theirs:.2f} without, "
                     f"{theirs / mine:.2f} times")
        return ("same" if worst <= 1 else "WRONG"), line


def find_open(polyphase, model):
    """Per input, the axes whose lengths the model leaves open."""
    told = json.loads(command(polyphase, "info", model, "--json").stdout)
    return [[i for i, length in enumerate(value["shape"]) if length < 0]
            for value in told["inputs"]]


def resize(inputs, axes, lengths):
    """Inputs with other lengths along their open axes: cut, or repeated."""
    made = []
    for (name, array), its_axes in zip(inputs, axes):
        for axis in its_axes:
            array = np.take(array, np.arange(lengths(axis, array.shape[axis])),
                            axis, mode="wrap")
        made.append((name, array))
    return made


def run_model(polyphase, model, inputs, folder):
    files = []
    for i, (_, array) in enumerate(inputs):
        np.save(Path(folder) / f"{i}.npy", array)
        files.append(f"--input={i}={folder}/{i}.npy")
    done = command(polyphase, "run", model, *files, "--output-dir", folder)
    if done.returncode:
        return done.stderr.strip(), None
    told = json.loads(command(polyphase, "info", model, "--json").stdout)
    stems = [re.sub(r"[^A-Za-z0-9_]", "_", value["name"])
             for value in told["outputs"]]
    return None, [(stem, np.load(Path(folder) / f"{stem}.npy"))
                  for stem in stems]


def shrink(axis, length):
    return 1 if axis == 0 else (length + 1) // 2


def check_open(polyphase, model, folder, _):
    """A word and a line about one case with open lengths."""
    inputs = read_values(polyphase, model, folder, "input")
    axes = find_open(polyphase, model) if inputs else [[]]
    if not any(axes):
        return "skipped", "it leaves nothing open, or is not read"
    most = resize(inputs, axes, lambda axis, n: 2 * n if axis == 0 else n)
    ranges = []
    for i, ((_, array), its_axes) in enumerate(zip(most, axes)):
        lengths = [str(n) for n in array.shape]
        for axis in its_axes:
            n = array.shape[axis]
            least = shrink(axis, n)
            lengths[axis] = f"{least}..{n}:{n - least}"
        ranges.append(f"--shape={i}=" + "x".join(lengths))
    sizes = [most, resize(most, axes, shrink)]
    for alone in sorted({axis for its_axes in axes for axis in its_axes}):
        sizes.append(resize(
            most, axes, lambda axis, n: shrink(axis, n) if axis == alone else n))
    worst = ran = 0
    with tempfile.TemporaryDirectory() as place:
        program = Program(polyphase, model, most, place, *ranges)
        if program.refusal:
            return "refused", program.refusal
        for values in sizes + [most]:
            refusal, right = run_model(polyphase, model, values, place)
            if refusal:
                continue
            program.take(values)
            worst = max(worst, find_worst(program.run(), right))
            ran += 1
    return ("same" if ran > 1 and worst <= 1 else "WRONG",
            f"{worst:.3f} of the tolerance in {ran} runs; {' '.join(ranges)}")


def main():
    arguments = [a for a in sys.argv[1:] if a not in ("--compare", "--open")]
    judge = check_open if "--open" in sys.argv else check
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    portable_lib._unsafe_reset_threadpool(1)
    polyphase, root, wanted = arguments[0], Path(arguments[1]), arguments[2:]
    wrong = checked = 0
    for model in sorted(root.rglob("*.onnx")):
        for folder in sorted(model.parent.glob(model.stem + ".case*")):
            if wanted and model.stem not in wanted:
                continue
            word, line = judge(polyphase, model, folder,
                               "--compare" in sys.argv)
            print(f"{word:8} {folder.name}: {line}", flush=True)
            checked += word in ("same", "WRONG")
            wrong += word == "WRONG"
    print(f"{checked - wrong} passed, {wrong} failed")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
