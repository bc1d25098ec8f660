"""Measured rows as Markdown."""

from goals import GOALS, Result, judge, mean
from shapes import Row

LEVELS = ("exact", "high", "normal")
SHORT = {"xnnpack.deconvolution": "XNNPACK deconv.",
         "xnnpack.polyphase": "XNNPACK polyphase",
         "xnnpack.convolution": "XNNPACK", "onednn": "oneDNN",
         "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO",
         "ncnn": "ncnn", "mnn": "MNN"}


def table(heads: list[str], rows: list[list[str]], aligns: str) -> str:
    if not rows:
        return "None.\n"
    marks = ["---:" if a == "r" else "---" for a in aligns]
    lines = [heads, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def time_text(us: float | None) -> str:
    return "" if us is None else f"{us:.0f}" if us >= 100 else f"{us:.1f}"


def percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def label(row: Row, result: Result) -> str:
    p = result.problem
    if row.label:
        return row.label
    return f"{p.ci}->{p.co} {p.input[0]}x{p.input[1]}"


def bounds_text(goal) -> str:
    parts = []
    if goal.mean is not None:
        parts.append(f"mean >= {goal.mean:g}")
    if goal.least is not None:
        parts.append(f"each >= {goal.least:g}")
    if goal.most is not None:
        parts.append(f"each <= {goal.most:g}")
    return ", ".join(parts)


def goals_table(results: list[Result]) -> str:
    rows = []
    for goal in GOALS:
        verdict = judge(goal, results)
        if not verdict:
            rows.append([goal.name, bounds_text(goal), "0", "", "", "",
                         "not measured"])
            continue
        holds = "yes" if verdict.holds else "**no**"
        if verdict.missed:
            holds += f" ({verdict.missed} rows)"
        rows.append([goal.name, bounds_text(goal), str(verdict.rows),
                     ratio(verdict.mean), ratio(verdict.worst),
                     f"`{verdict.worst_op}`", holds])
    return table(["goal", "wanted", "rows", "mean", "worst", "the worst row",
                  "holds"], rows, "llrrrll")


def columns(results: list[Result]) -> list[str]:
    """Peers that gave a time anywhere, in the usual order."""
    return [name for name in SHORT
            if any(result.us(name) for result in results)]


def algorithms(result: Result) -> str:
    """Of the three levels; once where they agree."""
    names = [result.contenders.get(f"native.{level}", {}).get("algorithm", "?")
             for level in LEVELS]
    return names[0] if len(set(names)) == 1 else " / ".join(names)


def best_share(result: Result) -> float | None:
    shares = [s for level in LEVELS
              if (s := result.share(f"native.{level}")) is not None]
    return max(shares, default=None)


def summary(results: list[Result]) -> list[str]:
    lines = []
    for level in LEVELS:
        gains = [g for r in results if (g := r.gain(f"native.{level}"))]
        if gains:
            lines.append(f"{level}: mean {mean(gains):.2f}, "
                         f"least {min(gains):.2f}")
    return lines


def list_table(name: str, rows: list[tuple[Row, Result]]) -> str:
    results = [result for _, result in rows]
    peers = columns(results)
    heads = (["row", *LEVELS] + [SHORT[p] for p in peers] +
             ["fastest peer"] + [f"{level} gain" for level in LEVELS] +
             ["exact of peak", "best of peak", "algorithms"])
    lines = []
    for row, result in rows:
        fastest = result.fastest_peer()
        lines.append(
            [label(row, result)] +
            [time_text(result.us(f"native.{level}")) for level in LEVELS] +
            [time_text(result.us(p)) for p in peers] +
            [SHORT.get(fastest, "")] +
            [ratio(result.gain(f"native.{level}")) for level in LEVELS] +
            [percent(result.share("native.exact")),
             percent(best_share(result)), algorithms(result)])
    aligns = "l" + "r" * (3 + len(peers)) + "l" + "r" * 5 + "l"
    text = f"### {name}\n\n{table(heads, lines, aligns)}"
    gains = "; ".join(summary(results))
    return f"{text}\nGain over the fastest peer: {gains}.\n" if gains else text


def missing_table(results: list[Result]) -> str:
    """Who is left out of which rows, by reason; the largest E where the result
    was another."""
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for result in results:
        if result.reason:
            found.setdefault(("the row", result.reason), []).append(
                (0, result.op))
        for name, facts in result.contenders.items():
            if "reason" in facts and not name.startswith("native:"):
                key = name, facts["reason"].replace("|", "/")[:120]
                found.setdefault(key, []).append(
                    (facts.get("E") or 0, result.op))
    lines = []
    for (name, reason), rows in found.items():
        e, op = max(rows)
        lines.append([name, reason, str(len(rows)), f"{e:.3g}" if e else "",
                      f"`{op}`"])
    return table(["who", "why", "rows", "E", "such as"], lines, "llrrl")


def choice_table(results: list[Result]) -> str:
    """Rows where the cost model did not take the fastest algorithm."""
    lines = []
    for result in results:
        times = {name.partition(":")[2]: result.us(name)
                 for name in result.contenders
                 if name.startswith("native:") and result.us(name)}
        if not times:
            continue
        fastest = min(times, key=times.get)
        taken = result.contenders["native.normal"].get("algorithm", "?")
        us = times.get(taken) or result.us("native.normal")
        if us and us > 1.05 * times[fastest]:
            lines.append([f"`{result.op}`", taken, time_text(us), fastest,
                          time_text(times[fastest]),
                          ratio(us / times[fastest])])
    return table(["row", "taken", "us", "fastest", "us", "loss"], lines,
                 "llrlrr")


def document(head: dict, rows: list[tuple[Row, Result]]) -> str:
    results = list({result.op: result for _, result in rows}.values())
    versions = ", ".join(f"{k} {v}" for k, v in head["versions"].items())
    peaks = [r.peak / r.threads for r in results if r.peak]
    units = " on units of 512 bits" if head["wide"] else ""
    parts = [
        f"`{head['command']}`, {head['date']}; {head['machine']}, "
        f"{head['threads']} thread(s), {head['cpu']} kernels{units}"
        + (f"; {versions}" if versions else "") +
        (f"; peak of a core {max(peaks):.0f} GFLOP/s" if peaks else "") +
        ". Times are microseconds, the least of many interleaved rounds; a "
        "gain is the fastest peer's time by ours.\n",
        "## Goals\n", goals_table(results), "## Rows\n"]
    for name in dict.fromkeys(row.list_name for row, _ in rows):
        parts.append(list_table(name, [pair for pair in rows
                                       if pair[0].list_name == name]))
    if any(n.startswith("native:") for r in results for n in r.contenders):
        parts += ["## Where the cost model did not take the fastest\n",
                  choice_table(results)]
    parts += ["## Left out\n", missing_table(results)]
    return "\n".join(parts)
