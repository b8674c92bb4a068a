"""`triton.jit` of the drop-in: attributes, launches, what they return, hooks, sources, errors."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
from __future__ import annotations

import pickle
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
from weft import triton
from weft.triton import knobs
from weft.triton import language as tl
from weft.triton.backends.compiler import GPUTarget
from weft.triton.compiler import ASTSource
from weft.triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
from weft.triton.profiles import LAUNCHES
from weft.triton.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.jit


@triton.jit
def scale(x: Any, out: Any, factor: Any, n: Any, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


def arrays(n: int = 70) -> tuple[Any, Any]:
    x = np.arange(n, dtype=np.float32)
    return x, np.zeros_like(x)


def test_a_launch_returns_the_compiled_kernel() -> None:
    x, out = arrays()
    kernel = scale[(3,)](x, out, 2.0, 70, BLOCK=32, num_warps=8)
    np.testing.assert_array_equal(out, 2 * x)
    assert kernel.metadata.num_warps == 8
    assert kernel.metadata.name == "scale"
    assert kernel.metadata.target == triton.runtime.driver.active.get_current_target()
    assert "tile.load" in kernel.asm["ttir"]
    assert "scale" in kernel.asm["asm"]
    assert "define" in kernel.asm["llir"]
    assert kernel.asm["obj"] == kernel.kernel
    assert (kernel.n_regs, kernel.n_spills) == (32, 0)
    assert kernel.metadata.shared == 1  # programs divide by both
    assert kernel.src.signature == {"x": "*fp32", "out": "*fp32", "factor": "fp32", "n": "i32", "BLOCK": "constexpr"}
    for factor in (3.0, 4.0, 5.0):  # the third time by a route
        assert kernel is scale[(3,)](x, out, factor, 70, BLOCK=32, num_warps=8, waves_per_eu=2)
        np.testing.assert_array_equal(out, factor * x)
    assert kernel is scale[(0,)](x, out, 6.0, 70, BLOCK=32, num_warps=8, waves_per_eu=2)
    np.testing.assert_array_equal(out, 5 * x)


def test_a_compiled_kernel_launches() -> None:
    x, out = arrays()
    kernel = scale.warmup(x, out, 2.0, 70, BLOCK=32, grid=(1,))
    assert not out.any()
    kernel[(3, 1, 1)](x, out, 4.0, 70, 32)
    np.testing.assert_array_equal(out, 4 * x)
    kernel[(3,)](x, out, 5.0, 70)
    np.testing.assert_array_equal(out, 5 * x)


STEP = tl.constexpr(0)


def test_code_for_another_value_of_a_global_is_not_kept() -> None:
    @triton.jit
    def kernel(out: Any):
        tl.store(out, STEP)

    out = np.zeros(1, np.int32)
    for step in range(3):
        globals()["STEP"] = tl.constexpr(step)
        kernel[(1,)](out)
        assert out[0] == step
        assert [len(cache[0]) for cache in kernel.device_caches.values()] == [1]


def test_a_text_that_is_not_there() -> None:
    x, out = arrays()
    kernel = scale.warmup(x, out, 2.0, 70, BLOCK=32)
    with pytest.raises(KeyError) as raised:
        kernel.asm["amdgcn"]
    assert str(raised.value) == "\"Unknown key: 'amdgcn'; this kernel has source, ttir, ttgir, llir, asm, obj\""
    assert "ptx" not in kernel.asm


def test_the_name_is_what_repr_makes_of_types_and_constants() -> None:
    def name(specialization: Any) -> str:
        ones = [k for k, v in specialization.constants.items() if v == 1]
        return f"kernel_{specialization.signature['n']}_{'_'.join(ones)}"

    @triton.jit(repr=name)
    def kernel(x: Any, n: Any, one: Any):
        pass

    found = kernel.warmup(np.zeros(1, np.int32), 2**40, 1, grid=(1,))
    assert found.name == found.metadata.name == "kernel_i64_one"


def test_tuples_in_signatures() -> None:
    @triton.jit
    def kernel(x: Any, pair: Any, last: Any):
        tl.store(x, pair[0] + pair[1][0] + last)

    x = np.zeros(1, np.int32)
    found = kernel[(1,)](x, (3, (16, tl.constexpr(5))), 1)
    assert x[0] == 20
    assert found.src.signature == {"x": "*i32", "pair": ("i32", ("i32", "constexpr")), "last": "constexpr"}
    assert found.src.constants == {(1, 1, 1): 5, (2,): 1}
    assert found.src.attrs[1, 1, 0] == [["tt.divisibility", 16]]
    found[(1, 1, 1)](x, (4, (32, None)), -1)  # what is known at compile time counts for nothing
    assert x[0] == 37


def test_annotated_numbers_in_signatures() -> None:
    """Also in a source made from the signature, whose launches pass numbers of these types."""

    def kernel(out: Any, a: Any, b: Any, c: Any, d: Any, e: Any, N: Any):
        tl.store(out, a + c.to(tl.float64) + d + e + N)
        tl.store(out + 1, b)

    kernel.__annotations__ = {
        "a": tl.int16, "b": "tl.uint8", "c": tl.float16, "d": tl.float64, "e": tl.int64, "N": tl.constexpr
    }  # fmt: skip
    out = np.zeros(2, np.float64)
    compiled = triton.jit(kernel)
    found = compiled[(1,)](out, 3, 250, 0.5, 0.1, 1, 4)
    expected = {"out": "*fp64", "a": "i16", "b": "u8", "c": "fp16", "d": "fp64", "e": "i64", "N": "constexpr"}
    assert found.src.signature == expected
    assert out.tolist() == [3 + 0.5 + 0.1 + 1 + 4, 250]
    again = triton.compile(ASTSource(compiled, found.src.signature, found.src.constants, found.src.attrs))
    again[(1, 1, 1)](out, -7, 255, 1.5, 0.2, 2**40, 4)
    assert out.tolist() == [-7 + 1.5 + 0.2 + 2**40 + 4, 255]


def test_descriptors_in_signatures() -> None:
    @triton.jit
    def kernel(x: Any, out: Any):
        tl.store(out, tl.sum(x.load([0, 4])))

    x = np.arange(64, dtype=np.int16).reshape(8, 8)
    out = np.zeros(1, np.int32)
    found = kernel[(1,)](TensorDescriptor.from_tensor(x, [2, 8]), out)
    assert out[0] == x[:2, 4:].sum()
    assert found.src.signature == {"x": "tensordesc<i16[2, 8]>", "out": "*i32"}
    again = triton.compile(ASTSource(kernel, found.src.signature, found.src.constants, found.src.attrs))
    again[(1, 1, 1)](TensorDescriptor.from_tensor(2 * x, [2, 8]), out)
    assert out[0] == 2 * x[:2, 4:].sum()


def test_a_compiled_kernel_keeps_its_constants() -> None:
    """PyTorch's compiler gives -1 for them."""
    x, out = arrays()
    kernel = scale.warmup(x, out, 2.0, 70, BLOCK=32, grid=(1,))
    kernel[(3, 1, 1)](x, out, 4.0, 70, -1)
    np.testing.assert_array_equal(out, 4 * x)


