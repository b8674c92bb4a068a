"""Triton's textual encodings and Gluon's constructors, to linear layouts and, for blocked, linear and shared ones, back.

Both spell a family and its parameters::

    #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
    BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0])

One table says which family of this library each name is and how its parameters are called there. An encoding does not know
the tensor's shape, so `Encoding.layout` takes it. Aliases (``#mma = #ttg.nvidia_mma<...>``) come from the module's text, which
`parse_module` reads. A name that is not in the table is an error, as is a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.amd import amd_mfma, amd_mfma_operand, amd_wmma, amd_wmma_operand
from weft.layout.families.distributed import blocked, blocked_operand, sliced
from weft.layout.families.nvidia import nvidia_mma, nvidia_mma_operand
from weft.layout.memory.nvmma import nvmma_shared
from weft.layout.memory.shared import linear_memory, mma_swizzled
from weft.nearest import did_you_mean

Family = Callable[..., LinearLayout]


@dataclass(frozen=True)
class Kind:
    """One kind of encoding: its names in Triton's text and in Gluon, the family, and the parameters as (Triton's name, Gluon's
    name, the family's). Parameters of no consequence to the layout have the family's name None."""

    triton: str
    gluon: str
    family: Family | None
    parameters: tuple[tuple[str, str, str | None], ...]
    operand: Family | None = None
    """The family of the operands of an instruction whose result this is."""


_CGA: Final = ("CGALayout", "cga_layout", "cga_layout")
_WARPS: Final = ("warpsPerCTA", "warps_per_cta", "warps_per_cta")
_INSTRUCTION: Final = ("instrShape", "instr_shape", "instr_shape")
_ORDER: Final = ("order", "order", "order")


def _linear(
    shape: Sequence[int], register: Any, lane: Any, warp: Any, block: Any, sizes: Sequence[int] | None = None
) -> LinearLayout:
    if sizes is not None and list(sizes) != list(shape):
        raise ValueError(f"ttg.linear: the bases are of a tensor of shape {tuple(sizes)}, found {tuple(shape)}")
    outputs = {f"dim{axis}": size for axis, size in enumerate(shape)}
    return LinearLayout({"register": register, "lane": lane, "warp": warp, "block": block}, outputs)


def _shared_linear(shape: Sequence[int], offset: Any, block: Any = (), alignment: int | None = None) -> LinearLayout:
    return linear_memory(shape, offset, block)


KINDS: Final[tuple[Kind, ...]] = (
    Kind(
        "ttg.blocked",
        "BlockedLayout",
        blocked,
        (
            ("sizePerThread", "size_per_thread", "size_per_thread"),
            ("threadsPerWarp", "threads_per_warp", "threads_per_warp"),
            _WARPS,
            _ORDER,
            _CGA,
        ),
        blocked_operand,
    ),
    Kind(
        "ttg.linear",
        "DistributedLinearLayout",
        _linear,
        (
            ("register", "reg_bases", "register"),
            ("lane", "lane_bases", "lane"),
            ("warp", "warp_bases", "warp"),
            ("block", "block_bases", "block"),
            ("", "shape", "sizes"),
        ),
    ),
    Kind("ttg.slice", "SliceLayout", None, (("dim", "dim", "dim"), ("parent", "parent", "parent"))),
    Kind(
        "ttg.dot_op",
        "DotOperandLayout",
        None,
        (
            ("opIdx", "operand_index", "operand_index"),
            ("parent", "parent", "parent"),
            ("kWidth", "k_width", "k_width"),
        ),
    ),
    Kind(
        "ttg.nvidia_mma",
        "NVMMADistributedLayout",
        nvidia_mma,
        (
            ("versionMajor", "version", "version"),
            ("versionMinor", "versionMinor", None),
            _WARPS,
            _INSTRUCTION,
            _CGA,
        ),
        nvidia_mma_operand,
    ),
    Kind(
        "ttg.amd_mfma",
        "AMDMFMALayout",
        amd_mfma,
        (
            ("version", "version", "version"),
            _WARPS,
            _INSTRUCTION,
            ("isTransposed", "transposed", "transposed"),
            ("tilesPerWarp", "tiles_per_warp", "tiles_per_warp"),
            ("elementBitWidth", "element_bitwidth", "element_bitwidth"),
            _CGA,
        ),
        amd_mfma_operand,
    ),
    Kind(
        "ttg.amd_wmma",
        "AMDWMMALayout",
        amd_wmma,
        (
            ("version", "version", "version"),
            ("isTranspose", "transposed", "transposed"),
            ("warp", "warp_bases", "warp_bases"),
            ("register", "reg_bases", "reg_bases"),
            _INSTRUCTION,
            ("rank", "rank", None),
            _CGA,
        ),
        amd_wmma_operand,
    ),
    Kind(
        "ttg.swizzled_shared",
        "SwizzledSharedLayout",
        mma_swizzled,
        (
            ("vec", "vec", "vec"),
            ("perPhase", "per_phase", "per_phase"),
            ("maxPhase", "max_phase", "max_phase"),
            _ORDER,
            _CGA,
        ),
    ),
    Kind(
        "ttg.nvmma_shared",
        "NVMMASharedLayout",
        nvmma_shared,
        (
            ("swizzlingByteWidth", "swizzle_byte_width", "swizzle_bytes"),
            ("transposed", "transposed", "transposed"),
            ("elementBitWidth", "element_bitwidth", "element_bits"),
            ("fp4Padded", "fp4_padded", "fp4_padded"),
            ("rank", "rank", None),
            _CGA,
        ),
    ),
    Kind(
        "ttg.shared_linear",
        "SharedLinearLayout",
        _shared_linear,
        (
            ("offset", "offset_bases", "offset"),
            ("block", "block_bases", "block"),
            ("alignment", "alignment", "alignment"),
        ),
    ),
)
"""Every kind of encoding that has a layout here."""

_BY_NAME: Final[dict[str, Kind]] = {name: kind for kind in KINDS for name in (kind.triton, kind.gluon)}


@dataclass(frozen=True)
class Encoding:
    """A kind of layout with its parameters under the family's names, no shape yet."""

    kind: Kind
    parameters: Mapping[str, Any] = field(hash=False)

    def triton(self) -> str:
        """The text of Triton's attribute."""
        return f"#{self.kind.triton}<{{{', '.join(self._fields(0))}}}>"

    def gluon(self) -> str:
        """The call of Gluon's constructor."""
        return f"{self.kind.gluon}({', '.join(self._fields(1))})"

    def _fields(self, spelling: int) -> list[str]:
        names = {row[2]: row[spelling] for row in self.kind.parameters if row[2] is not None}
        equals = "=" if spelling else " = "
        given = self.parameters.items()
        fields = [f"{names[name]}{equals}{_spelled(value, spelling)}" for name, value in given if names[name]]
        if self.kind.triton == "ttg.nvidia_mma" and not spelling:
            fields.insert(1, "versionMinor = 0")
        return fields

    def layout(self, shape: Sequence[int]) -> LinearLayout:
        """The layout of a tensor of ``shape``; `ValueError` where the family refuses it."""
        parent = self.parameters.get("parent")
        rest = {name: value for name, value in self.parameters.items() if name != "parent"}
        if isinstance(parent, Encoding):
            return _of_parent(parent, rest, shape)
        if self.kind.family is None:
            raise ValueError(f"{self.kind.triton} needs a parent encoding, found {parent!r}")
        return self.kind.family(shape, **rest)


