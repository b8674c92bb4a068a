"""Device malloc and free: values, the heap's limit, what stays from launch to launch, and faults that name who did what."""

from __future__ import annotations

import numpy as np
import pytest

from weft.emulator import Checks, Fault, LaunchError, Module, OutOfBounds, Race, Undefined, Uninitialised
from weft.emulator.memory.access_batch import Kind
from weft.emulator.memory.arena import PAGE, Allocation
from weft.emulator.memory.global_shadow import Made, Place

HEAD = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) malloc(.param .b64 size);
.extern .func (.param .b64 r) __cuda_syscall_aligned_malloc(.param .b64 size, .param .b64 alignment);
.extern .func free(.param .b64 at);
.global .align 8 .u64 kept[64];
"""
MALLOC = (
    "{{ .param .b64 a; .param .b64 r; st.param.b64 [a], {size}; call.uni (r), malloc, (a); ld.param.b64 {to}, [r]; }}"
)
FREE = "{{ .param .b64 a; st.param.b64 [a], {at}; call.uni free, (a); }}"


def module(**kernels: str) -> Module:
    return Module(source(**kernels))


def source(**kernels: str) -> str:
    """Kernels of a pointer out, %rd0, with %r0 the thread, %rd1 its place of 8 bytes in out, and %rd2 that in ``kept``."""
    text = HEAD
    for name, body in kernels.items():
        text += f"""
.visible .entry {name}(.param .u64 out) {{
  .reg .b32 %r<9>; .reg .b64 %rd<16>; .reg .pred %p<4>;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 8, %rd0;
  mov.u64 %rd2, kept; mad.wide.u32 %rd2, %r0, 8, %rd2;
  {body}
  ret;
}}"""
    return text


def malloc(size: object = 16, to: str = "%rd3") -> str:
    return MALLOC.format(size=size, to=to)


def aligned(alignment: int, to: str = "%rd3") -> str:
    given = f"st.param.b64 [a], 16; st.param.b64 [b], {alignment};"
    call = "call.uni (r), __cuda_syscall_aligned_malloc, (a, b);"
    return f"{{ .param .b64 a; .param .b64 b; .param .b64 r; {given} {call} ld.param.b64 {to}, [r]; }}"


def free(at: str = "%rd3") -> str:
    return FREE.format(at=at)


def launch(kernel: str, threads: int = 1, checks: Checks | None = None) -> np.ndarray:
    out = np.zeros(threads, np.uint64)
    module(k=kernel).launch("k", 1, threads, [out], checks=checks)
    return out


def test_each_thread_has_its_own() -> None:
    """Every thread stores in what it allocates, and reads its neighbour's through a table."""
    body = f"""{malloc()} st.global.u32 [%rd3+4], %r0; st.global.u64 [%rd2], %rd3; bar.sync 0;
      xor.b32 %r1, %r0, 1; mov.u64 %rd4, kept; mad.wide.u32 %rd4, %r1, 8, %rd4; ld.global.u64 %rd5, [%rd4];
      ld.u32 %r2, [%rd5+4]; cvt.u64.u32 %rd6, %r2; st.global.u64 [%rd1], %rd6; bar.sync 0; {free()}"""
    assert launch(body, 64).tolist() == [i ^ 1 for i in range(64)]


def test_addresses_are_aligned_and_apart() -> None:
    body = f"mul.lo.u32 %r1, %r0, 100; add.u32 %r1, %r1, 1; cvt.u64.u32 %rd4, %r1; {malloc('%rd4')} st.global.u64 [%rd1], %rd3;"
    found = launch(body, 32)
    assert (found % 16 == 0).all()
    assert (np.diff(found) >= np.arange(31) * 100 + 1).all()


def test_alignment_that_is_asked_for() -> None:
    body = """{ .param .b64 a; .param .b64 b; .param .b64 r; st.param.b64 [a], 10; st.param.b64 [b], 4096;
      call.uni (r), __cuda_syscall_aligned_malloc, (a, b); ld.param.b64 %rd3, [r]; st.global.u64 [%rd1], %rd3; }"""
    module_start = launch(body, 3)
    assert (np.diff(module_start) % 4096 == 0).all() and (np.diff(module_start) > 0).all()