@pytest.mark.parametrize("stage", ["obj", "ptx"])
def test_a_listener_is_told_of_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stage: str) -> None:
    """The later launch finds the kernel in this process, the second `compile` finds it on the disk."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **given: told.append(given))

    @triton.jit
    def kernel(x: Any):
        tl.store(x, 3)

    with ExitStack() as stack:
        if stage == "ptx":
            stack.enter_context(weft.emulate("sm_80"))
        for _ in range(2):
            kernel[(1,)](np.zeros(1, np.int32))
            kernel[(1,)](np.zeros(1, np.int32))
            kernel.device_caches.clear()
        source = ASTSource(kernel, {"x": "*i32"})
        made = [triton.compile(source), triton.compile(source)]
    assert [given["cache_hit"] for given in told] == [False, True, False, True]
    for miss in (told[0]["times"], told[2]["times"]):
        assert [name for name, _ in miss.lowering_stages] == [stage]
        assert min(miss.ir_initialization, miss.total_lowering, miss.store_results) > 0
        assert miss.total == miss.ir_initialization + miss.total_lowering + miss.store_results < 60_000_000
    for hit in (told[1]["times"], told[3]["times"]):
        assert hit.ir_initialization > 0 and (hit.lowering_stages, hit.total_lowering, hit.store_results) == ([], 0, 0)
    assert told[3]["metadata"]["hash"] == made[1].hash and told[3]["src"] is source
    assert told[0]["src"].fn is kernel and told[0]["metadata_group"] == {}


def test_hooks_of_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(knobs.runtime, "jit_cache_hook", lambda **given: told.append(given["compile"]["num_warps"]))
    monkeypatch.setattr(knobs.runtime, "jit_post_compile_hook", lambda **given: told.append(given["repr"]))

    @triton.jit
    def kernel(n: Any):
        pass

    for _ in range(2):
        kernel[(1,)](6, num_warps=2)
    assert told[0] == 2
    assert told[1].endswith(
        "kernel[num_warps=2, num_ctas=1, num_stages=3, enable_fp_fusion=True, launch_cooperative_grid=False](n: i32)"
    )
    assert len(told) == 2


def test_warps_are_powers_of_two_and_fit_a_block() -> None:
    x, out = arrays()
    with pytest.raises(AssertionError) as raised:
        scale[(1,)](x, out, 2.0, 70, BLOCK=32, num_warps=3)
    assert str(raised.value) == "num_warps must be a power of 2, found 3"
    with pytest.raises(triton.OutOfResources) as beyond:
        scale[(1,)](x, out, 2.0, 70, BLOCK=32, num_warps=64)
    assert (beyond.value.required, beyond.value.limit, beyond.value.name) == (2048, 1024, "threads")


def test_options_of_other_machines_change_nothing() -> None:
    x, out = arrays()
    scale[(3,)](x, out, 2.0, 70, BLOCK=32, waves_per_eu=2, matrix_instr_nonkdim=16, debug=True)
    np.testing.assert_array_equal(out, 2 * x)


def test_an_unknown_keyword() -> None:
    x, out = arrays()
    with pytest.raises(KeyError) as raised:
        scale[(1,)](x, out, 2.0, 70, BLOCK=32, blok=1)
    assert raised.value.args == ("Keyword argument blok was specified but unrecognised",)


def test_attributes() -> None:
    assert scale.arg_names == ["x", "out", "factor", "n", "BLOCK"]
    assert scale.constexprs == [4]
    assert [p.is_constexpr for p in scale.params] == [False, False, False, False, True]
    assert scale.src.startswith("def scale(x: Any")
    assert scale.__globals__ is globals()
    assert list(scale.signature.parameters) == scale.arg_names
    assert scale.fn.__name__ == scale.__name__ == "scale"
    assert repr(scale) == f"JITFunction({__name__}:scale)"
    assert len(scale.cache_key) == 64
    assert isinstance(scale, triton.KernelInterface)


def test_a_kernel_is_no_function() -> None:
    with pytest.raises(RuntimeError) as raised:
        scale(1)
    assert str(raised.value) == "Cannot call @triton.jit'd outside of the scope of a kernel"


def test_the_keywords_of_jit() -> None:
    @triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=[0], debug=True, noinline=True, version=3)
    def store(x: Any, n: Any):
        tl.store(x, n)

    assert [p.do_not_specialize for p in store.params] == [False, True]
    assert [p.do_not_specialize_on_alignment for p in store.params] == [True, False]
    x = np.zeros(1, np.int32)
    kernels = {id(store[(1,)](x, n)) for n in (1, 16, 17)}
    assert len(kernels) == 1
    assert len(store.device_caches[0][0]) == 1


def test_another_source() -> None:
    @triton.jit
    def kernel(x: Any):
        tl.store(x, 1)

    x, before = np.zeros(1, np.int32), kernel.cache_key
    kernel[(1,)](x)
    kernel._unsafe_update_src(kernel.src.replace("1)", "7)"))
    kernel[(1,)](x)
    assert x[0] == 7
    assert kernel.cache_key != before


@pytest.mark.parametrize("known", [0, 3])
def test_hooks_see_arguments_and_metadata(known: int) -> None:
    """Also after so many launches of the same kind."""
    seen: list[Any] = []

    def metadata(grid: Any, metadata: Any, args: Any) -> dict[str, Any]:
        return {"n": args["n"], "grid": grid, "warps": metadata.num_warps}

    @triton.jit(launch_metadata=metadata)
    def kernel(x: Any, n: Any):
        tl.store(x, n)

    def enter(lazy: Any) -> None:
        seen.append(lazy.get())

    def leave(lazy: Any) -> None:
        seen.append(lazy.get()["name"])

    def before(*args: Any, **keywords: Any) -> None:
        seen.append(len(args))

    for _ in range(known):
        kernel[(2,)](np.zeros(1, np.int32), 5)
    kernel.add_pre_run_hook(before)
    knobs.runtime.launch_enter_hook.add(enter)
    knobs.runtime.launch_exit_hook.add(leave)
    try:
        kernel[(2,)](np.zeros(1, np.int32), 5)
        kernel[(0,)](np.zeros(1, np.int32), 5)
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
        knobs.runtime.launch_exit_hook.remove(leave)
    assert seen[0] == 2
    assert {k: seen[1][k] for k in ("name", "n", "grid", "warps")} == {
        "name": "kernel",
        "n": 5,
        "grid": (2, 1, 1),
        "warps": 4,
    }
    assert seen[2:] == ["kernel", 2]


def test_compile() -> None:
    types = {"x": "*fp32", "out": "*fp32", "factor": "fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(scale, types, {"BLOCK": 32}, {(0,): [["tt.divisibility", 16]]})
    kernel = triton.compile(source)
    assert "tile.divisibility = 16" in kernel.asm["ttir"]
    target = GPUTarget("cuda", 80, 32)
    gpu = triton.compile(source, target=target, options={"num_warps": 2})
    assert ".target sm_80" in gpu.asm["ptx"]
    assert gpu.metadata.target == target
    assert gpu.metadata.num_warps == 2
    assert gpu.hash != kernel.hash


def test_emulated_launches_are_profiled() -> None:
    x, out = arrays()
    LAUNCHES.clear()
    with weft.emulate("sm_80"):
        kernel = scale[(3,)](x, out, 2.0, 70, BLOCK=32)
        assert triton.runtime.driver.active.get_current_target() == GPUTarget("cuda", 80, 32)
    np.testing.assert_array_equal(out, 2 * x)
    assert ".target sm_80" in kernel.asm["ptx"]
    assert LAUNCHES.kernels == ["scale"]
    LAUNCHES.clear()


# ---- errors ---------------------------------------------------------------------------------------------------------


@triton.jit
def helper(value: Any):
    return value & 1.5


@triton.jit
def calls_helper(x: Any):
    # a comment, so that lines differ

    helper(tl.load(x))


@triton.jit
def asserts(x: Any, N: tl.constexpr):
    tl.static_assert(N > 3, "too few")


def refused(kernel: Any, *args: Any, **keywords: Any) -> CompilationError:
    with pytest.raises(CompilationError) as raised:
        kernel[(1,)](*args, **keywords)
    return raised.value


def test_an_error_is_a_chain_of_calls() -> None:
    error = refused(calls_helper, np.zeros(1, np.int32))
    assert isinstance(error, triton.TritonError)
    assert str(error).splitlines()[0] == "at 4:4:"
    inner = error.__cause__
    assert isinstance(inner, CompilationError)
    lines = str(inner).splitlines()
    assert lines[0] == "at 2:11:"
    assert lines[3] == "           ^"
    assert "test_triton_jit.py" in str(inner)  # weft's own location beneath
    assert isinstance(inner.__cause__, TypeError)
    assert "weft" not in "".join(traceback.format_tb(inner.__traceback__))


def test_a_static_assert_has_its_class() -> None:
    error = refused(asserts, np.zeros(1, np.int32), N=2)
    assert type(error) is CompileTimeAssertionFailure
    assert error.__cause__ is None
    assert str(error).splitlines()[0] == "at 2:4:"


def test_out_of_resources() -> None:
    x, out = arrays()
    with weft.emulate("sm_80"), pytest.raises(triton.OutOfResources) as raised:
        scale[(1,)](x, out, 2.0, 70, BLOCK=32, num_warps=64)
    assert (raised.value.required, raised.value.limit, raised.value.name) == (2048, 1024, "threads")
    assert str(raised.value) == (
        "out of resource: threads, Required: 2048, Hardware limit: 1024. Reducing block sizes or `num_stages` may help."
    )
    assert isinstance(raised.value, triton.TritonError)


# ---- small names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "power"), [(0, 0), (1, 1), (2, 2), (3, 4), (1025, 2048)])
def test_next_power_of_2(n: int, power: int) -> None:
    assert triton.next_power_of_2(n) == power


def test_reinterpret() -> None:
    x = np.ones(4, np.float32)
    np.testing.assert_array_equal(triton.reinterpret(x, tl.int32), x.view(np.int32))
    with pytest.raises(TypeError) as raised:
        triton.reinterpret(3, tl.int32)
    assert str(raised.value) == "Cannot reinterpret a <class 'int'>."


def test_dtypes_on_the_host() -> None:
    assert tl.dtype("fp32") is tl.float32
    assert isinstance(tl.float16, tl.dtype)
    assert tl.int8.codegen_name() == "int8"
    assert (tl.bfloat16.codegen_name(), tl.float8e4b15.codegen_name(), tl.int1.codegen_name()) == (
        "bfloat16",
        "float8e4b15",
        "int1",
    )


class Pair(NamedTuple):
    x: Any
    y: Any


def test_types_by_their_spelling() -> None:
    spellings = ["fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp8e4b15", "fp16", "bf16", "fp32", "fp64"]
    spellings += ["i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
    spelled = [tl.str_to_ty(name, None) for name in spellings]
    floats = [tl.float8e4nv, tl.float8e4b8, tl.float8e5, tl.float8e5b16, tl.float8e4b15]
    floats += [tl.float16, tl.bfloat16, tl.float32, tl.float64]
    integers = [tl.int1, tl.int8, tl.int16, tl.int32, tl.int64, tl.uint8, tl.uint16, tl.uint32, tl.uint64]
    assert spelled == floats + integers
    assert tl.str_to_ty("*i32", None) == tl.str_to_ty("*ki32", None) == tl.pointer_type(tl.int32)
    assert tl.str_to_ty("**fp16", None) == tl.pointer_type(tl.pointer_type(tl.float16))
    assert tl.str_to_ty("constexpr", 3) == tl.constexpr_type(3)
    assert tl.str_to_ty(("i32", ("*fp32", "u1")), None) == (tl.int32, (tl.pointer_type(tl.float32), tl.int1))
    assert tl.str_to_ty(Pair("i8", "*i8"), None) == Pair(tl.int8, tl.pointer_type(tl.int8))
    assert tl.float8e4b15.name == "float8_e4m3b15"
    described = tl.str_to_ty("tensordesc<fp16[8, 32]>", None)
    assert described == tl.str_to_ty("tensordesc<fp16[8,32]>", None) != tl.str_to_ty("tensordesc<fp16[8, 16]>", None)
    assert isinstance(described, tl.core.tensor_descriptor_type) and described.block_type == tl.block_type(
        tl.float16, (8, 32)
    )
    assert (described.shape_type, described.strides_type) == ((tl.int32, tl.int32), (tl.int64, tl.int64))
    assert str(described) == "tensor_descriptor<<[8, 32], float16>>"


def test_names_that_weft_has_not() -> None:
    @triton.jit
    def kernel(x: Any):
        tl.store(x, tl.extra.cuda.convert_custom_float8(x))

    error = refused(kernel, np.zeros(1, np.int32))
    assert error.error_message == "weft does not have tl.extra.cuda.convert_custom_float8 yet"


@triton.jit(debug=False)
def asserting(x: Any):
    tl.device_assert(tl.load(x) > 0, "is 1")


def test_the_setting_debug_counts_before_keywords(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(1, np.int32)
    for _ in range(4):
        asserting[(1,)](x, debug=False)
    monkeypatch.setattr(knobs.runtime, "debug", True)
    for keywords in 3 * ({}, {"debug": False}):
        with pytest.raises(RuntimeError, match="is 1"):
            asserting[(1,)](x, **keywords)
    monkeypatch.undo()
    asserting[(1,)](x, debug=False)


def test_failed_assertions_are_told_as_on_a_card(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.zeros(1, np.int32)
    with pytest.raises(weft.DeviceAssertionError) as caught:
        asserting[(3,)](x, debug=True)
    line = asserting.starting_line_number + 2
    first, second, place, *_ = str(caught.value).splitlines()
    assert first == "CUDA error: device-side assert triggered"
    assert second.startswith("kernel 'asserting', program (")
    assert second.endswith(": assertion failed: is 1")
    assert place == f"  at {__file__}:{line}, in asserting"
    block = ",".join(map(str, caught.value.program))
    expected = f"{__file__}:{line}: asserting: block: [{block}], thread: [0,0,0] Assertion `is 1` failed.\n"
    assert capfd.readouterr().err == expected
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_variable_that_is_annotated_as_a_constexpr() -> None:
    """In Triton the annotation has no effect on a value of the run time."""

    @triton.jit
    def kernel(out: Any, n: Any, BLOCK: tl.constexpr):
        size: tl.constexpr = BLOCK * n
        half: tl.constexpr = BLOCK // 2
        tl.store(out + tl.arange(0, half), size)

    out = np.zeros(8, np.int32)
    kernel[(1,)](out, 7, 16)
    assert out.tolist() == [112] * 8


def test_a_pointer_as_a_condition() -> None:
    """It asks whether the pointer is one: None is an argument too."""

    @triton.jit
    def kernel(x: Any, out: Any):
        if x:
            tl.store(out, tl.load(x))
        else:
            tl.store(out, 5)
        address = out.to(tl.int64)
        if (address * 0).to(tl.pointer_type(tl.float32)):
            tl.store(out, 9)

    x, out = np.full(1, 3, np.float32), np.zeros(1, np.float32)
    kernel[(1,)](x, out)
    assert out[0] == 3
    kernel[(1,)](None, out)
    assert out[0] == 5


@triton.jit
def one() -> Any:
    return 1


@triton.jit
def calls_its_argument(out: Any, FUNCTION: tl.constexpr) -> None:
    tl.store(out, FUNCTION())


def test_a_function_with_another_text_is_compiled_again_where_it_is_an_argument() -> None:
    out = np.zeros(1, np.int32)
    calls_its_argument[(1,)](out, one)
    assert out[0] == 1
    text, key = one.src, one.cache_key
    one._unsafe_update_src(text.replace("return 1", "return 2"))
    calls_its_argument[(1,)](out, one)
    assert out[0] == 2
    one._unsafe_update_src(text)
    calls_its_argument[(1,)](out, one)
    assert out[0] == 1
    assert one.cache_key == key


def test_hash_is_the_cache_key_also_after_programs_reset_it() -> None:
    before = one.hash
    one.hash = None
    assert one.hash == one.cache_key == before
