"""`weft promote`: each question as people and as programs ask it, exit codes, every error in one line, plain output."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

import weft
from weft import semantics
from weft.cli import COMMANDS, is_closed_pipe, main


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output as in a pipe, whatever the machine's environment."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """The exit code, and the lines of stdout without trailing blanks; nothing on stderr."""
    code = main(["promote", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, [line.rstrip() for line in out.splitlines()]


def complain(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of an error; nothing on stdout."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err[:-1]


# ---- the expression -----------------------------------------------------------------------------------------------------


def test_all_systems_are_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, "uint8", "int8")
    assert code == 0
    assert lines[0] == "uint8 + int8"
    named = " ".join(lines)
    assert all(re.search(rf"(^| |,){re.escape(name)}(,| )", named) for name in semantics.SYSTEMS)
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        # Section 7 of the recorded results ("the same pair in all systems"); "-" a refusal
        (
            ("uint8", "int8"),
            {"triton": "uint8", "jax": "int16", "dali": "int16", "max": "int16", "max@26": "-", "numpy": "int16"},
        ),
        (("int32", "bfloat16"), {"triton": "bfloat16", "triton@3.9": "float32", "jax": "bfloat16", "numpy": "float64"}),
        (("float16", "bfloat16"), {"triton@3.9": "float16", "jax": "float32", "max": "bfloat16", "torch": "float32"}),
        (
            ("uint8", "300"),
            {"triton": "-", "jax": "uint8", "max@26": "-", "dali": "int32", "numpy": "-", "torch": "uint8"},
        ),
        (("int8", "9:uint8"), {"dali": "int16", "numpy": "int16"}),
        (("int8[]", "uint8"), {"torch": "uint8"}),
    ],
)
def test_json(operands: tuple[str, str], expected: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, *operands, "--json")
    data = json.loads("\n".join(lines))
    assert code == 0
    assert (data["op"], data["expression"]) == ("+", " + ".join(operands))
    found = {s["system"]: s.get("result", "-") for s in data["systems"]}
    assert list(found) == list(semantics.SYSTEMS)
    assert {name: found[name] for name in expected} == expected
    assert all({"title", "system"} < set(s) for s in data["systems"])


def test_systems_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, "uint8", "int8", "--system", "jax", "--system", "triton", "--json")
    assert code == 0
    assert [s["system"] for s in json.loads("\n".join(lines))["systems"]] == ["jax", "triton"]


def test_a_refusal_by_all_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, "uint8", "300", "--system", "triton")
    assert code == 1
    assert re.match(r"triton +refused +Scalar 300 is out of range for type uint8; cast the other operand", lines[3])


@pytest.mark.parametrize(
    ("arguments", "system", "lacks"),
    [
        (("int8", "bfloat16"), "dali", "has no dtype bfloat16"),
        (("int8", "i*"), "triton", "has no weak types"),
        (("i*", "int8"), "max", "has no weak types"),
        (("c*", "int8", "--op", "*"), "max@26", "has no weak types"),
        (("int8", "int8", "--op", "logaddexp"), "triton", "has no operation 'logaddexp'"),
    ],
)
def test_what_a_system_lacks(
    arguments: tuple[str, ...], system: str, lacks: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = ask(capsys, *arguments, "--system", system)
    assert code == 1
    assert re.fullmatch(rf"{system} +- +{re.escape(lacks)}", lines[3])
    _, lines = ask(capsys, *arguments, "--system", system, "--explain")
    assert lines == [f"{system} {lacks}"]


def test_negative_literals_are_operands(capsys: pytest.CaptureFixture[str]) -> None:
    for operand in ("-1", "-1.5e3", "-inf", "-9:int8"):
        _, lines = ask(capsys, operand, "int8", "--system", "dali", "--op", "*")
        assert lines[0].startswith(f"{'-1500.0' if operand == '-1.5e3' else operand} * int8")


def test_operations_of_one_and_many_operands(capsys: pytest.CaptureFixture[str]) -> None:
    jax = ("--system", "jax")
    assert ask(capsys, "int8", "--op", "-", *jax)[1][0] == "-int8"
    assert ask(capsys, "int8", "--op", "sqrt", *jax)[1][0] == "sqrt(int8)"
    assert ask(capsys, "int8", "uint8", "float16", *jax)[1][0] == "promote(int8, uint8, float16)"
    assert ask(capsys, "bool", "int8", "2.5", "--op", "where", *jax)[1][0] == "where(condition, int8, 2.5)"
    assert ask(capsys, "int8", "0", "2.5", "--op", "clip", *jax)[1][0] == "clamp(int8, 0, 2.5)"


def test_explain_is_what_the_library_explains(capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = ask(capsys, "uint8", "300", "--explain", "--system", "triton", "--system", "jax")
    expected = f"{semantics.explain('triton', '+', 'uint8', 300)}\n\n{semantics.explain('jax', '+', 'uint8', 300)}"
    assert "\n".join(lines) == expected
    _, lines = ask(capsys, "uint8", "300", "--explain", "--json", "--system", "jax")
    assert json.loads("\n".join(lines)) == [semantics.explain("jax", "+", "uint8", 300).data()]


# ---- whole systems ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "op"), list(product(semantics.SYSTEMS, ["+", "/"])))
def test_tables_are_complete_and_fit_120_columns(name: str, op: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, "--table", name, "--op", op)
    assert code == 0
    assert lines[0].startswith(f"row {op} column in {name} (")
    assert max(map(len, lines)) <= 120
    assert not any("…" in line for line in lines)
    for dtype in semantics.get(name).dtypes:
        assert any(line.startswith(f"{dtype} ") for line in lines)


def test_a_table_has_the_documented_cells(capsys: pytest.CaptureFixture[str]) -> None:
    """JAX's documented table, some cells of it. The first block has 18 columns: all types but the narrow ones."""
    _, lines = ask(capsys, "--table", "jax")
    head = lines[2].split()
    assert len(head) == 18
    cells = {line.split()[0]: dict(zip(head, line.split()[2:], strict=True)) for line in lines[4:19]}
    asked = {("uint8", "i8"): "i16", ("uint64", "i8"): "f*", ("bfloat16", "f16"): "f32", ("int8", "c*"): "c*"}
    assert {(row, column): cells[row][column] for row, column in asked} == asked


