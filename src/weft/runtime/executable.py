"""A compiled kernel in this process, ready to launch."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Final

from weft.runtime import executor, loader
from weft.runtime.arguments import Bound, Parameter, Slot, Token, slot_format, to_float32
from weft.runtime.artifacts import Artifact, refuse_read_only
from weft.runtime.binding import Grid
from weft.runtime.errors import DeviceAssertionError, OutOfBoundsError
from weft.runtime.parted import Parted
from weft.runtime.printing import Printer
from weft.runtime.shares import claims
from weft.runtime.workspace import ARGUMENTS, HEAD, Workspace, give, take

WAKING: int = 12_000
"""Nanoseconds of work that are worth more threads where these look for it, or will look for the next launch
(`weft.runtime.spinning`). Sharing a launch takes 3,000 where these look, and twice that with cold caches."""
LOOKING: int = 6_000
"""The same where native code shares the launch with threads that look for it, which takes 300 where there is one
(`weft.runtime.direct_code`). Two threads are faster from 2,000 on, but keep another core busy between launches, too."""
SLEEPING: int = 60_000
"""The same of a launch that comes alone, where they sleep: waking takes 3,000 where a core is idle, and 50,000 in a virtual
machine."""
_SMALL: Final = 1 << 16
"""Bytes of scratch memory."""
_ONE: Final = (1, 1, 1)
"""The grid of one program."""
_ALONE: Final = (1, 1, 1)
"""What `Pool.share` says of it: one program, one at a time, one thread."""


class Executable:
    """Loaded code for one specialisation of a kernel.

    Keeps what each launch needs: the entry point, and a `struct` that writes counter, fault record and arguments in
    one go. ``address`` is that of ``entry``, the entry point.

    ``phases`` gives the code of a phase of a kernel that sums in parts (`weft.runtime.parted`). That of a phase has one slot
    ``more`` than the kernel has arguments.
    """

    def __init__(
        self,
        kernel: str,
        artifact: Artifact,
        parameters: Sequence[Parameter],
        key: Sequence[Token],
        checked: bool,
        *,
        phases: Callable[[str], Executable] | None = None,
        more: bool = False,
    ):
        self.kernel = kernel
        self.checked = checked
        self.artifact = artifact._replace(object=b"")  # the object is some 4 KiB, and no launch reads it
        runtime = [(p.name, token) for p, token in zip(parameters, key, strict=True) if isinstance(token, str)]
        self._pointers = [(slot, name) for slot, (name, token) in enumerate(runtime) if token.startswith("*")]
        self._scratch = artifact.scratch
        self._copies = artifact.copies
        self._prints = artifact.prints
        self.pace = (ctypes.c_double * 2)(math.inf, False)
        """Nanoseconds for each program in the last launch that several threads could share, and whether that launch took longer
        than it should."""
        self._parted = Parted(artifact, phases) if artifact.sums and phases is not None else None
        self._code = loader.load(artifact.object, artifact.symbol)
        self.address = self._code.address
        self.entry: executor.Entry = executor.ENTRY(self.address)
        places = {slot: place for place, (slot, _) in enumerate(self._pointers)}
        self.measured = tuple(places[slot] for slot in artifact.measured)
        """Places, among all pointers, of those whose arrays' bounds a launch states behind the other slots."""
        self._unknown = (0, 0) * len(self.measured)
        bounds = "QQ" * len(self._pointers if checked else self.measured)
        packer = struct.Struct(f"{HEAD}{slot_format(key)}{bounds}{'Q' if more else ''}")
        self._pack = packer.pack_into
        self.slots = (packer.size - ARGUMENTS) // 8
        """How many slots a launch has, bounds among them."""

    def launch(self, bound: Bound, grid: Grid) -> None:
        """Runs the kernel for each program of a grid that is not empty. Raises `ValueError` for a read-only array
        that the kernel writes through, and `OutOfBoundsError` (checked) or `DeviceAssertionError` (debug)."""
        if bound.read_only:
            refuse_read_only(self.kernel, self.artifact.written, bound.read_only)
        slots = bound.slots
        if self.checked:
            slots = slots + self._bounds(bound)
        elif self.measured:
            slots = slots + self.measures(bound.extents)
        self.run(slots, grid, None, (self, bound), bound)

    def run(
        self, slots: Sequence[Slot], grid: Grid, threads: int | None, kept: object, bound: Bound | None = None
    ) -> None:
        """`launch` for arguments that need no look: one slot for each parameter, memory that may be written, a grid that is not
        empty; ``bound`` is for messages. At most ``threads`` threads run it; ``kept`` is held until none does. Behind the slots
        may come `measures`."""
        if len(slots) < self.slots:
            slots = (*slots, *self._unknown)
        parted = self._parted
        if parted is None or math.prod(grid) >= (executor.pool().threads if threads is None else threads):
            self._run_whole(slots, grid, threads, kept, bound)
            return
        began = perf_counter_ns()
        if not (parted.is_worth and parted.run(slots, grid, threads, kept)):
            self._run_whole(slots, grid, threads, kept, bound)
        parted.note(perf_counter_ns() - began)

    def _run_whole(
        self, slots: Sequence[Slot], grid: Grid, threads: int | None, kept: object, bound: Bound | None
    ) -> None:
        """`run`, each program by one thread."""
        pool, scratch = executor.pool(), self._scratch
        total, chunk, width = _ALONE if grid == _ONE else pool.share(grid, threads)
        if width > 1:
            scratch += self._copies
        workspace = take(self.slots)
        memory = workspace.scratch(scratch) if scratch else 0
        try:
            self._pack(workspace.block, workspace.offset, memory, total, chunk, *grid, *slots)
        except OverflowError:
            self._pack(workspace.block, workspace.offset, memory, total, chunk, *grid, *to_float32(slots))
        if width > 1:
            workspace.share_out(width, claims())
        if self._prints:
            failed = self._run_printing(workspace, width, kept)
        else:
            failed = (
                self._spread(pool, workspace, total, width, kept) if width > 1 else pool.alone(self.entry, workspace)
            )
        if failed:
            raise self._failure(workspace.fault(), bound or Bound())
        give(workspace)  # after an exception a thread may still use it

    def _spread(self, pool: executor.Pool, workspace: Workspace, total: int, width: int, kept: object) -> int:
        """`Pool.run` on several threads; on this one where waking others would take longer than all programs. So it was in the
        launch before, by its time for each program, and what this thread claimed first did not take long now. Where the rest
        does twice in a row (once, it may have waited for a core), other threads help from then on. A launch that follows another
        at once may be shorter: threads that were woken for it will look for the next. Native code does the same
        (`weft.runtime.direct_code`)."""
        entry = self.entry
        began = perf_counter_ns()
        limit = WAKING if pool.is_busy(began) else SLEEPING
        if total * self.pace[0] < limit:
            workspace.pause()
            status = pool.lead(entry, workspace, once=True)
            if status != executor.PAUSED:
                return executor.finish(entry, workspace, status)
            if perf_counter_ns() - began < limit:
                failed = pool.alone(entry, workspace)
                pool.ended = perf_counter_ns()
                pace = (pool.ended - began) / total
                late, self.pace[1] = self.pace[1], total * pace >= limit
                if late or not self.pace[1]:
                    self.pace[0] = pace
                return failed
        return self._on_several(pool, workspace, total, width, kept)

    def _on_several(self, pool: executor.Pool, workspace: Workspace, total: int, width: int, kept: object) -> int:
        """`Pool.run` on several threads."""
        failed = pool.run(self.entry, workspace, self._scratch + self._copies, width, kept, self.address)
        self.pace[:] = workspace.taken * width / total, False
        pool.ended = perf_counter_ns()
        return failed

    def spread(self, workspace: Workspace, kept: object) -> None:
        """Runs the rest of a launch that is packed in ``workspace`` on several threads; ``kept`` is held until none runs it.
        Raises as `launch`."""
        pool, total = executor.pool(), workspace.programs
        if self._on_several(pool, workspace, total, min(pool.threads, total), kept):
            raise self._failure(workspace.fault(), Bound())

    def rejoin(self, workspace: Workspace, status: int) -> None:
        """Ends a launch that native code shared with other threads, and gave ``status`` (`Pool.rejoin`). Raises as `launch`."""
        if executor.pool().rejoin(self.entry, workspace, status):
            raise self._failure(workspace.fault(), Bound())

    @property
    def is_plain(self) -> bool:
        """Whether a launch is its slots and nothing else: the kernel neither checks nor prints."""
        return not self.checked and not self._prints

    @property
    def written(self) -> tuple[str, ...]:
        """The parameters that the kernel may write through."""
        return self.artifact.written

    @property
    def scratch(self) -> int:
        """Bytes of scratch memory a thread needs, in a shared launch, too."""
        return self._scratch + self._copies

    @property
    def least(self) -> int:
        """The programs of the smallest grid that is run whole, whatever it was like before (`weft.runtime.parted`)."""
        return 1 if self._parted is None else executor.pool().threads

    @property
    def is_small(self) -> bool:
        """Whether launches may keep memory for native code of their own: the kernel neither checks nor prints, needs little, and
        was not so long that it is run in parts."""
        parted = self._parted is not None and self._parted.is_worth
        return self.is_plain and self._scratch <= _SMALL and not parted

    def standing(self, bound: Bound, grid: Grid) -> Workspace:
        """A launch on one thread, packed to be repeated. Raises as `launch` for a read-only array."""
        refuse_read_only(self.kernel, self.artifact.written, bound.read_only)
        workspace = Workspace(self.slots)
        total = grid[0] * grid[1] * grid[2]
        head = (workspace.scratch(self._scratch), total, total, *grid)
        try:
            self._pack(workspace.block, workspace.offset, *head, *bound.slots, *self._unknown)
        except OverflowError:
            self._pack(workspace.block, workspace.offset, *head, *to_float32(bound.slots), *self._unknown)
        return workspace

    def end(self, workspace: Workspace, status: int) -> None:
        """Goes on where native code in this thread returned ``status``, to the end. Raises as `launch`."""
        if status == executor.PAUSED:
            status = executor.pool().alone(self.entry, workspace)
        if status and executor.finish(self.entry, workspace, status):
            raise self._failure(workspace.fault(), Bound())

    def brief(self, grid: Grid) -> Callable[[Sequence[Slot]], None]:
        """`run` for one grid, in the calling thread alone, for kernels that take less than a millisecond: a signal that arrives
        meanwhile is handled when the kernel has ended, so no watch has to look."""
        pack, entry, scratch, needed = self._pack, self.entry, self.artifact.scratch, self.slots
        x, y, z = grid
        total, unknown = x * y * z, self._unknown

        def launch(slots: Sequence[Slot]) -> None:
            workspace = take(needed)
            pack(workspace.block, workspace.offset, workspace.scratch(scratch), total, total, x, y, z, *slots, *unknown)
            status = entry(workspace.launch, workspace.thread)
            if status and executor.finish(entry, workspace, status):
                raise self._failure(workspace.fault(), Bound())
            give(workspace)

        return launch

    def _run_printing(self, workspace: Workspace, width: int, kept: object) -> int:
        printer = Printer(self._prints, workspace)
        try:
            return executor.pool().run(self.entry, workspace, self._scratch, width, (kept, printer))
        finally:
            if printer.error is not None:
                raise printer.error

    def measures(self, extents: Sequence[tuple[int, int] | None]) -> list[Slot]:
        """What a launch states of the ``measured`` arrays' bounds, given the extents of all."""
        return [bound for place in self.measured for bound in extents[place] or (0, 0)]

    def _bounds(self, bound: Bound) -> list[int | float]:
        result: list[int | float] = []
        for (_, name), extent in zip(self._pointers, bound.extents, strict=True):
            if extent is None:
                raise TypeError(
                    f"kernel '{self.kernel}': parameter '{name}': the object does not say how long it is, which a "
                    "checked kernel must know; pass an array"
                )
            result += extent
        return result

    def _failure(self, fault: Sequence[int], bound: Bound) -> OutOfBoundsError | DeviceAssertionError:
        _, number, x, y, z, address, *_ = fault
        site = self.artifact.sites[number]
        if site.operation == "assert":
            return DeviceAssertionError(self.kernel, (x, y, z), site.argument or "", site.frames)
        for (slot, name), extent in zip(self._pointers, bound.extents, strict=True):
            if name == site.argument and extent is not None:
                index = (address - int(bound.slots[slot])) // site.itemsize
                length = (extent[1] - extent[0]) // site.itemsize
                return OutOfBoundsError(self.kernel, (x, y, z), site.operation, name, index, length, site.frames)
        return OutOfBoundsError(self.kernel, (x, y, z), site.operation, None, None, None, site.frames)
