"""The `tile` dialect: what a kernel does to tiles, before and after layouts are chosen.

The dialects arith and math are not reused: xDSL's (0.74) take no tensors in cmpi, select or the casts, and their integers
are signless, so an op's name would have to repeat the signedness. The *types* carry it here, and an elementwise op is a kind
from a table (`UNARY`, `BINARY`, `COMPARE`): frontend, reference and emitters have one entry per kind and can be checked
against the table for completeness.

All elementwise ops work on scalars and tensors alike; operands have equal shapes and layouts (conversions and
broadcasts are explicit). Control flow is scf's, functions are func's. Every op has a location (`weft.ir.location`).

Meaning, where it is not obvious, is defined by `weft.reference`; in short:

- integers wrap; ``div`` and ``rem`` round toward zero (C); ``x / 0`` and shifts by the width or more are the
  reference's choice (`weft.reference.elementwise` lists them);
- float arithmetic on types narrower than float32 is computed in float32 and rounded once (`weft.dtypes`);
- a masked-off lane of a load gives ``other`` or, without it, an unspecified value (the reference gives 0);
- ``reduce`` applies the combine region along the axis in an unspecified order, ``scan`` in that of the axis;
- ``gather`` gives an unspecified value (the reference gives 0) where the index is outside of the axis.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from weft.ir.assembly import AssemblyOp, ClockOp, ProcessorOp
from weft.ir.base import (
    ATOMIC,
    BINARY,
    BOOL,
    COMMUTATIVE,
    COMPARE,
    FLOAT,
    INTEGER,
    TIED_ZEROS,
    UNARY,
    TileOp,
    class_of,
    same_either_way,
)
from weft.ir.classes import (
    Addressing,
    Collective,
    Conversion,
    Elementwise,
    Generator,
    GridFact,
    OpClass,
    Rearranging,
    Shape,
    View,
    is_a,
)
from weft.ir.collective import PRECISIONS, CombiningOp, DotOp, GatherOp, HistogramOp, ReduceOp, ScanOp, YieldOp
from weft.ir.elementwise import (
    BinaryOp,
    BitcastOp,
    CastOp,
    CompareOp,
    FmaOp,
    HintOp,
    SelectOp,
    UnaryOp,
)
from weft.ir.memory import (
    EVICTIONS,
    LOAD_CACHES,
    SCOPES,
    SEMANTICS,
    STORE_CACHES,
    Access,
    AddPtrOp,
    AssertOp,
    AssumeOp,
    AtomicCasOp,
    AtomicRmwOp,
    BarrierOp,
    LoadOp,
    Ordering,
    PrintOp,
    StoreOp,
    is_access,
    may_exchange,
    ordering_of,
)
from weft.ir.rearranging import FlipOp, JoinOp, SplitOp
from weft.ir.types import LayoutAttr, PointerType
from weft.ir.values import (
    ArangeOp,
    BroadcastOp,
    ConstantOp,
    ConvertLayoutOp,
    ExpandDimsOp,
    NumProgramsOp,
    ProgramIdOp,
    ReshapeOp,
    ShapeOp,
    SplatOp,
    TransOp,
)

Tile = Dialect(
    "tile",
    [
        ConstantOp, ProgramIdOp, NumProgramsOp, ArangeOp,
        SplatOp, BroadcastOp, ExpandDimsOp, ReshapeOp, TransOp, ConvertLayoutOp,
        JoinOp, SplitOp, FlipOp,
        UnaryOp, BinaryOp, CompareOp, SelectOp, FmaOp, CastOp, BitcastOp, HintOp, AssumeOp, AssertOp,
        AddPtrOp, LoadOp, StoreOp, AtomicRmwOp, AtomicCasOp, BarrierOp, PrintOp,
        AssemblyOp, ClockOp, ProcessorOp,
        YieldOp, ReduceOp, ScanOp, GatherOp, HistogramOp, DotOp,
    ],
    [PointerType, LayoutAttr],
)  # fmt: skip

__all__ = [
    "ATOMIC", "BINARY", "COMMUTATIVE", "COMPARE", "UNARY", "BOOL", "FLOAT", "INTEGER", "TIED_ZEROS", "class_of",
    "same_either_way",
    "TileOp", "Tile",
    "Addressing", "Collective", "Conversion", "Elementwise", "Generator", "GridFact", "OpClass", "Rearranging", "Shape",
    "View", "is_a",
    "ShapeOp",
    "ConstantOp", "ProgramIdOp", "NumProgramsOp", "ArangeOp",
    "SplatOp", "BroadcastOp", "ExpandDimsOp", "ReshapeOp", "TransOp", "ConvertLayoutOp",
    "JoinOp", "SplitOp", "FlipOp",
    "UnaryOp", "BinaryOp", "CompareOp", "SelectOp", "FmaOp", "CastOp", "BitcastOp", "HintOp", "AssumeOp", "AssertOp",
    "AddPtrOp", "LoadOp", "StoreOp", "AtomicRmwOp", "AtomicCasOp", "BarrierOp", "PrintOp",
    "AssemblyOp", "ClockOp", "ProcessorOp",
    "Access", "is_access", "Ordering", "ordering_of", "may_exchange",
    "SEMANTICS", "SCOPES", "LOAD_CACHES", "STORE_CACHES", "EVICTIONS",
    "YieldOp", "CombiningOp", "ReduceOp", "ScanOp", "GatherOp", "HistogramOp", "DotOp", "PRECISIONS",
]  # fmt: skip
