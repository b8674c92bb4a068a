"""examples/porting.py against values derived by hand."""

from __future__ import annotations

from porting import table


def test_six_systems(backend: str) -> None:
    # 200 + 100 and 3 - 10 in int16, over 3: floor gives -3, truncation -2. In uint8: 200 - 156 = 44 and 3 - 10 = 249.
    assert table() == [
        ("numpy", "int16", [100, -3]),
        ("torch", "int16", [100, -3]),
        ("jax", "int16", [100, -3]),
        ("max", "int16", [100, -3]),
        ("dali", "int32", [100, -2]),
        ("triton", "uint8", [14, 83]),
    ]
