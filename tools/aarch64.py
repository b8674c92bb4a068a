"""Runs weft on an emulated AArch64 machine (``make aarch64``).

Continuous integration usually takes hardware or a container for this. Here QEMU emulates one user process: its root is a folder
of Debian's arm64 packages, which apt finds in the package sources of this machine, and its Python packages are the wheels
for aarch64 of the versions in ``constraints.txt``. So the command needs no rights of root, changes nothing outside the
folder, and takes part of ``make test``, as an emulated process is some ten times slower.

Where the emulator or the packages cannot be had, the command prints the reason and exits with 0. It exits with 1 where a step
fails, or runs fewer tests than the step promises.

What the emulation cannot show: x86-64's memory is stronger than AArch64's, so it shows nothing about the orders of accesses.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / ".aarch64"

EMULATORS: Final = ("qemu-aarch64-static", "qemu-aarch64")
DEBIAN: Final = ("python3", "libstdc++6")
"""Packages; apt adds what they depend on, the C library among it."""
WHEELS: Final = tuple(f"manylinux_2_{minor}_aarch64" for minor in (28, 27, 26, 24, 17)) + ("manylinux2014_aarch64",)
"""Platforms that wheels may name: those of the C library of Debian 10 and older."""

APT: Final = """\
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
"""
"""An apt of its own: no package is installed there, and its lists and archives are apart from the system's."""

LAUNCHER: Final = """\
#!/bin/sh
exec {emulator} -L {root} -0 {launcher} {root}/usr/bin/{python} "$@"
"""
"""What ``sys.executable`` is in the emulation, so that tests start emulated interpreters too."""


FALSE_WARNINGS: Final = tuple(
    f"-Wignore:{flag} encountered in matmul:RuntimeWarning" for flag in ("divide by zero", "overflow", "invalid value")
)
"""NumPy's products of matrices leave such flags set in the emulation, also of small whole numbers."""


class NotHere(Exception):
    """Why the emulation cannot be set up on this machine, in one line."""


@dataclass(frozen=True)
class Step:
    """A command of the emulated Python. ``counted`` is a pattern of the numbers in its output that say how many tests passed;
    ``least`` is how many there must be."""

    name: str
    arguments: tuple[str, ...]
    counted: str = ""
    least: int = 0

    def count(self, output: str) -> int:
        """How many tests or kernels the output says passed."""
        return sum(int(number) for number in re.findall(self.counted, output)) if self.counted else 0


def _tests(name: str, least: int, *paths: str) -> Step:
    command = ("-m", "pytest", "-p", "no:cacheprovider", "-rfE", "--tb=short", *FALSE_WARNINGS, *paths)
    return Step(name, command, r"(?m)^(?:\d+ failed, )?(\d+) passed", least)


STEPS: Final = (
    Step("demo", ("examples/vector_add.py",)),
    _tests("README", 2, "tests/test_readme.py"),
    _tests(
        "memory model",
        50,
        "tests/concurrent",
        *(f"tests/codegen/test_{name}.py" for name in ("atomics", "memory_order", "memory_claims")),
    ),
    _tests(
        "launches and types",
        200,
        *(f"tests/runtime/test_{name}.py" for name in ("end_to_end", "launch", "checked", "printing")),
        "tests/codegen/test_convert.py",
        "tests/language/test_dot.py",
    ),
    _tests("products", 40, "tests/codegen/test_product_instructions.py"),
    Step(
        "generated kernels",
        ("tests/fuzz/campaign.py", "--kernels", "200", "--on", "native", "--timeout", "900", "--shrink", "0"),
        r"(?m)^(\d+) of \d+ kernels agree",
        200,
    ),
)


def emulator(machine: str = "", find: Callable[[str], str | None] = shutil.which) -> str:
    """The emulator's path. `NotHere` where there is none, or where the machine needs none."""
    if (machine or platform.machine()) in ("aarch64", "arm64"):
        raise NotHere("this machine is AArch64: run make test")
    for name in EMULATORS:
        if path := find(name):
            return path
    raise NotHere(f"no {' or '.join(EMULATORS)} on the PATH: install qemu-user-static")


