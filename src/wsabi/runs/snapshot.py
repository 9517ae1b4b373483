"""Snapshots: objects of the engine as arrays and JSON, and back, to the last bit.

What a run knows follows from its events, but to follow it takes the engine's own time of the whole run. A snapshot
holds it as data. Objects are written field by field, each once, so that what was one object is one again. Only classes
of the packages named here are ever built, without calling anything of theirs, and nothing in the data is executed.

Whatever decides how numbers are added up is kept: the strides of arrays, and whether a scalar is Python's or NumPy's.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wsabi._core.linalg import GrowingFactor
from wsabi._core.types import Array
from wsabi.quadrature.maximise import CandidatePool

__all__ = ["fingerprint", "packed", "unpacked"]

Data = Any  # what JSON can hold

START = b"wsabi snapshot 1\n"
LEVEL = 1  # of compression: half of a triangular factor is zero, and nothing else is worth the time
PACKAGES = (  # whose classes may be in a snapshot
    "wsabi._core", "wsabi.adaptive", "wsabi.gp", "wsabi.ledger", "wsabi.priors", "wsabi.quadrature", "wsabi.result",
    "wsabi.settings",
)  # fmt: skip
# Buffers with room to grow: the part in use.
IN_USE: dict[type, Callable[[Any], dict[str, Array]]] = {
    GrowingFactor: lambda one: {"packed": one.packed[: one.n * (one.n + 1) // 2]},
    CandidatePool: lambda one: {"V": one.V[: one.n]},
}


@cache
def fingerprint() -> str:
    """A hash of the package's source: another engine would take another course from the same state."""
    root = Path(__file__).parents[1]
    hashed = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        hashed.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return hashed.hexdigest()


# -- writing ----------------------------------------------------------------------------------------------------------


def packed(value: Any, given: Mapping[str, object], most: int | None = None) -> bytes:
    """A tree of objects as bytes.

    Parameters
    ----------
    given : objects that are not written, by name; :func:`unpacked` is given their like.
    most : largest number of bytes that its arrays may have; None for any.

    Raises
    ------
    TypeError
        If something in the tree cannot be written as data.
    OverflowError
        If its arrays have more than ``most`` bytes.
    """
    writer = _Writer(given, most)
    text = json.dumps([writer.of(value), writer.nodes], allow_nan=False, separators=(",", ":")).encode()
    return START + zlib.compress(struct.pack("<Q", len(text)) + text + b"".join(writer.arrays), LEVEL)


