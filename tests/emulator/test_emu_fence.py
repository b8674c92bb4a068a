"""Fences, hints, traps, sleeps, and the functions of CUDA's runtime on the device."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from c_library import snprintf
from emulator_harness import kernel, run
from sampling import grid
from weft.emulator.errors import Fault, OutOfBounds, PTXError, Trap, Undefined
from weft.emulator.ops.fence import ASYNC, BOTH, MEMORY, NOTHING
from weft.emulator.ops.printf import printf

# ---- fences and hints ------------------------------------------------------------------------------------------------


def result(text: str, block: int = 32, declarations: str = "") -> list[int]:
    out = np.zeros(block, np.uint32)
    start = "mov.u32 %t, %tid.x; mov.u32 %b, data; mad.lo.u32 %b, %t, 4, %b; mov.u32 %d, 0;"
    registers = ".reg .b32 %t, %b, %r<9>; .reg .b64 %x<9>; .reg .pred %p<9>; .shared .align 16 .b8 data[4096];"
    run(kernel(start + "\n" + text, {}, {"d": "u32"}, registers + declarations), [out], block=block)
    return out.tolist()


@pytest.mark.parametrize("name", sorted(NOTHING | ASYNC | BOTH | MEMORY))
def test_fences_change_no_values(name: str) -> None:
    assert result(f"add.u32 %d, %t, 1; {name};") == [t + 1 for t in range(32)]


@pytest.mark.parametrize(
    ("name", "ordered"),
    [(name, True) for name in sorted(ASYNC | BOTH)]
    + [(name, False) for name in ("fence.acq_rel.cta", "fence.proxy.alias", "fence.proxy.async.global")],
)
def test_which_fences_an_asynchronous_operation_needs(name: str, ordered: bool) -> None:
    # Shared memory is written, and copied out of by a bulk copy.
    text = f"""
    st.shared.u32 [%b], %t; {name}; bar.sync 0;
    setp.ne.u32 %p1, %t, 0; @%p1 bra END;
    ld.param.u64 %x1, [p_o]; cvta.to.global.u64 %x1, %x1;
    cp.async.bulk.global.shared::cta.bulk_group [%x1], [%b], 128;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    END:
    """
    start = "mov.u32 %t, %tid.x; mov.u32 %b, data; mad.lo.u32 %b, %t, 4, %b;"
    registers = ".reg .b32 %t, %b; .reg .b64 %x<9>; .reg .pred %p<9>; .shared .align 16 .b8 data[4096];"
    ptx = kernel(start + text, {}, {}, registers).replace("test()", "test(.param .u64 p_o)")
    out = np.zeros(32, np.uint32)
    if ordered:
        run(ptx, [out])
        assert out.tolist() == list(range(32))
    else:
        with pytest.raises(Fault, match="a generic write that no fence.proxy.async follows"):
            run(ptx, [out])


@pytest.mark.parametrize(
    "text",
    [
        "prefetch.global.L1 [%x0];",
        "prefetch.L2 [%x0];",
        "prefetch.global.L2::evict_last [%x0];",
        "prefetch.global.L2::evict_normal [%x0];",
        "prefetch.tensormap [%x0];",
        "prefetch.param.tensormap [%x0];",
        "prefetchu.L1 [%x0];",
        "applypriority.global.L2::evict_normal [%x0], 128;",
        "griddepcontrol.launch_dependents; griddepcontrol.wait;",
        "pmevent 3; pmevent.mask 7;",
        "setmaxnreg.inc.sync.aligned.u32 240; setmaxnreg.dec.sync.aligned.u32 24;",
        "nanosleep.u32 100; nanosleep.u32 %t;",
        "createpolicy.fractional.L2::evict_last.b64 %x1, 1.0;",
        "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %x1;",
        "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %x1, [%x0], 4096, 8192;",
        "createpolicy.cvt.L2.b64 %x1, 7;",
    ],
)
def test_hints_do_nothing(text: str) -> None:
    assert result(f"mov.u64 %x0, 16; {text} mov.u32 %d, %t;") == list(range(32))


def test_discarded_bytes_are_unwritten() -> None:
    text = """
    mul.wide.u32 %x1, %t, 128; mov.u64 %x2, space; add.s64 %x1, %x1, %x2;
    st.global.u32 [%x1+4], 1; discard.global.L2 [%x1], 128;
    """
    module = ".global .align 128 .b8 space[4096];\n"
    registers = ".reg .b32 %t; .reg .b64 %x<9>;"
    out = np.zeros(32, np.uint32)
    wrong = kernel(
        "mov.u32 %t, %tid.x;" + text + "ld.global.u32 %d, [%x1+4];", {}, {"d": "u32"}, registers, module=module
    )
    # A module's variables are zero from the start, so what is read is watched only where something may be unwritten.
    run(wrong, [out])
    beyond = kernel(
        "mov.u32 %t, %tid.x; mov.u64 %x2, space; discard.global.L2 [%x2+4096], 128; mov.u32 %d, 0;",
        {}, {"d": "u32"}, registers, module=module,
    )  # fmt: skip
    with pytest.raises(OutOfBounds, match="write of 128 bytes of global memory"):
        run(beyond, [out])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fence.proxy.generic;", "the emulator does not know 'fence.proxy.generic'"),
        ("fence.acquire;", "the emulator does not know 'fence.acquire'"),
        ("membar;", "the emulator does not know 'membar'"),
        ("membar.cta %d;", "membar has 1 operands, expected 0"),
        ("setmaxnreg.inc.sync.aligned.u32 100;", "setmaxnreg to 100; it must be a multiple of 8 from 24 to 256"),
        ("prefetch.shared.L1 [%x0];", "the emulator does not know '.shared' of prefetch"),
        ("griddepcontrol.now;", "the emulator does not know '.now' of griddepcontrol"),
        ("discard.global.L2 [%x0], 64;", "discard of 64 bytes; it is of 128"),
        ("nanosleep.u64 %x0;", "the emulator does not know"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        result(text)
    assert message in str(caught.value)


def test_setmaxnreg_needs_whole_warps() -> None:
    with pytest.raises(Undefined, match="must be executed by all lanes of a warp together"):
        result("setp.lt.u32 %p1, %t, 4; @%p1 setmaxnreg.inc.sync.aligned.u32 240;")


# ---- traps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "thread"),
    [
        ("setp.eq.u32 %p1, %t, 7; @%p1 trap;", "the program executes trap", (7, 0, 0)),
        ("setp.ge.u32 %p1, %t, 5; @%p1 brkpt;", "the program executes brkpt, as do 26 more threads", (5, 0, 0)),
    ],
)
def test_traps(text: str, message: str, thread: tuple[int, int, int]) -> None:
    with pytest.raises(Trap) as caught:
        result(text)
    assert caught.value.message == message
    assert caught.value.where.thread == thread
    assert result("setp.gt.u32 %p1, %t, 99; @%p1 trap;") == [0] * 32


def test_sleeping_lets_others_go_on() -> None:
    # Warp 0 polls a flag that warp 1 sets; without sleeping it would be alone for ever.
    text = """
    setp.eq.u32 %p1, %t, 0; @%p1 st.volatile.shared.u32 [%b], 0; bar.sync 0; mov.u32 %r1, data;
    setp.ge.u32 %p1, %t, 32; @%p1 bra SET;
    POLL: nanosleep.u32 20; ld.volatile.shared.u32 %d, [%r1]; setp.eq.u32 %p2, %d, 0; @%p2 bra POLL; bra END;
    SET: st.volatile.shared.u32 [%r1], 9;
    END:
    """
    assert result(text, 64) == [9] * 32 + [0] * 32


# ---- printf ----------------------------------------------------------------------------------------------------------


def packed(*values: int | float | bytes) -> bytes:
    """Arguments as the compiler lays them out: ints on 4 bytes, bytes objects as they are (8), floats on 8."""
    data = b""
    for value in values:
        item = (
            value
            if isinstance(value, bytes)
            else struct.pack("<d", value)
            if isinstance(value, float)
            else struct.pack("<I", value & 0xFFFFFFFF)
        )
        data += b"\0" * (-len(data) % len(item)) + item
    return data


def formatted(text: str, *values: int | float | bytes) -> tuple[str, int]:
    data, place = packed(*values), 0

    def take(size: int) -> bytes:
        nonlocal place
        place = -(-place // size) * size + size
        return data[place - size : place]

    return printf(text, take, {1: "one", 2: "naïve"}.__getitem__)


def by_c(text: str, *values: int | float) -> str:
    """What the C library makes of it."""
    return snprintf(text, *(ctypes.c_double(v) if isinstance(v, float) else ctypes.c_longlong(v) for v in values))


FLAGS = ["", "-", "+", " ", "0", "#", "+0", "-#", " 0", "#0"]
WIDTHS = ["", "1", "7", "20"]


@pytest.mark.parametrize(("flags", "width", "precision"), grid(3, FLAGS, WIDTHS, ["", ".", ".0", ".3", ".10"]))
def test_formats_are_those_of_c(flags: str, width: str, precision: str) -> None:
    for conversion in "diouxX":
        if conversion == "i" and precision:
            continue
        for length, values in (
            ("", (0, 1, -1, 77, -(2**31))),
            ("h", (0, -1, 40000)),
            ("hh", (0, 200, -3)),
            ("ll", (0, 2**40, -(2**63))),
            ("l", (12,)),
        ):
            text = f"<%{flags}{width}{precision}{length}{conversion}>"
            for value in values:
                wide = length in ("l", "ll")
                given: int | bytes = struct.pack("<q", value) if wide else value
                assert formatted(text, given) == (by_c(text, value), 1), (text, value)
    for conversion in "eEfFgGaA":
        text = f"<%{flags}{width}{precision}{conversion}>"
        for value in (0.0, -0.0, 1.0, 1.5, -2.25, 0.1, 123456.789, 1e-7, 1e22, 2.0**-1074, float("inf"), -float("inf")):
            if conversion in "aA" and value == 2.0**-1074:
                continue  # C leaves the digit before the point to the library
            assert formatted(text, value) == (by_c(text, value), 1), (text, value)


def test_text_pointers_and_stars() -> None:
    assert formatted("%s|%5s|%-5s|%.2s", *(struct.pack("<Q", a) for a in (1, 1, 1, 2))) == ("one|  one|one  |na", 4)
    assert formatted("%s %p %p", *(struct.pack("<Q", a) for a in (0, 0, 0xABC))) == ("(null) (nil) 0xabc", 3)
    assert formatted("%c%c%%", 65, 0x142) == ("AB%", 2)
    assert formatted("%*d|%-*d|%.*f|%*d", 5, 1, 5, 2, 1, 0.25, -3, 7) == ("    1|2    |0.2|7  ", 8)
    assert formatted("100%, %y %", 1) == ("100%, %y %", 0)
    assert formatted("%d %f %d %lld", 1, 0.5, 2, struct.pack("<q", -3)) == ("1 0.500000 2 -3", 4)
    assert formatted("%g %g", float("nan"), -float("nan")) == ("nan -nan", 2)


# ---- calls -----------------------------------------------------------------------------------------------------------


def text_of(name: str, text: str) -> str:
    """A string as the compiler writes it."""
    data = [*text.encode(), 0]
    return f".global .align 1 .b8 {name}[{len(data)}] = {{{', '.join(map(str, data))}}};\n"


PRINT = (
    ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);\n"
    + text_of("text", "thread %d of %s: %.2f\n")
    + text_of("name", "test")
)


def test_vprintf() -> None:
    text = """
    mov.u32 %t, %tid.x; cvta.local.u64 %x0, buffer; cvta.to.local.u64 %x1, %x0;
    st.local.u32 [%x1], %t; mov.u64 %x2, name; cvta.global.u64 %x2, %x2; st.local.u64 [%x1+8], %x2;
    cvt.rn.f64.u32 %f, %t; div.rn.f64 %f, %f, 0d4010000000000000; st.local.f64 [%x1+16], %f;
    setp.gt.u32 %p, %t, 2; mov.u32 %d, 0;
    @%p bra END;
    mov.u64 %x3, text; cvta.global.u64 %x3, %x3;
    { .param .b64 a; .param .b64 b; .param .b32 r;
      st.param.b64 [a], %x3; st.param.b64 [b], %x0;
      call.uni (r), vprintf, (a, b);
      ld.param.b32 %d, [r]; }
    END:
    """
    registers = ".reg .b32 %t; .reg .b64 %x<9>; .reg .f64 %f; .reg .pred %p; .local .align 8 .b8 buffer[24];"
    out = np.zeros(8, np.uint32)
    outcome = run(kernel(text, {}, {"d": "u32"}, registers, module=PRINT), [out], block=4, grid=2)
    per_block = [f"thread {t} of test: {t / 4:.2f}\n" for t in range(3)]
    assert outcome.output == per_block * 2
    assert out.tolist() == [3, 3, 3, 0] * 2


@pytest.mark.parametrize(
    ("format_", "buffer", "message"),
    [
        ("mov.u64 %x3, 64;", "cvta.local.u64 %x0, buffer;", "vprintf reads 1 bytes outside every allocation"),
        (
            "mov.u64 %x3, text; cvta.global.u64 %x3, %x3;",
            "mov.u64 %x0, 0;",
            "vprintf reads 4 bytes outside every allocation",
        ),
    ],
)
def test_vprintf_reads_what_there_is(format_: str, buffer: str, message: str) -> None:
    text = f"""
    {format_} {buffer} mov.u32 %d, 0;
    {{ .param .b64 a; .param .b64 b; .param .b32 r;
      st.param.b64 [a], %x3; st.param.b64 [b], %x0; call.uni (r), vprintf, (a, b); }}
    """
    registers = ".reg .b64 %x<9>; .local .align 8 .b8 buffer[24];"
    with pytest.raises(OutOfBounds) as caught:
        run(kernel(text, {}, {"d": "u32"}, registers, module=PRINT), [np.zeros(4, np.uint32)], block=4)
    assert caught.value.message == message
    assert caught.value.where.thread == (0, 0, 0)
    assert caught.value.where.instruction is not None


def test_a_failed_assertion() -> None:
    module = (
        ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
        + text_of("what", "x < 3")
        + text_of("file", "k.cu")
        + text_of("function", "f")
    )
    text = """
    mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 3; mov.u32 %d, %t; @%p bra END;
    mov.u64 %x1, what; cvta.global.u64 %x1, %x1; mov.u64 %x2, file; cvta.global.u64 %x2, %x2;
    mov.u64 %x3, function; cvta.global.u64 %x3, %x3;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
      st.param.b64 [a], %x1; st.param.b64 [b], %x2; st.param.b32 [c], 42; st.param.b64 [d], %x3; st.param.b64 [e], 1;
      call.uni __assertfail, (a, b, c, d, e); }
    END:
    """
    registers = ".reg .b32 %t; .reg .b64 %x<9>; .reg .pred %p;"
    ptx = kernel(text, {}, {"d": "u32"}, registers, module=module)
    out = np.zeros(3, np.uint32)
    run(ptx, [out], block=3)
    assert out.tolist() == [0, 1, 2]
    with pytest.raises(Trap) as caught:
        run(ptx, [np.zeros(8, np.uint32)], block=8)
    assert caught.value.message == "k.cu:42: f: assertion 'x < 3' failed"
    assert caught.value.where.thread == (3, 0, 0)