def test_tables_of_one_operand_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, "--table", "triton", "--op", "not")
    assert code == 0
    assert [line.split() for line in lines[4:6]] == [["bool", "bool", "bool"], ["int8", "i8", "-"]]
    _, lines = ask(capsys, "--table", "triton", "--json")
    data = json.loads("\n".join(lines))
    i, j = data["types"].index("uint8"), data["types"].index("int8")
    assert data["cells"][i][j]["result"] == "uint8"
    assert len(data["cells"]) == len(data["types"]) == len(semantics.triton.dtypes)


def test_diff(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, "--diff", "triton", "triton@3.9", "--op", "+")
    assert code == 1
    found = semantics.diff("triton", "triton@3.9", ops=["+"])
    assert f"{len(found.differences)} of {found.cases} cases differ" in lines
    assert any(re.fullmatch(r" \+ +float16 with bfloat16 +float32 +float16", line) for line in lines)
    code, lines = ask(capsys, "--diff", "triton", "triton@3.9", "--op", "+", "--json")
    assert json.loads("\n".join(lines)) == json.loads(json.dumps(found.data()))
    code, lines = ask(capsys, "--diff", "triton", "triton", "--op", "+")
    assert code == 0
    assert lines[1] == f"0 of {found.cases} cases differ"


def test_hasse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, "--hasse", "jax")
    assert code == 0
    assert ElementTree.fromstring("\n".join(lines)).tag == "{http://www.w3.org/2000/svg}svg"
    path = tmp_path / "jax.svg"
    assert ask(capsys, "--hasse", "jax", "--output", str(path)) == (0, [])
    assert path.read_text().splitlines() == lines
    _, lines = ask(capsys, "--hasse", "jax", "--json")
    assert ["bool", "i*"] in json.loads("\n".join(lines))["edges"]


