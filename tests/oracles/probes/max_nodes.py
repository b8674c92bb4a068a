"""Questions and expression trees node by node, in MAX: each operation is compiled once for each type, on vectors of any length.

A graph of MAX costs half a minute of compilation and a second for each output, so that thousands of questions cannot each be a
graph of their own. Here all operations that they need are the outputs of a few graphs, and the nodes that are ready are computed
together, as one long vector for each operation. Types and refusals are those of the questions' own graphs (`max_probe.build`).
Operands of two types are converted to the type that MAX gives their sum, and a number is a constant of the other side's type, as
MAX's graphs show it.

The graphs have all operations on all types, also those that no question has (`universe`): they are the same in every run, and
MAX finds them in its cache.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import common
import max_probe as probe
import numpy as np
from max import engine
from max.dtype import DType
from max.graph import Graph, TensorType, ops

Key = tuple[str, ...]
"""An operation and the types of its operands."""

OUTPUTS = 100
"""How many operations one graph has."""

WORKERS = 2
"""How many processes compile graphs."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = ("int8", "int16", "int32", "int64", *UNSIGNED)
FLOAT8 = frozenset({"float8_e4m3fn", "float8_e5m2"})
CALCULUS = ("sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "erf", "sigmoid", "log1p", "acos", "atanh")
ROUNDING = ("floor", "ceil", "round", "trunc")
ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**")
WHOLE = ("matmul", "concat", "sum", "mean", "max", "min", "prod", "argmax", "argmin", "cumsum")
"""What is not elementwise."""


def name(dtype: DType) -> str:
    """A type of MAX as questions spell it."""
    return str(dtype).removeprefix("DType.")


@dataclass
class Tree:
    """A tree: the answers of its nodes so far (types where values are missing), and their values."""

    question: common.Question
    types: list[str]
    values: dict[str, np.ndarray] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> list[list[str]]:
        return [node.split(" ") for node in self.question[1].split(";")]

    @property
    def size(self) -> int:
        return max(common.operand(text).data.size for text in self.question[2:])


def common_type(a: str, b: str, known: dict[tuple[str, str], str]) -> str:
    """The type that MAX gives the sum of two types."""
    if a == b:
        return a
    if (a, b) not in known:
        with Graph("sum", input_types=[TensorType(probe.TYPES[t], (2,), probe.CPU) for t in (a, b)]) as graph:
            known[a, b] = name((graph.inputs[0].tensor + graph.inputs[1].tensor).dtype)
            graph.output()
    return known[a, b]


def types_of(questions: list[common.Question]) -> list[list[str]]:
    """The types and refusals of each tree's nodes."""
    found: list[list[str]] = []
    for question in questions:
        texts = {text: probe.tensor_type(text) for text in question[2:]}
        with Graph("types", input_types=list(texts.values())) as graph:
            inputs = {text: value.tensor for text, value in zip(texts, graph.inputs, strict=True)}
            nodes = probe.build(question, inputs)
            found.append([n if isinstance(n, str) else name(n.dtype) for n in nodes])
            graph.output()
    return found


def fails(key: Key) -> bool:
    """Whether MAX 26.7 accepts the operation and has no code for it."""
    op, dtype = key[0], key[-1]
    if {op.removeprefix("cast "), dtype} & FLOAT8:  # on a CPU
        return True
    if op in probe.UNARY and op in ("neg", *ROUNDING, *CALCULUS):
        return dtype == "bool" or dtype in (UNSIGNED if op == "neg" else INTEGERS)
    return op in ARITHMETIC and dtype == "bool"


def universe() -> list[Key]:
    """Each elementwise operation on each type that it accepts, and each conversion."""
    types = ("bool", *INTEGERS, *FLOATS)
    keys = [(op, *[t] * (1 + (op in probe.BINARY))) for op in probe.FUNCTIONS if op not in WHOLE for t in types]
    keys += [(f"cast {a}", b) for a in types for b in types if a != b]
    return [key for key in keys if not fails(key) and builds(key)]


def builds(key: Key) -> bool:
    """Whether MAX makes a graph of the operation."""
    try:
        graph_of([key])
    except Exception:
        return False
    return True


def graph_of(keys: list[Key]) -> Graph:
    """The graph whose outputs are the operations."""
    types = [
        TensorType(probe.TYPES[t], (f"n{at}",), probe.CPU) for at, key in enumerate(keys) for t in operands_of(key)
    ]
    graph = Graph("nodes", input_types=types)
    with graph:
        inputs = iter([value.tensor for value in graph.inputs])
        graph.output(*(apply(key, [next(inputs) for _ in operands_of(key)]) for key in keys))
    return graph


def compiled(keys: list[Key], path: Path) -> bool:
    """Compiles a graph into a file; false where MAX fails to."""
    try:
        probe.session().compile(graph_of(keys)).export_mef(path)
    except Exception as error:
        sys.stderr.write(f"{len(keys)} operations do not compile: {error.__cause__ or error}\n")
        return False
    return True


class Kernels:
    """Operations by their keys, compiled as outputs of graphs."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self.models: list[tuple[list[Key], Any]] = []
        wanted = set(keys)
        self.failed = {key for key in wanted if fails(key)}
        known = universe()
        more = sorted(wanted - self.failed - {*known})
        groups = [part[at : at + OUTPUTS] for part in (known, more) for at in range(0, len(part), OUTPUTS)]
        with TemporaryDirectory() as folder, ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
            paths = [Path(folder) / f"{at}.mef" for at in range(len(groups))]
            for group, path, fine in zip(groups, paths, pool.map(compiled, groups, paths), strict=True):
                self._take(group, path, fine)

    def _take(self, keys: list[Key], path: Path, fine: bool) -> None:
        """Takes the operations of a graph from its file, or finds those that do not compile."""
        if fine:
            self.models.append((keys, probe.session().init(engine.read(path))))
        elif len(keys) == 1:
            self.failed.add(keys[0])
        else:
            for half in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
                self._take(half, path, compiled(half, path))

    def compute(self, wanted: dict[Key, list[list[np.ndarray]]]) -> dict[Key, np.ndarray]:
        """For each key the operation of its operands, each the parts of one long vector."""
        found: dict[Key, np.ndarray] = {}
        for keys, model in self.models:
            if not any(key in wanted for key in keys):
                continue
            arrays = [array for key in keys for array in self._inputs(key, wanted.get(key))]
            buffers = [probe.buffer_of(array, t) for array, t in zip(arrays, types_in(keys), strict=True)]
            for key, result in zip(keys, model.execute(*buffers), strict=True):
                if key in wanted:
                    found[key] = probe.bits(result).view(common.dtype(name(result.dtype)))
        return found

    def _inputs(self, key: Key, parts: list[list[np.ndarray]] | None) -> list[np.ndarray]:
        if parts is None:
            return [np.ones(1, common.dtype(t)) for t in operands_of(key)]
        return [np.concatenate(side) for side in zip(*parts, strict=True)]


def operands_of(key: Key) -> list[str]:
    """The types of a key's inputs; ``where`` has its condition before them."""
    op, *types = key
    return ["bool", *types] if op == "where" else types


def types_in(keys: list[Key]) -> list[str]:
    return [t for key in keys for t in operands_of(key)]


def apply(key: Key, inputs: list[Any]) -> Any:
    """The operation of a key inside a graph."""
    return ops.where(*inputs) if key[0] == "where" else probe.apply(key[0], *inputs)


def number(text: str, dtype: str) -> np.ndarray:
    """A number as a constant of a type, which rounds it once."""
    value = common.number(text)
    return np.array([value]).astype(np.float64 if isinstance(value, float) else np.int64).astype(common.dtype(dtype))


def steps(tree: Tree, at: int, known: dict[tuple[str, str], str]) -> tuple[list[str], str, list[Key]]:
    """Of a node: its operands, the type they meet in, and the keys of what is computed."""
    op, *operands = tree.nodes[at]
    op = op.replace(",", " ")
    types = [tree.values[o].dtype.name if o in tree.values else "" for o in operands]
    given = [t for t in types if t]
    meets = given[0] if len(given) == 1 else common_type(*given, known)
    casts: list[Key] = [(f"cast {meets}", t) for t in given if t != meets]
    return operands, meets, [*casts, (op, *[meets] * len(operands))]


def as_tree(question: common.Question) -> common.Question:
    """A question as a tree of one node."""
    op, *texts = question
    if op == "tree":
        return question
    leaves = [text for text in texts if "@" in text]
    sides = (f"x{leaves.index(text)}" if text in leaves else f"={text}" for text in texts)
    return ["tree", " ".join((op.replace(" ", ","), *sides)), *leaves]


def answers(questions: list[common.Question]) -> list[str]:
    """The values of all questions and trees."""
    known: dict[tuple[str, str], str] = {}
    questions = [as_tree(question) for question in questions]
    trees = [Tree(q, t) for q, t in zip(questions, types_of(questions), strict=True)]
    for tree in trees:
        for at, text in enumerate(tree.question[2:]):
            tree.values[f"x{at}"] = common.operand(text).data
    kernels = Kernels(keys_of(trees, known))
    for at in range(max(len(tree.types) for tree in trees)):
        ready = [tree for tree in trees if at == len(tree.done) < len(tree.types)]
        for tree in ready:
            if tree.types[at][0] in "!?":
                tree.done.append(tree.types[at])
        _wave([tree for tree in ready if at == len(tree.done)], at, kernels, known)
    return [common.joined(tree.done) for tree in trees]


def keys_of(trees: list[Tree], known: dict[tuple[str, str], str]) -> set[Key]:
    """All that the trees need: their nodes' types are known before their values."""
    keys: set[Key] = set()
    for tree in trees:
        shadow = Tree(tree.question, tree.types, {k: v[:0] for k, v in tree.values.items()})
        for at, kind in enumerate(tree.types):
            if kind[0] in "!?":
                break
            keys.update(steps(shadow, at, known)[2])
            shadow.values[f"n{at}"] = np.empty(0, common.dtype(kind))
    return keys


def _wave(trees: list[Tree], at: int, kernels: Kernels, known: dict[tuple[str, str], str]) -> None:
    """One node of each tree: first the conversions of operands, then the operations."""
    casts: dict[Key, list[list[np.ndarray]]] = defaultdict(list)
    sides: dict[int, list[Any]] = {}
    plans = {id(tree): steps(tree, at, known) for tree in trees}
    for tree in trees:
        operands, meets, _ = plans[id(tree)]
        sides[id(tree)] = made = []
        for operand in operands:
            if operand not in tree.values:
                made.append(number(operand[1:], meets))
            elif (value := tree.values[operand]).dtype.name == meets:
                made.append(value)
            else:
                key = (f"cast {meets}", value.dtype.name)
                made.append((key, len(casts[key])))
                casts[key].append([value])
    converted = split(kernels, casts)
    calls: dict[Key, list[list[np.ndarray]]] = defaultdict(list)
    places: list[tuple[Tree, Key, int]] = []
    for tree in trees:
        values = [converted[s[0]][s[1]] if isinstance(s, tuple) else s for s in sides[id(tree)]]
        key = plans[id(tree)][2][-1]
        if key in kernels.failed or any(v is None for v in values):
            tree.done.append("?")
            tree.types = tree.types[: len(tree.done)]
            continue
        size = max(value.size for value in values)
        condition = [np.arange(size) % 2 == 0] if key[0] == "where" else []
        places.append((tree, key, len(calls[key])))
        calls[key].append([*condition, *(np.resize(value, size) for value in values)])
    results = split(kernels, calls)
    for tree, key, place in places:
        value = results[key][place]
        tree.values[f"n{at}"] = value
        tree.done.append(value.dtype.name + common.with_data(value))


def split(kernels: Kernels, wanted: dict[Key, list[list[np.ndarray]]]) -> dict[Key, list[np.ndarray | None]]:
    """What was computed of each part; None where the operation does not compile."""
    whole = kernels.compute({key: parts for key, parts in wanted.items() if key not in kernels.failed})
    found: dict[Key, list[np.ndarray | None]] = {}
    for key, parts in wanted.items():
        ends = np.cumsum([part[-1].size for part in parts])[:-1]
        found[key] = [None] * len(parts) if key in kernels.failed else list(np.split(whole[key], ends))
    return found
