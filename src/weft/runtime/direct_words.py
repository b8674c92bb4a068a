"""What native launches (`weft.runtime.direct_code`) read, as tables: the words of their own blocks, and the bytes of objects of
CPython, NumPy and DLPack."""

from __future__ import annotations

import ctypes
from typing import Final

from weft.runtime.executor import CHUNKS_PER_THREAD, DONE, PAUSED
from weft.runtime.executor import WORDS as POOL
from weft.runtime.spinning import FEW, WAITS
from weft.runtime.workspace import ARGUMENTS, LAUNCH, MOST_SHARES, PROGRAMS, SHARES, STOP, THREAD, TICKET
from weft.runtime.workspace import RECORD as FAULTS

PROCESS: Final = (
    "busy",  # a launch uses the workspace
    "main",  # the main thread, as Python numbers threads
    "threads",  # how many share a grid
    "workspace",  # the address of the workspace, whose thread's words know its scratch memory
    "leading",  # where `Watch` reads that the workspace is in native code
    "asleep",  # where it says that it sleeps
    "wake",  # a function that wakes it
    "pool",  # the pool's words
    "looking", "sleeping", "spin",  # nanoseconds: `executable.LOOKING` and `SLEEPING`, `spinning.SPIN`
    "clock", "which",  # the system's ``clock_gettime`` and the clock that it shall read; 0 where there is none
    "None", "True", "tuple", "int", "float", "bool", "array",  # objects, and types
    "emulated",  # the context variable `place.CURRENT`
    "PyThread_get_thread_ident", "PyContextVar_Get", "Py_IncRef", "Py_DecRef", "PyDict_GetItemWithError",
    "PyLong_AsLongLongAndOverflow", "PyLong_FromLongLong", "PyFloat_AsDouble", "PyObject_Vectorcall",
    "PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_Clear", "PyErr_Occurred", "PyObject_VectorcallMethod",
    "False", "is_neg",  # an object; the name of a method of tensors
    "installed",  # where `StopOnSignal` says that it is in place
)  # fmt: skip
"""The words of the process's block."""

KERNEL: Final = ("process", "first", "slow", "held", "count")
"""Those of a kernel: the process's block, the first plan, and what launches in Python. A launch that is repeated without
arguments has those that it ``held``, so many."""

PLAN: Final = (
    "next",  # the plan to try after this one, or 0
    "positional", "keywords", "names",  # how many arguments by position and by name, and the names
    "records", "values",  # how many values to look at, and their records
    "modes",  # a function that says whether PyTorch has modes, whose methods then run Python; 0 where there are no tensors
    "looks", "places",  # how many globals and helpers to look at, and their `LOOK`s
    "arrays", "order",  # how many arrays, and their places in the order of addresses
    "apart",  # whether no two share a byte
    "bounds",  # room for the first byte of each array and the one past its last
    "measured", "which",  # how many arrays' bounds stand behind the other slots, and which, and from
    "behind",  # which slot on
    "least",  # the fewest programs of a grid for which this holds
    "entry",  # the kernel's entry point
    "pace",  # where its nanoseconds for each program stand, and whether the last launch was late
    "owner",  # keeps all this alive
    "scratch",  # bytes of scratch memory that each of several threads needs
    "finish", "spread",  # functions: what to do where the entry point paused or failed; the launch on several threads
    "rejoin",  # what to do where the entry point paused or failed on several, or a worker has not left
)  # fmt: skip
"""Those of a plan."""

LOOK: Final = ("names", "name", "value")
"""Those of a look at a global: the dictionary, the key, and the object that has to be there, or 0 for none. Where the dictionary
is 0, the key is the cell of a closure."""

RECORD: Final = ("kind", "slot", "what", "size", "of16", "not_one", "place", "at", "flags", "type", "read")
"""Those of a value: its kind, its slot; the object, dtype or number it has to be; an element's bytes; whether 16 has to divide it
(or the address); whether it may not be 1; the array's number among all arrays; the address that an array has to have, or 0; the
flags of one of NumPy's; a tensor's type, and the function that reads it."""

