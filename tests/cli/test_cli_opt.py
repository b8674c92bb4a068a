"""`weft opt`: what it prints of files of both kinds, signatures, passes, exit codes, every error in one line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from filechecking import assert_filecheck
from weft.cli import main
from weft.transforms.passes import PASSES

KERNELS = """\
import weft
import weft.language as tl
from helpers import twice


@weft.jit
def scale(x, y, n, factor: tl.constexpr, dtype: tl.constexpr = tl.float32):
    i = tl.program_id(0)
    tl.store(y + i, twice(tl.load(x + i)).to(dtype) * factor + n)


@weft.jit
def broken(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.zeros((2 * BLOCK,), tl.float32))
"""

HELPERS = """\
import weft


@weft.jit
def twice(x):
    return x + x
"""

TILE_IR = """\
func.func @k(%x: !tile.ptr<i32>, %n: i32) {
  %a = tile.binary "add" %n, %n : i32
  %b = tile.binary "add" %n, %n : i32
  %c = tile.binary "mul" %a, %b : i32
  tile.store %x, %c : !tile.ptr<i32>, i32
  func.return
}
"""


@pytest.fixture
def kernels(tmp_path: Path) -> str:
    (tmp_path / "helpers.py").write_text(HELPERS)
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return str(path)


@pytest.fixture
def tile_ir(tmp_path: Path) -> str:
    path = tmp_path / "k.mlir"
    path.write_text(TILE_IR)
    return str(path)


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is printed; the exit code is 0."""
    code = main(["opt", *arguments])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What is said of a question that is wrong: one line, without ``weft:``."""
    try:
        code = main(["opt", *arguments])
    except SystemExit as exit_:
        code = exit_.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("weft: ")
    assert err.count("\n") == 1
    return err.removeprefix("weft: ").removesuffix("\n")


def body(text: str) -> list[str]:
    """The lines of the one function's body."""
    lines = [line.strip() for line in text.strip().splitlines()]
    start = next(i for i, line in enumerate(lines) if line.startswith("func.func"))
    return lines[start + 1 : lines.index("func.return")]


# ---- what is printed ----------------------------------------------------------------------------------------------------


def test_a_pass_on_a_file_of_tile_ir(capsys: pytest.CaptureFixture[str], tile_ir: str) -> None:
    assert ask(capsys, tile_ir, "--pass", "cse") == (
        "builtin.module {\n"
        "  func.func @k(%x: !tile.ptr<i32>, %n: i32) {\n"
        '    %a = tile.binary "add" %n, %n : i32\n'
        '    %c = tile.binary "mul" %a, %a : i32\n'
        "    tile.store %x, %c : !tile.ptr<i32>, i32\n"
        "    func.return\n"
        "  }\n"
        "}\n"
    )


def test_what_is_printed_can_be_read_again(
    capsys: pytest.CaptureFixture[str], tile_ir: str, kernels: str, tmp_path: Path
) -> None:
    for arguments in ((tile_ir,), (f"{kernels}:scale", "--signature", "*fp32:16,*fp32,i32:16,2.5")):
        printed = ask(capsys, *arguments)
        again = tmp_path / "again.mlir"
        again.write_text(printed)
        assert ask(capsys, str(again), "--pass", "dce") == printed


def test_before_after_and_around_a_pass(capsys: pytest.CaptureFixture[str], tile_ir: str) -> None:
    passes = ("--pass", "dce", "--pass", "cse", "--pass", "cse")
    before = ask(capsys, tile_ir, *passes, "--print", "before")
    after = ask(capsys, tile_ir, *passes, "--print", "after")
    assert len(body(before)) == len(body(after)) + 1
    assert ask(capsys, tile_ir, *passes) == after
    assert ask(capsys, tile_ir, *passes, "--print", "after", "--print", "before", "--print", "cse") == "\n".join(
        [
            f"// before\n{before}",
            f"// before cse\n{before}",
            f"// after cse\n{after}",
            f"// before cse\n{after}",
            f"// after cse\n{after}",
            f"// after\n{after}",
        ]
    )


def test_a_kernel_of_python(capsys: pytest.CaptureFixture[str], kernels: str, tmp_path: Path) -> None:
    arguments = (f"{kernels}:scale", "--signature", "*fp16:16, *fp32, i32:16, 2.5, fp16", "--print", "before")
    expected = tmp_path / "expected"
    expected.write_text(
        "CHECK: func.func @scale("
        '%x: !tile.ptr<f16> {tile.name = "x", tile.divisibility = 16 : i64}, '
        '%y: !tile.ptr<f32> {tile.name = "y"}, '
        '%n: i32 {tile.name = "n", tile.divisibility = 16 : i64}) {\n'
        'CHECK: [[TWICE:%.*]] = tile.binary "add" [[X:%.*]], [[X]] : f16\n'
        "CHECK: tile.constant 2.5 : f16\n"
    )
    assert_filecheck(expected, ask(capsys, *arguments))


