"""The linker against what LLVM's own linkers do, and what it refuses; memory for code, and what unloads it."""

from __future__ import annotations

import ctypes
import gc
import os
import struct
from typing import Any

import llvmlite.binding as llvm
import pytest

from weft import target as targets
from weft.codegen.cpu.machine import target_machine
from weft.runtime import linker, loader, pages
from weft.runtime.elf import LinkRefused, read

pytestmark = [
    pytest.mark.jit,
    pytest.mark.skipif(not linker.SUPPORTED, reason="weft links objects itself on Linux and x86-64 only"),
]

I64 = ctypes.c_int64
F64 = ctypes.c_double


def compiled(text: str) -> bytes:
    return target_machine(targets.host()).emit_object(llvm.parse_assembly(text))


def called(address: int, result: Any, *arguments: Any) -> Any:
    kinds = [F64 if isinstance(a, float) else I64 for a in arguments]
    return ctypes.CFUNCTYPE(result, *kinds)(address)(*arguments)


CASES: dict[str, tuple[str, Any, tuple[Any, ...], Any]] = {
    "no relocations": ("define i64 @f(i64 %x) { %y = add i64 %x, 5 ret i64 %y }", I64, (7,), 12),
    "constants": (
        "@t = internal constant [4 x i64] [i64 3, i64 5, i64 7, i64 9]\n"
        "define i64 @f(i64 %x) { %p = getelementptr i64, ptr @t, i64 %x %v = load i64, ptr %p ret i64 %v }",
        I64,
        (2,),
        7,
    ),
    "float constants": ("define double @f(double %x) { %y = fmul double %x, 1.5 ret double %y }", F64, (4.0,), 6.0),
    "a call between functions": (
        "define internal i64 @g(i64 %x) noinline { %y = mul i64 %x, 3 ret i64 %y }\n"
        "define i64 @f(i64 %x) { %y = call i64 @g(i64 %x) ret i64 %y }",
        I64,
        (5,),
        15,
    ),
    "a call of libm": (
        "declare double @logb(double)\ndefine double @f(double %x) { %y = call double @logb(double %x) ret double %y }",
        F64,
        (8.0,),
        3.0,
    ),
    "a call of libc": (
        "declare i64 @labs(i64)\ndefine i64 @f(i64 %x) { %y = call i64 @labs(i64 %x) ret i64 %y }",
        I64,
        (-4,),
        4,
    ),
    "the address of a foreign function": (
        "declare i64 @labs(i64)\n"
        "define i64 @f(i64 %x) { %p = select i1 true, ptr @labs, ptr null %s = alloca ptr store volatile ptr %p, ptr %s "
        "%q = load volatile ptr, ptr %s %y = call i64 %q(i64 %x) ret i64 %y }",
        I64,
        (-9,),
        9,
    ),
    "a table of addresses": (
        "define internal i64 @g(i64 %x) noinline { %y = mul i64 %x, 3 ret i64 %y }\n"
        "define internal i64 @h(i64 %x) noinline { %y = mul i64 %x, 4 ret i64 %y }\n"
        "@t = internal constant [2 x ptr] [ptr @g, ptr @h]\n"
        "define i64 @f(i64 %x) { %i = and i64 %x, 1 %p = getelementptr ptr, ptr @t, i64 %i %q = load ptr, ptr %p "
        "%y = call i64 %q(i64 %x) ret i64 %y }",
        I64,
        (5,),
        20,
    ),
    "a switch": (
        "define i64 @f(i64 %x) { switch i64 %x, label %d [i64 0, label %a i64 1, label %b i64 2, label %c i64 3, label %e "
        "i64 4, label %g] a: ret i64 11 b: ret i64 -2 c: ret i64 333 e: ret i64 4 g: ret i64 51 d: ret i64 0 }",
        I64,
        (2,),
        333,
    ),
}
"""Text, result type, arguments, what they give."""


@pytest.mark.parametrize("name", CASES)
def test_linked_code_computes_what_it_says(name: str) -> None:
    text, result, arguments, expected = CASES[name]
    address, held = linker.link(compiled(text), "f")
    assert called(address, result, *arguments) == expected
    assert held.address <= address


@pytest.mark.parametrize("name", CASES)
def test_as_llvm_links_it(name: str) -> None:
    text, result, arguments, expected = CASES[name]
    code = loader._load_by_llvm(compiled(text), "f")  # pyright: ignore[reportPrivateUsage]
    assert called(code.address, result, *arguments) == expected


