"""One row: every contender verified, then all timed in turns, in one process of
its own, so that an engine that crashes costs its column of that row only."""

import math
import multiprocessing
import os
import time
from dataclasses import dataclass
from pathlib import Path

import rivals
from rivals import CannotRun, Case, Contender, Library

SPOILED = 256.0  # E of another result: not f32 arithmetic, or wrong
PROMISED = {"native.exact": 4.0, "native.high": 4.0}  # E of ours; others:
NORMAL = 24.0
TURN_US, TURN_RUNS = 2000.0, 10  # a turn is runs up to either,
TURN_LEAST = 3  # but so many at least: what is large is not always cold
LEAST_RUNS = 5
SHARE_TURNS = 25  # see measure_share
PREPARING = "the exact result"
BIG_OUTPUT = 1 << 20  # from here on two threads are measured too


@dataclass(frozen=True)
class Settings:
    library: str
    log: str
    threads: int
    cpu: str
    seconds: float  # per contender
    peers: tuple[str, ...]
    algorithms: bool
    two_threads: bool
    patience: float  # seconds that a row may take


def openers(settings: Settings, library: Library, case: Case) -> dict:
    """Functions that make the contenders, by name, ours first."""
    threads, cpu = settings.threads, settings.cpu
    made = {}
    for level in rivals.ACCURACIES:
        made[f"native.{level}"] = lambda level=level: rivals.native(
            case, level, threads, cpu)
    if settings.algorithms:
        for name in library.algorithms():
            made[f"native:{name}"] = lambda name=name: rivals.native(
                case, "normal", threads, cpu, name)
    forms = (("deconvolution", "polyphase") if case.problem.transposed
             else ("convolution",))
    for form in forms:
        made[f"xnnpack.{form}"] = lambda form=form: rivals.xnnpack(
            case, form, threads)
    made["onednn"] = lambda: rivals.onednn(case, threads)
    if settings.peers:
        from peers import PEERS
        for name in settings.peers:
            made[name] = lambda name=name: PEERS[name][1](case, threads)
    return made


def bound(name: str) -> float:
    """The largest E allowed."""
    if not name.startswith("native"):
        return SPOILED
    return PROMISED.get(name, NORMAL)


def open_all(settings: Settings, library: Library, case: Case, banned: dict,
             tell) -> tuple[dict[str, Contender], dict[str, dict]]:
    """Contenders whose result is right, and what is known of each."""
    ready, facts = {}, {}
    for name, make in openers(settings, library, case).items():
        if name in banned:
            facts[name] = {"reason": banned[name]}
            continue
        tell(name)
        try:
            contender = make()
            contender.run()
            e = contender.error()
            facts[name] = {"E": e if math.isfinite(e) else None}
            facts[name] |= contender.describe()
        except CannotRun as error:
            facts[name] = {"reason": str(error)}
            continue
        except Exception as error:  # a peer may fail in any way
            facts[name] = {"reason": f"{type(error).__name__}: {error}"}
            continue
        if e <= bound(name):
            ready[name] = contender
        else:
            facts[name]["reason"] = "another result"
            contender.close()
    return ready, facts


def share_equals(ready: dict, facts: dict) -> dict[str, str]:
    """An accuracy level whose algorithm another's is, is timed once."""
    same, seen = {}, {}
    for level in rivals.ACCURACIES:
        name = f"native.{level}"
        if name in ready:
            key = facts[name]["algorithm"], facts[name]["kernel"]
            if key in seen:
                same[name] = seen[key]
                ready.pop(name).close()
            seen.setdefault(key, name)
    return same


def time_all(ready: dict[str, Contender], seconds: float, tell
             ) -> dict[str, list[float]]:
    """In turns, each until it has had its time; another begins every round."""
    times = {name: [] for name in ready}
    budget = dict.fromkeys(ready, seconds * 1e6)
    order = list(ready)
    while order:
        for name in order:
            tell(name)
            turn = 0.0
            for i in range(TURN_RUNS):
                start = time.perf_counter_ns()
                times[name].append(ready[name].run())
                turn += (time.perf_counter_ns() - start) * 1e-3
                if turn > TURN_US and i + 1 >= TURN_LEAST:
                    break
            budget[name] -= turn
        order = [name for name in order[1:] + order[:1]
                 if budget[name] > 0 or len(times[name]) < LEAST_RUNS]
    return times


