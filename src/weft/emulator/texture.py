"""Textures and surfaces: arrays that a kernel reaches by a handle (CUDA's texture and surface objects).

A handle is a number, to be an argument, a field of a structure or a texref of the module. Its object must live as long as a
launch may use it. A launch sees a texture's array as it is when the kernel first uses it. What a kernel writes to a surface is
in the array when the launch is over. There are no mip maps, multisampled or depth textures.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.sampling import MODES, Tap, fetch, taps

FIRST: Final = 0x7E_0000_0001
"""Handles begin here."""

_DTYPES: Final = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32")

_LARGEST: Final = {"uint8": 255.0, "int8": 127.0, "uint16": 65535.0, "int16": 32767.0}
"""What is 1 where elements are read as normalized floats."""

_AXES: Final = "xyz"

_COUNT = itertools.count(FIRST)
_KNOWN: Final[weakref.WeakValueDictionary[int, Texture | Surface]] = weakref.WeakValueDictionary()


def axis_count(count: int) -> str:
    """So many axes, in words."""
    return f"{count} ax{'i' if count == 1 else 'e'}s"


class _Image:
    """An array with its axes named: layers, then z, y, x, then channels."""

    kind = ""

    def __init__(self, array: NDArray[Any], layered: bool, channels: bool, cube: bool = False) -> None:
        _require(
            array.dtype.name in _DTYPES, self.kind, f"elements of type {array.dtype} are not among {', '.join(_DTYPES)}"
        )
        stacked = layered or cube
        rank = array.ndim - stacked - channels
        least, most = (2, 2) if cube else (1, 2 if layered else 3)
        others = f", the first of {'faces' if cube else 'layers'}" * stacked + ", the last of channels" * channels
        fewest = f"{array.ndim - rank + least} to " * (least < most)
        wanted = f"{fewest}{array.ndim - rank + most}{others}"
        _require(least <= rank <= most, self.kind, f"the array has {axis_count(array.ndim)}, expected {wanted}")
        _require(array.size > 0, self.kind, "the array has no elements")
        count = array.shape[-1] if channels else 1
        _require(count in (1, 2, 4), self.kind, f"elements have {count} channels, expected 1, 2 or 4")
        self.array = array
        self.layered = layered
        self.rank = rank
        self.channels = count
        self.cube = cube
        self.layers = array.shape[0] if stacked else 1
        """Of a cube map its faces, six a layer."""
        self.sizes: tuple[int, ...] = array.shape[stacked : stacked + rank]
        """Elements along z, y and x, the innermost last."""
        self.read = "element"
        self.handle = next(_COUNT)
        """The number that a kernel gets."""

    @property
    def texels(self) -> NDArray[Any]:
        """The array as (layers, ..., channels)."""
        return self.array.reshape(self.layers, *self.sizes, self.channels)

    def __int__(self) -> int:
        return self.handle


class Texture(_Image):
    """An array that is sampled: an argument in place of a ``cudaTextureObject_t``.

        Texture(image, address="wrap", filter="linear", normalized=True)

    ``array`` is of one to three axes, the last is x; ``layered`` puts an axis of layers before them, ``channels`` one of 1, 2 or
    4 channels behind. ``address`` is "clamp", "border", "wrap" or "mirror", for all axes or one for each in the array's order;
    ``filter`` "point" or "linear"; ``normalized`` says that coordinates go from 0 to 1; ``read="normalized"`` makes floats of
    integers of 8 and 16 bits, 0 to 1 or -1 to 1. ``border`` is what the border mode finds outside, one number a channel.
    ``cube`` makes a cube map of an array of six square faces, in the order +x, -x, +y, -y, +z, -z, or with ``layered`` of six a
    layer; linear filters do not cross its edges.

    Raises: `ValueError` for what CUDA does not have.
    """

    kind = "Texture"

    def __init__(
        self,
        array: NDArray[Any],
        *,
        address: str | Sequence[str] = "clamp",
        filter: str = "point",
        normalized: bool = False,
        read: str = "element",
        layered: bool = False,
        channels: bool = False,
        border: float | Sequence[float] = 0.0,
        cube: bool = False,
    ) -> None:
        super().__init__(array, layered, channels, cube)
        self.address = (address,) * self.rank if isinstance(address, str) else tuple(address)
        _require(
            len(self.address) == self.rank, "Texture", f"address has {len(self.address)} modes, expected {self.rank}"
        )
        if cube:
            expected = "a multiple of 6" if layered else "6"
            fits = self.layers % 6 == 0 if layered else self.layers == 6
            _require(fits, "Texture", f"a cube map has {self.layers} faces, expected {expected}")
            height, width = self.sizes
            faces = f"the faces of a cube map have {height} by {width} elements, expected squares"
            _require(height == width, "Texture", faces)
            _require(normalized, "Texture", "a cube map needs normalized coordinates")
            _require(set(self.address) == {"clamp"}, "Texture", "a cube map has the address mode 'clamp'")
        for mode in self.address:
            _require(mode in MODES, "Texture", f"address is '{mode}', expected one of {', '.join(MODES)}")
            bounded = normalized or mode in ("clamp", "border")
            _require(bounded, "Texture", f"address '{mode}' needs normalized coordinates")
        _require(filter in ("point", "linear"), "Texture", f"filter is '{filter}', expected point or linear")
        _require(read in ("element", "normalized"), "Texture", f"read is '{read}', expected element or normalized")
        name = array.dtype.name
        _require(
            read == "element" or name in _LARGEST,
            "Texture",
            f"elements of type {name} are not read as normalized floats",
        )
        self.floats = read == "normalized" or name.startswith("float")
        """Whether fetches give floats."""
        _require(
            self.floats or filter == "point",
            "Texture",
            "a linear filter needs floats: read='normalized', or such elements",
        )
        self.filter = filter
        self.normalized = normalized
        self.read = read
        self.border = np.broadcast_to(np.asarray(border, np.float64), (self.channels,))
        _KNOWN[self.handle] = self

    def misfit(self, sampler: Texture) -> str:
        """Why fetches by floats cannot use the modes of a sampler of as many axes; "" if they can."""
        if not (self.normalized and sampler.normalized) and (turning := {"wrap", "mirror"} & set(sampler.address)):
            return f"by a sampler of mode {min(turning)}, which needs normalized coordinates, of a texture without them"
        return ""

    def values(self) -> NDArray[Any]:
        """What fetches find in the texels, (layers, ..., channels): float64, or the integers."""
        texels = self.texels
        if self.read == "normalized":
            return np.maximum(texels / _LARGEST[self.array.dtype.name], -1.0)
        return texels.astype(np.float64) if self.floats else texels.copy()

    def fetch(
        self,
        values: NDArray[Any],
        layer: NDArray[np.intp],
        place: Sequence[NDArray[Any]],
        sampler: Texture,
        offsets: Sequence[NDArray[np.int64]] = (),
    ) -> NDArray[Any]:
        """What fetches at coordinates (x, y, z), each (N,), find: (N, channels). Integer coordinates count texels and take the
        point. ``values`` are `values()`; the modes are those of ``sampler``; ``offsets`` in texels are added along x, y, z."""
        whole = place[0].dtype.kind in "iu"
        linear = sampler.filter == "linear" and not whole
        axes = self._axes(place, sampler, linear, offsets)
        count = place[0].size
        at = np.clip(layer, 0, self.layers - 1)
        if self.floats:
            whole_layers = Tap(at, np.ones(count, np.bool_), np.ones(count))
            return fetch(values, [[whole_layers], *axes], self.border)
        return self._texels(values, at, [tap for (tap,) in axes])

    def gather(
        self,
        values: NDArray[Any],
        layer: NDArray[np.intp],
        place: Sequence[NDArray[Any]],
        sampler: Texture,
        channel: int,
        offsets: Sequence[NDArray[np.int64]] = (),
    ) -> NDArray[Any]:
        """One channel of the four texels around coordinates (x, y), (N, 4): lower left, lower right, upper right, upper left,
        where lower is the larger y. 0 of a channel that is not there."""
        if channel >= self.channels:
            return np.zeros((place[0].size, 4), values.dtype)
        vertical, horizontal = self._axes(place, sampler, True, offsets)
        at = np.clip(layer, 0, self.layers - 1)
        corners = ((1, 0), (1, 1), (0, 1), (0, 0))
        found = [self._texels(values, at, [vertical[j], horizontal[i]])[:, channel] for j, i in corners]
        return np.stack(found, axis=1)

    def _axes(
        self, place: Sequence[NDArray[Any]], sampler: Texture, linear: bool, offsets: Sequence[NDArray[np.int64]]
    ) -> list[list[Tap]]:
        """The texels that fetches use along z, y, x."""
        whole = place[0].dtype.kind in "iu"
        normalized = self.normalized and sampler.normalized and not whole
        modes = sampler.address if not whole else tuple("border" if m == "border" else "clamp" for m in sampler.address)
        moved = list(offsets) or [np.zeros(1, np.int64)] * len(place)
        return [
            taps(x.astype(np.float64), size, mode, linear, normalized, offset)
            for x, size, mode, offset in zip(reversed(place), self.sizes, modes, reversed(moved), strict=True)
        ]

    def _texels(self, values: NDArray[Any], layer: NDArray[np.intp], taps_of: Sequence[Tap]) -> NDArray[Any]:
        """Texels as they are, or the border's colour: (N, channels)."""
        found = values[(layer, *(tap.texel for tap in taps_of))]
        inside = np.logical_and.reduce([tap.inside for tap in taps_of])
        return np.where(inside[:, None], found, self.border.astype(values.dtype))


