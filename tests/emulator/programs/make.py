"""Compiles the CUDA C programs of this folder to the PTX beside them (``python tests/emulator/programs/make.py``; needs nvcc).

Each PTX says in its first line which compiler made it, and how. Paths in it are cut to file names, so that the same compiler
makes the same text anywhere. ``--nvrtc FOLDER`` compiles with NVRTC instead, of the packages ``nvidia-cuda-nvrtc``,
``-runtime``, ``-crt`` and ``-cccl``, into another folder.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """How a PTX fixture is made: of which source, for which architecture, with which names defined."""

    name: str
    architecture: str
    source: str = ""
    defines: tuple[str, ...] = ()
    fixture: bool = True
    """Whether its PTX is kept; False for what NVRTC alone compiles."""

    @property
    def file(self) -> str:
        """The source's name."""
        return f"{self.source or self.name}.cu"

    @property
    def flags(self) -> list[str]:
        """What the compiler is told beside the architecture."""
        return ["-lineinfo", *(f"-D{name}" for name in self.defines)]


RECIPES = (
    Recipe("elementwise", "sm_80"),
    Recipe("reduction", "sm_80"),
    Recipe("transpose", "sm_80"),
    Recipe("matmul", "sm_80"),
    Recipe("attention", "sm_80"),
    Recipe("hopper", "sm_90a"),
    Recipe("hopper_unfenced", "sm_90a", "hopper", ("WITHOUT_PROXY_FENCE",)),
    Recipe("calls", "sm_80"),
    Recipe("conversions", "sm_90"),
    Recipe("faults", "sm_80"),
    Recipe("faults_repaired", "sm_80", "faults", ("REPAIRED",)),
    Recipe("library", "sm_80", fixture=False),
    Recipe("library_sm90", "sm_90", "library", fixture=False),
)


def without_paths(ptx: str) -> str:
    """The text with the directories of its ``.file`` lines cut off."""
    return re.sub(r'(?m)^(\s*\.file\s+\d+\s+")[^"]*/', r"\1", ptx)


def compile_with_nvcc(recipe: Recipe, nvcc: str = "nvcc") -> str:
    """The PTX of a recipe."""
    version = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    (release,) = re.findall(r"release .*, V([\d.]+)", version)
    arguments = ["-ptx", f"-arch={recipe.architecture}", *recipe.flags, recipe.file]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out.ptx"
        subprocess.run([nvcc, *arguments, "-o", str(output)], check=True, cwd=HERE, capture_output=True)
        ptx = output.read_text()
    return f"// Compiled by nvcc {release}: nvcc {' '.join(arguments)}\n{without_paths(ptx)}"


def compile_with_nvrtc(recipe: Recipe) -> str:
    """The PTX of a recipe, by the library of the installed package."""
    spec = find_spec("nvidia")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            "NVRTC is not installed: pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"
        )
    roots = [Path(place) for place in spec.submodule_search_locations]
    (library,) = [path for root in roots for path in root.glob("*/lib/libnvrtc.so.[0-9]*")]
    nvrtc = ctypes.CDLL(str(library))
    options = [f"--gpu-architecture={recipe.architecture.replace('sm', 'compute')}", *recipe.flags]
    includes = [f"-I{folder}" for root in roots for folder in (*root.glob("*/include"), *root.glob("*/include/cccl"))]
    arguments = [option.encode() for option in (*options, *includes)]
    handle = ctypes.c_void_p()
    source = (HERE / recipe.file).read_bytes()
    status = nvrtc.nvrtcCreateProgram(ctypes.byref(handle), source, recipe.file.encode(), 0, None, None)
    status = status or nvrtc.nvrtcCompileProgram(handle, len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
    if status:
        raise SystemExit(f"NVRTC does not compile {recipe.file}:\n{_text(nvrtc, 'ProgramLog', handle)}")
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    head = f"// Compiled by NVRTC {major.value}.{minor.value}: {' '.join(options)} {recipe.file}\n"
    return head + without_paths(_text(nvrtc, "PTX", handle))


def _text(nvrtc: ctypes.CDLL, what: str, handle: ctypes.c_void_p) -> str:
    """A text that NVRTC has: ``nvrtcGetPTX`` and its like."""
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(handle, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(handle, text)
    return text.value.decode()


def main() -> None:
    """Writes every fixture, or those named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nvrtc", metavar="FOLDER", type=Path, help="compile with NVRTC, into this folder")
    parser.add_argument("names", nargs="*", help="fixtures; all of them if none is named")
    chosen = parser.parse_args()
    for recipe in RECIPES:
        if recipe.name in chosen.names if chosen.names else recipe.fixture or chosen.nvrtc:
            ptx = compile_with_nvrtc(recipe) if chosen.nvrtc else compile_with_nvcc(recipe)
            ((chosen.nvrtc or HERE) / f"{recipe.name}.ptx").write_text(ptx)


if __name__ == "__main__":
    main()
