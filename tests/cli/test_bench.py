"""The benchmark's own arithmetic: descriptors, the one-node model, the goals
and the table, on rows made up here. usage: test_bench.py COMMAND SOURCE_FOLDER"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

COMMAND, SOURCE = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, str(SOURCE / "bench"))
sys.dont_write_bytecode = True

import race  # noqa: E402
from goals import GOALS, Result, judge  # noqa: E402
from onnx_node import make_model  # noqa: E402
from shapes import Row, load_lists, parse_problem  # noqa: E402
from tables import document  # noqa: E402

DENSE = "f32 n1 g1 ci64 co32 i64x64 k4x4 s2x2 d1x1 p1,1,1,1"
DEPTHWISE = "f32 n1 g64 ci64 co64 i256x256 k4x4 s2x2 d1x1 p1,1,1,1"
SHORT = "f32 n1 g1 ci128 co64 i1x2 k1x4 s1x2 d1x1 p0,0,0,0"


def made_up(op: str, high: float, normal: float, peers: dict) -> Result:
    def ours(us: float, algorithm: str) -> dict:
        return {"us_min": us, "algorithm": algorithm, "workspace_bytes": 4096}
    contenders = {"native.exact": ours(2 * high, "gather"),
                  "native.high": ours(high, "small"),
                  "native.normal": ours(normal, "large"),
                  **{name: {"us_min": us} for name, us in peers.items()},
                  "ncnn": {"reason": "it | failed"}}
    return Result({"op": op, "threads": 1, "peak_gflops": 100.0,
                   "memcpy_us": 10.0, "contenders": contenders,
                   "two_threads_us": {"1": 20.0, "2": 10.0}})


def verdict(name: str, *results: Result):
    goal = next(goal for goal in GOALS if goal.name.startswith(name))
    return judge(goal, list(results))


class Bench(unittest.TestCase):
    def test_problem(self):
        p = parse_problem(
            "f32 n1 g1 ci4 co2 i5x7 k3x3 s2x3 d1x1 p1,0,1,2 op1x2")
        self.assertEqual(p.output, (10, 21))
        self.assertEqual(p.flops, 2 * 5 * 7 * 9 * 4 * 2)
        self.assertEqual(p.phase_taps, 2)
        p = parse_problem("conv f32 n2 g2 ci4 co6 i9x9 k3x3 s2x2 d2x2 p1,1,1,1")
        self.assertEqual(p.output, (4, 4))
        self.assertEqual(p.weight_shape, [6, 2, 3, 3])
        self.assertRaises(ValueError, parse_problem, "f32 n1")

    def test_lists(self):
        self.assertGreater(len(load_lists([])), 100)
        self.assertEqual({r.list_name for r in load_lists(["dac"])}, {"dac"})

    def test_model(self):
        p = parse_problem(
            "f32 n1 g2 ci4 co6 i5x5 k3x2 s2x2 d1x1 p1,0,1,0 op1x0")
        model = make_model(p, bytes(4 * 4 * 3 * 6), bytes(4 * 6))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "one.onnx")
            path.write_bytes(model)
            done = subprocess.run([COMMAND, "info", "--json", str(path)],
                                  capture_output=True, check=True)
        info = json.loads(done.stdout)
        self.assertEqual(info["outputs"][0]["shape"], p.output_shape)

    def test_goals(self):
        good = made_up(DENSE, 10, 8, {"onednn": 20, "xnnpack.polyphase": 30})
        self.assertEqual(good.fastest_peer(), "onednn")
        self.assertAlmostEqual(good.share("native.high"), 268.435456)
        bad = made_up(DENSE, 10, 8, {"onednn": 9})
        found = verdict("dense 2-D k4", good)
        self.assertTrue(found.holds)
        self.assertAlmostEqual(found.mean, 2.0)
        found = verdict("dense 2-D k4", good, bad)
        self.assertFalse(found.holds)
        self.assertEqual((found.missed, found.worst), (1, 0.9))
        self.assertAlmostEqual(verdict("dense, normal", good).mean, 1.25)
        wide = made_up(DEPTHWISE, 30, 30, {"onednn": 90})
        self.assertEqual(verdict("depthwise, outputs", wide).worst, 3.0)
        self.assertFalse(verdict("depthwise, outputs", wide).holds)
        short = made_up(SHORT, 10, 10, {"onednn": 9.6})
        self.assertTrue(verdict("short", short).holds)
        self.assertIsNone(verdict("dense 2-D k4", short))

    def race(self, bad, patience: float = 20.0) -> dict:
        """A row in which the engine "bad" does that."""
        def run_row(settings, library, op, banned, tell):
            for name in ("good", "bad"):
                tell(name)
                if name == "bad" and name not in banned:
                    bad()
            return {"op": op, "contenders": {"bad": {"reason": banned["bad"]}}}
        race.Library, race.run_row = lambda path: None, run_row
        racer = race.Racer(race.Settings("", os.devnull, 1, "best", 0.1, (),
                                         False, False, patience))
        try:
            return racer.run(DENSE, lambda at: None)
        finally:
            racer.stop(kill=True)

    def test_crash(self):
        row = self.race(lambda: os.kill(os.getpid(), signal.SIGKILL))
        self.assertEqual(row["contenders"]["bad"]["reason"], "crashed")

    def test_hang(self):
        row = self.race(lambda: time.sleep(60), patience=0.5)
        self.assertEqual(row["contenders"]["bad"]["reason"], "took over 0.5 s")

    def test_document(self):
        head = {"command": "bench/run.py", "date": "2026-01-01", "machine": "m",
                "threads": 1, "cpu": "avx2", "wide": False,
                "versions": {"ncnn": "1"}}
        rows = [(Row("one", "first", DENSE),
                 made_up(DENSE, 10, 8, {"onednn": 20})),
                (Row("one", "", SHORT), Result(
                    {"op": SHORT, "reason": "crashed", "contenders": {}}))]
        text = document(head, rows)
        self.assertIn("| first | 20.0 | 10.0 | 8.0 | 20.0 | oneDNN |", text)
        self.assertIn("| ncnn | it / failed | 1 |  |", text)
        self.assertIn("| the row | crashed | 1 |  |", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
