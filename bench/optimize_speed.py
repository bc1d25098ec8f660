#!/usr/bin/env python3
"""Rewrites programs by `polyphase optimize`, checks that both give the same,
and times both in the official runtime: one thread, one process, in turns.

usage: optimize_speed.py POLYPHASE CACHE_FOLDER [--fixtures=FOLDER]
       [--seconds=S] [--OPTION=...] [NAME...]

Programs are nets that the official exporter writes into CACHE_FOLDER, and those
of FOLDER (with cases.json), as far as they take over 20 us. Times are the least
and, of the gain, the medians' as well; --seconds is for each program. Other
options go to `optimize`. Needs a Python with executorch, torch and numpy.
"""

import sys
from pathlib import Path

from executorch_programs import (LEAST_MS, Official, in_child, list_programs,
                                 median, optimize, race, read_command_line,
                                 runs, worst_error)


def measure(program, fast, seconds):
    """Error, and both lists of milliseconds; None as list of one that dies."""
    new = Official(fast)
    right = new.outputs()
    error = in_child(lambda: worst_error(right, Official(program).outputs()))
    if error is None:
        return 0.0, None, race([new.run], seconds / 4)[0]
    old = Official(program)
    return error, *race([old.run, new.run], seconds)


def judge(program, error, old, new):
    if not error <= program.tolerance:
        return "WRONG"
    if not old:
        return "cured"
    gain = max(old[0] / new[0], median(old) / median(new))
    return "missed" if gain < program.goal else "reached"


def main():
    arguments, options, fixtures, seconds = read_command_line(2.5)
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    polyphase, cache = arguments[0], Path(arguments[1])
    missed = 0
    for program in list_programs(cache, fixtures, arguments[2:]):
        fast = optimize(polyphase, program, cache, options)
        result = in_child(measure, program, fast, seconds)
        if result is None and in_child(runs, program) is False:
            print(f"left     {program.name}: the runtime refuses it, too")
            continue
        if result is None:
            print(f"FAILED   {program.name}", flush=True)
            missed += 1
            continue
        error, old, new = result
        if old and max(old[0], new[0]) < LEAST_MS:
            continue
        word = judge(program, error, old, new)
        missed += word in ("WRONG", "missed")
        before = (f"{old[0]:8.3f} ms -> {new[0]:8.3f} ms, "
                  f"{old[0] / new[0]:5.2f} times "
                  f"(medians {median(old) / median(new):5.2f})" if old
                  else f"crashes  -> {new[0]:8.3f} ms")
        print(f"{word:8} {program.name:24} {before}, goal {program.goal}, "
              f"differs by {error:.1e}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
