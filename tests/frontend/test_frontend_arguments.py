"""No argument of the language is dropped: each parameter of each op changes what is compiled, is refused by name, or stands in
`IGNORED` with the reason.

A case gives each parameter two spellings. The call with all first spellings is compared with the calls in which one parameter
has its second: compiled are the module's text, what the compiler prints, and the message where it refuses. Parameters without a
case, such as new ones, fail the test.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from xdsl.dialects.builtin import ModuleOp

import weft.language as tl
from weft import dtypes
from weft.frontend import CompilationError, KernelFunction, PointerArgument
from weft.frontend.attributes import METHODS
from weft.frontend.library.ignored import IGNORED
from weft.language import elementwise
from weft.language.core import COMPOSITES, STUBS

Build = Callable[..., ModuleOp]
Spellings = Mapping[str, tuple[str, str]]

TYPES: dict[str, Any] = {
    "i": dtypes.int32, "j": dtypes.int32, "f": dtypes.float32, "g": dtypes.float32, "b": dtypes.bool_,
    "p": PointerArgument(dtypes.float32), "q": PointerArgument(dtypes.float32), "n": PointerArgument(dtypes.int32),
    "m": PointerArgument(dtypes.int32),
}  # fmt: skip


@KernelFunction
def total(x: Any, y: Any) -> Any:
    return x + y


@KernelFunction
def largest(x: Any, y: Any) -> Any:
    return tl.maximum(x, y)


_ONE: Final = {"x": ("F", "E")}
_TWO: Final = {**_ONE, "y": ("g", "E")}
_NAN: Final = {"propagate_nan": ("tl.PropagateNan.NONE", "tl.PropagateNan.ALL")}
_AXIS: Final = {"input": ("G", "G + 1.0"), "axis": ("0", "1"), "keep_dims": ("False", "True")}
_EXTREMUM: Final = {
    **_AXIS, "return_indices": ("True", "False"), "return_indices_tie_break_left": ("True", "False"),
}  # fmt: skip
_SCAN: Final = {"input": ("G", "G + 1.0"), "axis": ("0", "1"), "reverse": ("False", "True")}
_INDEX: Final = {**_AXIS, "tie_break_left": ("True", "False")}
_ORDER: Final = {"sem": ("'acquire'", "'relaxed'"), "scope": ("'cta'", "'sys'")}
_ATOMIC: Final = {"pointer": ("N", "M"), "val": ("1", "2"), "mask": ("None", "B"), **_ORDER}
_HINT: Final = {"input": ("I", "I + 1"), "values": ("4", "8")}
_CACHE: Final = {"cache_modifier": ("''", "'.cg'"), "eviction_policy": ("''", "'evict_last'")}
_RANGE: Final = {"arg1": ("0", "1"), "arg2": ("8", "16"), "step": ("1", "2")}
_FLAG: Final = ("False", "True")
_FIRST: Final = "tl.make_tensor_descriptor(n, (8, 8), (i, 1), (4, 8))"
_DESC: Final = (_FIRST, _FIRST.replace("i,", "j,"))
_ROW: Final = (_FIRST.replace("(4", "(1"), _FIRST.replace("i,", "j,").replace("(4", "(1"))
_BLOCK: Final = "tl.make_block_ptr(p, (i, 8), (8, 1), (0, 0), (4, 4), (1, 0))"

CASES: Final[dict[str, Spellings]] = {
    "program_id": {"axis": ("0", "1")},
    "num_programs": {"axis": ("0", "1")},
    "arange": {"start": ("0", "8"), "end": ("16", "32")},
    "full": {"shape": ("(4,)", "(8,)"), "value": ("1", "2"), "dtype": ("tl.int32", "tl.int8")},
    "zeros": {"shape": ("(4,)", "(8,)"), "dtype": ("tl.int32", "tl.int8")},
    "zeros_like": {"input": ("F", "G")},
    "cast": {
        "input": ("F", "E"), "dtype": ("tl.int32", "tl.uint32"), "fp_downcast_rounding": ("None", "'rtz'"), "bitcast": _FLAG,
    },
    "to_tensor": {"x": ("1", "2")},
    "range": {
        **_RANGE, "num_stages": ("None", "3"), "loop_unroll_factor": ("None", "2"), "disallow_acc_multi_buffer": _FLAG,
        "flatten": _FLAG, "warp_specialize": _FLAG, "disable_licm": _FLAG,
    },
    "static_range": _RANGE,
    "static_assert": {"cond": ("False", "True"), "msg": ("''", "'no'")},
    "static_print": {
        "values": ("1, 2", "1, 3"), "sep": ("' '", "'-'"), "end": ("'!'", "'?'"),
        "file": ("None", "sys.stderr"), "flush": _FLAG,
    },
    "device_assert": {"cond": ("b", "i < j"), "msg": ("''", "'no'"), "mask": ("None", "B")},
    "device_print": {"prefix": ("'x'", "'y'"), "args": ("F", "f, E"), "hex": _FLAG},
    "expect_zero": {"x": ("F", "E"), "mask": ("B", "b")},
    "map_elementwise": {"scalar_fn": ("total", "largest"), "args": ("I, J", "I, I"), "pack": ("1", "2")},
    "condition": {"arg1": ("b", "i < j"), "disable_licm": _FLAG},
    "assume": {"cond": ("b", "i < j")},
    "multiple_of": _HINT,
    "max_contiguous": _HINT,
    "max_constancy": _HINT,
    "where": {"condition": ("B", "b"), **_TWO},
    "minimum": {**_TWO, **_NAN},
    "maximum": {**_TWO, **_NAN},
    "clamp": {**_ONE, "min": ("0.0", "1.0"), "max": ("2.0", "3.0"), **_NAN},
    **dict.fromkeys(
        ("add", "sub", "mul"), {"x": ("i", "j"), "y": ("I", "J"), "sanitize_overflow": ("True", "False")}
    ),
    "cdiv": {"x": ("i", "I"), "div": ("2", "4")},
    "fdiv": {**_TWO, "ieee_rounding": _FLAG, "approx": _FLAG},
    "div_rn": _TWO,
    "fma": {**_TWO, "z": ("f", "g")},
    "umulhi": {"x": ("I", "i"), "y": ("I", "2")},
    **dict.fromkeys(("exp", "exp2", "log", "log2", "sqrt", "sqrt_rn", "rsqrt", "sin", "cos", "tanh", "erf"), _ONE),
    **dict.fromkeys(("sigmoid", "abs", "floor", "ceil"), _ONE),
    "meaning": {"name": ("'add'", "'floor_divide'"), "operands": ("F, E", "F, F")},
    "load": {
        "pointer": ("P", "Q"), "mask": ("B", "b"), "other": ("None", "1.0"), "boundary_check": ("()", "(0,)"),
        "padding_option": ("''", "'nan'"), **_CACHE, "volatile": _FLAG,
    },
    "store": {
        "pointer": ("P", "Q"), "value": ("1.0", "2.0"), "mask": ("None", "B"), "boundary_check": ("()", "(0,)"), **_CACHE,
    },
    "make_block_ptr": {
        "base": ("p", "n"), "shape": ("(i, 8)", "(j, 8)"), "strides": ("(8, 1)", "(8, 2)"), "offsets": ("(0, 0)", "(j, 0)"),
        "block_shape": ("(4, 4)", "(4, 8)"), "order": ("(1, 0)", "(0, 1)"),
    },
    "make_tensor_descriptor": {
        "base": ("n", "p"), "shape": ("(i, 8)", "(16, i)"), "strides": ("(i, 1)", "(j, 1)"), "block_shape": ("(4, 8)", "(4, 4)"),
        "padding_option": ("'zero'", "'nan'"),
    },
    "load_tensor_descriptor": {"desc": _DESC, "offsets": ("(0, 0)", "(i, 0)")},
    "store_tensor_descriptor": {"desc": _DESC, "offsets": ("(0, 0)", "(i, 0)"), "value": ("H", "H + 1")},
    "tensor_descriptor.load": {"self": _DESC, "offsets": ("(0, 0)", "(i, 0)")},
    "tensor_descriptor.store": {"self": _DESC, "offsets": ("(0, 0)", "(i, 0)"), "value": ("H", "H + 1")},
    "tensor_descriptor.gather": {"self": _ROW, "x_offsets": ("I", "I + 1"), "y_offset": ("0", "i")},
    "tensor_descriptor.scatter": {
        "self": _ROW, "value": ("tl.zeros((16, 8), tl.int32)", "tl.zeros((16, 8), tl.int8)"), "x_offsets": ("I", "I + 1"),
        "y_offset": ("0", "i"),
    },
    **dict.fromkeys(
        [f"tensor_descriptor.atomic_{kind}" for kind in ("add", "min", "max", "and", "or", "xor")],
        {"self": _DESC, "offsets": ("(0, 0)", "(i, 0)"), "value": ("H", "H + 1")},
    ),
    "advance": {"base": (_BLOCK, _BLOCK.replace("(p,", "(n,")), "offsets": ("(0, 1)", "(i, 1)")},
    **{f"atomic_{kind}": _ATOMIC for kind in ("add", "max", "min", "and", "or", "xor", "xchg")},
    "atomic_load": {"pointer": ("N", "M"), "mask": ("None", "B"), "sem": ("'acquire'", "'relaxed'"), "scope": ("'cta'", "'sys'")},
    "atomic_store": {
        "pointer": ("N", "M"), "val": ("1", "2"), "mask": ("None", "B"), "sem": ("'release'", "'relaxed'"),
        "scope": ("'cta'", "'sys'"),
    },
    "atomic_cas": {"pointer": ("N", "M"), "cmp": ("0", "1"), "val": ("2", "3"), **_ORDER},
    "debug_barrier": {},
    **dict.fromkeys(("globaltimer", "smid", "num_threads", "num_warps"), {}),
    "inline_asm_elementwise": {
        "asm": ("'mov.b32 $0, $1;'", "'neg.s32 $0, $1;'"), "constraints": ("'=r,r'", "'=r,0'"),
        "args": ("[I.to(tl.int16)]", "[J.to(tl.int16)]"),
        "dtype": ("tl.int16", "tl.float16"), "is_pure": ("True", "False"), "pack": ("1", "2"),
    },
    "sum": {**_AXIS, "dtype": ("None", "tl.float64")},
    "max": _EXTREMUM,
    "min": _EXTREMUM,
    "argmax": _INDEX,
    "argmin": _INDEX,
    **dict.fromkeys(("xor_sum", "reduce_or"), {**_AXIS, "input": ("H", "H + 1")}),
    "reduce": {**_AXIS, "combine_fn": ("total", "largest")},
    "associative_scan": {**_SCAN, "combine_fn": ("total", "largest")},
    **dict.fromkeys(("cumsum", "cumprod"), {**_SCAN, "dtype": ("None", "tl.float64")}),
    "gather": {"src": ("G", "G + 1.0"), "index": ("H", "H + 1"), "axis": ("0", "1")},
    "histogram": {"input": ("I", "I + 1"), "num_bins": ("16", "32"), "mask": ("None", "B")},
    "softmax": {"x": ("G", "G + 1.0"), "dim": ("0", "1"), "keep_dims": ("None", "True"), "ieee_rounding": _FLAG},
    "dot": {
        **dict.fromkeys(("input", "other"), ("K.to(tl.float16)", "L.to(tl.float16)")),
        "acc": ("None", "K"), "input_precision": ("None", "'tf32x3'"),
        "allow_tf32": ("None", "True"), "max_num_imprecise_acc": ("None", "8"), "out_dtype": ("None", "tl.float16"),
    },
    "broadcast": {"input": ("F", "f"), "other": ("F", "E[None, :]")},
    "broadcast_to": {"input": ("f", "F"), "shape": ("(4, 16)", "(8, 16)")},
    "expand_dims": {"input": ("F", "G"), "axis": ("0", "1")},
    "reshape": {"input": ("G", "H"), "shape": ("(8, 4)", "(2, 16)"), "can_reorder": _FLAG},
    "view": {"input": ("G", "H"), "shape": ("(8, 4)", "(2, 16)")},
    "ravel": {"x": ("G", "H"), "can_reorder": _FLAG},
    "trans": {"input": ("G", "H"), "dims": ("", "0, 1")},
    "permute": {"input": ("G", "H"), "dims": ("1, 0", "0, 1")},
    "join": {"a": ("F", "E"), "b": ("E", "F")},
    "split": {"a": ("G.reshape(16, 2)", "H.reshape(16, 2)")},
    "flip": {"x": ("G", "H"), "dim": ("0", "1")},
}  # fmt: skip
"""Op -> parameter -> its two spellings. ``F`` and ``E`` are tiles of 16 floats, ``I``, ``B``, ``P``, ``Q``, ``N``, ``M`` of 16 of
their letters, ``G`` and ``H`` 4 by 8 of floats and integers, ``K`` and ``L`` 16 by 16."""

_BLOCKS_ONLY: Final = "'{}' is for block pointers, which know the shape of their array"
REFUSED: Final = {
    (
        "make_tensor_descriptor",
        "padding_option",
    ): "padding with NaN needs an array of floats, found pointer<int32> scalar",
    ("load", "boundary_check"): _BLOCKS_ONLY.format("boundary_check"),
    ("load", "padding_option"): _BLOCKS_ONLY.format("padding_option"),
    ("store", "boundary_check"): _BLOCKS_ONLY.format("boundary_check"),
    ("cast", "fp_downcast_rounding"): (
        "fp_downcast_rounding should be set only for truncating fp conversions. Source scalar type is fp32 and destination "
        "type is int32"
    ),
    ("map_elementwise", "pack"): "total takes 2 arguments, and the map passes 4",
}
"""Second spellings that are refused, with the message."""

SIGNATURES: Final = {name: inspect.signature(stub) for stub, name in STUBS.items()}
BY_NAME: Final = {name: stub for stub, name in STUBS.items()}
PARAMETERS: Final = [(name, parameter) for name, signature in SIGNATURES.items() for parameter in signature.parameters]


def spell(name: str, changed: str | None) -> str:
    """The call of an op in which ``changed`` has its second spelling and all others their first."""
    arguments: list[str] = []
    for parameter in SIGNATURES[name].parameters.values():
        text = CASES[name][parameter.name][parameter.name == changed]
        if text:
            arguments.append(f"{parameter.name}={text}" if parameter.kind is parameter.KEYWORD_ONLY else text)
    return f"tl.{'extra.libdevice.' if name == 'tanh' else ''}{name}({', '.join(arguments)})"


def compiled(build: Build, capsys: pytest.CaptureFixture[str], call: str) -> str:
    """What compiling a kernel with the call gives: the module and what is printed, or the message of the refusal."""
    body = [f"{name.upper()} = tl.broadcast_to({name}, (16,))" for name in TYPES]
    body += ["E = tl.broadcast_to(g, (16,))", "G = tl.broadcast_to(f, (4, 8))", "H = tl.broadcast_to(i, (4, 8))"]
    body += ["K = tl.broadcast_to(f, (16, 16))", "L = tl.broadcast_to(g, (16, 16))"]
    if call.startswith(("tl.range(", "tl.static_range(")):
        body += [f"for k in {call}:", "    tl.store(p + k, 1.0)"]
    else:
        body += [f"result = {call}", "tl.static_print(result)"]
    source = [f"def kernel({', '.join(TYPES)}):\n", *(f"    {line}\n" for line in body)]
    filename = f"<arguments {call}>"
    linecache.cache[filename] = (1, None, source, filename)
    names: dict[str, Any] = {"tl": tl, "sys": sys, "total": total, "largest": largest}
    exec(compile("".join(source), filename, "exec"), names)
    kernel = KernelFunction(names["kernel"])
    kernel.debug = True  # assertions are compiled
    try:
        return f"{build(kernel, **TYPES)}{capsys.readouterr().out}"
    except CompilationError as error:
        return str(error).partition("\n")[0]


def test_every_parameter_has_a_case() -> None:
    found = {(name, parameter) for name, spellings in CASES.items() for parameter in spellings}
    assert found == set(PARAMETERS)
    assert CASES.keys() == SIGNATURES.keys()


def test_public_names_are_ops_or_known() -> None:
    """A function that is public in the language is an op, and so walked above, or written in the language."""
    functions = {
        value
        for module in (tl, tl.math, tl.extra.libdevice, tl.extra.cuda)
        for name in module.__all__
        if inspect.isfunction(value := getattr(module, name))
    }
    functions |= {
        value for name, value in vars(tl.tensor_descriptor).items() if inspect.isfunction(value) and name[0] != "_"
    }
    assert functions - STUBS.keys() - COMPOSITES.keys() == {tl.constexpr_function, tl.aggregate_replace}
    private = {function for function in COMPOSITES if function.__name__.startswith("_")}
    assert (STUBS.keys() | COMPOSITES.keys()) - functions == private | {
        METHODS[name] for name in ("item", "logical_and", "logical_or")
    }
    assert elementwise.tanh in functions


def test_the_method_to_has_the_parameters_of_cast() -> None:
    assert list(inspect.signature(tl.tensor.to).parameters) == [
        "self",
        *list(inspect.signature(tl.cast).parameters)[1:],
    ]


UNCHANGED: Final[dict[str, str]] = {}
"""What compiling each call with the first spelling of all arguments gives."""


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
def test_an_argument_is_not_dropped(
    build: Build, capsys: pytest.CaptureFixture[str], name: str, parameter: str
) -> None:
    if name not in UNCHANGED:
        UNCHANGED[name] = compiled(build, capsys, spell(name, None))
    first, second = UNCHANGED[name], compiled(build, capsys, spell(name, parameter))
    if (message := REFUSED.get((name, parameter))) is not None:
        assert second == message
        assert "func.func @kernel" in first
        return
    assert "func.func @kernel" in first or name == "static_assert"
    assert "func.func @kernel" in second or name == "static_assert"
    assert (first == second) == (parameter in IGNORED.get(BY_NAME[name], {}))


def test_the_table_names_parameters_and_reasons() -> None:
    table = [(STUBS[stub], parameter) for stub, row in IGNORED.items() for parameter in row]
    assert set(table) <= set(PARAMETERS)
    assert all(reason for row in IGNORED.values() for reason in row.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("tl.add(f, g, sanitize_overflow=1)", "'sanitize_overflow' is True or False, found 1"),
        ("tl.fdiv(f, g, ieee_rounding='rn')", "'ieee_rounding' is True or False, found 'rn'"),
        ("tl.ravel(G, can_reorder=b)", "'can_reorder' must be known at compile time, found bool scalar"),
        ("G.max(0, True, 2)", "'return_indices_tie_break_left' is True or False, found 2"),
        ("tl.dot(K, L, allow_tf32='tf32')", "'allow_tf32' is True or False, found 'tf32'"),
        (
            "tl.dot(K, L, input_precision='tf33')",
            "'input_precision' is one of 'ieee', 'tf32', 'tf32x3', 'bf16x3', 'bf16x6', found 'tf33'",
        ),
        (
            "tl.dot(K, L, input_precision='ieee', allow_tf32=False)",
            "'allow_tf32' and 'input_precision' say the same thing: pass one of them",
        ),
        ("tl.dot(K, L, max_num_imprecise_acc=-1)", "'max_num_imprecise_acc' is at least 0, found -1"),
        ("tl.dot(K, L, max_num_imprecise_acc=1.5)", "'max_num_imprecise_acc' is an integer, found 1.5"),
        (
            "tl.dot(K.to(tl.float8e5), L.to(tl.float8e5), max_num_imprecise_acc=17)",
            "'max_num_imprecise_acc' is at most the inner size 16, found 17",
        ),
    ],
)
def test_values_are_checked(build: Build, capsys: pytest.CaptureFixture[str], call: str, message: str) -> None:
    assert compiled(build, capsys, call) == message


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ("", None),
        (", allow_tf32=False", None),
        (", input_precision='ieee'", None),
        (", allow_tf32=True", 'input_precision = "tf32"'),
        (", input_precision='bf16x6'", 'input_precision = "bf16x6"'),
        (", max_num_imprecise_acc=0", "max_num_imprecise_acc = 0 : i64"),
    ],
)
def test_precision_of_a_product(
    build: Build, capsys: pytest.CaptureFixture[str], arguments: str, written: str | None
) -> None:
    text = compiled(build, capsys, f"tl.dot(K, L{arguments})")
    assert "tile.dot" in text
    for word in ("input_precision", "max_num_imprecise_acc"):
        assert (word in text) == (written is not None and written.startswith(word))
    assert written is None or written in text
