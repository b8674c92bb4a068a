"""What the tests of arrays share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from weft.array import use_backend


@pytest.fixture(params=["reference", pytest.param("native", marks=pytest.mark.jit)])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test with each backend."""
    with use_backend(request.param) as name:
        yield name
