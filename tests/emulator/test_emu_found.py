"""What running random C functions in the emulator has found (``tests/oracles/emulator_fuzz.py``)."""

from __future__ import annotations

import numpy as np

from emulator_harness import execute


def test_directive_and_type_without_a_space() -> None:
    """cuda_bf16.h declares ``.reg.f32 f;`` in its inline assembly."""
    text = "{ .reg.f32 f; .local.align 8.b32 m; mov.b32 f, {0, %h}; mov.b32 %d, f; }"
    h = np.array([0x3F80] * 32, np.uint16)
    assert execute(text, {"h": ("b16", h)}, {"d": "f32"})["d"].tolist() == [1.0] * 32


def test_section_with_a_dotted_name() -> None:
    module = ".section .nv.info.more { .b8 1, 2 }"
    assert execute("mov.u32 %d, 3;", {}, {"d": "u32"}, module=module)["d"].tolist() == [3] * 32