class Surface(_Image):
    """An array that is read and written by bytes: an argument in place of a ``cudaSurfaceObject_t``.

    The axes are those of a `Texture`. Raises: `ValueError` for what CUDA does not have, and for an array that is not contiguous.
    """

    kind = "Surface"

    def __init__(self, array: NDArray[Any], *, layered: bool = False, channels: bool = False) -> None:
        super().__init__(array, layered, channels)
        _require(array.flags.c_contiguous, "Surface", "the array is not contiguous")
        _KNOWN[self.handle] = self

    @property
    def row(self) -> int:
        """Bytes along x."""
        return self.sizes[-1] * self.channels * self.array.dtype.itemsize


class Images:
    """The textures and surfaces that a launch has used so far."""

    def __init__(self) -> None:
        self._values: dict[int, NDArray[Any]] = {}
        self._kept: list[Texture | Surface] = []

    @staticmethod
    def find(handle: int) -> Texture | Surface | None:
        """The object of a handle; None if there is none."""
        return _KNOWN.get(handle)

    def values(self, texture: Texture) -> NDArray[Any]:
        """What a texture's fetches find, as it was when first asked for."""
        if texture.handle not in self._values:
            self._kept.append(texture)
            self._values[texture.handle] = texture.values()
        return self._values[texture.handle]

    def bytes(self, surface: Surface) -> NDArray[np.uint8]:
        """A surface's rows, (layers, ..., bytes), which the launch may write."""
        if surface.handle not in self._values:
            self._kept.append(surface)
            rows = (surface.layers, *surface.sizes[:-1], surface.row)
            self._values[surface.handle] = np.frombuffer(surface.array.tobytes(), np.uint8).reshape(rows).copy()
        return self._values[surface.handle]

    def end(self) -> None:
        """The launch is over, without a fault: surfaces hold what it wrote."""
        for image in self._kept:
            if isinstance(image, Surface) and image.array.flags.writeable:
                image.array[...] = self._values[image.handle].view(image.array.dtype).reshape(image.array.shape)


def _require(condition: object, kind: str, reason: str) -> None:
    if not condition:
        raise ValueError(f"{kind}: {reason}")