def _spelled(value: Any, spelling: int) -> str:
    if isinstance(value, Encoding):
        return value.gluon() if spelling else value.triton()
    return str(value) if spelling or not isinstance(value, bool) else str(value).lower()


def _of_parent(parent: Encoding, parameters: Mapping[str, Any], shape: Sequence[int]) -> LinearLayout:
    if "dim" in parameters:
        dim = int(parameters["dim"])
        return sliced(parent.layout((*shape[:dim], 1, *shape[dim:])), dim)
    family = parent.kind.operand
    if family is None:
        raise ValueError(
            f"ttg.dot_op of {parent.kind.triton} has no layout, expected the parent to be an instruction's result"
        )
    given = dict(parent.parameters)
    if family is blocked_operand:
        return family(shape, operand_index=parameters["operand_index"], **given)
    return family(shape, operand_index=parameters["operand_index"], k_width=parameters["k_width"], **given)


def parse_encoding(text: str, aliases: Mapping[str, Encoding] | None = None) -> Encoding:
    """The encoding that Triton's text (``#ttg.blocked<{...}>``) or Gluon's (``BlockedLayout(...)``) spells. ``aliases`` are the
    names it may use. `ValueError` for an unknown kind (with the nearest spelling), parameter or alias, and for broken text."""
    reader = _Reader(text, dict(aliases or {}))
    found = reader.value()
    reader.end()
    if not isinstance(found, Encoding):
        raise ValueError(f"not an encoding: {text!r}")
    return found


def parse_module(text: str) -> dict[str, Encoding]:
    """The layout aliases that a module of Triton's IR defines, by name (``#blocked``); other aliases are left out."""
    aliases: dict[str, Encoding] = {}
    for name, spelled in re.findall(r"^(#\w+) = (#\S.*)$", text, re.MULTILINE):
        if re.match(r"#ttg\.\w+<", spelled):
            aliases[name] = parse_encoding(spelled, aliases)
    return aliases


