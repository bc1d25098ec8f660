"""The engines from PyPI. Each function makes a contender, or says why not.

What is timed is the node's own time in the engine's own layout, as for ours:
changes of layout at the model's edges and the call from Python are left out as
far as the engine lets us see them (README.md says how)."""

import importlib
import importlib.metadata
import json
import os
import tempfile
import time
from pathlib import Path

from rivals import CannotRun, Case, Contender


HALF_TICK = 0.5  # of clocks that drop what is below a microsecond


def load(name: str):
    try:
        return importlib.import_module(name)
    except Exception as error:  # an engine may fail in any way at load
        raise CannotRun(f"not there: {error}") from None


def now() -> float:
    return time.perf_counter_ns() * 1e-3


def array(case: Case, which: int, shape: list[int]):
    numpy = load("numpy")
    return numpy.frombuffer(case.bytes(which), "f4").reshape(shape).copy()


class PeerContender(Contender):
    """Holds the input; its subclass leaves the output as a numpy array."""

    def __init__(self, case: Case):
        self.case = case
        self.x = array(case, 0, case.problem.input_shape)

    def output(self):
        raise NotImplementedError

    def error(self) -> float:
        numpy = load("numpy")
        y = numpy.ascontiguousarray(self.output(), dtype="f4")
        if y.size != numpy.prod(self.case.problem.output_shape):
            return float("inf")
        return self.case.library.error(self.case.handle, y.ctypes.data)


