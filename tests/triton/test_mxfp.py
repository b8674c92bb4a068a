"""``triton.tools.mxfp``: codes of microscaled formats; ml_dtypes' float4_e2m1fn and float8_e8m0fnu are the oracle."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft.triton.tools.mxfp import MXFP4Tensor, MXScaleTensor

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

CODES = np.arange(16, dtype=np.uint8)
NUMBERS = CODES.view(ml_dtypes.float4_e2m1fn).astype(np.float32)


def made(cls: Any, codes: Any) -> Any:
    result = cls(size=codes.shape)
    result.data = torch.tensor(codes)
    return result


def test_each_code_of_e2m1() -> None:
    np.testing.assert_array_equal(made(MXFP4Tensor, CODES).to(torch.float32).numpy(), NUMBERS)
    np.testing.assert_array_equal(MXFP4Tensor(torch.tensor(NUMBERS)).data.numpy(), CODES)


def test_rounding_to_e2m1() -> None:
    x = np.linspace(-7, 7, 14 * 64 + 1, dtype=np.float32)
    expected = np.clip(x, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
    np.testing.assert_array_equal(MXFP4Tensor(torch.tensor(x)).to(torch.float32).numpy(), expected)
    odd = MXFP4Tensor(torch.tensor([float("inf"), -float("inf"), float("nan"), 1e30, 1e-30]))
    assert odd.to(torch.float32).tolist() == [6, -6, 6, 6, 0]


def test_every_scale() -> None:
    codes = np.arange(256, dtype=np.uint8)
    expected = codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    scales = made(MXScaleTensor, codes).to(torch.float32)
    np.testing.assert_array_equal(scales.numpy(), expected)
    np.testing.assert_array_equal(MXScaleTensor(scales).data.numpy(), codes)


def test_scales_are_rounded_down_and_positive() -> None:
    x = [1.0, 1.99, 2.0, 3.9, 0.3, 0.0, -2.0, float("inf"), float("nan")]
    assert MXScaleTensor(torch.tensor(x)).data.tolist() == [127, 127, 128, 128, 125, 255, 255, 255, 255]


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 4, 6), (3, 5, 1)])
def test_packed_codes(shape: tuple[int, ...], dim: int) -> None:
    numbers = MXFP4Tensor(size=shape).random()
    packed = numbers.to_packed_tensor(dim)
    assert packed.shape[dim] == (shape[dim] + 1) // 2
    codes = np.moveaxis(numbers.data.numpy(), dim, 0)
    if shape[dim] % 2:
        codes = np.concatenate([codes, np.zeros_like(codes[:1])])
    np.testing.assert_array_equal(np.moveaxis(packed.numpy(), dim, 0), codes[::2] + 16 * codes[1::2])
    assert torch.equal(numbers.unpack_packed_tensor(packed, dim, shape), numbers.data)


def test_random_scales_lie_between() -> None:
    codes = MXScaleTensor(size=(1000,)).random(low=0.25, high=4.0).data
    assert (codes.min().item(), codes.max().item()) == (125, 129)


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="Either parameter data or size must be provided"):
        MXFP4Tensor()
    with pytest.raises(AssertionError, match="Parameter data must be a torch tensor"):
        MXScaleTensor(data=[1.0])
    with pytest.raises(AssertionError, match="Currently only float32 is supported"):
        MXFP4Tensor(size=4).random().to(torch.float16)
