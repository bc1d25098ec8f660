#!/usr/bin/env python3
"""Times ExecuTorch programs in our runtime beside the official one, which runs
them as `polyphase optimize` rewrites them: one thread, one process, in turns,
from Python on both sides. Results are compared first.

usage: run_speed.py POLYPHASE MODULE CACHE_FOLDER [--fixtures=FOLDER]
       [--seconds=S] [--steps] [--rewritten] [NAME...]

MODULE is libpolyphase_contest.so (make bench-library). Programs are nets that
the official exporter writes into CACHE_FOLDER, and those of FOLDER (with
cases.json), as far as the official runtime takes over 20 us.
--seconds is for each program; --steps prints what our time consists of;
--rewritten lets ours run the rewritten program, too. Timed are

  official  run_method: inputs handed in, run, outputs not copied
  its part  plan_execute: the run alone, on what lies where inputs were
  ours      pph_session_run through ctypes, of the program as exported

in least milliseconds; `times` is official / ours, `part` is its part / ours,
both of the least and, in brackets, of the medians. Goal: 1.5 in the mean.
"""

import ctypes as c
import math
import sys
from pathlib import Path

import numpy as np

from executorch_programs import (LEAST_MS, Official, in_child, list_programs,
                                 median, optimize, race, read_command_line,
                                 runs, worst_error)

GOAL, TEXT, RANK = 1.5, 512, 8
TYPES = {1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8",
         9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8"}
NUMBERS = {np.dtype(name): number for number, name in TYPES.items()}


class Ours:
    """A program in our runtime, on one thread."""

    def __init__(self, library, program):
        message = c.create_string_buffer(TEXT)
        library.contest_program_open.restype = c.c_void_p
        library.contest_program_output.restype = c.c_void_p
        library.contest_program_run.restype = c.c_bool
        library.contest_program_step.restype = c.c_bool
        library.contest_program_input.restype = c.c_bool
        constants = str(program.constants[0]).encode() \
            if program.constants else None
        self.library = library
        self.handle = c.c_void_p(library.contest_program_open(
            str(program.path).encode(), constants, program.method.encode(),
            message))
        if not self.handle:
            raise RuntimeError(message.value.decode())
        self.inputs = [np.ascontiguousarray(x) if x.ndim else x
                       for x in program.inputs]
        for i, x in enumerate(self.inputs):
            dims = (c.c_int64 * RANK)(*x.shape)
            if not library.contest_program_input(
                    self.handle, i, NUMBERS[x.dtype], dims, x.ndim,
                    c.c_void_p(x.ctypes.data)):
                raise RuntimeError(f"input {i} does not fit")
        self.function = library.contest_program_run

    def run(self):
        if not self.function(self.handle):
            raise RuntimeError("a run failed")

    def outputs(self):
        self.run()
        found = []
        kind, rank, dims = c.c_int(), c.c_int(), (c.c_int64 * RANK)()
        while data := self.library.contest_program_output(
                self.handle, len(found), c.byref(kind), dims, c.byref(rank)):
            dtype = np.dtype(TYPES[kind.value])
            shape = dims[:rank.value]
            raw = c.string_at(data, math.prod(shape) * dtype.itemsize)
            found.append(np.frombuffer(raw, dtype).reshape(shape)
                         .astype(np.float64))
        return found

    def steps(self):
        """Kinds and microseconds of a run's steps."""
        us, text, found = c.c_double(), c.create_string_buffer(TEXT), []
        while self.library.contest_program_step(
                self.handle, len(found), c.byref(us), text):
            found.append((us.value, text.value.decode()))
        return found


def measure(library, program, fast, seconds, rewritten):
    ours = Ours(library, fast if rewritten else program)
    official = Official(fast)
    error = worst_error(ours.outputs(), official.outputs())
    times = race([official.run, official.find_part(), ours.run], seconds)
    least = None
    for _ in range(10):
        ours.run()
        steps = ours.steps()
        least = steps if least is None else [min(p) for p in zip(least, steps)]
    return error, times, least


def mean_of(gains):
    return math.exp(sum(map(math.log, gains)) / len(gains))


def print_row(program, error, times):
    """The row; its four gains."""
    run, part, ours = times
    gains = [run[0] / ours[0], median(run) / median(ours),
             part[0] / ours[0], median(part) / median(ours)]
    word = "WRONG" if not error <= program.tolerance else ""
    print(f"{program.name:26} {run[0]:9.3f} {part[0]:9.3f} {ours[0]:9.3f}  "
          f"times {gains[0]:6.2f} ({gains[1]:6.2f})  "
          f"part {gains[2]:6.2f} ({gains[3]:6.2f})  {error:.0e} {word}",
          flush=True)
    return gains


def main():
    arguments, flags, fixtures, seconds = read_command_line(1.0)
    if len(arguments) < 3 or set(flags) - {"--steps", "--rewritten"}:
        raise SystemExit(__doc__)
    polyphase, cache = arguments[0], Path(arguments[2])
    library = c.CDLL(str(Path(arguments[1]).resolve()))
    gains, bad = [], 0
    print(f"{'least ms':26} {'official':>9} {'its part':>9} {'ours':>9}")
    for program in list_programs(cache, fixtures, arguments[3:]):
        fast = optimize(polyphase, program, cache, [])
        if in_child(runs, fast) is False:
            print(f"{program.name:26} the official runtime refuses it")
            continue
        result = in_child(measure, library, program, fast, seconds,
                          "--rewritten" in flags)
        if result is None:
            print(f"{program.name:26} FAILED", flush=True)
            bad += 1
            continue
        error, times, steps = result
        if times[0][0] < LEAST_MS:
            continue
        gains.append(print_row(program, error, times))
        bad += not error <= program.tolerance
        for us, text in steps if "--steps" in flags else []:
            print(f"    {us:10.1f} us  {text}")
    if not gains:
        raise SystemExit("no program took that long")
    means = [mean_of(column) for column in zip(*gains)]
    print(f"{len(gains)} programs, geometric means: times {means[0]:.2f} "
          f"({means[1]:.2f}), part {means[2]:.2f} ({means[3]:.2f})")
    return 1 if bad or means[0] < GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
