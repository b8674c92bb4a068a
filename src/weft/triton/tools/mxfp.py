"""``triton.tools.mxfp``: numbers of the microscaling formats of the Open Compute Project, in tensors of PyTorch's for the host.

Codes of elements and of scales are bytes; conversions are between them and float32.
"""

from __future__ import annotations

import importlib
from typing import Any, Final, cast

__all__ = ["MXFP4Tensor", "MXScaleTensor", "fp8e8m0_to_float32"]

E2M1: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The magnitude of each code of e2m1 without its sign bit."""
_BETWEEN: Final = tuple((low + high) / 2 for low, high in zip(E2M1, E2M1[1:], strict=False))
_BIAS: Final = 127
_NAN: Final = 255


def _torch() -> Any:
    return importlib.import_module("torch")


class _Codes:
    """Codes in ``data``: those of given numbers, or, with a ``size``, what `random` draws."""

    data: Any
    size: tuple[Any, ...]

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        self.device = device
        if data is not None:
            assert isinstance(data, _torch().Tensor), "Parameter data must be a torch tensor"
            self.device = data.device
            self.data = self._from_float(data)
        elif size is not None:
            self.size = cast("tuple[Any, ...]", size) if isinstance(size, tuple) else (size,)
        else:
            raise ValueError("Either parameter data or size must be provided")

    def _from_float(self, values: Any) -> Any:
        raise NotImplementedError

    def _draw(self, low: int, high: int) -> Any:
        torch = _torch()
        return torch.randint(low, high, size=self.size, dtype=torch.uint8, device=self.device)


class MXFP4Tensor(_Codes):
    """Numbers of e2m1, one code to a byte."""

    def random(self) -> MXFP4Tensor:
        """Draws each code with the same probability."""
        self.data = self._draw(0, 16)
        return self

    def to(self, dtype: Any) -> Any:
        """The numbers as float32."""
        torch = _torch()
        assert dtype == torch.float32, "Currently only float32 is supported for fp4e2m1 to float conversion"
        table = torch.tensor([*E2M1, *(-x for x in E2M1)], dtype=dtype, device=self.data.device)
        return table[self.data.long()]

    def _from_float(self, values: Any) -> Any:
        """The nearest codes, the even one of two as near; what is too large, infinite or NaN becomes the largest of its sign."""
        torch = _torch()
        size = values.abs().nan_to_num(nan=E2M1[-1], posinf=E2M1[-1])
        between = torch.tensor(_BETWEEN, dtype=size.dtype, device=size.device)
        below, up = torch.bucketize(size, between), torch.bucketize(size, between, right=True)
        code = torch.where(below % 2 == 0, below, up)  # they differ where a number is as far from both
        return (torch.signbit(values).to(torch.uint8) << 3) | code.to(torch.uint8)

    def to_packed_tensor(self, dim: int) -> Any:
        """Two neighbours along ``dim`` in a byte, the first in the low bits; an odd size is filled up with zero."""
        torch, data = _torch(), self.data
        assert 0 <= dim < data.ndim, "The dimension to pack along is not within the range of tensor dimensions"
        if data.shape[dim] % 2:
            data = torch.cat([data, torch.zeros_like(data.narrow(dim, 0, 1))], dim)
        low, high = data.unflatten(dim, (-1, 2)).unbind(dim + 1)
        return low | (high << 4)

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Any) -> Any:
        """The codes that `to_packed_tensor` has packed, in their shape."""
        torch = _torch()
        both = torch.stack((packed_tensor & 15, packed_tensor >> 4), dim + 1).flatten(dim, dim + 1)
        return both.narrow(dim, 0, original_shape[dim]).to(torch.uint8)


def fp8e8m0_to_float32(scale: Any) -> Any:
    """The powers of two of codes of e8m0, as float32; 255 is NaN."""
    torch = _torch()
    code = scale.view(torch.uint8).to(torch.int32)
    powers = torch.pow(2.0, (code - _BIAS).to(torch.float64)).to(torch.float32)
    return powers.masked_fill(code == _NAN, float("nan"))


class MXScaleTensor(_Codes):
    """Scales in e8m0: powers of two from 2**-127 to 2**127."""

    def random(self, low: Any = None, high: Any = None) -> MXScaleTensor:
        """Draws exponents with the same probability, between those of ``low`` and ``high``."""
        torch = _torch()

        def code(number: Any) -> int:
            return int(torch.log2(torch.tensor(number))) + _BIAS

        least = 0 if low is None else max(0, code(low))
        most = _NAN - 1 if high is None else min(_NAN - 1, max(0, code(high)))
        assert least <= most, "Low must be less than or equal to high"
        self.data = self._draw(least, most + 1)
        return self

    def to(self, dtype: Any) -> Any:
        """The scales as float32."""
        assert dtype == _torch().float32, "Currently only float32 is supported for f8e8m0 to float conversion"
        return fp8e8m0_to_float32(self.data)

    def _from_float(self, values: Any) -> Any:
        """The largest powers of two that are not above the numbers; NaN for what is no positive finite number."""
        torch = _torch()
        exponent = torch.frexp(values.double())[1] - 1
        code = (exponent + _BIAS).clamp(0, _NAN - 1).to(torch.uint8)
        return torch.where(torch.isfinite(values) & (values > 0), code, _NAN).to(torch.uint8)
