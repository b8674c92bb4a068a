"""`weft profile`: a kernel in each form, arguments as they may be spelled, faults, exit codes, every error in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft.cli import main
from weft.cli.profile import read_argument
from weft.emulator import Module, Scratch
from weft.emulator.profile import Profile

# out[i] = 2 * x[i * stride]; the stride is in elements.
SCALE = """\
.version 8.0
.target sm_80
.address_size 64
.file 1 "/nowhere/scale.cu"
.visible .entry scale(.param .u64 out, .param .u64 x, .param .u32 stride) {
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<3>;
  .loc 1 3 1
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [x];
  ld.param.u32 %r5, [stride];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r4, %r2, %r3, %r1;
  mul.lo.u32 %r6, %r4, %r5;
  mul.wide.u32 %rd3, %r4, 4;
  mul.wide.u32 %rd4, %r6, 4;
  add.u64 %rd5, %rd1, %rd3;
  add.u64 %rd6, %rd2, %rd4;
  .loc 1 4 1
  ld.global.b32 %r7, [%rd6];
  .loc 1 5 1
  st.global.b32 [%rd5], %r7;
  ret;
}
"""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output as in a pipe, whatever the machine's environment."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def scale(tmp_path: Path) -> str:
    path = tmp_path / "scale.ptx"
    path.write_text(SCALE)
    return str(path)


LAUNCH = ("--grid", "2", "--block", "64,1", "--arg", "f32[128]=empty", "--arg", "f32[1024]=random")


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and stdout; nothing on stderr."""
    code = main(["profile", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said of a question that is wrong: one line."""
    try:
        code = main(["profile", *arguments])
    except SystemExit as exit_:
        code = exit_.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    return line


def test_the_table(capsys: pytest.CaptureFixture[str], scale: str):
    code, out = ask(capsys, scale, *LAUNCH, "--arg", "i32=8")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "scale grid 2 x 1 x 1, block 64 x 1 x 1, sm_80"
    assert "global loads 4 512 sectors 128 16 8.00x" in lines  # a sector for each lane
    assert "global stores 4 512 sectors 16 16 1.00x" in lines
    assert any(line.startswith("scale.cu:4 4 100% 128 16") for line in lines)


def test_json_is_the_profile(capsys: pytest.CaptureFixture[str], scale: str):
    code, out = ask(capsys, scale, *LAUNCH, "--arg", "i32=1", "--json")
    assert code == 0
    profile = Profile.from_json(out)
    assert profile.excess_sectors == 0
    assert profile["scale.cu:4"]["global_load_bytes"] == 512
    arrays = [Scratch(np.zeros(128, np.float32)), np.zeros(1024, np.float32)]
    assert profile == Module(SCALE).launch("scale", 2, (64, 1), [*arrays, 1])


def test_a_page(capsys: pytest.CaptureFixture[str], scale: str, tmp_path: Path):
    (tmp_path / "scale.cu").write_text("// one\n// two\nint i;\nfloat loaded;\nout[i] = loaded;\n")
    page = tmp_path / "report.html"
    code, out = ask(
        capsys, scale, *LAUNCH, "--arg", "i32=8", "--html", str(page), "--source", str(tmp_path), "--kernel", "scale"
    )
    assert (code, out) == (0, f"the page is written to {page}\n")
    html = page.read_text()
    assert '<td class="text">float loaded;</td>' in html
    assert "8.00×" in html


def test_a_page_opens_in_a_browser(capsys: pytest.CaptureFixture[str], scale: str, monkeypatch: pytest.MonkeyPatch):
    """Without --html it is a file in the system's folder for such; that there is no browser is said."""
    opened: list[str] = []
    for answer, rest in ((True, []), (False, ["there is no browser that could open it"])):

        def browser(url: str, answer: bool = answer) -> bool:
            opened.append(url)
            return answer

        monkeypatch.setattr("webbrowser.open", browser)
        code, out = ask(capsys, scale, *LAUNCH, "--arg", "i32=1", "--open")
        first, *more = out.splitlines()
        page = Path(first.removeprefix("the page is written to "))
        assert (code, more, opened[-1]) == (0, rest, page.as_uri())
        assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
        page.unlink()


def test_what_changed(capsys: pytest.CaptureFixture[str], scale: str, tmp_path: Path):
    """A stride of 8 makes each lane a sector of line 4."""
    files: list[str] = []
    for stride in (1, 8):
        _, out = ask(capsys, scale, *LAUNCH, "--arg", f"i32={stride}", "--json")
        files.append(str(tmp_path / f"{stride}.json"))
        Path(files[-1]).write_text(out, encoding="utf-8")
    code, out = ask(capsys, "--diff", *files)
    assert code == 1
    assert out.splitlines() == [
        f"from {files[0]} to {files[1]}:",
        "  total       global_load_sectors  16 -> 128",
        "              global_sectors       32 -> 144",
        "              excess_sectors       0 -> 112",
        "  scale.cu:4  global_load_sectors  16 -> 128",
    ]
    assert ask(capsys, "--diff", files[1], files[1]) == (0, f"no difference between {files[1]} and {files[1]}\n")


def test_what_is_no_profile(capsys: pytest.CaptureFixture[str], scale: str, tmp_path: Path):
    missing = tmp_path / "missing.json"
    assert refused(capsys, "--diff", scale, scale) == f"weft: {scale} is no profile that weft profile --json made"
    assert refused(capsys, "--diff", str(missing), scale) == f"weft: {missing}: No such file or directory"
    bare = tmp_path / "bare.json"
    bare.write_text('{"version": 1}')
    assert refused(capsys, "--diff", str(bare), scale) == f"weft: {bare} is no profile that weft profile --json made"


CUDA = """\
template <typename T> __global__ void scale(T* out, const T* x, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = x[i * stride];
}
template __global__ void scale(float*, const float*, int);
extern "C" __global__ void nothing() {}
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc, which compiles the CUDA source, is not on the PATH")
def test_cuda_source(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Compiled with its lines; the kernel by its name in the source."""
    source = tmp_path / "scale.cu"
    source.write_text(CUDA)
    _, out = ask(capsys, str(source), *LAUNCH, "--arg", "i32=8", "--kernel", "scale", "--json", "--arch", "sm_80")
    profile = Profile.from_json(out)
    assert profile["scale.cu:3"]["global_load_sectors"] == 128
    assert profile.launch.target == "sm_80"
    source.write_text(CUDA.replace("int stride", "int step"))
    said = refused(capsys, str(source), *LAUNCH, "--kernel", "scale")
    assert said.startswith("weft: nvcc refuses scale.cu: ")
    assert said.endswith('error: identifier "stride" is undefined')


def test_cuda_source_without_nvcc(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WEFT_PTXAS", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    assert refused(capsys, "kernels/scale.cu", *LAUNCH) == (
        "weft: scale.cu is CUDA source, and nvcc is not found: set CUDA_HOME, or put nvcc on PATH, "
        "or give the PTX that nvcc -ptx -lineinfo makes of scale.cu elsewhere"
    )


@pytest.mark.parametrize("said", ["module.cu(3): error: it is wrong", ""])
def test_what_nvcc_refuses(
    said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    nvcc = tmp_path / "nvcc"
    nvcc.write_text(f"#!/bin/sh\necho 'a warning'\necho '{said}'\nexit 1\n" if said else "#!/bin/sh\nexit 1\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.delenv("WEFT_PTXAS", raising=False)
    source = tmp_path / "scale.cu"
    assert refused(capsys, str(source), *LAUNCH) == f"weft: {source}: No such file or directory"
    source.write_text(CUDA)
    assert refused(capsys, str(source), *LAUNCH) == f"weft: nvcc refuses scale.cu: {said or 'no message'}"


def test_a_name_that_several_kernels_have(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "two.ptx"
    path.write_text(
        SCALE.replace("entry scale", "entry _Z5scaleIfEvPT_")
        + SCALE.partition(".file")[2].partition("\n")[2].replace("entry scale", "entry _Z5scaleIiEvPT_")
    )
    assert refused(capsys, str(path), *LAUNCH, "--kernel", "scale") == (
        "weft: 'scale' is the name of several kernels: _Z5scaleIfEvPT_, _Z5scaleIiEvPT_; say which"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "the following arguments are required: FILE, --grid, --block"),
        (("k.ptx", "--grid", "1"), "the following arguments are required: --block"),
        (("k.ptx", *LAUNCH, "--json", "--open"), "--open is of a page, and --json prints no page"),
    ],
)
def test_what_is_missing(given: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]):
    assert refused(capsys, *given) == f"weft: {message}"


def test_source_text_in_the_table(capsys: pytest.CaptureFixture[str], scale: str, tmp_path: Path):
    (tmp_path / "scale.cu").write_text("\n\n\nfloat loaded;\n")
    _, out = ask(capsys, scale, *LAUNCH, "--arg", "i32=8", "--source", str(tmp_path))
    assert any(line.split()[:3] == ["scale.cu:4", "float", "loaded;"] for line in out.splitlines())


# ---- faults -------------------------------------------------------------------------------------------------------------

FAULTY = (*LAUNCH, "--arg", "i32=9")  # thread 114 reads element 1026 of 1024: thread 50 of block 1


def test_a_fault_is_printed_and_the_exit_code_is_1(capsys: pytest.CaptureFixture[str], scale: str):
    code, out = ask(capsys, scale, *FAULTY)
    assert code == 1
    kind, *lines = out.splitlines()
    assert kind.startswith("out of bounds: ")
    assert lines[:4] == [
        "  kernel scale",
        "  source /nowhere/scale.cu:4",
        "  PTX line 21: ld.global.b32 %r7, [%rd6]",
        "  block (1, 0, 0), thread (50, 0, 0)",
    ]


def test_a_fault_as_json(capsys: pytest.CaptureFixture[str], scale: str):
    code, out = ask(capsys, scale, *FAULTY, "--json")
    assert code == 1
    fault = json.loads(out)["fault"]
    assert fault["message"]
    assert fault["address"]
    assert {name: fault[name] for name in fault if name not in ("message", "address")} == {
        "kind": "out of bounds",
        "kernel": "scale",
        "line": 21,
        "text": "ld.global.b32 %r7, [%rd6]",
        "source": "/nowhere/scale.cu:4",
        "inlined": [],
        "block": [1, 0, 0],
        "thread": [50, 0, 0],
    }


def test_inlined_code(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Line 4 is inlined at line 3: faults name both, and counts are at either."""
    path = tmp_path / "scale.ptx"
    path.write_text(SCALE.replace(".loc 1 4 1", ".loc 1 4 1, function_name $L__name, inlined_at 1 3 1"))
    _, out = ask(capsys, str(path), *FAULTY, "--json")
    fault = json.loads(out)["fault"]
    assert fault["source"] == "/nowhere/scale.cu:3"
    assert fault["inlined"] == [{"function": "", "source": "/nowhere/scale.cu:4"}]
    for way, lines in (("written", [3, 4, 5]), ("called", [3, 5])):
        _, out = ask(capsys, str(path), *LAUNCH, "--arg", "i32=1", "--json", "--inlined", way)
        assert [row.line for row in Profile.from_json(out).lines] == lines


def test_without_checks_the_same_launch_is_counted(capsys: pytest.CaptureFixture[str], scale: str):
    code, out = ask(capsys, scale, *FAULTY, "--no-checks")
    assert code == 0
    assert "checks that were off: bounds, alignment, uninitialised, races, global_races, steps\n" in out


# ---- arguments ----------------------------------------------------------------------------------------------------------


def read(spelled: str) -> Any:
    return read_argument(spelled, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("i32=5", np.int32(5)),
        ("s32=-5", np.int32(-5)),
        ("u64=0xffff", np.uint64(65535)),
        ("b8=7", np.uint8(7)),
        ("f32=0.5", np.float32(0.5)),
        ("float64=-inf", np.float64("-inf")),
        ("bf16=1.5", ml_dtypes.bfloat16(1.5)),
        ("bool=1", np.bool_(True)),
    ],
)
def test_numbers(spelled: str, expected: Any):
    got = read(spelled)
    assert got == expected
    assert got.dtype == expected.dtype


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        ("f32[3]=zeros", np.zeros(3, np.float32)),
        ("f16[2,3]=ones", np.ones((2, 3), np.float16)),
        ("i64[2,3]=arange", np.arange(6).reshape(2, 3)),
        ("u8[4]=9", np.full(4, 9, np.uint8)),
        ("fp8e4nv[2]=0.5", np.full(2, 0.5, ml_dtypes.float8_e4m3fn)),
        ("f32[0]=zeros", np.zeros(0, np.float32)),
    ],
)
def test_arrays(spelled: str, expected: Any):
    got = read(spelled)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    assert got.flags.writeable
    assert got.flags.c_contiguous


def test_random_arrays():
    floats, whole, flags = read("f32[1000]=random"), read("i32[1000]=random"), read("bool[1000]=random")
    assert floats.dtype == np.float32
    assert abs(floats.mean()) < 0.2
    assert 0.8 < floats.std() < 1.2
    assert (whole.min(), whole.max(), whole.dtype) == (0, 99, np.int32)
    assert 400 < flags.sum() < 600
    np.testing.assert_array_equal(floats, read("f32[1000]=random"))


def test_memory_that_holds_nothing_yet():
    got = read("f32[4,2]=empty")
    assert isinstance(got, Scratch)
    assert (got.array.shape, got.array.dtype) == ((4, 2), np.float32)


def test_arrays_from_files(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.arange(5))
    np.testing.assert_array_equal(read(f"@{tmp_path / 'x.npy'}"), np.arange(5))


_NONE = "expected TYPE=NUMBER, TYPE[SHAPE]=VALUE or @FILE.npy"
_FILL = "expected random, zeros, ones, arange, empty or a number"


@pytest.mark.parametrize(
    ("spelled", "message"),
    [
        ("5", f"--arg '5' is no argument; {_NONE}"),
        ("f32[4]", f"--arg 'f32[4]' is no argument; {_NONE}"),
        ("f32=", f"--arg 'f32=' is no argument; {_NONE}"),
        ("float23=1", "--arg 'float23=1': unknown dtype 'float23'; did you mean 'float32'?"),
        ("tensor_float32=1", "--arg 'tensor_float32=1': neither NumPy nor ml_dtypes has tensor_float32"),
        ("f32=random", "--arg 'f32=random': the value is 'random', expected a number"),
        ("i32=1.5", "--arg 'i32=1.5': the value is '1.5', expected a number"),
        ("i8=300", "--arg 'i8=300': 300 does not fit int8"),
        ("u8[2]=-1", "--arg 'u8[2]=-1': -1 does not fit uint8"),
        ("f32[4]=x", f"--arg 'f32[4]=x': the value is 'x', {_FILL}"),
        ("f32[4]=rand", f"--arg 'f32[4]=rand': the value is 'rand', {_FILL}; did you mean 'random'?"),
        ("f32[]=zeros", "--arg 'f32[]=zeros': the shape is [], expected numbers such as [64,64]"),
        ("f32[4x4]=zeros", "--arg 'f32[4x4]=zeros': the shape is [4x4], expected numbers such as [64,64]"),
    ],
)
def test_arguments_that_are_none(spelled: str, message: str):
    with pytest.raises(ValueError) as caught:
        read(spelled)
    assert str(caught.value) == message


def test_files_that_are_no_arrays(tmp_path: Path):
    text, archive = tmp_path / "x.npy", tmp_path / "x.npz"
    text.write_text("no array")
    np.savez(archive, a=np.zeros(1))
    with pytest.raises(ValueError, match=r"^--arg '@.*x\.npy' is no array: "):
        read(f"@{text}")
    with pytest.raises(
        ValueError, match=r"^--arg '@.*x\.npz' is an archive of several arrays; expected one array \(\.npy\)$"
    ):
        read(f"@{archive}")


# ---- questions that are wrong -------------------------------------------------------------------------------------------


def test_launches_that_are_wrong(capsys: pytest.CaptureFixture[str], scale: str, tmp_path: Path):
    assert refused(capsys, scale) == "weft: the following arguments are required: --grid, --block"
    message = "weft: --grid is '2,2,2,2', expected one to three numbers such as 4,1,1"
    assert refused(capsys, scale, "--grid", "2,2,2,2", "--block", "1") == message
    message = "weft: --block is '32x8', expected one to three numbers such as 4,1,1"
    assert refused(capsys, scale, "--grid", "2", "--block", "32x8") == message
    assert refused(capsys, scale, *LAUNCH, "--shared", "-4") == "weft: --shared is -4, expected 0 or more"
    assert refused(capsys, scale, *LAUNCH, "--kernel", "sale").startswith("weft: the module has no kernel 'sale'")
    assert refused(capsys, scale, *LAUNCH).startswith("weft: scale() takes 3 arguments, got 2")
    missing = str(tmp_path / "missing.ptx")
    assert refused(capsys, missing, *LAUNCH) == f"weft: {missing}: No such file or directory"
    assert refused(capsys, scale, *LAUNCH, "--arg", "@missing.npy") == "weft: missing.npy: No such file or directory"


def test_modules_without_one_kernel(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    none, two = tmp_path / "none.ptx", tmp_path / "two.ptx"
    none.write_text(head)
    two.write_text(head + ".visible .entry a() { ret; }\n.visible .entry b() { ret; }\n")
    assert refused(capsys, str(none), "--grid", "1", "--block", "1") == "weft: the module has no kernel"
    message = "weft: the module has the kernels a, b; say which with --kernel"
    assert refused(capsys, str(two), "--grid", "1", "--block", "1") == message
    assert ask(capsys, str(two), "--grid", "1", "--block", "1", "--kernel", "b")[0] == 0


def test_ptx_that_cannot_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "wrong.ptx"
    path.write_text(SCALE.replace("mov.u32 %r1", "moof.u32 %r1"))
    message = "weft: PTX line 11: the emulator does not know the instruction 'moof.u32' moof.u32 %r1, %tid.x"
    assert refused(capsys, str(path), *LAUNCH, "--arg", "i32=1") == message