def test_nothing() -> None:
    """malloc(0) is a null pointer, and free takes one."""
    assert launch(f"{malloc(0)} st.global.u64 [%rd1], %rd3; {free()}")[0] == 0


def test_the_limit() -> None:
    """Of 1,024 bytes an allocation of 384 takes 400, sixteen of them for itself: two fit, and again when one is free."""
    body = "".join(f"{malloc(384, f'%rd{i}')} setp.ne.u64 %p0, %rd{i}, 0; selp.u32 %r1, 1, 0, %p0; mad.lo.u32 %r2, %r2, 10, %r1;"
                   for i in (3, 4, 5))  # fmt: skip
    body = f"mov.u32 %r2, 0; {body} {free('%rd4')} {malloc(384, '%rd6')} setp.ne.u64 %p0, %rd6, 0; selp.u32 %r1, 1, 0, %p0;"
    body += "mad.lo.u32 %r2, %r2, 10, %r1; cvt.u64.u32 %rd7, %r2; st.global.u64 [%rd1], %rd7;"
    made = module(k=body)
    made.heap_limit = 1024
    out = np.zeros(1, np.uint64)
    made.launch("k", 1, 1, [out])
    assert out[0] == 1101


LOOP = "mov.u32 %r1, 0; L: {body} add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, {count}; @%p0 bra L;"


def test_freed_memory_is_given_again() -> None:
    """64 threads allocate and free a hundred times as much as there is room for; what they write there, they read."""
    value = "mad.lo.u32 %r2, %r1, 64, %r0;"
    use = f"st.global.u32 [%rd3+8], %r2; ld.global.u32 %r3, [%rd3+8]; sub.u32 %r3, %r3, %r2; or.b32 %r4, %r4, %r3; {free()}"
    body = f"mov.u32 %r4, 0; {LOOP.format(body=malloc(40) + value + use, count=200)} st.global.u32 [%rd1], %r4;"
    made = module(k=body)
    made.heap_limit = 64 * 512
    out = np.zeros(64, np.uint64)
    made.launch("k", 1, 64, [out])
    assert not out.any()
    assert not made.symbols.heap.live


def test_memory_that_is_given_again_holds_nothing() -> None:
    """The last of nine allocations lies where an earlier one did, which had been written."""
    body = f"{LOOP.format(body=malloc(400) + 'st.global.u32 [%rd3], %r1;' + free(), count=9)} {malloc(400)}"
    made = module(k=body + "ld.global.u32 %r2, [%rd3]; st.global.u32 [%rd1], %r2;")
    made.heap_limit = 1024
    with pytest.raises(Uninitialised):
        made.launch("k", 1, 1, [np.zeros(1, np.uint64)])


def test_accesses_to_memory_that_is_given_to_another_thread_are_no_races() -> None:
    """Two warps, of which the second allocates behind a barrier where the first wrote, read and freed. Other memory that both use
    is a race."""
    churn = LOOP.format(body=malloc(400) + "st.global.u32 [%rd3], %r0; ld.global.u32 %r2, [%rd3];" + free(), count=12)
    text = f"setp.ge.u32 %p1, %r0, 32; @%p1 bra SECOND; {churn} bar.sync 0; bra.uni END; SECOND: bar.sync 0;"
    text += churn.replace("L", "M") + " END: "
    made = module(k=text, races=text + "mov.u64 %rd4, kept; st.global.u32 [%rd4], %r0;")
    made.heap_limit = 64 * 512
    made.launch("k", 1, 64, [np.zeros(64, np.uint64)])
    with pytest.raises(Race):
        made.launch("races", 1, 64, [np.zeros(64, np.uint64)])


