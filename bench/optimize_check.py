#!/usr/bin/env python3
"""Rewrites ExecuTorch programs with stored results by `polyphase optimize`, runs
what comes out in the official runtime, and compares.

usage: optimize_check.py POLYPHASE CASES_FOLDER [--polyphase=WHEN] [NAME...]

CASES_FOLDER has cases.json, as ../shared/pte/real. Every program runs in a
process of its own, from its path (so that constants that are freed too early
are not there any more). Needs a Python with executorch, torch and numpy.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def optimize(polyphase, folder, case, target, options):
    """The rewritten files, in the case's order; None where refused."""
    made, arguments = [], []
    for name in case["files"]:
        if not name.endswith((".pte", ".ptd")):
            continue
        made.append(target / name)
        if name.endswith(".ptd"):
            arguments += ["--constants", folder / name,
                          "--constants-out", made[-1]]
    done = subprocess.run(
        [str(a) for a in [polyphase, "optimize", folder / case["files"][0],
                          "-o", made[0], *arguments, *options]],
        capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return made, done.stdout


def worst_of(found, right, tolerance):
    if found.shape != right.shape:
        return float("inf")
    if not found.size:
        return 0.0
    found, right = found.astype(np.float64), right.astype(np.float64)
    if not np.isfinite(found).all():
        return float("inf")
    room = max(tolerance, 1e-6) * np.maximum(1, np.abs(right))
    return float((np.abs(found - right) / room).max())


def run_case(folder, case, files):
    """The child's part: prints the worst element in units of the tolerance."""
    import torch
    from executorch.extension.pybindings import portable_lib
    portable_lib._unsafe_reset_threadpool(1)
    module = (portable_lib._load_for_executorch(files[0], files[1])
              if len(files) > 1
              else portable_lib._load_for_executorch(files[0]))
    worst = 0.0
    for step in case["steps"]:
        inputs = [torch.from_numpy(np.load(folder / name))
                  for name in step["in"]]
        outputs = module.run_method(step["method"], tuple(inputs))
        for value, name in zip(outputs, step["out"]):
            array = (value.float().numpy() if isinstance(value, torch.Tensor)
                     else np.array(value))
            worst = max(worst, worst_of(array, np.load(folder / name),
                                        case["tolerance"]))
    print(worst)


def run(folder, case, files):
    return subprocess.run(
        [sys.executable, __file__, "--case", str(folder), case["name"],
         *map(str, files)], capture_output=True, text=True)


def check(polyphase, folder, case, options):
    if not case["files"][0].endswith((".pte", ".bpte")):
        return "skipped", "no program"
    if sum(name.endswith(".ptd") for name in case["files"]) > 1:
        return "skipped", "the Python runtime takes one .ptd"
    with tempfile.TemporaryDirectory() as place:
        try:
            files, told = optimize(polyphase, folder, case, Path(place),
                                   options)
        except RuntimeError as refusal:
            return "REFUSED", str(refusal)
        done = run(folder, case, files)
        if done.returncode == 1:
            before = run(folder, case, [folder / name for name in case["files"]
                                        if name.endswith((".pte", ".ptd"))])
            if before.returncode == 1:
                return "skipped", "the runtime refuses it as exported, too"
        if done.returncode:
            return "FAILED", f"exit {done.returncode} {done.stderr[-300:]}"
        worst = float(done.stdout.split()[-1])
        changes = told.strip().splitlines()[-1]
        return ("same" if worst <= 1 else "WRONG",
                f"{worst:.3f} of the tolerance; {changes}")


def main():
    if sys.argv[1:2] == ["--case"]:
        folder = Path(sys.argv[2])
        cases = json.loads((folder / "cases.json").read_text())
        case = next(c for c in cases if c["name"] == sys.argv[3])
        return run_case(folder, case, sys.argv[4:])
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    if len(arguments) < 2:
        raise SystemExit(__doc__)
    polyphase, folder, wanted = (arguments[0], Path(arguments[1]),
                                 arguments[2:])
    bad = count = 0
    for case in json.loads((folder / "cases.json").read_text()):
        if wanted and case["name"] not in wanted:
            continue
        word, line = check(polyphase, folder, case, options)
        print(f"{word:8} {case['name']}: {line}", flush=True)
        count += word != "skipped"
        bad += word not in ("same", "skipped")
    print(f"{count - bad} passed, {bad} failed")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