def test_calls_reach_any_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through an entry behind the sections, which holds the address."""
    far = 1 << 45

    def elsewhere(name: str) -> int:
        return far

    monkeypatch.setattr(linker, "_address_of", elsewhere)
    address, held = linker.link(compiled(CASES["a call of libm"][0]), "f")
    assert struct.pack("<Q", far) in ctypes.string_at(held.address, 256)
    assert address == held.address


def test_two_functions_of_one_name() -> None:
    first = loader.load(compiled("define i64 @f() { ret i64 1 }"), "f")
    second = loader.load(compiled("define i64 @f() { ret i64 2 }"), "f")
    assert called(first.address, I64) == 1
    assert called(second.address, I64) == 2


REFUSED = {
    "variables": (
        "@v = global i64 5\ndefine i64 @f() { %x = load i64, ptr @v ret i64 %x }",
        "section '.data' is neither code nor constants",
    ),
    "zeroed variables": (
        "@v = global i64 0\ndefine i64 @f() { %x = load i64, ptr @v ret i64 %x }",
        "section '.bss' is neither code nor constants",
    ),
    "an unknown symbol": (
        "declare i64 @no_such_symbol()\ndefine i64 @f() { %x = call i64 @no_such_symbol() ret i64 %x }",
        "symbol 'no_such_symbol' is in no library",
    ),
    "another name": ("define i64 @g() { ret i64 1 }", "the object does not define 'f'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, message = REFUSED[name]
    with pytest.raises(LinkRefused) as caught:
        linker.link(compiled(text), "f")
    assert str(caught.value) == message


def test_llvm_links_what_is_refused() -> None:
    code = loader.load(compiled(REFUSED["variables"][0]), "f")
    assert called(code.address, I64) == 5


def test_objects_of_other_kinds_and_damaged_ones_are_refused() -> None:
    good = compiled(CASES["constants"][0])
    with pytest.raises(LinkRefused, match="this is no relocatable object of x86-64"):
        read(good[:18] + struct.pack("<H", 183) + good[20:])  # AArch64
    for length in range(0, len(good), 7):
        with pytest.raises(LinkRefused, match="malformed|neither code"):
            read(good[:length])
    with pytest.raises(RuntimeError, match="cannot load the object code of 'f'"):
        loader.load(b"junk", "f")


@pytest.mark.usefixtures("apart")
def test_pages_are_used_again() -> None:
    """In any order, sizes of several pages too; the memory comes from one mapping, and it is empty when it is taken again."""
    gc.collect()
    before = pages.used()
    page = 4096
    held = [pages.place(size * page, lambda _, size=size: b"\xff" * (size * page)) for size in (1, 3, 1, 2)]
    assert pages.used() - before == 7 * page
    hole = held[1].address
    del held[1]
    assert pages.used() - before == 4 * page
    again = pages.place(2 * page + 1, lambda _: b"\x01" * (2 * page + 1))
    assert again.address == hole
    assert ctypes.string_at(hole, 3 * page) == b"\x01" * (2 * page + 1) + bytes(page - 1)
    del held, again
    assert pages.used() == before


def test_large_code_has_a_mapping_of_its_own_which_is_unmapped() -> None:
    small = pages.place(1, lambda _: b"\xc3")
    before = pages.mapped()
    large = pages.place(3 << 20, lambda _: bytes(3 << 20))
    assert pages.mapped() == before + (3 << 20)
    del large
    assert pages.mapped() == before
    del small


def test_code_is_executable_and_not_writable() -> None:
    code = loader.load(compiled(CASES["no relocations"][0]), "f")
    with open("/proc/self/maps", encoding="ascii") as file:
        for line in file:
            low, high = (int(part, 16) for part in line.split()[0].split("-"))
            if low <= code.address < high:
                assert line.split()[1] == "r-xp"
                return
    raise AssertionError("no mapping has the code")


@pytest.mark.usefixtures("apart")
def test_code_is_unloaded_with_its_last_reference() -> None:
    gc.collect()
    before, memory = loader.loaded(), pages.used()
    held = [loader.load(compiled(f"define i64 @f() {{ ret i64 {i} }}"), "f") for i in range(5)]
    assert [called(code.address, I64) for code in held] == [0, 1, 2, 3, 4]
    assert loader.loaded() == before + 5
    del held[1:4]
    assert loader.loaded() == before + 2
    assert [called(code.address, I64) for code in held] == [0, 4]
    held.clear()
    assert loader.loaded() == before
    assert pages.used() == memory


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork, whose child the test is about")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_loads_code_of_its_own() -> None:
    first = loader.load(compiled("define i64 @f() { ret i64 1 }"), "f")
    child = os.fork()
    if child == 0:
        second = loader.load(compiled("define i64 @f() { ret i64 2 }"), "f")
        os._exit(10 * called(first.address, I64) + called(second.address, I64))
    third = loader.load(compiled("define i64 @f() { ret i64 3 }"), "f")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 12
    assert called(third.address, I64) == 3
    assert called(first.address, I64) == 1
