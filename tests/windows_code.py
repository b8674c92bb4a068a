"""Runs code that was compiled for Windows on Linux.

On x86-64 the calling convention and the library differ. `load` links an object with the linker that weft has on
Windows, LLVM's RuntimeDyld, and stands between the conventions: a function of this system enters the kernel as Windows would, and
kernels call the C library, and what claims shares of a grid, through functions of Windows' convention.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm

from weft.codegen.kernel import CLAIMS
from weft.runtime import exclusion, loader, pages, shares
from weft.runtime.loader import LoadedCode

TRIPLE: Final = "x86_64-pc-windows-msvc-elf"

_FUNCTIONS: Final = {
    **{name: ("ptr", "ptr", second, "i64") for name, second in (("memcpy", "ptr"), ("memset", "i32"))},
    **{f"{name}{suffix}": (type_, *[type_] * count)
       for name, count in (("exp", 1), ("sin", 1), ("pow", 2)) for suffix, type_ in (("f", "float"), ("", "double"))},
}  # fmt: skip
"""Functions of the C library: the type of the result, then of the parameters, in LLVM's names."""

_CALL_OUT: Final = """
declare {result} @{name}({types})
define win64cc {result} @thunk({parameters}) {{
  %r = call {result} @{name}({parameters})
  ret {result} %r
}}
"""

_CLAIM: Final = """
define win64cc {{ i64, i64 }} @thunk(ptr %launch, ptr %thread, i64 %total, i64 %chunk) {{
  %claims = inttoptr i64 {address} to ptr
  %r = call {{ i64, i64 }} %claims(ptr %launch, ptr %thread, i64 %total, i64 %chunk)
  ret {{ i64, i64 }} %r
}}
"""

_CALL_IN: Final = """
define i32 @thunk(ptr %launch, ptr %thread) {{
  %claims.p = getelementptr i64, ptr %launch, i64 {word}
  %claims = load atomic i64, ptr %claims.p monotonic, align 8
  %shared = icmp ne i64 %claims, 0
  %thunk = select i1 %shared, i64 {claims}, i64 0
  store atomic i64 %thunk, ptr %claims.p monotonic, align 8
  %kernel = inttoptr i64 {address} to ptr
  %r = call win64cc i32 %kernel(ptr %launch, ptr %thread)
  ret i32 %r
}}
"""

_numbers: Final = itertools.count()


def load(code: bytes, symbol: str) -> LoadedCode:
    """`weft.runtime.loader.load` for an object for Windows."""
    linked = link(code, symbol)
    entry = _compiled(_CALL_IN.format(address=linked.address, claims=_claims().address, word=CLAIMS))
    return LoadedCode(entry.address, (linked, entry))


def link(code: bytes, symbol: str) -> LoadedCode:
    """The code as Windows would call it."""
    builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
    builder.import_symbol(exclusion.SYMBOL, exclusion.ADDRESS)
    for name in _FUNCTIONS:
        builder.import_symbol(name, _function(name).address)
    builder.import_symbol("__chkstk", _stack_probe().address)
    tracker = builder.link(_jit(), f"windows{next(_numbers)}")
    return LoadedCode(tracker[symbol], tracker)


@cache
def _jit() -> Any:
    loader.initialise()
    return llvm.create_lljit_compiler(_machine(), use_jit_link=False)


def _machine() -> Any:
    return llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small", jit=True)


@cache
def _function(name: str) -> LoadedCode:
    result, *types = _FUNCTIONS[name]
    parameters = ", ".join(f"{type_} %a{i}" for i, type_ in enumerate(types))
    return _compiled(_CALL_OUT.format(name=name, result=result, types=", ".join(types), parameters=parameters))


@cache
def _claims() -> LoadedCode:
    return _compiled(_CLAIM.format(address=shares.claims()))


@cache
def _stack_probe() -> pages.Pages:
    """``__chkstk`` touches the pages below the stack and changes no register. Linux needs no touch."""
    return pages.place(1, lambda _: b"\xc3")  # ret


def _compiled(text: str) -> LoadedCode:
    loader.initialise()
    return loader.load(_machine().emit_object(llvm.parse_assembly(text)), "thunk")
