"""Debug information: the user's line of each instruction, as ``.loc`` directives in PTX.

A position is a `DILocation`; that of an op in an inlined helper points to the location of the call (``inlined_at`` in PTX). So
faults of the emulator, profiles and debuggers name the user's lines.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from xdsl.dialects import func
from xdsl.ir import Operation

from weft.codegen.llvm.types import I32
from weft.ir.direct import ops_in
from weft.ir.location import Position, positions

_VERSION: Final = 3
"""LLVM's version of debug information."""


class Lines:
    """The debug information of a module with one kernel."""

    def __init__(self, module: ir.Module, function: ir.Function, kernel: func.FuncOp):
        self._module = module
        self._files: dict[str, Any] = {}
        self._scopes: dict[tuple[str, str], Any] = {}
        self._locations: dict[tuple[Position, ...], Any] = {}
        module.add_named_metadata(
            "llvm.module.flags", module.add_metadata([I32(2), "Debug Info Version", I32(_VERSION)])
        )
        chain = _first_positions(kernel)
        outer = chain[-1] if chain else Position("<unknown>", 0, 0, kernel.sym_name.data)
        self._unit = module.add_debug_info(
            "DICompileUnit",
            {
                "language": ir.DIToken("DW_LANG_C"),
                "file": self._file(outer.file),
                "producer": "weft",
                "isOptimized": True,
                "runtimeVersion": 0,
                "emissionKind": ir.DIToken("DebugDirectivesOnly"),
            },
            is_distinct=True,
        )
        module.add_named_metadata("llvm.dbg.cu", self._unit)
        self._outer = self._scope(outer)
        function.set_metadata("dbg", self._outer)
        self._default = self._made(outer, None)

    def of(self, op: Operation) -> Any:
        """The location of an op, the kernel's own line where none is known."""
        chain = positions(op)
        return self._location(chain) if chain else self._default

    def _location(self, chain: Sequence[Position]) -> Any:
        key = tuple(chain)
        if key not in self._locations:
            here, *callers = chain
            self._locations[key] = self._made(here, self._location(callers) if callers else None)
        return self._locations[key]

    def _made(self, position: Position, caller: Any) -> Any:
        scope = self._outer if caller is None else self._scope(position)
        place: dict[str, Any] = {"line": position.line, "column": position.column + 1, "scope": scope}
        if caller is not None:
            place["inlinedAt"] = caller
        return self._module.add_debug_info("DILocation", place)

    def _file(self, path: str) -> Any:
        if path not in self._files:
            directory, name = os.path.split(path)
            self._files[path] = self._module.add_debug_info("DIFile", {"filename": name, "directory": directory})
        return self._files[path]

    def _scope(self, position: Position) -> Any:
        key = position.file, position.function
        if key not in self._scopes:
            type_ = self._module.add_debug_info("DISubroutineType", {"types": self._module.add_metadata([])})
            self._scopes[key] = self._module.add_debug_info(
                "DISubprogram",
                {
                    "name": position.function,
                    "file": self._file(position.file),
                    "line": position.line,
                    "type": type_,
                    "isLocal": False,
                    "unit": self._unit,
                },
                is_distinct=True,
            )
        return self._scopes[key]


def _first_positions(kernel: func.FuncOp) -> tuple[Position, ...]:
    """Where the kernel stands, or its first op with a place."""
    return next((chain for op in ops_in(kernel) if (chain := positions(op))), ())