# ---- errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("promte uint8 int8", "unknown command 'promte'; did you mean 'promote'?"),
        ("zzz", "unknown command 'zzz'; weft has promote, compare, layout, profile, compile, run, opt"),
        ("--vresion", "unknown argument '--vresion'; did you mean '--version'?"),
        ("promote uint8 unit8", "unknown dtype 'unit8'; did you mean 'uint8'?"),
        ("promote uint8 x:int8", "'x:int8' is no typed constant; write it like 9:uint8"),
        ("promote uint8 int8 --sytem jax", "unknown argument '--sytem'; did you mean '--system'?"),
        ("promote uint8 int8 --zzz", "unknown argument '--zzz'; 'weft promote --help' lists the options"),
        ("promote uint8 int8 --system jx", "unknown semantics 'jx'; did you mean 'jax'?"),
        ("promote uint8 int8 --op pluss", "unknown operation 'pluss'; did you mean 'less'?"),
        ("promote uint8 int8 --op", "argument --op: expected one argument"),
        ("promote uint8 int8 --op neg", "'neg' takes 1 operand, found 2"),
        ("promote", "an expression has two operands, or --op and what it takes: weft promote uint8 int8"),
        ("promote uint8", "an expression has two operands, or --op and what it takes: weft promote uint8 int8"),
        ("promote --table jx", "unknown semantics 'jx'; did you mean 'jax'?"),
        ("promote --table jax int8", "--table takes no operands, found int8"),
        ("promote --table jax --op clamp", "'clamp' has 3 operands; a table shows operations of one or two"),
        ("promote --table triton --op logaddexp", "triton has no operation 'logaddexp'"),
        ("promote --table jax --system jax", "--table names its systems itself; leave --system out"),
        ("promote --table jax --diff jax dali", "argument --diff: not allowed with argument --table"),
        ("promote --diff jax", "argument --diff: expected 2 arguments"),
        (
            "promote --hasse jax --op +",
            "--hasse draws the order of the types, which no operation decides; leave --op out",
        ),
        ("promote uint8 int8 -o x.svg", "--output is for --hasse"),
        ("promote --hasse jax -o no/such/x.svg", "no/such/x.svg: No such file or directory"),
    ],
)
def test_errors_are_one_line(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complain(capsys, *arguments.split()) == f"weft: {message}"


# ---- the command --------------------------------------------------------------------------------------------------------


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--version"])
    assert capsys.readouterr().out == f"weft {weft.__version__}\n"
    assert main([]) == 2
    printed = capsys.readouterr().out
    assert all(command in printed for command in COMMANDS)
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["promote", "--help"])
    assert "weft promote --diff jax dali" in capsys.readouterr().out


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", *arguments], env=inherited | environment, capture_output=True, check=False
    )


def test_output_in_an_encoding_without_lines_is_ascii() -> None:
    done = run("promote", "--table", "triton", PYTHONIOENCODING="cp1252")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


def test_colours_only_where_wanted() -> None:
    table = ("promote", "uint8", "int8", "--system", "jax")
    assert b"\x1b[" not in run(*table).stdout
    assert b"\x1b[" in run(*table, FORCE_COLOR="1").stdout
    # Without colours bold may remain (https://no-color.org): no code from 30 to 37 or 90 to 97
    assert not re.search(rb"\x1b\[(\d+;)*(3|9)[0-7]m", run(*table, FORCE_COLOR="1", NO_COLOR="1").stdout)


def test_a_reader_that_stops_is_no_error() -> None:
    command = [sys.executable, "-m", "weft.cli", "promote", "--table", "triton", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_the_command_loads_no_compiler() -> None:
    code = (
        "import sys; from weft.cli import main; main(['promote', 'int8', 'int8', '--json']);"
        "print([m for m in ('xdsl', 'llvmlite', 'weft.frontend', 'weft.runtime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("error", "system", "expected"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "posix", True),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "nt", True),
        (OSError(errno.EINVAL, "Invalid argument"), "nt", True),
        (OSError(errno.EINVAL, "Invalid argument"), "posix", False),
        (OSError(errno.EINVAL, "Invalid argument", "a?.mlir"), "nt", False),
        (FileNotFoundError(errno.ENOENT, "No such file", "a.mlir"), "nt", False),
    ],
)
def test_what_a_closed_pipe_is_on_each_system(error: OSError, system: str, expected: bool) -> None:
    assert is_closed_pipe(error, system) == expected