def test_a_place_forgets_whole_pages() -> None:
    """Three pages: tables and log lose what is of the second, and the log keeps what of it is in the tables."""
    place = Place(Allocation("heap", 2 * PAGE, 3 * PAGE))
    place.writes, place.reads = place.table() + 1, place.table() + 2
    first, second, third = (np.arange(2) * 16 + page * PAGE for page in (2, 3, 4))
    threads = np.arange(2)
    log = [(first, threads), (second, threads), (np.concatenate([second, third]), np.arange(4)), (third, threads)]
    place.log = [Made(t, 0, Kind.WRITE, who, flat, 16, 0) for t, (flat, who) in enumerate(log)]
    assert len(place.pending()) == 4
    place.log.append(Made(4, 0, Kind.READ, threads, second, 16, 0))
    place.forget_bytes(3 * PAGE, 4 * PAGE)
    units = PAGE // 16
    for table, value in ((place.writes, 1), (place.reads, 2)):
        assert table.tolist() == [value] * units + [0] * units + [value] * units
    assert [(made.time, made.flat.tolist(), made.threads.tolist()) for made in place.log] == [
        (0, first.tolist(), [0, 1]),
        (2, third.tolist(), [2, 3]),
        (3, third.tolist(), [0, 1]),
    ]
    assert place.pending() == []


def test_live_memory_is_not_given_again() -> None:
    """Each thread keeps one allocation, with its number in it, while it allocates and frees others."""
    body = f"{malloc(40, '%rd5')} st.global.u32 [%rd5], %r0;"
    body += LOOP.format(body=malloc(40) + "st.global.u32 [%rd3], 99;" + free(), count=40)
    made = module(k=body + "ld.global.u32 %r2, [%rd5]; st.global.u32 [%rd1], %r2;")
    made.heap_limit = 64 * 512
    out = np.zeros(64, np.uint64)
    made.launch("k", 1, 64, [out])
    assert out.tolist() == list(range(64))


def test_more_than_there_is_room_for() -> None:
    """Allocations so aligned that two do not fit."""
    made = module(k=f"{aligned(1 << 20)} {aligned(1 << 20)}")
    made.heap_limit = 1024
    with pytest.raises(LaunchError) as caught:
        made.launch("k", 1, 1, [np.zeros(1, np.uint64)])
    assert str(caught.value) == (
        "k allocates and frees more in one launch than the emulator has room for, 4 times the 1024 bytes of the heap's limit: "
        "set module.heap_limit"
    )
    made.heap_limit = 1 << 20
    made.launch("k", 1, 1, [np.zeros(1, np.uint64)])


def test_allocations_outlive_the_launch() -> None:
    made = module(
        make=f"{malloc(4)} st.global.u32 [%rd3], %r0; st.global.u64 [%rd2], %rd3;",
        use=f"ld.global.u64 %rd3, [%rd2]; ld.global.u32 %r1, [%rd3]; cvt.u64.u32 %rd4, %r1; st.global.u64 [%rd1], %rd4; {free()}",
        fail=f"{malloc(4)} ld.global.u32 %r1, [%rd3]; st.global.u32 [%rd2], %r1;",
    )
    out = np.zeros(8, np.uint64)
    made.launch("make", 1, 8, [out])
    with pytest.raises(ValueError, match="heap_limit: the heap has allocations of earlier launches"):
        made.heap_limit = 1 << 20
    with pytest.raises(Uninitialised):
        made.launch("fail", 1, 8, [out])
    assert len(made.symbols.heap.live) == 8, "a launch that faults leaves the heap as it was"
    made.launch("use", 1, 8, [out])
    assert out.tolist() == list(range(8))
    assert not made.symbols.heap.live
    with pytest.raises(OutOfBounds):
        made.launch("use", 1, 8, [out])
    made.launch("make", 1, 8, [out])
    made.symbols.reset()
    assert not made.symbols.heap.live


def test_the_heap_of_a_module_without_variables() -> None:
    """It has the limit that was set, and what earlier launches have left there."""
    text = source(make=f"{malloc(384)} st.global.u64 [%rd1], %rd3;")
    kept = ".global .align 8 .u64 kept[64];\n"
    made = Module(text.replace(kept, "").replace("kept", "0"))
    made.heap_limit = 1024
    out = np.zeros(3, np.uint64)
    made.launch("make", 1, 3, [out])
    assert (out != 0).tolist() == [True, True, False]
    assert len(made.symbols.heap.live) == 2


