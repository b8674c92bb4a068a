"""`weft compare`: each form of output, inputs as they may be spelled, exit codes, every error in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft import dtypes
from weft.cli import main
from weft.cli.inputs import read_inputs

SCRIPT = """\
import numpy as np
import weft.array as wa


def halve(image):
    return image // 2


def scaled(image, scale=2.0, *, bias=0):
    return image * scale + bias


def example():
    return np.array([-7, 7], np.int32)


def broken(image):
    raise KeyError("image")


def nothing(image):
    return None


fused = wa.fuse(halve)
pair = (np.array([3], np.uint8), 2)
"""


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Output as in a pipe, a script in the working directory."""
    for name in ("COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)


def weft(*arguments: str) -> int:
    return main(["compare", *arguments])


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert weft("script.py:halve", "--systems", "jax,dali", "--inputs", ":example") == 1
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    # -7 // 2 is -4 rounded down in JAX and -3 rounded toward zero in DALI.
    assert lines[:2] == [
        "halve: jax and dali diverge on 1 of 1 lines, of themselves on 1",
        "  first other value   script.py:6  return image // 2",
    ]
    assert "jax                     8                0          8" in lines
    assert "dali                    8                0          8     the same" in lines
    assert "    1 of 2 elements differ, first at [0]: -4 in jax, -3 in dali; by at most 1 (0.25 relative)" in lines


@pytest.mark.parametrize("function", ["halve", "fused"])
def test_exit_codes_say_whether_the_systems_agree(function: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert weft(f"script.py:{function}", "--systems", "jax, numpy", "--inputs", ":example") == 0
    assert capsys.readouterr().out.startswith("halve: jax and numpy agree in every type and value")
    # uint8 * 2.0 is float32 in DALI; float64, weak, in JAX: the results differ in type.
    assert weft("script.py:scaled", "--inputs", "uint8[4]=7", "--results") == 1


def test_json_and_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert weft("script.py:halve", "--inputs", "int32[3]=edges", "--json", "--backend", "reference") == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["function"], data["systems"], data["agree"]) == ("halve", ["jax", "dali"], False)
    assert data["lines"][0]["bytes"] == {"jax": 12, "dali": 12}
    assert weft("script.py:halve", "--inputs", ":example", "--html", "page.html") == 1
    assert capsys.readouterr().out == ""
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "return image // 2" in page


def test_inputs_of_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.array([1, 2], np.uint8))
    np.savez("named.npz", image=np.array([1], np.uint8), scale=np.float32(3))
    for inputs in (
        ["@x.npy", "2.0"],
        ["@named.npz"],
        ["image:uint8[2,2]=random", "scale:float32=0.5", "bias:-1"],
        [":pair"],
        ["float32[]=2.5"],
        ["uint8[2]=1", "-3"],
    ):
        code = weft("script.py:scaled", "--systems", "numpy,torch", "--inputs", *inputs)
        assert code in (0, 1), capsys.readouterr().err