SAME, NUMBER, INT, FLOAT, DOUBLE, BOOL, ARRAY, TENSOR = range(8)
"""Kinds of values: an object; an int that is a constant; ints of 32 bits, float32, float64, bools; NumPy's arrays, and tensors
(objects of a library with DLPack's exchange interface)."""

NO, YES, ANY = range(3)
"""What ``of16`` may say."""

DATA, NDIM, SHAPE, STRIDES, DTYPE, FLAGS = 16, 24, 32, 40, 56, 64
"""Byte offsets in ``PyArrayObject``, a part of NumPy's binary interface (numpy/ndarraytypes.h), where an object's head has 16."""
ALIGNED, WRITABLE = 0x100, 0x400
"""Flags of an array."""
CPU: Final = 1
DL_DATA, DL_DEVICE, DL_NDIM, DL_DTYPE, DL_SHAPE, DL_STRIDES, DL_OFFSET = 0, 8, 16, 20, 24, 32, 40
"""DLPack's number of the CPU, and byte offsets in ``DLTensor`` (dlpack.h)."""
_HEAD: Final = object.__basicsize__
TYPE, SIZE, ITEMS, PAYLOAD, CELL = _HEAD - 8, _HEAD, tuple.__basicsize__, bytes.__basicsize__ - 1, _HEAD
"""Byte offsets in any object, in a tuple (its length and its first item), in bytes, and in a closure's cell."""

SHARING: Final = 200
WITH_EACH: Final = 100
"""Nanoseconds that sharing takes where programs take none, and those for each worker, both less than they are. A launch whose
memory fits the caches of two cores and not of one takes less than half the time, and shall not be run by one the next time."""

NUMBERS: Final = {
    "DATA": DATA, "NDIM": NDIM, "SHAPE": SHAPE, "DTYPE": DTYPE, "STRIDES": STRIDES, "FLAGS": FLAGS,
    "CPU": CPU, "DL_DATA": DL_DATA, "DL_DEVICE": DL_DEVICE, "DL_NDIM": DL_NDIM, "DL_DTYPE": DL_DTYPE, "DL_SHAPE": DL_SHAPE,
    "DL_STRIDES": DL_STRIDES, "DL_OFFSET": DL_OFFSET, "TENSOR": TENSOR,
    "TYPE": TYPE, "SIZE": SIZE, "ITEMS": ITEMS, "PAYLOAD": PAYLOAD, "CELL": CELL,
    "NUMBER": NUMBER, "INT": INT, "FLOAT": FLOAT, "DOUBLE": DOUBLE, "BOOL": BOOL, "ARRAY": ARRAY, "ANY": ANY,
    "THREAD": THREAD, "THREAD_SCRATCH": 24, "LAUNCH": LAUNCH, "PROGRAMS": PROGRAMS, "ARGUMENTS": ARGUMENTS,
    "TICKET": TICKET, "STOP": STOP, "SHARES": SHARES, "MOST_SHARES": MOST_SHARES, "DONE": DONE, "FEW": FEW, "WAITS": WAITS,
    "FIRST_SHARE": LAUNCH + 64, "OTHER_SHARES": FAULTS - LAUNCH - 64, "FAULTS": FAULTS, "FAULTS_AND_SHARES": PROGRAMS - FAULTS,
    "SHARING": SHARING, "WITH_EACH": WITH_EACH, "POOL_ended": POOL.index("ended"),
    "LOOK": len(LOOK), "RECORD": len(RECORD), "PROCESS_busy": PROCESS.index("busy"),
    "ULONG": f"i{8 * ctypes.sizeof(ctypes.c_ulong)}", "PAUSED": PAUSED, "CHUNKS_PER_THREAD": CHUNKS_PER_THREAD,
}  # fmt: skip
"""What the code knows of these tables, of workspaces and of this system."""

BLOCKS: Final = {"PROCESS": PROCESS, "POOL": POOL, "KERNEL": KERNEL, "PLAN": PLAN, "LOOK": LOOK, "RECORD": RECORD}
"""By the names that the code calls them by."""