def test_short_names_of_types(capsys: pytest.CaptureFixture[str], kernels: str) -> None:
    texts = {
        ask(capsys, f"{kernels}:scale", "--signature", f"*{floats},*{floats},{integers},2")
        for floats in ("f32", "fp32", "float32")
        for integers in ("i32", "int32", "s32")
    }
    assert len(texts) == 1


def test_a_file_with_one_kernel_needs_no_name(capsys: pytest.CaptureFixture[str], kernels: str) -> None:
    alone = Path(kernels).with_name("alone.py")  # the helper that it imports does not count
    alone.write_text(KERNELS.partition("@weft.jit\ndef broken")[0])
    text = ask(capsys, str(alone), "--signature", "*fp32,*fp32,i32,2")
    assert text == ask(capsys, f"{kernels}:scale", "--signature", "*fp32,*fp32,i32,2")


def test_options_of_a_pass(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "k.mlir"
    path.write_text("func.func @k() {\n  %a = tile.arange 0 16 : tensor<16xi32>\n  func.return\n}\n")
    for lanes, layout in ((2, "{register: [2,4,8], lane: [1]}"), (16, "{register: [], lane: [1,2,4,8]}")):
        text = ask(capsys, str(path), "--pass", f"assign-layouts{{lanes={lanes}}}")
        assert body(text) == [f'%a = tile.arange 0 16 : tensor<16xi32, #tile.layout<"{layout} -> [dim0: 16]">>']


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ask(capsys, "--list").splitlines()
    assert lines[0] == "passes:"
    assert [line.split()[0] for line in lines[1:-1]] == sorted(PASSES)
    assert "  cse                    Replaces each op that an equal one dominates" in lines
    order = lines[-1].removeprefix("a launch on this CPU runs: ").split(", ")
    assert set(order) <= set(PASSES)
    assert "assign-layouts" in order


def test_by_default_the_passes_of_a_launch_run(capsys: pytest.CaptureFixture[str], tile_ir: str) -> None:
    order = ask(capsys, "--list").splitlines()[-1].removeprefix("a launch on this CPU runs: ").split(", ")
    spelled = [word for name in order for word in ("--pass", name)]
    assert ask(capsys, tile_ir) == ask(capsys, tile_ir, *spelled)


def test_commands_of_the_documentation(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    text = (root / "README.md").read_text() + (root / "docs/architecture.md").read_text()
    commands = [line.partition("     ")[0] for line in re.findall(r"^weft opt (.*)$", text, re.MULTILINE)]
    assert len(commands) == 5
    for line in commands:
        if "..." not in line and "kernel.mlir" not in line:
            assert ask(capsys, *shlex.split(line)).startswith(("builtin.module {", "// before", "passes:"))


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_wrong_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, kernels: str) -> None:
    assert refused(capsys) == "opt needs a file: FILE.py, FILE.py:KERNEL or FILE.mlir"
    assert refused(capsys, "k.txt") == "'k.txt' is no file of kernels, expected FILE.py, FILE.py:KERNEL or FILE.mlir"
    for name in ("missing.py", "missing.mlir"):
        missing = tmp_path / name
        assert refused(capsys, str(missing)) == f"{missing}: No such file or directory"
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    assert refused(capsys, str(empty)) == f"{empty} has no kernel; a kernel is a function with @weft.jit"
    assert refused(capsys, f"{empty}:add") == f"{empty} has no kernel 'add'; it has none"
    failing = tmp_path / "failing.py"
    failing.write_text("import weft\n1 / 0\n")
    assert refused(capsys, str(failing)) == f"{failing} raises ZeroDivisionError when it is loaded: division by zero"
    assert refused(capsys, kernels) == f"{kernels} has the kernels scale, broken; say which, such as {kernels}:scale"
    assert refused(capsys, f"{kernels}:scal") == f"{kernels} has no kernel 'scal'; did you mean 'scale'?"
    assert refused(capsys, f"{kernels}:xyz") == f"{kernels} has no kernel 'xyz'; it has scale, broken"


def test_wrong_tile_ir(capsys: pytest.CaptureFixture[str], tmp_path: Path, tile_ir: str) -> None:
    message = refused(capsys, tile_ir, "--signature", "i32")
    assert message == f"{tile_ir} is tile IR, which has types; --signature is for kernels in Python"
    path = tmp_path / "wrong.mlir"
    path.write_text(TILE_IR.replace("%a, %b", "%a, %unknown"))
    assert refused(capsys, str(path)) == f"{path}:8:1: values used but not defined: [%unknown]"
    path.write_text(TILE_IR.replace("tile.store %x, %c : !tile.ptr<i32>, i32", "tile.stare"))
    assert refused(capsys, str(path)) == f"{path}:6:3: Operation tile.stare is not registered"
    path.write_text("func.func @k(%a: tensor<2x4xf32>) {\n  %r = tile.trans %a [0, 0] : "
                    "tensor<2x4xf32> to tensor<2x2xf32>\n  func.return\n}\n")  # fmt: skip
    assert refused(capsys, str(path)) == f"{path}: tile.trans: (0, 0) is not a permutation of 2 dimensions"


def test_an_op_that_a_pass_does_not_support(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "call.mlir"
    path.write_text("func.func @k(%a: tensor<2xi32>) {\n"
                    "  func.call @k(%a) : (tensor<2xi32>) -> ()\n  func.return\n}\n")  # fmt: skip
    message = refused(capsys, str(path), "--pass", "assign-layouts{lanes=4}")
    assert message == "assign-layouts: func.call has no rule that gives its tiles layouts on a CPU"


TRANSPOSES = """
import weft
import weft.language as tl

@weft.jit
def transposes(x, y):
    rows = tl.arange(0, 16)[:, None]
    columns = tl.arange(0, 16)[None, :]
    a = tl.load(x + rows * 16 + columns)
    tl.store(y + columns * 16 + rows, a)
"""


def test_a_pass_names_the_users_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "transposes.py"
    path.write_text(TRANSPOSES)
    passes = ("simplify", "assign-layouts{lanes=4}", "assign-layouts{lanes=4}")
    message = refused(capsys, str(path), "--signature", "*i32,*i32", *(a for one in passes for a in ("--pass", one)))
    assert message == (
        f"assign-layouts: {path}:9: tile.convert_layout stands in the module before layouts are assigned"
    )


def test_wrong_signatures(capsys: pytest.CaptureFixture[str], kernels: str) -> None:
    scale = f"{kernels}:scale"
    parameters = "scale has the parameters (x, y, n, factor: constexpr, dtype: constexpr)"
    assert refused(capsys, scale) == f"--signature is missing; {parameters}"
    assert refused(capsys, scale, "--signature", "1,2,3,4,5,6") == f"--signature has 6 entries; {parameters}"
    wrong = "expected a type such as *fp32:16 or i32, or a constant"
    assert refused(capsys, scale, "--signature", "*fp32,*fq32") == (
        f"--signature: '*fq32' for y: unknown dtype 'fq32'; did you mean 'f32'?; {wrong}"
    )
    assert refused(capsys, scale, "--signature", "*fp32:8") == (
        "--signature: '*fp32:8' for x: the hint is ':8', expected ':16'"
    )
    assert refused(capsys, scale, "--signature", "*fp32").endswith(": scale needs the argument 'y'")


def test_kernels_that_do_not_compile(capsys: pytest.CaptureFixture[str], kernels: str) -> None:
    message = refused(capsys, f"{kernels}:broken", "--signature", "*fp32,64")
    assert message.startswith(f"{kernels}:14: ")


def test_wrong_passes(capsys: pytest.CaptureFixture[str], tile_ir: str) -> None:
    assert refused(capsys, tile_ir, "--pass", "csee") == "unknown pass 'csee'; did you mean 'cse'?"
    assert refused(capsys, tile_ir, "--pass", "zzzz") == f"unknown pass 'zzzz'; expected {', '.join(PASSES)}"
    assert refused(capsys, tile_ir, "--pass", "cse{") == "--pass 'cse{' is no pass, expected NAME or NAME{option=value}"
    assert refused(capsys, tile_ir, "--pass", "cse{x=1}").startswith("--pass 'cse{x=1}': ")
    assert refused(capsys, tile_ir, "--pass", "cse", "--print", "dce") == (
        "--print 'dce' is neither before, after nor a pass that runs; did you mean 'cse'?"
    )
    assert refused(capsys, tile_ir, "--pass", "cse", "--print", "during") == (
        "--print 'during' is neither before, after nor a pass that runs; expected cse"
    )
    assert refused(capsys, tile_ir, "--passes", "cse") == "unknown argument '--passes'; did you mean '--pass'?"