def test_what_fills_arrays() -> None:
    def read(*texts: str, seed: int = 0) -> Any:
        return read_inputs([*texts], {"value": 3, "call": lambda: 4}, seed)

    (random,) = read("uint8[4000]=random")
    assert (random.dtype, random[:2].tolist(), set(random.tolist())) == (np.uint8, [0, 255], set(range(256)))
    (wide,) = read("int64[50]=random")
    assert wide[:2].tolist() == [-(1 << 20), 1 << 20] and np.abs(wide).max() == 1 << 20
    assert np.array_equal(read("float16[9]=random")[0], read("float16[9]=random")[0])
    assert not np.array_equal(read("float16[9]=random")[0], read("float16[9]=random", seed=1)[0])
    assert read("int8[6]=edges")[0].tolist() == [-128, -1, 0, 1, 127, -128]
    assert read("uint8[3]=edges")[0].tolist() == [0, 1, 255]
    floats = read("float16[10]=edges")[0]
    assert floats[:7].tolist() == [0.0, 0.0, 1.0, -1.0, float(np.float16(0.1)), 65504.0, -65504.0]
    assert np.signbit(floats[1]) and np.isnan(floats[9])
    assert [read(f"int16[2,2]={fill}")[0].tolist() for fill in ("zeros", "ones", "arange", "-3")] == [
        [[0, 0], [0, 0]],
        [[1, 1], [1, 1]],
        [[0, 1], [2, 3]],
        [[-3, -3], [-3, -3]],
    ]
    assert read("bfloat16[2]=random")[0].dtype == dtypes.bfloat16.numpy
    assert read("complex64[2]=random")[0].dtype == np.complex64
    scalar, python, value, called = read("uint8=5", "2", ":value", ":call")
    assert (type(scalar), scalar, python, value, called) == (np.uint8, 5, 2, 3, 4)
    assert read("a:2", "b:int8=3") == {"a": 2, "b": np.int8(3)} and read(":value") == 3


ERRORS: list[tuple[list[str], str]] = [
    (["script.pyc"], "'script.pyc' is no file of Python, expected FILE.py:FUNCTION"),
    (["none.py:f"], "none.py: No such file or directory"),
    (["script.py:halv"], "script.py has no function 'halv'; did you mean 'halve'?"),
    (["script.py:zzz"], "script.py has no function 'zzz'; it has halve, scaled, example, broken, nothing, fused"),
    (["script.py:pair"], "script.py has no function 'pair'; it has halve, scaled, example, broken, nothing, fused"),
    (
        ["script.py"],
        "script.py has the functions halve, scaled, example, broken, nothing, fused; say which, such as script.py:halve",
    ),
    (
        ["script.py:halve", "--systems", "jax"],
        "compare takes two systems or more, found jax; for example systems=('jax', 'dali')",
    ),
    (["script.py:halve", "--systems", "jax,dalli"], "unknown semantics 'dalli'; did you mean 'dali'?"),
    (["script.py:halve"], "missing a required argument: 'image'"),
    (
        ["script.py:halve", "--inputs", "uint8[3]"],
        "--inputs 'uint8[3]': expected TYPE[SHAPE]=FILL, TYPE=NUMBER, a number, @FILE.npy, @FILE.npz or :NAME",
    ),
    (
        ["script.py:halve", "--inputs", "uint9[3]=ones"],
        "--inputs 'uint9[3]=ones': unknown dtype 'uint9'; did you mean 'uint8'?",
    ),
    (
        ["script.py:halve", "--inputs", "i4[3]=ones"],
        "--inputs 'i4[3]=ones': dtype 'i4' has two meanings: int32 in bytes (NumPy, JAX), int4 in bits; write 'int32' or 'int4'",
    ),
    (
        ["script.py:halve", "--inputs", "uint8[3]=300"],
        "--inputs 'uint8[3]=300': '300' is no uint8; expected random, edges, zeros, ones, arange or a number",
    ),
    (["script.py:halve", "--inputs", ":exampl"], "--inputs ':exampl': the script has no 'exampl'"),
    (["script.py:halve", "--inputs", "@none.npy"], "none.npy: No such file or directory"),
    (
        ["script.py:scaled", "--inputs", "image:1", "2"],
        "--inputs has inputs with names and without; give all of them names, such as NAME:uint8[4]=random",
    ),
    (["script.py:nothing", "--inputs", "int8[2]=ones"], "nothing returned no arrays in jax, found NoneType"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=[" ".join(arguments)[:40] for arguments, _ in ERRORS])
def test_errors(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert weft(*arguments) == 2
    assert capsys.readouterr().err.replace(f"{Path.cwd()}/", "") == f"weft: {message}\n"


def test_a_function_that_fails_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert weft("script.py:broken", "--inputs", "int8[2]=ones") == 2
    assert capsys.readouterr().err.startswith("weft: broken fails in every system; jax: 'image' (")
