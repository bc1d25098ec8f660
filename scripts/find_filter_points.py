#!/usr/bin/env python3
"""Points of the minimal filters F(m, r): search them, print their code.

usage: find_filter_points.py               rank the candidates
       find_filter_points.py --weights     the table of weight transforms
       find_filter_points.py --transforms  input and output transforms in C

F(m, r) computes m outputs of a filter of r taps from a window of n = m + r - 1
values x by n multiplications: y = A ((G g) * (B x)), * element by element.
With points p_j and M_j(z) the product of (z - p_k) over the other points,
row j of B holds the coefficients of M_j, of G the powers of p_j / M_j(p_j),
column j of A the powers of p_j; infinity stands for the leading coefficient.

A candidate is judged by how much the roundings of the n sums over channels are
amplified, beside a direct sum: for output i, the root of
sum over j of (A_ij |B_j| |G_j|)^2, over the taps that lie inside the picture,
at its worst over all outputs and all windows that the picture's edge cuts. In
two dimensions the figure is squared. Points are eighths, so that A and B are
exact, and come in pairs +-a, which halves the operations.

Those of 4 and 5 taps take the points that the others with as many points have.

The filters m_2L and m_2H share the windows of F(m, 3): their 2 taps are its
first and its last two, and a tap of zero makes a point vanish, infinity or 0.
"""
import sys
from fractions import Fraction
from itertools import combinations

INFINITY = None
FILTERS = [(1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (7, 2),
           (2, 3), (3, 3), (4, 3)]
LONG = [(5, 4), (4, 5)]
SHARED = [2, 4]  # m of F(m, 3) with m_2L and m_2H
EIGHTHS = [Fraction(i, 8) for i in range(2, 25)]
# Not searched: with 0, 1, -1 small integers stay exact, and nothing is better.
CHOSEN = {1: [INFINITY],
          4: [Fraction(0), Fraction(1), Fraction(-1), INFINITY]}


def finite(points):
    return [p for p in points if p is not INFINITY]


def product(roots):
    """Coefficients of the product of (z - root), lowest first."""
    result = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0)] + result
        result = [s - root * r for s, r in zip(shifted, result + [0])]
    return result


def matrices(points, m, r):
    a, b, g = [], [], []
    for p in points:
        others = [q for q in finite(points) if q != p]
        row = product(others)
        if p is INFINITY:
            scale, powers = 1, lambda n: [0] * (n - 1) + [1]
        else:
            scale = 1
            for q in others:
                scale *= p - q
            powers = lambda n: [p ** i for i in range(n)]
        b.append(row + [0] * (len(points) - len(row)))
        g.append([Fraction(x) / scale for x in powers(r)])
        a.append(powers(m))
    return a, b, g


def amplification(points, m, r):
    a, b, g = matrices(points, m, r)
    a, b, g = ([[float(x) for x in row] for row in t] for t in (a, b, g))
    n, worst = len(points), 0.0
    cuts = [(low, n) for low in range(r)] + [(0, high) for high in range(1, n)]
    for low, high in cuts:
        sums = [sum(x * x for x in b[j][low:high]) * sum(x * x for x in g[j])
                for j in range(n)]
        for i in range(m):
            taps = sum(low <= i + t < high for t in range(r))
            if taps:
                error = sum(a[j][i] ** 2 * sums[j] for j in range(n)) ** 0.5
                worst = max(worst, error / taps)
    return worst


