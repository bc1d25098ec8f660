"""Problems (the descriptors of `polyphase bench --op`) and lists of them."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "shapes"


@dataclass(frozen=True)
class Problem:
    """A (transposed) convolution in two dimensions; pairs are height, width."""

    transposed: bool
    n: int
    group: int
    ci: int
    co: int
    input: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, int, int, int]  # top, left, bottom, right
    output_padding: tuple[int, int]

    @property
    def output(self) -> tuple[int, int]:
        return self._length(0), self._length(1)

    def _length(self, axis: int) -> int:
        pads = self.pads[axis] + self.pads[axis + 2]
        reach = (self.kernel[axis] - 1) * self.dilation[axis] + 1
        if self.transposed:
            return ((self.input[axis] - 1) * self.stride[axis] + reach - pads +
                    self.output_padding[axis])
        return (self.input[axis] + pads - reach) // self.stride[axis] + 1

    @property
    def input_shape(self) -> list[int]:
        return [self.n, self.ci, *self.input]

    @property
    def output_shape(self) -> list[int]:
        return [self.n, self.co, *self.output]

    @property
    def weight_shape(self) -> list[int]:
        first, second = ((self.ci, self.co) if self.transposed
                         else (self.co, self.ci))
        return [first, second // self.group, *self.kernel]

    @property
    def output_bytes(self) -> int:
        return 4 * math.prod(self.output_shape)

    @property
    def flops(self) -> float:
        """As pph_problem_flops counts: taps that fall outside count too."""
        pixels = self.input if self.transposed else self.output
        return (2.0 * self.n * math.prod(pixels) * math.prod(self.kernel) *
                self.ci * self.co / self.group)

    @property
    def phase_taps(self) -> int:
        """The taps of the largest phase: what one output sums over."""
        if not self.transposed:
            return math.prod(self.kernel)
        return math.prod(-(-k // s) for k, s in zip(self.kernel, self.stride))

    @property
    def one_dimensional(self) -> bool:
        return self.input[0] == 1 and self.kernel[0] == 1

    @property
    def depthwise(self) -> bool:
        return self.group > 1 and self.group == self.ci == self.co

    @property
    def short(self) -> bool:
        """1 to 8 positions, or pixels a side."""
        return max(self.input) <= 8


PATTERN = re.compile(
    r"(conv )?f32 n(\d+) g(\d+) ci(\d+) co(\d+) i(\d+)x(\d+) k(\d+)x(\d+) "
    r"s(\d+)x(\d+) d(\d+)x(\d+) p(-?\d+),(-?\d+),(-?\d+),(-?\d+)"
    r"(?: op(\d+)x(\d+))?$")


def parse_problem(text: str) -> Problem:
    match = PATTERN.match(text.strip())
    if not match:
        raise ValueError(f"not a descriptor of two dimensions: {text!r}")
    v = [int(x or 0) for x in match.groups()[1:]]
    return Problem(match.group(1) is None, *v[:4], (v[4], v[5]), (v[6], v[7]),
                   (v[8], v[9]), (v[10], v[11]), tuple(v[12:16]),
                   (v[16], v[17]))


@dataclass(frozen=True)
class Row:
    list_name: str
    label: str  # "" where the list gives none
    descriptor: str

    @property
    def problem(self) -> Problem:
        return parse_problem(self.descriptor)


def load_list(path: Path) -> list[Row]:
    """One `label: descriptor`, or a descriptor, per line; # to the line's end
    is a comment."""
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        label, _, descriptor = text.rpartition(":")
        row = Row(path.stem, label.strip(), " ".join(descriptor.split()))
        try:
            if min(row.problem.output) < 1:
                raise ValueError("the output is empty")
        except ValueError as error:
            raise SystemExit(f"{path}:{number}: {error}") from None
        rows.append(row)
    return rows


def load_lists(names: list[str]) -> list[Row]:
    """Rows of the named lists (files, or names in bench/shapes), or of all."""
    paths = ([Path(n) if Path(n).is_file() else FOLDER / f"{n}.txt"
              for n in names] or sorted(FOLDER.glob("*.txt")))
    for path in paths:
        if not path.is_file():
            known = " ".join(p.stem for p in sorted(FOLDER.glob("*.txt")))
            raise SystemExit(f"no list {path.stem}; there are: {known}")
    return [row for path in paths for row in load_list(path)]
