"""In which orders ptxas takes the modifiers of an instruction: what it answered, and how it is asked.

``data/spellings.txt`` has a form of instruction in each line, as the PTX ISA writes it, with the target that has it and ptxas's
verdicts on `orders` of its modifiers, one bit each, as a hexadecimal number, the first order its lowest bit. The forms are those
which the emulator's tests execute, less those that have no word which another form of the same opcode has not.

    python tests/emulator_spellings.py      asks the ptxas on PATH again, and writes the file
"""

from __future__ import annotations

import itertools
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RECORD = Path(__file__).parent / "emulator" / "data" / "spellings.txt"

TARGETS = ("sm_90a", "sm_100a")
"""What ptxas is asked to assemble for."""

_REGISTERS = "pred b16 b32 b64 b128 f32 f64"
DECLARATIONS = (
    " ".join(f".reg .{kind} %{kind}_<160>;" for kind in _REGISTERS.split())
    + " .shared .align 1024 .b8 S_shared[8192]; .local .align 16 .b8 S_local[512];"
)
BEFORE = ".global .align 16 .b8 S_global[4096];\n.const .align 16 .b8 S_const[512];\n"
PARAMETER = ".param .u64 S_param"
_AT_ONCE = 400


@dataclass(frozen=True)
class Form:
    """A form of instruction as the ISA writes it, and on which orders of its modifiers ptxas agreed."""

    target: str
    accepted: int
    name: str
    operands: str

    def lines(self) -> list[str]:
        """The instruction with its modifiers in each order."""
        opcode, *words = self.name.split(".")
        return [f"{'.'.join((opcode, *order))} {self.operands};".replace(" ;", ";") for order in orders(words)]


def orders(words: Sequence[str]) -> list[tuple[str, ...]]:
    """All orders of up to four words; of more, those that one word makes that moves elsewhere. The given one is the first."""
    if len(words) <= 4:
        return list(dict.fromkeys(itertools.permutations(words)))
    moved: list[tuple[str, ...]] = [tuple(words)]
    for source, place in itertools.product(range(len(words)), repeat=2):
        rest = [*words[:source], *words[source + 1 :]]
        moved.append((*rest[:place], words[source], *rest[place:]))
    return list(dict.fromkeys(moved))


def recorded() -> list[Form]:
    """What is in the file."""
    lines = [line for line in RECORD.read_text().splitlines() if not line.startswith("#")]
    found: list[Form] = []
    for line in lines:
        target, bits, name, *rest = line.split(" ", 3)
        found.append(Form(target, int(bits, 16), name, rest[0] if rest else ""))
    return found


def module(lines: Sequence[str], target: str) -> str:
    """A module whose kernel ``test`` has these instructions, from line 6 on."""
    head = f".version 9.0\n.target {target}\n.address_size 64\n{BEFORE}"
    return f"{head}.visible .entry test({PARAMETER}) {{ {DECLARATIONS}\n" + "\n".join(lines) + "\nret;\n}\n"


_FIRST_LINE = 7


def kernels(lines: Sequence[str], target: str) -> str:
    """A module that has a kernel ``k0``, ``k1``, ... for each of these instructions, with the registers that it names."""
    head = f".version 9.0\n.target {target}\n.address_size 64\n{BEFORE}.shared .align 1024 .b8 S_shared[8192];\n"
    bodies: list[str] = []
    for i, line in enumerate(lines):
        names = sorted(set(re.findall(r"%((?:pred|[bf]\d+)_\d+)", line)))
        declared = " ".join(f".reg .{name.partition('_')[0]} %{name};" for name in names)
        bodies.append(
            f".visible .entry k{i}({PARAMETER}) {{ {declared} .local .align 16 .b8 S_local[512];\n{line}\nret;\n}}"
        )
    return head + "\n".join(bodies)


def ask(lines: Sequence[str], target: str) -> list[bool]:
    """Which of these instructions ptxas takes."""
    taken = [True] * len(lines)
    for start in range(0, len(lines), _AT_ONCE):
        _ask(lines[start : start + _AT_ONCE], target, start, taken)
    return taken


def _ask(lines: Sequence[str], target: str, start: int, taken: list[bool]) -> None:
    """A syntax error ends ptxas's reading: the line is taken out, and it is asked again."""
    part = list(lines)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "forms.ptx"
        command = ["ptxas", f"-arch={target}", "-o", str(Path(folder) / "forms.cubin"), str(source)]
        while True:
            source.write_text(module(part, target))
            said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
            stopped = re.search(r"line (\d+); fatal\s*: Parsing error", said)
            if stopped is None:
                break
            at = _place(stopped[1])
            part[at], taken[start + at] = "", False
        for number in re.findall(r"line (\d+); (?:error|fatal)", said):
            taken[start + _place(number)] = False


def _place(line: str) -> int:
    """Of an instruction in `module`, by the line that ptxas names."""
    if (place := int(line) - _FIRST_LINE) < 0:
        raise ValueError(f"ptxas refuses line {line}, before the first instruction")
    return place


def verdicts(forms: Sequence[Form]) -> list[int]:
    """ptxas's answers for all of these forms, as they are recorded."""
    answers: dict[int, int] = {}
    for target in TARGETS:
        ours = [(i, line) for i, form in enumerate(forms) if form.target == target for line in form.lines()]
        places: dict[int, int] = {}
        for (i, _), taken in zip(ours, ask([line for _, line in ours], target), strict=True):
            place = places.get(i, 0)
            answers[i] = answers.get(i, 0) | taken << place
            places[i] = place + 1
    return [answers[i] for i in range(len(forms))]


def write(forms: Sequence[Form]) -> None:
    """Asks ptxas about these forms, and stores what it says."""
    said = subprocess.run(["ptxas", "--version"], capture_output=True, text=True, check=True).stdout
    (release,) = re.findall(r"release ([\d.]+)", said)
    lines = [f"# Orders of modifiers that ptxas {release} takes: tests/emulator_spellings.py says how to read this."]
    for form, bits in zip(forms, verdicts(forms), strict=True):
        lines.append(f"{form.target} {bits:x} {form.name} {form.operands}".rstrip())
    RECORD.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(recorded())