def measure_share(contender: Contender, flops: float, peak) -> float:
    """Of the multiply-add peak, measured right before and after every turn: a
    processor's clock moves by a tenth within milliseconds. Both are the best
    of as many spans as long as one run. The median of all turns."""
    span = min(contender.run() for _ in range(3))
    spans = max(1, round(TURN_US / span))
    shares = []
    before = peak(span, spans)
    for _ in range(SHARE_TURNS):
        least = min(contender.run() for _ in range(spans))
        after = peak(span, spans)
        shares.append(flops / least * 1e-3 / ((before + after) / 2))
        before = after
    return sorted(shares)[len(shares) // 2]


def summarize(times: list[float]) -> dict:
    ordered = sorted(times)
    return {"us_min": ordered[0], "us": ordered[len(ordered) // 2],
            "runs": len(ordered)}


def time_two_threads(settings: Settings, case: Case, tell) -> dict | None:
    """Ours with one thread and with two, in turns."""
    if case.problem.output_bytes <= BIG_OUTPUT or not settings.two_threads:
        return None
    try:
        pair = {str(n): rivals.native(case, "normal", n, settings.cpu)
                for n in (1, 2)}
    except CannotRun:
        return None
    times = time_all(pair, settings.seconds, tell)
    for contender in pair.values():
        contender.close()
    return {name: min(values) for name, values in times.items()}


def run_row(settings: Settings, library: Library, descriptor: str,
            banned: dict, tell) -> dict:
    tell(PREPARING)
    case = Case(library, descriptor)
    ready, facts = open_all(settings, library, case, banned, tell)
    same = share_equals(ready, facts)
    times_of = time_all(ready, settings.seconds, tell)
    cpu = settings.cpu.encode()
    if "native.exact" in ready and settings.threads == 1:
        facts["native.exact"]["of_peak"] = measure_share(
            ready["native.exact"], case.problem.flops,
            lambda span, spans: library.sustained(cpu, span, spans))
    for name, times in times_of.items():
        facts[name] |= summarize(ready[name].final_times(times))
        ready[name].close()
    for name, other in same.items():
        facts[name] |= {key: facts[other][key]
                        for key in ("us_min", "us", "runs")}
    row = {"op": descriptor, "threads": settings.threads,
           "peak_gflops": library.peak(cpu, 50),
           "memcpy_us": library.memcpy(case.problem.output_bytes),
           "contenders": facts}
    two = time_two_threads(settings, case, tell)
    if two:
        row["two_threads_us"] = two
    case.close()
    return row


def work(pipe, settings: Settings) -> None:
    """The process that runs rows. What engines print goes to the log."""
    log = os.open(settings.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    library = Library(Path(settings.library))
    while True:
        job = pipe.recv()
        if job is None:
            return
        try:
            row = run_row(settings, library, *job,
                          lambda name: pipe.send(("at", name)))
            pipe.send(("row", row))
        except Exception as error:
            pipe.send(("failed", f"{type(error).__name__}: {error}"))


class Racer:
    """Runs rows in a process of its own, and starts another when it dies."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.process = None

    def start(self) -> None:
        if self.process:
            return
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work,
                                       args=(theirs, self.settings))
        self.process.start()
        theirs.close()

    def stop(self, kill: bool = False) -> None:
        if not self.process:
            return
        if kill:
            self.process.kill()
        else:
            self.pipe.send(None)
        self.process.join()
        self.process = None

    def run(self, descriptor: str, tell) -> dict:
        """The row; whoever crashes or hangs in it is left out of it."""
        banned: dict[str, str] = {}
        fresh = not self.process
        while True:
            self.start()
            self.pipe.send((descriptor, banned))
            at, end = "", time.monotonic() + self.settings.patience
            try:
                while self.pipe.poll(max(0, end - time.monotonic())):
                    kind, value = self.pipe.recv()
                    if kind == "row":
                        return value
                    if kind == "failed":
                        return {"op": descriptor, "reason": value,
                                "contenders": {}}
                    at = value
                    tell(at)
                reason = f"took over {self.settings.patience:g} s"
            except EOFError:
                reason = "crashed"
            self.stop(kill=True)
            if at not in ("", PREPARING):
                banned[at] = reason
            elif fresh:  # else it may be what the row before left behind
                return {"op": descriptor, "reason": reason, "contenders": {}}
            fresh = True