def candidates(n):
    """Infinity always, as it costs least; zero where n is even."""
    for values in combinations(EIGHTHS, (n - 1) // 2):
        points = [] if n % 2 else [Fraction(0)]
        for value in values:
            points += [value, -value]
        yield points + [INFINITY]


def rank(n):
    """Candidates by their worst amplification relative to the best of each
    filter with n points."""
    filters = [f for f in FILTERS if sum(f) - 1 == n]
    rows = [(points, [amplification(points, *f) for f in filters])
            for points in candidates(n)]
    best = [min(row[1][i] for row in rows) for i in range(len(filters))]
    rows.sort(key=lambda row: max(x / y for x, y in zip(row[1], best)))
    return filters, rows


def chosen(n):
    return CHOSEN[n] if n in CHOSEN else rank(n)[1][0][0]


def list_filters():
    """Name, outputs, taps, points."""
    for m, r in FILTERS:
        yield f"{m}_{r}", m, r, chosen(m + r - 1)
    for m in SHARED:
        yield f"{m}_2L", m, 2, chosen(m + 2)[:-1]
        yield f"{m}_2H", m, 2, chosen(m + 2)[1:]
    for m, r in LONG:
        yield f"{m}_{r}", m, r, chosen(m + r - 1)


def text(points):
    return ", ".join("infinity" if p is INFINITY else str(p) for p in points)


def print_ranking():
    for n in sorted({sum(f) - 1 for f in FILTERS if f != (1, 1)}):
        filters, rows = rank(n)
        print(f"{n} points:", *(f"F({m},{r})" for m, r in filters))
        shown = rows[:5]
        if n in CHOSEN:
            shown.append((CHOSEN[n],
                          [amplification(CHOSEN[n], *f) for f in filters]))
        for points, figures in shown:
            print("  ", *(f"{x:6.2f}" for x in figures), "  ", text(points))
    print("chosen:")
    for name, m, r, points in list_filters():
        print(f"   {amplification(points, m, r):6.2f}   {name}  {text(points)}")


def heading(option, what):
    print(f"/* {what}\n   Made by scripts/find_filter_points.py {option}. */")


def print_weights():
    heading("--weights", "Filters: outputs, taps, points, rows of G.")
    for name, m, r, points in list_filters():
        print(f"/* {name}: {text(points)} */")
        print(f"{{{m}, {r}, {len(points)},")
        rows = ["{" + ", ".join(repr(float(x)) for x in row) + "}"
                for row in matrices(points, m, r)[2]]
        for i, row in enumerate(rows):
            print_cut((" {" if i == 0 else "  ") + row +
                      ("}}," if i + 1 == len(rows) else ","), 3)


def print_cut(line, indent):
    """Lines of at most 80 columns, broken after commas."""
    while len(line) > 80:
        cut = line.rfind(", ", 0, 80)
        print(line[:cut + 1])
        line = " " * indent + line[cut + 2:]
    print(line)


def combine(terms):
    """An expression for the sum of coefficient * name; one operation each."""
    terms = [(Fraction(c), name) for c, name in terms if c]
    terms.sort(key=lambda term: (term[0] != 1, abs(term[0]) != 1))
    value, result = terms[0]
    if value != 1:
        result = f"{result} * vec_set1({float(value)}f)"
    for value, name in terms[1:]:
        if abs(value) == 1:
            result += (" + " if value > 0 else " - ") + name
        else:
            result = f"vec_fma({name}, vec_set1({float(value)}f), {result})"
    return result


def statement(left, right):
    line = f"  {left} = {right};"
    if len(line) <= 80:
        print(line)
        return
    print(f"  {left} =")
    print_cut(f"      {right};", 10)


def list_groups(points):
    """Indices of single points and of pairs +-a."""
    j = 0
    while j < len(points):
        p = points[j]
        pair = p is not INFINITY and p and j + 1 < len(points) and \
            points[j + 1] == -p
        yield (j, j + 1) if pair else (j,)
        j += len((j, j + 1)) if pair else 1


def print_inputs(values):
    for k in values:
        statement(f"const vec x{k}", f"x[{k} * step]")


def print_input_transform(n):
    points = chosen(n)
    print(f"\n/* {text(points)} */")
    print(f"ALWAYS_INLINE void filter_in_{n}(vec *x, size_t step) {{")
    print_inputs(range(n))
    rows = matrices(points, n, 1)[1]
    for group in list_groups(points):
        j = group[0]
        if len(group) == 1:
            statement(f"x[{j} * step]", combine(
                [(c, f"x{k}") for k, c in enumerate(rows[j])][::-1]))
            continue
        # M = R(z) (z + a) and R(z) (z - a)
        p = points[j]
        rest = product([q for q in finite(points) if abs(q) != abs(p)])
        high = [(c, f"x{k + 1}") for k, c in enumerate(rest)][::-1]
        low = [(c, f"x{k}") for k, c in enumerate(rest)][::-1]
        statement(f"const vec high{j}", combine(high))
        statement(f"const vec low{j}", combine(low))
        for sign, index in ((1, j), (-1, j + 1)):
            statement(f"x[{index} * step]", combine(
                [(1, f"high{j}"), (sign * p, f"low{j}")]))
    print("}")


def print_output_transform(name, m, points):
    print(f"\nALWAYS_INLINE void filter_out_{name}(vec *x, size_t step) {{")
    print_inputs(range(len(points)))
    outputs = [[] for _ in range(m)]
    for group in list_groups(points):
        j, p = group[0], points[group[0]]
        if len(group) == 2:
            statement(f"const vec even{j}", f"x{j} + x{j + 1}")
            if m > 1:
                statement(f"const vec odd{j}", f"x{j} - x{j + 1}")
        for i in range(m):
            if p is INFINITY:
                outputs[i].append((int(i == m - 1), f"x{j}"))
            elif len(group) == 2:
                outputs[i].append((p ** i, f"{('even', 'odd')[i % 2]}{j}"))
            else:
                outputs[i].append((p ** i, f"x{j}"))
    for i in range(m):
        statement(f"x[{i} * step]", combine(outputs[i]))
    print("}")


def print_transforms():
    heading("--transforms", "Transforms of n values that lie `step` apart, in "
            "place. filter_in_N: a window\n   of N values to N points; "
            "filter_out_FILTER: its points to its outputs.")
    for n in sorted({m + r - 1 for m, r in FILTERS}):
        print_input_transform(n)
    for name, m, r, points in list_filters():
        print_output_transform(name, m, points)


def main():
    actions = {"": print_ranking, "--weights": print_weights,
               "--transforms": print_transforms}
    option = sys.argv[1] if len(sys.argv) == 2 else ""
    if len(sys.argv) > 2 or option not in actions:
        sys.exit(__doc__)
    actions[option]()


if __name__ == "__main__":
    main()