def test_a_kernel_that_allocates_nothing_uses_what_there_is() -> None:
    """As in the Programming Guide: one kernel allocates, others use it, and one gives it back."""
    made = module(
        make=f"{malloc(4)} st.global.u64 [%rd2], %rd3;",
        write="ld.global.u64 %rd3, [%rd2]; st.global.u32 [%rd3], %r0;",
        read="ld.global.u64 %rd3, [%rd2]; ld.global.u32 %r1, [%rd3]; cvt.u64.u32 %rd4, %r1; st.global.u64 [%rd1], %rd4;",
        drop=f"ld.global.u64 %rd3, [%rd2]; {free()}",
    )
    out = np.zeros(8, np.uint64)
    for kernel in ("make", "write", "read", "drop"):
        made.launch(kernel, 1, 8, [out])
    assert out.tolist() == list(range(8))
    with pytest.raises(OutOfBounds):
        made.launch("write", 1, 8, [out])


WHO = "thread (0, 0, 0) of block (0, 0, 0) at PTX line 13"
GAVE = f"that malloc gave {WHO}"


@pytest.mark.parametrize(
    ("body", "kind", "message", "address"),
    [
        (f"{malloc(20)} ld.global.u32 %r1, [%rd3+16]; st.global.u32 [%rd1], %r1;", Uninitialised,
         "read of 4 bytes of global memory that has not been written\n"
         "    its value is an operand of PTX line 13: st.global.u32 [%rd1], %r1",
         f"byte 16 of 20 bytes {GAVE}"),
        (f"{malloc(20)} st.global.u32 [%rd3+20], 1;", OutOfBounds, "write of 4 bytes of global memory",
         f"0 bytes past the end of 20 bytes {GAVE}"),
        (f"{malloc(20)} {free()} st.global.u32 [%rd3], 1;", OutOfBounds, "write of 4 bytes of global memory",
         f"byte 0 of 20 bytes {GAVE}, freed by {WHO}"),
        (f"{malloc(20)} {free()} {free()}", Undefined,
         f"free of memory that is free already: 20 bytes {GAVE}, freed by {WHO}",
         f"byte 0 of 20 bytes {GAVE}, freed by {WHO}"),
        (f"{malloc(20)} add.s64 %rd3, %rd3, 4; {free()}", Undefined, "free of an address that malloc did not give",
         f"byte 4 of 20 bytes {GAVE}"),
        (free("%rd0"), Undefined, "free of an address that malloc did not give", "byte 0 of 'argument 0' (8 bytes)"),
        (f"{malloc(20)} st.global.u32 [%rd3+1024], 1;", OutOfBounds, "write of 4 bytes of global memory",
         "byte 1024 of the device's heap, which malloc has not given"),
    ],
    ids=["uninitialised", "behind", "after free", "twice", "inside", "not its own", "never given"],
)  # fmt: skip
def test_faults(body: str, kind: type[Fault], message: str, address: str) -> None:
    with pytest.raises(kind) as caught:
        launch(body)
    fault = caught.value
    assert fault.message == message
    assert fault.where.address.partition(": ")[2] == address
    assert fault.where.instruction is not None and fault.where.instruction.line == 13


def test_a_program_without_it_has_no_heap() -> None:
    made = module(k="")
    made.launch("k", 1, 1, [np.zeros(1, np.uint64)])
    with pytest.raises(OutOfBounds, match="nothing is allocated|past the end"):
        module(k="add.s64 %rd3, %rd0, 512; st.global.u32 [%rd3], 1;").launch("k", 1, 1, [np.zeros(1, np.uint64)])


def test_faults_name_the_users_lines() -> None:
    body = f".loc 1 7 3\n{malloc(20)}\n.loc 1 8 3\n{free()}\n.loc 1 9 3\nst.global.u32 [%rd3], 1;"
    lines = source(k=body).replace(".extern", '.file 1 "own.cu"\n.extern', 1)
    with pytest.raises(OutOfBounds) as caught:
        Module(lines).launch("k", 1, 1, [np.zeros(1, np.uint64)])
    who = "thread (0, 0, 0) of block (0, 0, 0)"
    assert caught.value.where.address.endswith(f"malloc gave {who} at own.cu:7, freed by {who} at own.cu:8")