def encoding_of(layout: LinearLayout) -> Encoding:
    """A layout as Triton's most general encoding: ``ttg.linear`` of a distributed one, ``ttg.shared_linear`` of a memory's (from
    ``offset``). `ValueError` for other input dimensions."""
    memory = "offset" in layout.in_dims
    names = ("offset", "block") if memory else ("register", "lane", "warp", "block")
    known = {name: layout.columns(name) if name in layout.in_dims else () for name in names}
    unknown = [name for name in layout.in_dims if name not in names]
    if unknown:
        raise ValueError(f"Triton has no input dimension {', '.join(unknown)}; it has {', '.join(names)}")
    bases = {name: [list(layout.unflatten(column)) for column in columns] for name, columns in known.items()}
    if memory and not bases["block"]:
        del bases["block"]
    if memory:
        return Encoding(_BY_NAME["ttg.shared_linear"], bases)
    return Encoding(_BY_NAME["ttg.linear"], {**bases, "sizes": list(layout.shape)})


_TOKENS: Final = re.compile(r"\s*(#?[A-Za-z_][\w.]*|-?\d+|[\[\]{}()<>=,:]|#\w+)")


class _Reader:
    """Reads both spellings: what differs is the brackets."""

    def __init__(self, text: str, aliases: dict[str, Encoding]) -> None:
        self.text = text
        self.at = 0
        self.aliases = aliases

    def value(self) -> Any:
        token = self._take()
        if token == "[":
            return self._items("]")
        if token == "{":
            return self._fields("}")
        if token in ("true", "True", "false", "False"):
            return token.lower() == "true"
        if token == "None":
            return None
        if re.fullmatch(r"-?\d+", token):
            return int(token)
        name = token.removeprefix("#")
        if token in self.aliases:
            return self.aliases[token]
        if name in _BY_NAME or self._peek() in ("<", "("):
            return self._encoding(name)
        if token.startswith("#"):
            raise ValueError(f"unknown alias '{token}'; known: {', '.join(self.aliases) or 'none'}")
        raise self._error("a value", token)

    def end(self) -> None:
        if self.text[self.at :].strip():
            raise self._error("the end", self.text[self.at :].strip())

    def _encoding(self, name: str) -> Encoding:
        kind = _BY_NAME.get(name)
        if kind is None:
            hint = did_you_mean(name, _BY_NAME, f"known: {', '.join(_BY_NAME)}")
            raise ValueError(f"unknown encoding '{name}'; {hint}")
        if self._take() == "<":
            self._expect("{")
            fields = self._fields("}")
            self._expect(">")
        else:
            fields = self._fields(")")
        return Encoding(kind, _renamed(kind, fields))

    def _items(self, close: str) -> list[Any]:
        items: list[Any] = []
        while self._peek() != close:
            items.append(self.value())
            if self._peek() == ",":
                self._take()
        self._take()
        return items

    def _fields(self, close: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while self._peek() != close:
            name = self._take()
            self._expect("=")
            fields[name] = self.value()
            if self._peek() == ",":
                self._take()
        self._take()
        return fields

    def _peek(self) -> str | None:
        found = _TOKENS.match(self.text, self.at)
        return found[1] if found else None

    def _take(self) -> str:
        found = _TOKENS.match(self.text, self.at)
        if found is None:
            raise self._error("more", self.text[self.at :].strip() or "the end")
        self.at = found.end()
        return found[1]

    def _expect(self, token: str) -> None:
        if (found := self._take()) != token:
            raise self._error(f"'{token}'", found)

    def _error(self, expected: str, found: str) -> ValueError:
        return ValueError(f"not an encoding: expected {expected}, found {found!r} in {self.text!r}")


def _renamed(kind: Kind, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters under the family's names, those without consequence left out."""
    names = {spelled: ours for triton, gluon, ours in kind.parameters for spelled in (triton, gluon)}
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        flat |= cast("dict[str, Any]", value) if name == "ctaLayout" and isinstance(value, dict) else {name: value}
    unknown = [name for name in flat if name not in names]
    if unknown:
        raise ValueError(
            f"{kind.triton} has no parameter '{unknown[0]}'; it has {', '.join(p[0] for p in kind.parameters)}"
        )
    result = {ours: value for name, value in flat.items() if (ours := names[name]) is not None}
    if isinstance(version := result.get("version"), list):  # Gluon's [major, minor]
        result["version"] = version[0]
    return result