class OnnxRuntime(PeerContender):
    """Time of the node from the profile: without ReorderInput/Output."""

    def __init__(self, case: Case, threads: int):
        ort = load("onnxruntime")
        super().__init__(case)
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_profiling = True
        self.folder = tempfile.TemporaryDirectory()
        options.profile_file_prefix = str(Path(self.folder.name) / "profile")
        self.session = ort.InferenceSession(
            case.model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.y = ort.OrtValue.ortvalue_from_shape_and_type(
            case.problem.output_shape, "float32")
        self.input = ort.OrtValue.ortvalue_from_numpy(self.x)
        self.binding.bind_ortvalue_input("x", self.input)
        self.binding.bind_ortvalue_output("y", self.y)

    def run(self) -> float:
        start = now()
        self.session.run_with_iobinding(self.binding)
        return now() - start

    def output(self):
        return self.y.numpy()

    def final_times(self, times: list[float]) -> list[float]:
        events = json.loads(Path(self.session.end_profiling()).read_text())
        runs, current = [], 0.0
        for event in events:
            if event["name"] == "SequentialExecutor::Execute":
                runs.append(current)
                current = 0.0
            elif (event.get("cat") == "Node" and
                  event["name"].endswith("_kernel_time") and
                  not event["args"]["op_name"].startswith("Reorder")):
                current += event["dur"] + HALF_TICK
        return runs[-len(times):] if min(runs, default=0) > 0 else times

    def close(self) -> None:
        self.binding = self.session = None
        self.folder.cleanup()


class OpenVino(PeerContender):
    """Its counters give a node's mean over all runs so far, in whole
    microseconds. Between two readings that gives the mean of the runs between,
    rounded the worse the closer they are; the least such mean counts. (The wall
    time would have the waking of its thread in it.)"""

    WARM_UP, WINDOW, ROUNDING = 3, 8, 0.03

    def __init__(self, case: Case, threads: int):
        openvino = load("openvino")
        super().__init__(case)
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(case.model), "CPU", {
            "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": threads, "PERF_COUNT": True})
        self.request = compiled.create_infer_request()
        self.request.set_input_tensor(
            openvino.Tensor(self.x, shared_memory=True))
        for _ in range(self.WARM_UP):
            self.request.infer()
        self.runs = self.WARM_UP
        self.marks = [self.mark()]

    def nodes(self) -> list:
        return [node for node in self.request.get_profiling_info()
                if node.node_type not in ("Reorder", "Transpose", "Parameter",
                                          "Result", "Constant")]

    def mark(self) -> tuple[int, float]:
        """Runs so far, and the node's time in all of them."""
        mean = sum(node.real_time.total_seconds() * 1e6 + HALF_TICK
                   for node in self.nodes())
        return self.runs, self.runs * mean

    def run(self) -> float:
        start = now()
        self.request.infer()
        us = now() - start
        self.runs += 1
        last = self.marks[-1][0]
        if self.runs >= last + max(self.WINDOW, last // 16):
            self.marks.append(self.mark())
        return us

    def output(self):
        return self.request.get_output_tensor().data

    def final_times(self, times: list[float]) -> list[float]:
        self.marks.append(self.mark())
        means = []
        for i, (runs, total) in enumerate(self.marks):
            for earlier, before in self.marks[:i]:
                count = runs - earlier
                mean = (total - before) / max(count, 1)
                if HALF_TICK * (runs + earlier) < self.ROUNDING * mean * count:
                    means.append(mean)
        runs, total = self.marks[-1]
        return means or [total / runs]

    def describe(self) -> dict:
        return {"algorithm": " ".join(n.exec_type for n in self.nodes())}


def ncnn_layer(case: Case) -> tuple[str, bytes]:
    """Its .param and .bin; weights there are group, out, in, height, width."""
    p = case.problem
    w = array(case, 1, p.weight_shape)
    if p.transposed:
        w = w.reshape(p.group, p.ci // p.group, p.co // p.group, -1)
        w = w.transpose(0, 2, 1, 3)
    kind = "Deconvolution" if p.transposed else "Convolution"
    numbers = {0: p.co, 1: p.kernel[1], 11: p.kernel[0], 2: p.dilation[1],
               12: p.dilation[0], 3: p.stride[1], 13: p.stride[0],
               4: p.pads[1], 14: p.pads[0], 15: p.pads[3], 16: p.pads[2],
               5: 1, 6: w.size}
    if p.group > 1:
        kind += "DepthWise"
        numbers[7] = p.group
    if p.transposed:
        numbers |= {18: p.output_padding[1], 19: p.output_padding[0]}
    text = " ".join(f"{key}={value}" for key, value in numbers.items())
    return (f"7767517\n2 2\nInput x 0 1 x\n{kind} op 1 1 x y {text}\n",
            bytes(4) + w.tobytes() + case.bytes(2))


class Ncnn(PeerContender):
    """Timed is the extraction, packed in and out as between its layers."""

    def __init__(self, case: Case, threads: int):
        ncnn = load("ncnn")
        super().__init__(case)
        if case.problem.n != 1:
            raise CannotRun("one picture at a time only")
        self.allocators = ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator()
        self.net = ncnn.Net()
        option = self.net.opt
        option.num_threads = threads
        option.blob_allocator, option.workspace_allocator = self.allocators
        for name in dir(option):
            if name.startswith(("use_fp16", "use_bf16")):
                setattr(option, name, False)
        param, weights = ncnn_layer(case)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "one.param").write_text(param)
            Path(folder, "one.bin").write_bytes(weights)
            if (self.net.load_param(f"{folder}/one.param") or
                    self.net.load_model(f"{folder}/one.bin")):
                raise CannotRun("refused")
        self.plain = ncnn.Mat(self.x[0]).clone()
        self.input = self.plain
        pack = next(n for n in (16, 8, 4, 1) if case.problem.ci % n == 0)
        if pack > 1 and self.widest() >= pack:
            self.input = ncnn.Mat()
            ncnn.convert_packing(self.plain, self.input, pack)

    @staticmethod
    def widest() -> int:
        """Floats of the vectors that it is likely to pack for."""
        flags = Path("/proc/cpuinfo").read_text().split()
        return 16 if "avx512f" in flags else 8 if "avx" in flags else 4

    def extract(self, plain: bool) -> tuple[float, object]:
        extractor = self.net.create_extractor()
        extractor.input("x", self.input)
        start = now()
        code, y = extractor.extract("y", 0 if plain else 1)
        us = now() - start
        if code:
            raise CannotRun(f"extract gave {code}")
        return us, y

    def run(self) -> float:
        return self.extract(False)[0]

    def output(self):
        return load("numpy").array(self.extract(True)[1])

    def close(self) -> None:
        # What came from the allocators goes before them.
        self.input = self.plain = None
        self.net.clear()
        self.net = None
        self.allocators = ()


class Mnn(PeerContender):
    """Time of the operators between callbacks, without the rasters (changes of
    layout) at the edges."""

    def __init__(self, case: Case, threads: int):
        self.mnn = load("MNN")
        # The converter itself: the package's command would install a logger.
        tools = load("_tools")
        super().__init__(case)
        with tempfile.TemporaryDirectory() as folder:
            source, target = f"{folder}/one.onnx", f"{folder}/one.mnn"
            Path(source).write_bytes(case.model)
            tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", source,
                              "--MNNModel", target, "--bizCode", "bench"])
            if not os.path.isfile(target):
                raise CannotRun("the conversion failed")
            self.net = self.mnn.Interpreter(target)
            self.session = self.net.createSession(
                {"numThread": threads, "precision": "high", "backend": "CPU"})
        self.start = self.sum = 0.0
        self.given = self.host(case.problem.input_shape, self.x)

    def host(self, shape: list[int], data):
        return self.mnn.Tensor(tuple(shape), self.mnn.Halide_Type_Float, data,
                               self.mnn.Tensor_DimensionType_Caffe)

    def before(self, tensors, info) -> bool:
        self.start = now()
        return True

    def after(self, tensors, info) -> bool:
        if "raster" not in info.getName():
            self.sum += now() - self.start
        return True

    def run(self) -> float:
        # The session may have used the input's memory: given anew, not timed.
        self.net.getSessionInput(self.session).copyFrom(self.given)
        self.sum = 0.0
        start = now()
        self.net.runSessionWithCallBackInfo(self.session, self.before,
                                            self.after)
        return self.sum or now() - start

    def output(self):
        numpy = load("numpy")
        shape = self.case.problem.output_shape
        y = self.host(shape, numpy.zeros(shape, "f4"))
        self.net.getSessionOutput(self.session).copyToHostTensor(y)
        return numpy.array(y.getNumpyData())


# Name: the package, and what makes a contender.
PEERS = {
    "onnxruntime": ("onnxruntime", OnnxRuntime),
    "openvino": ("openvino", OpenVino),
    "ncnn": ("ncnn", Ncnn),
    "mnn": ("MNN", Mnn),
}


def versions() -> dict[str, str]:
    found = {}
    for name, (package, _) in PEERS.items():
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found
