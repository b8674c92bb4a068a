"""What integer, logic, comparison, warp and video instructions may look like: the emulator takes what ptxas takes, and no more.

The verdicts of ptxas are recorded in ``data/integer_forms.txt``; where there is a ptxas, it is asked once more.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from weft.emulator import Checks, PTXError, ops
from weft.emulator.machine.launch import launch
from weft.emulator.machine.program import Program
from weft.emulator.ptx import parse

HEADER = ".version 9.0\n.target {target}\n.address_size 64\n"
DECLARATIONS = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>;"


def recorded() -> tuple[list[str], list[str]]:
    """What is accepted, what is refused."""
    lines = (Path(__file__).parent / "data" / "integer_forms.txt").read_text().splitlines()
    accepted, refused = ([line[2:] for line in lines if line.startswith(sign)] for sign in "+-")
    return accepted, refused


ACCEPTED, REFUSED = recorded()


def bind(program: Program, kernel: str) -> None:
    """Binds a kernel's instructions; none is executed, since %p8 is false."""
    launch(program, kernel, (1, 1, 1), (32, 1, 1), [], 0, Checks.none())


def test_what_is_recorded() -> None:
    assert (len(ACCEPTED), len(REFUSED)) == (1472, 1400)


def test_all_that_is_accepted() -> None:
    ops.load()
    body = "\n".join(f"@%p8 {line}" for line in ACCEPTED)
    ptx = f"{HEADER.format(target='sm_90a')}.visible .entry test() {{ {DECLARATIONS}\n{body}\nret; }}"
    bind(Program(parse(ptx)), "test")


def test_nothing_that_is_refused() -> None:
    ops.load()
    kernels = "\n".join(
        f".visible .entry k{i}() {{ .reg .pred %p<9>; {declared(line)} @%p8 {line} ret; }}"
        for i, line in enumerate(REFUSED)
    )
    program = Program(parse(HEADER.format(target="sm_90a") + kernels))
    taken: list[str] = []
    for i, line in enumerate(REFUSED):
        try:
            bind(program, f"k{i}")
            taken.append(line)
        except PTXError:
            pass
    assert taken == []


def declared(line: str) -> str:
    """The registers of one instruction that are not predicates."""
    names = sorted(set(re.findall(r"%[hrl]\d", line)))
    return " ".join(f".reg .b{ {'h': 16, 'r': 32, 'l': 64}[name[1]] } {name};" for name in names)


def complaints(lines: list[str], target: str, folder: Path) -> set[str]:
    """The lines that ptxas refuses, by the line numbers of its errors."""
    source = folder / "forms.ptx"
    source.write_text(
        f"{HEADER.format(target=target)}.visible .entry test() {{ {DECLARATIONS}\n" + "\n".join(lines) + "\nret;\n}\n"
    )
    command = ["ptxas", f"-arch={target}", "-o", str(folder / "forms.cubin"), str(source)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    return {lines[int(number) - 5] for number in re.findall(r"line (\d+); (?:error|fatal)", said)}


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas, whose verdicts the record has, is not on the PATH")
def test_the_record_is_ptxas_verdict(tmp_path: Path) -> None:
    refused = complaints(ACCEPTED + REFUSED, "sm_90a", tmp_path)
    later = {line for line in ACCEPTED if line.startswith("redux") and line.split()[0].endswith(".f32")}
    assert refused == set(REFUSED) | later
    assert complaints(sorted(later), "sm_100a", tmp_path) == set()