def made_root(folder: Path, find: Callable[[str], str | None] = shutil.which) -> Path:
    """The folder with Debian's packages unpacked, made where it is missing."""
    root = folder / "root"
    if root.is_dir():
        return root
    for tool in ("apt-get", "dpkg-deb"):
        if not find(tool):
            raise NotHere(f"no {tool} on the PATH: the root is made of Debian's packages")
    apt = folder / "apt"
    for name in ("state/lists/partial", "cache/archives/partial"):
        (apt / name).mkdir(parents=True, exist_ok=True)
    (apt / "status").touch()
    (apt / "apt.conf").write_text(APT.format(folder=apt), encoding="utf-8")
    environment = {**os.environ, "APT_CONFIG": str(apt / "apt.conf")}
    # A source of another architecture fails here; what is missing for it shows at the next command.
    subprocess.run(["apt-get", "update"], env=environment, capture_output=True, check=False)
    download = ["apt-get", "install", "--yes", "--download-only", *DEBIAN]
    _had("Debian's packages for arm64", download, environment)
    unpacked = folder / "root.partial"
    shutil.rmtree(unpacked, ignore_errors=True)
    for archive in sorted((apt / "cache" / "archives").glob("*.deb")):
        _had(archive.name, ["dpkg-deb", "--extract", str(archive), str(unpacked)], environment)
    if not (unpacked / "lib").exists():
        (unpacked / "lib").symlink_to("usr/lib")  # as the package base-files does since Debian 13
    return unpacked.rename(root)


def made_site(folder: Path, version: str) -> Path:
    """The folder with weft's dependencies for aarch64 and a version of Python, made where it is missing or of other versions."""
    site, stamp = folder / f"site-{version}", folder / f"site-{version}.txt"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    constraints = ROOT / "constraints.txt"
    text = "\n".join([*wanted, constraints.read_text(encoding="utf-8")])
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == text:
        return site
    shutil.rmtree(site, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    of = ["--python-version", version, "--only-binary", ":all:", *(f"--platform={name}" for name in WHEELS)]
    _had("wheels for aarch64", [*pip, *of, "--target", str(site), "-c", str(constraints), *wanted], os.environ)
    stamp.write_text(text, encoding="utf-8")
    return site


def _had(what: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a command that brings something; `NotHere` with the last line that it said where it fails."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        raise NotHere(f"{what} cannot be had: {said[-1]}")


def made_python(folder: Path) -> tuple[Path, dict[str, str]]:
    """The emulated interpreter, and the environment in which it finds weft's source and its dependencies."""
    found = emulator()
    folder.mkdir(parents=True, exist_ok=True)
    root = made_root(folder)
    python = (root / "usr" / "bin" / "python3").readlink().name
    site = made_site(folder, python.removeprefix("python"))
    launcher = folder / "python"
    paths = {"emulator": found, "root": str(root), "launcher": str(launcher)}
    quoted = {name: shlex.quote(path) for name, path in paths.items()}
    launcher.write_text(LAUNCHER.format(**quoted, python=python), encoding="utf-8")
    launcher.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "WEFT_TARGET")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(site)])
    environment["WEFT_CACHE_DIR"] = str(folder / "cache")
    return launcher, environment


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def ran(step: Step, python: Path, environment: Mapping[str, str]) -> bool:
    """Run the step, show what it prints, and say what it counted; whether it passed."""
    _say(f"== {step.name}: {shlex.join(step.arguments)}\n")
    begun, lines = time.monotonic(), list[str]()
    command = [str(python), *step.arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            _say(line)
            lines.append(line)
    count = step.count("".join(lines))
    passed = process.returncode == 0 and count >= step.least
    counted = f"{count} (at least {step.least} expected), " if step.counted else ""
    _say(f"== {step.name}: {'passed' if passed else 'FAILED'}, {counted}{time.monotonic() - begun:.0f} s\n")
    return passed


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where every step passes, or where the emulation cannot be set up."""
    parser = argparse.ArgumentParser(description="Run weft's programs and tests on an emulated AArch64 machine.")
    names = [step.name for step in STEPS]
    parser.add_argument("--step", action="append", choices=names, help="only these steps (default: all)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for the packages (default .aarch64)")
    parser.add_argument("command", nargs="*", help="instead of the steps, arguments of the emulated Python: after --")
    options = parser.parse_args(arguments)
    try:
        python, environment = made_python(options.folder.resolve())
    except NotHere as reason:
        _say(f"make aarch64 is skipped: {reason}\n")
        return 0
    if options.command:
        return subprocess.run([str(python), *options.command], env=environment, check=False).returncode
    results = [ran(step, python, environment) for step in STEPS if step.name in (options.step or names)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
