#!/usr/bin/env python3
"""Times problems: our operators at every accuracy level, XNNPACK, oneDNN and,
with --peers, the engines from PyPI. Saves what is measured row by row, and a
table with the goals. bench/README.md tells what is timed and how."""

import argparse
import json
import os
import platform
import shlex
import sys
import time
from datetime import date
from pathlib import Path

import peers_env
from goals import Result
from race import Racer, Settings
from shapes import FOLDER, Row, load_lists
from tables import document

TREE = Path(__file__).resolve().parent.parent


def parse_arguments() -> argparse.Namespace:
    known = " ".join(sorted(p.stem for p in FOLDER.glob("*.txt")))
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"lists: {known}",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("lists", nargs="*", help="names or files; none: all")
    add("--op", action="append", default=[], metavar="DESCRIPTOR",
        help="a problem beside the named lists; may be repeated")
    add("--peers", action="store_true", help="the engines from PyPI too")
    add("--peers-dir", type=Path, default=peers_env.default_folder(),
        help="their virtual environment, made where missing")
    add("--only", default="", metavar="A,B",
        help="of these engines only: onnxruntime,openvino,ncnn,mnn")
    add("--threads", type=int, default=1)
    add("--cpu", default="best", help="best, avx512, avx2, neon or scalar")
    add("--seconds", type=float, default=0.3, help="for each contender")
    add("--algorithms", action="store_true",
        help="also every algorithm by itself, to judge the cost model")
    add("--no-two-threads", action="store_true",
        help="do not measure ours with two threads beside one")
    add("--patience", type=float, default=120.0,
        help="seconds that a row may take before who hangs is left out")
    add("--build", type=Path, default=TREE / "build" / "release",
        help="where libpolyphase_contest.so was built")
    add("-o", "--output", type=Path, default=TREE / "out" / "bench",
        help="folder of NAME.jsonl (rows) and NAME.md (the table)")
    add("--name", default="", help="of the files; default: bench or peers")
    add("--continue", dest="resume", action="store_true",
        help="keep the rows that NAME.jsonl has, measure the others")
    add("--table", action="store_true",
        help="measure nothing: make the table of NAME.jsonl again")
    arguments = parser.parse_args()
    arguments.name = arguments.name or ("peers" if arguments.peers
                                        else "bench")
    return arguments


def machine_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def library_path(arguments: argparse.Namespace) -> Path:
    return arguments.build / "bench" / "libpolyphase_contest.so"


def make_head(arguments: argparse.Namespace) -> dict:
    from rivals import Library
    library = Library(library_path(arguments))
    cpu = library.cpu(arguments.cpu.encode())
    if cpu is None:
        raise SystemExit(f"unknown level {arguments.cpu}")
    versions = {}
    if arguments.peers:
        from peers import versions as find_versions
        versions = find_versions()
    words = [shlex.quote(word) for word in sys.argv[1:]]
    wide = (cpu == b"avx512" and
            library.peak(cpu, 50) > 1.5 * library.peak(b"avx2", 50))
    return {"head": True, "machine": machine_name(), "cpu": cpu.decode(),
            "wide": wide, "threads": arguments.threads, "date": date.today().isoformat(),
            "command": " ".join(["bench/run.py", *words]),
            "versions": versions}


def make_settings(arguments: argparse.Namespace) -> Settings:
    names: tuple[str, ...] = ()
    if arguments.peers:
        from peers import PEERS
        chosen = arguments.only.split(",") if arguments.only else list(PEERS)
        unknown = [name for name in chosen if name not in PEERS]
        if unknown:
            raise SystemExit(f"unknown peers: {' '.join(unknown)}")
        names = tuple(chosen)
    return Settings(
        library=str(library_path(arguments)),
        log=str(arguments.output / f"{arguments.name}.log"),
        threads=arguments.threads, cpu=arguments.cpu,
        seconds=arguments.seconds, peers=names,
        algorithms=arguments.algorithms,
        two_threads=not arguments.no_two_threads and
        arguments.threads == 1 and (os.cpu_count() or 1) > 1,
        patience=arguments.patience)


class Progress:
    """A line on stderr: rewritten on a terminal, one per row elsewhere."""

    def __init__(self, total: int):
        self.total, self.done, self.start = total, 0, time.monotonic()
        self.live = sys.stderr.isatty()

    def show(self, op: str, at: str) -> None:
        if self.live:
            text = f"[{self.done + 1}/{self.total}] {op}: {at}"
            print(f"\r\x1b[K{text[:110]}", end="", file=sys.stderr, flush=True)

    def finish(self, result: Result) -> None:
        self.done += 1
        spent = time.monotonic() - self.start
        left = spent / self.done * (self.total - self.done)
        fastest, gain = result.fastest_peer(), result.gain("native.high")
        told = result.reason or "nothing to compare"
        if fastest and gain:
            told = f"high is {gain:.2f} x {fastest}"
        print(f"{chr(13) + chr(27) + '[K' if self.live else ''}"
              f"[{self.done}/{self.total}] {result.op}: {told}"
              f" ({left / 60:.1f} min left)", file=sys.stderr, flush=True)


def read_rows(path: Path) -> tuple[dict | None, dict[str, dict]]:
    """A line that was cut short by an interruption is dropped."""
    head, rows = None, {}
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if entry.get("head"):
            head = entry
        else:
            rows[entry["op"]] = entry
    return head, rows


def append(path: Path, entry: dict) -> None:
    with path.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def measure(arguments: argparse.Namespace, wanted: list[Row], path: Path
            ) -> None:
    _, known = read_rows(path) if arguments.resume else (None, {})
    if not arguments.resume:
        path.unlink(missing_ok=True)
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)  # read at load
    append(path, make_head(arguments))
    todo = [op for op in dict.fromkeys(row.descriptor for row in wanted)
            if op not in known]
    progress = Progress(len(todo))
    racer = Racer(make_settings(arguments))
    try:
        for op in todo:
            row = racer.run(op, lambda at: progress.show(op, at))
            append(path, row)
            progress.finish(Result(row))
    finally:
        racer.stop(kill=True)


def main() -> int:
    arguments = parse_arguments()
    path = arguments.output / f"{arguments.name}.jsonl"
    if not arguments.table:
        if not library_path(arguments).is_file():
            raise SystemExit(f"{library_path(arguments)} is not built; "
                             "make bench builds it")
        if arguments.peers:
            peers_env.enter(arguments.peers_dir)
    arguments.output.mkdir(parents=True, exist_ok=True)
    wanted = [Row("given", "", " ".join(op.split())) for op in arguments.op]
    if arguments.lists or not wanted:
        wanted += load_lists(arguments.lists)
    if not arguments.table:
        try:
            measure(arguments, wanted, path)
        except KeyboardInterrupt:
            print("interrupted; --continue goes on", file=sys.stderr)
    head, rows = read_rows(path)
    if not head or not rows:
        raise SystemExit(f"{path} has no rows")
    text = document(head, [
        (row, Result(rows[row.descriptor], head["wide"]))
        for row in wanted if row.descriptor in rows])
    table = path.with_suffix(".md")
    table.write_text(text)
    print(text)
    print(f"saved {table}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
