"""A model of one node as ONNX bytes, written by hand: three kinds of fields of
protobuf's wire form are all it takes, and no package is needed."""

from shapes import Problem

FLOAT = 1
INTS, INT = 7, 2  # AttributeProto.type


def varint(value: int) -> bytes:
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, data: bytes | str) -> bytes:
    if isinstance(data, str):
        data = data.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        return block(5, block(1, name) + number(3, value) + number(20, INT))
    return block(5, block(1, name) + b"".join(number(8, v) for v in value) +
                 number(20, INTS))


def tensor(name: str, dims: list[int], data: bytes) -> bytes:
    return (b"".join(number(1, d) for d in dims) + number(2, FLOAT) +
            block(8, name) + block(9, data))


def value_info(name: str, dims: list[int]) -> bytes:
    shape = b"".join(block(1, number(1, d)) for d in dims)
    kind = block(1, number(1, FLOAT) + block(2, shape))
    return block(1, name) + block(2, kind)


def make_model(problem: Problem, weights: bytes, bias: bytes) -> bytes:
    """x -> y, with constants w and b."""
    p = problem
    node = (block(1, "x") + block(1, "w") + block(1, "b") + block(2, "y") +
            block(3, "op") +
            block(4, "ConvTranspose" if p.transposed else "Conv") +
            attribute("group", p.group) +
            attribute("kernel_shape", list(p.kernel)) +
            attribute("strides", list(p.stride)) +
            attribute("dilations", list(p.dilation)) +
            attribute("pads", list(p.pads)))
    if p.transposed:
        node += attribute("output_padding", list(p.output_padding))
    graph = (block(1, node) + block(2, "one") +
             block(5, tensor("w", p.weight_shape, weights)) +
             block(5, tensor("b", [p.co], bias)) +
             block(11, value_info("x", p.input_shape)) +
             block(12, value_info("y", p.output_shape)))
    opset = block(1, "") + number(2, 13)
    return number(1, 8) + block(7, graph) + block(8, opset)