class _Writer:
    """Objects as nodes, in an order in which each comes after what it refers to; arrays as bytes behind each other."""

    def __init__(self, given: Mapping[str, object], most: int | None) -> None:
        self.nodes: list[Data] = []
        self.arrays: list[bytes] = []
        self._size, self._most = 0, most
        self._known: dict[int, Data] = {id(one): ["given", name] for name, one in given.items()}
        self._alive = list(given.values())  # an id is that of an object only while it is alive

    def of(self, value: Any) -> Data:
        """A scalar as it is, and a reference to anything else."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else ["float", str(value)]
        if id(value) not in self._known:
            node = self._node(value)
            self._known[id(value)] = ["node", len(self.nodes)]
            self._alive.append(value)
            self.nodes.append(node)
        return self._known[id(value)]

    def _node(self, value: Any) -> Data:
        kind = type(value)
        if kind in (tuple, list, frozenset):
            return [kind.__name__, [self.of(one) for one in value]]
        if kind is dict:
            return ["dict", [[self.of(key), self.of(one)] for key, one in value.items()]]
        if kind is np.ndarray and value.dtype.kind in "fiub":
            return self._array(value)
        if isinstance(value, np.generic) and value.dtype.kind in "fiub":
            return ["scalar", value.dtype.str, value.tobytes().hex()]
        if kind is np.random.Generator and type(value.bit_generator) is np.random.PCG64:
            return ["generator", self.of(value.bit_generator.state)]
        if isinstance(value, Enum):
            return ["enum", _name_of(kind), value.name]
        return ["object", _name_of(kind), [[name, self.of(one)] for name, one in _content(value).items()]]

    def _array(self, value: Array) -> Data:
        if self._most is not None and self._size + value.nbytes > self._most:
            raise OverflowError(f"the arrays have more than {self._most} bytes.")
        data = value.tobytes()
        node = ["array", value.dtype.str, list(value.shape), list(value.strides), self._size]
        self.arrays.append(data)
        self._size += len(data)
        return node


def _content(value: Any) -> dict[str, Any]:
    """What an object consists of, by name; not what it has only remembered."""
    if is_dataclass(value) and not hasattr(value, "__dict__"):
        found = {one.name: getattr(value, one.name) for one in fields(value)}
    else:
        kept = [key for key in vars(value) if not isinstance(getattr(type(value), key, None), cached_property)]
        found = {key: vars(value)[key] for key in kept}
    return found | IN_USE.get(type(value), lambda _: {})(value)


def _name_of(kind: type) -> str:
    name = f"{kind.__module__}:{kind.__qualname__}"
    if _class_of(name) is not kind:
        raise TypeError(f"an object of {name} cannot be written as data.")
    return name


def _class_of(name: str) -> type:
    """The class of that name in one of the packages; nothing is imported."""
    module, _, qualified = name.partition(":")
    found = getattr(sys.modules.get(module), qualified, None)
    is_ours = any(module == package or module.startswith(f"{package}.") for package in PACKAGES)
    if not is_ours or not isinstance(found, type) or found.__module__ != module:
        raise TypeError(f"{name} is no class of the engine.")
    return found


# -- reading ----------------------------------------------------------------------------------------------------------


def unpacked(data: bytes, given: Mapping[str, object]) -> Any:
    """The tree that :func:`packed` has written, with the objects ``given`` in their places.

    Raises
    ------
    ValueError
        If the bytes are not what was written.
    """
    try:
        if not data.startswith(START):
            raise ValueError("it does not begin as a snapshot does")
        content = zlib.decompress(data[len(START) :])
        (length,) = struct.unpack_from("<Q", content)
        value, nodes = json.loads(content[8 : 8 + length])
        reader = _Reader(memoryview(content)[8 + length :], given)
        for node in nodes:
            reader.read(node)
        return reader.of(value)
    except (zlib.error, struct.error, LookupError, TypeError, AttributeError, MemoryError) as error:
        raise ValueError(f"the snapshot cannot be read ({error})") from error


class _Reader:
    """Nodes as objects again."""

    def __init__(self, arrays: memoryview, given: Mapping[str, object]) -> None:
        self._arrays = arrays
        self._given = given
        self._objects: list[Any] = []

    def of(self, data: Data) -> Any:
        """What a scalar or a reference stands for."""
        if not isinstance(data, list):
            return data
        kind, what = data
        if kind == "float":
            return float(what)
        return self._given[what] if kind == "given" else self._objects[what]

    def read(self, node: Data) -> None:
        """Build the next object."""
        kinds: dict[str, Callable[..., Any]] = {
            "tuple": self._tuple, "list": self._list, "frozenset": self._frozenset, "dict": self._dict,
            "array": self._array, "scalar": self._scalar, "generator": self._generator, "enum": self._enum,
            "object": self._object,
        }  # fmt: skip
        kind, *rest = node
        self._objects.append(kinds[kind](*rest))

    def _tuple(self, parts: Data) -> Any:
        return tuple(self.of(part) for part in parts)

    def _list(self, parts: Data) -> Any:
        return [self.of(part) for part in parts]

    def _frozenset(self, parts: Data) -> Any:
        return frozenset(self.of(part) for part in parts)

    def _dict(self, pairs: Data) -> Any:
        return {self.of(key): self.of(value) for key, value in pairs}

    def _array(self, dtype: str, shape: Data, strides: Data, start: int) -> Any:
        """An array with the same strides: they decide in which order products are summed."""
        kind = _number_type(dtype)
        n = math.prod(shape)
        values = np.frombuffer(self._arrays, kind, n, start).reshape(shape)
        reaches = [(size - 1) * step for size, step in zip(shape, strides, strict=True)] if n else []
        first = -sum(min(reach, 0) for reach in reaches)
        room = np.zeros(sum(abs(reach) for reach in reaches) + kind.itemsize, np.uint8)
        array = np.ndarray(tuple(shape), kind, room.data, first, tuple(strides)) if n else np.empty(shape, kind)
        array[...] = values
        return array

    def _scalar(self, dtype: str, data: str) -> Any:
        return np.frombuffer(bytes.fromhex(data), _number_type(dtype))[0]

    def _generator(self, state: Data) -> Any:
        bits = np.random.PCG64(0)
        bits.state = self.of(state)
        return np.random.Generator(bits)

    def _enum(self, name: str, member: str) -> Any:
        kind = _class_of(name)
        if not issubclass(kind, Enum):
            raise TypeError(f"{name} is no Enum.")
        return kind[member]

    def _object(self, name: str, pairs: Data) -> Any:
        """An object whose fields are set one by one; neither __init__ nor __setattr__ of its class is called."""
        made: Any = object.__new__(_class_of(name))
        for key, value in pairs:
            if key.startswith("__"):
                raise TypeError(f"{key} is no field of {name}.")
            object.__setattr__(made, key, self.of(value))
        return made


def _number_type(name: str) -> np.dtype[Any]:
    found = np.dtype(name)
    if found.kind not in "fiub":
        raise TypeError(f"{name} is no type of numbers.")
    return found
