"""CUDA's random generators without a card: a state of 16 bytes, the numbers those of PyTorch's generator for the CPU.

A state of CUDA's generator is a seed and an offset, 8 bytes each, little-endian. Programs take both from it, for random numbers
of their own, and put another offset back. PyTorch's generator for the CPU has a state of 5,056 bytes and counts nothing. So:

- a seed alone has offset 0;
- when numbers have been drawn since a state was last asked for, the next state has the next offset that is free, a multiple of 4;
- a state that was given out is remembered (the last 4,096 are), and restores the numbers that followed it;
- any other state seeds the CPU's generator with a number that seed and offset determine.

The numbers are not CUDA's, and an offset does not say how many were drawn.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final, NamedTuple

import numpy as np

_REMEMBERED: Final = 4096
_MIX: Final = 0x9E3779B97F4A7C15
_WORD: Final = (1 << 64) - 1


class Position(NamedTuple):
    """What CUDA's state holds."""

    seed: int
    offset: int

    def mixed(self) -> int:
        """The seed of the CPU's generator for a position that nothing is known of: the seed itself at offset 0."""
        return (self.seed + self.offset * _MIX) & _WORD


class _Known:
    """Positions and states of the CPU's generator that belong together; the oldest are forgotten."""

    def __init__(self) -> None:
        self.state: OrderedDict[Position, bytes] = OrderedDict()
        self.position: dict[bytes, Position] = {}

    def add(self, position: Position, state: bytes) -> None:
        self.state[position] = state
        self.position[state] = position
        if len(self.state) > _REMEMBERED:
            _, oldest = self.state.popitem(last=False)
            self.position.pop(oldest, None)

    def after(self, position: Position) -> Position:
        """The next offset of the seed that no other state has."""
        while (position := position._replace(offset=position.offset + 4)) in self.state:
            pass
        return position


def classes(torch: Any) -> tuple[type, Any]:
    """What stands in for ``torch.Generator``, and CUDA's default generator, which draws from the CPU's."""
    generator: Any = torch.Generator
    known = _Known()

    class CudaGenerator(generator):
        """A generator for ``cuda``. ``_drawn`` is the generator whose numbers programs see; seeds go to itself too."""

        def __new__(cls, drawn: Any = None) -> Any:
            self = generator.__new__(cls, device="cpu")
            self._drawn = self if drawn is None else drawn
            return self

        def __init__(self, drawn: Any = None) -> None:
            self._seen = b""
            self._at = Position(generator.initial_seed(self._drawn) & _WORD, 0)
            self._seeded = self._at.seed

        @property
        def device(self) -> Any:
            return torch._weft_device

        def _position(self) -> Position:
            """The position now. Programs may have drawn, or seeded the CPU's generator, since it was last asked for."""
            state = generator.get_state(self._drawn).numpy().tobytes()
            if state == self._seen:
                return self._at
            if (at := known.position.get(state)) is None:
                seeded = generator.initial_seed(self._drawn) & _WORD
                start = self._at if seeded == self._seeded else Position(seeded, 0)
                fresh = generator.get_state(generator(device="cpu").manual_seed(seeded)).numpy().tobytes()
                at = Position(seeded, 0) if state == fresh else known.after(start)
                known.add(at, state)
            self._note(at, state)
            return at

        def _note(self, at: Position, state: bytes) -> None:
            self._at, self._seen = at, state
            self._seeded = generator.initial_seed(self._drawn) & _WORD

        def _go(self, at: Position) -> None:
            state = known.state.get(at)
            for each in {id(g): g for g in (self._drawn, self)}.values():
                if state is None:
                    generator.manual_seed(each, at.mixed())
                else:
                    generator.set_state(each, torch.frombuffer(bytearray(state), dtype=torch.uint8))
            now = generator.get_state(self._drawn).numpy().tobytes()
            if state is None:
                known.add(at, now)
            self._note(at, now)

        def get_state(self) -> Any:
            return torch.from_numpy(np.array(self._position(), "<u8").view(np.uint8).copy())

        def set_state(self, new_state: Any) -> Any:
            if not isinstance(new_state, torch.Tensor) or new_state.dtype is not torch.uint8:
                raise TypeError("RNG state must be a torch.ByteTensor")
            if new_state.numel() not in (8, 16):
                raise RuntimeError(f"RNG state is wrong size: CUDA's has 16 bytes, this one {new_state.numel()}")
            seed, offset = [*new_state.contiguous().numpy().view("<u8").tolist(), 0][:2]
            if offset % 4:
                raise RuntimeError("offset must be a multiple of 4")
            self._go(Position(seed, offset))
            return self

        def manual_seed(self, seed: int) -> Any:
            self._go(Position(int(seed) & _WORD, 0))
            return self

        def seed(self) -> int:
            seed = int(generator.seed(generator(device="cpu")))
            self.manual_seed(seed)
            return seed

        def initial_seed(self) -> int:
            return self._position().seed

        def get_offset(self) -> int:
            return self._position().offset

        def set_offset(self, offset: int) -> Any:
            if offset % 4:
                raise RuntimeError("offset must be a multiple of 4")
            self._go(Position(self._position().seed, offset))
            return self

        def clone_state(self) -> Any:
            return CudaGenerator().set_state(self.get_state())

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, generator)

        def __call__(cls, device: Any = "cpu") -> Any:
            kind = device.partition(":")[0] if isinstance(device, str) else getattr(device, "type", "cuda")
            return CudaGenerator() if kind == "cuda" else generator(device=device)

    return Meta("Generator", (), {"__module__": "torch"}), CudaGenerator(torch.default_generator)
