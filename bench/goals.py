"""The goals of speed, each over the rows it speaks of."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from shapes import Problem, parse_problem


class Result:
    """A measured row. `wide`: the multiply-add units are 512 bits wide."""

    def __init__(self, row: dict, wide: bool = False):
        self.wide = wide
        self.op: str = row["op"]
        self.problem: Problem = parse_problem(self.op)
        self.contenders: dict[str, dict] = row["contenders"]
        self.reason: str = row.get("reason", "")
        self.threads: int = row.get("threads", 1)
        self.peak: float = row.get("peak_gflops", 0) * self.threads
        self.memcpy_us: float = row.get("memcpy_us", 0)
        self.two: dict | None = row.get("two_threads_us")

    def us(self, name: str) -> float | None:
        return self.contenders.get(name, {}).get("us_min")

    def peers(self) -> list[str]:
        return [n for n in self.contenders if not n.startswith("native")]

    def xnnpack(self) -> float | None:
        times = [self.us(n) for n in self.peers() if n.startswith("xnnpack")]
        return min((t for t in times if t), default=None)

    def fastest_peer(self) -> str | None:
        return min((n for n in self.peers() if self.us(n)), key=self.us,
                   default=None)

    def gain(self, name: str, over: str | float | None = "fastest"
             ) -> float | None:
        """How many times as fast as a peer (or microseconds) ours is."""
        if over == "fastest":
            over = self.fastest_peer()
        theirs = self.us(over) if isinstance(over, str) else over
        ours = self.us(name)
        return theirs / ours if ours and theirs else None

    def share(self, name: str) -> float | None:
        """Of the multiply-add peak, by the useful operations."""
        if "of_peak" in self.contenders.get(name, {}):
            return self.contenders[name]["of_peak"]
        us = self.us(name)
        if not us or not self.peak:
            return None
        return self.problem.flops / us * 1e-3 / self.peak

    def workspace(self) -> int | None:
        sizes = [facts["workspace_bytes"] for facts in self.contenders.values()
                 if "workspace_bytes" in facts]
        return max(sizes) // self.threads if sizes else None


def mean(values: list[float]) -> float:
    """Geometric."""
    return math.exp(sum(map(math.log, values)) / len(values))


@dataclass(frozen=True)
class Goal:
    name: str
    about: Callable[[Problem], bool]
    figure: Callable[[Result], float | None]
    mean: float | None = None   # at least, the geometric mean
    least: float | None = None  # at least, every row
    most: float | None = None   # at most, every row


def is_dense(p: Problem) -> bool:
    return (p.transposed and p.group == 1 and p.ci >= 32 and
            p.co * max(p.stride) >= 32 and p.co > 4 and not p.short)


def is_deep(p: Problem) -> bool:
    return is_dense(p) and p.ci * p.phase_taps >= 256


def is_k2s(p: Problem) -> bool:
    return p.one_dimensional and p.kernel[1] == 2 * p.stride[1]


def is_square(kernel: int) -> Callable[[Problem], bool]:
    return lambda p: (p.kernel == (kernel, kernel) and p.stride == (2, 2))


def is_conv3x3(p: Problem) -> bool:
    return (not p.transposed and p.group == 1 and p.kernel == (3, 3) and
            p.stride == (1, 1) and p.dilation == (1, 1) and
            min(p.ci, p.co) >= 32 and not p.short)


def is_depthwise(p: Problem) -> bool:
    return p.transposed and p.depthwise and not p.short


def normal_over_high(row: Result) -> float | None:
    """Where the levels take different algorithms."""
    names = [row.contenders.get(f"native.{level}", {}).get("algorithm")
             for level in ("high", "normal")]
    if None in names or names[0] == names[1]:
        return None
    return row.gain("native.normal", row.us("native.high"))


def over_memcpy(row: Result) -> float | None:
    us = row.us("native.normal")
    return us / row.memcpy_us if us and row.memcpy_us else None


def scaling(row: Result) -> float | None:
    return row.two["1"] / row.two["2"] if row.two else None


def workspace(row: Result) -> float | None:
    size = row.workspace()
    return None if size is None else size / (1 << 20)


HIGH = "native.high"
NORMAL = "native.normal"

GOALS = (
    Goal("dense 2-D k4 s2, high, over the fastest peer",
         lambda p: is_dense(p) and is_square(4)(p),
         lambda r: r.gain(HIGH), 1.6, 0.97),
    Goal("dense 1-D k = 2s, high, over the fastest peer",
         lambda p: is_dense(p) and is_k2s(p),
         lambda r: r.gain(HIGH), 1.3, 0.97),
    Goal("dense k3 s2 and k2 s2, high, over the fastest peer",
         lambda p: is_dense(p) and (is_square(3)(p) or is_square(2)(p)),
         lambda r: r.gain(HIGH), 1.1, 0.97),
    Goal("dense, normal over high where they differ", is_dense,
         normal_over_high, 1.1),
    Goal("exact, Cin x taps >= 256, share of the peak (units of 256 bits)",
         is_deep, lambda r: None if r.wide else r.share("native.exact"),
         None, 0.90),
    Goal("exact, Cin x taps >= 256, share of the peak (units of 512 bits)",
         is_deep, lambda r: r.share("native.exact") if r.wide else None,
         None, 0.85),
    Goal("3x3 convolutions, high, over XNNPACK", is_conv3x3,
         lambda r: r.gain(HIGH, r.xnnpack()), 1.5),
    Goal("3x3 convolutions, normal, over XNNPACK", is_conv3x3,
         lambda r: r.gain(NORMAL, r.xnnpack()), 2.2),
    Goal("3x3 convolutions, normal, over ncnn", is_conv3x3,
         lambda r: r.gain(NORMAL, "ncnn"), 1.0),
    Goal("1 to 4 output channels, normal, over the fastest peer",
         lambda p: p.transposed and p.group == 1 and p.co <= 4 and
         not p.short,
         lambda r: r.gain(NORMAL), 1.2),
    Goal("depthwise, normal, over the fastest peer", is_depthwise,
         lambda r: r.gain(NORMAL), 3.0, 1.5),
    Goal("depthwise, outputs over 8 MiB, times a memcpy",
         lambda p: is_depthwise(p) and p.output_bytes > 8 << 20,
         over_memcpy, most=1.2),
    Goal("short inputs, normal, over the fastest peer",
         lambda p: p.short, lambda r: r.gain(NORMAL), None, 0.95),
    Goal("two threads over one, outputs over 1 MiB",
         lambda p: p.output_bytes > 1 << 20, scaling, 1.7),
    Goal("workspace of a thread, MiB", lambda p: True, workspace, most=1.0),
)


@dataclass(frozen=True)
class Verdict:
    goal: Goal
    rows: int
    mean: float
    worst: float
    worst_op: str
    missed: int  # rows beyond a bound on every row
    holds: bool


def judge(goal: Goal, results: list[Result]) -> Verdict | None:
    """None when no row has the figure."""
    figures = [(figure, row.op) for row in results if goal.about(row.problem)
               and (figure := goal.figure(row)) is not None]
    if not figures:
        return None
    values = [figure for figure, _ in figures]
    worst, worst_op = (max if goal.most else min)(figures)
    average = mean([max(v, 1e-9) for v in values])
    missed = sum((goal.least is not None and v < goal.least) or
                 (goal.most is not None and v > goal.most) for v in values)
    holds = not missed and (goal.mean is None or average >= goal.mean)
    return Verdict(goal, len(values), average, worst, worst_op, missed, holds)
