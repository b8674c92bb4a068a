"""constraints.txt: an exact version, within pyproject.toml's ranges, for everything that `make` installs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from weft import semantics

ROOT = Path(__file__).parents[1]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def exact() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    return {normal(name): version for name, version in (line.split("==") for line in lines)}


def test_every_requirement_has_an_exact_version_in_its_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [
        *project["dependencies"],
        *(r for extra in project["optional-dependencies"].values() for r in extra),
    ]
    for requirement in map(Requirement, requirements):
        assert requirement.specifier.contains(exact()[normal(requirement.name)]), requirement


def test_ranges_of_the_package_leave_room() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert [r for r in project["dependencies"] if "==" in r] == []


def test_numpys_rules_are_those_of_the_exact_versions() -> None:
    """`tests/semantics/test_semantics_numpy_live.py` compares them with NumPy under these versions only."""
    versions = exact()
    title = f"NumPy {versions['numpy']} with the types of ml_dtypes {versions['ml-dtypes']}"
    assert semantics.get("numpy").title == title
