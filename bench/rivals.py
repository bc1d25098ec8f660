"""What takes part: engines that make contenders of a problem. Here are the C
libraries (through libpolyphase_contest.so); peers.py has the Python ones."""

import ctypes as c
import json
from pathlib import Path

from onnx_node import make_model
from shapes import Problem, parse_problem

ACCURACIES = ("exact", "high", "normal")
TEXT = 512


class CannotRun(Exception):
    """Why an engine does not take part in a row."""


class Contender:
    """A problem in an engine's form, ready to run."""

    def run(self) -> float:
        """Runs once; microseconds."""
        raise NotImplementedError

    def error(self) -> float:
        """E of the last run (infinity: not a number somewhere)."""
        raise NotImplementedError

    def final_times(self, times: list[float]) -> list[float]:
        """What run returned, or better figures known at the end only."""
        return times

    def describe(self) -> dict:
        return {}

    def close(self) -> None:
        pass


class Options(c.Structure):
    _fields_ = [("accuracy", c.c_char_p), ("algorithm", c.c_char_p),
                ("cpu", c.c_char_p), ("form", c.c_char_p),
                ("threads", c.c_uint32), ("model", c.c_char_p),
                ("model_bytes", c.c_size_t)]


SIGNATURES = {
    "case": (c.c_void_p, [c.c_char_p, c.c_char_p]),
    "case_close": (None, [c.c_void_p]),
    "data": (c.POINTER(c.c_float),
             [c.c_void_p, c.c_int, c.POINTER(c.c_size_t)]),
    "error": (c.c_double, [c.c_void_p, c.c_void_p]),
    "open": (c.c_void_p,
             [c.c_char_p, c.c_void_p, c.POINTER(Options), c.c_char_p]),
    "run": (c.c_double, [c.c_void_p]),
    "check": (c.c_double, [c.c_void_p]),
    "describe": (None, [c.c_void_p, c.c_char_p]),
    "close": (None, [c.c_void_p]),
    "algorithm": (c.c_char_p, [c.c_size_t]),
    "cpu": (c.c_char_p, [c.c_char_p]),
    "peak": (c.c_double, [c.c_char_p, c.c_double]),
    "sustained": (c.c_double, [c.c_char_p, c.c_double, c.c_uint]),
    "memcpy": (c.c_double, [c.c_size_t]),
}


class Library:
    """libpolyphase_contest.so; its functions without the prefix."""

    def __init__(self, path: Path):
        library = c.CDLL(str(path))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(library, "contest_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    def algorithms(self) -> list[str]:
        names = []
        while (name := self.algorithm(len(names))) is not None:
            names.append(name.decode())
        return names


class Case:
    """A problem with its data and its exact result."""

    def __init__(self, library: Library, descriptor: str):
        message = c.create_string_buffer(TEXT)
        self.library = library
        self.problem: Problem = parse_problem(descriptor)
        self.handle = library.case(descriptor.encode(), message)
        if not self.handle:
            raise CannotRun(message.value.decode())
        self.model = make_model(self.problem, self.bytes(1), self.bytes(2))

    def bytes(self, which: int) -> bytes:
        """0 the input, 1 the weights, 2 the bias; f32 in ONNX's orders."""
        count = c.c_size_t()
        data = self.library.data(self.handle, which, count)
        return c.string_at(data, 4 * count.value)

    def close(self) -> None:
        self.library.case_close(self.handle)


class LibraryContender(Contender):
    def __init__(self, case: Case, engine: str, **options):
        message = c.create_string_buffer(TEXT)
        self.library = case.library
        self.handle = None
        texts = {key: value.encode() if isinstance(value, str) else value
                 for key, value in options.items()}
        made = Options(model=case.model, model_bytes=len(case.model), **texts)
        self.handle = self.library.open(engine.encode(), case.handle, made,
                                        message)
        if not self.handle:
            raise CannotRun(message.value.decode() or "refused")

    def run(self) -> float:
        us = self.library.run(self.handle)
        if us < 0:
            raise CannotRun("a run failed")
        return us

    def error(self) -> float:
        return self.library.check(self.handle)

    def describe(self) -> dict:
        text = c.create_string_buffer(TEXT)
        self.library.describe(self.handle, text)
        return json.loads(text.value)

    def close(self) -> None:
        self.library.close(self.handle)


def native(case: Case, accuracy: str, threads: int, cpu: str,
           algorithm: str | None = None) -> Contender:
    return LibraryContender(case, "native", accuracy=accuracy, threads=threads,
                            cpu=cpu, algorithm=algorithm)


def xnnpack(case: Case, form: str, threads: int) -> Contender:
    return LibraryContender(case, "xnnpack", form=form, threads=threads)


def onednn(case: Case, threads: int) -> Contender:
    return LibraryContender(case, "onednn", threads=threads)
