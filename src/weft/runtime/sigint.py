"""A C signal handler that stops a launch, for as long as one program runs.

Python's own C handler only notes that a signal arrived. While the main thread is inside a program of a kernel, `StopOnSignal`
puts a handler before it that also writes the launch's stop word, which programs look at in their loops. It is machine code
of two loads, a store and a jump, so it is safe wherever the signal interrupts. Where weft links kernels itself, the code is
written down here; elsewhere LLVM makes it. The import of LLVM would take longer than a program may run before Ctrl-C is seen.
"""

from __future__ import annotations

import ctypes
import signal
from functools import cached_property
from typing import Final

from weft.runtime import linker, loader, pages
from weft.runtime.loader import LoadedCode

_HANDLER: Final = """
define void @weft_on_signal(i32 %number) {{
entry:
  %word = load volatile ptr, ptr inttoptr (i64 {word} to ptr)
  %none = icmp eq ptr %word, null
  br i1 %none, label %pass, label %stop
stop:
  store volatile i64 1, ptr %word
  br label %pass
pass:
  %next = load volatile ptr, ptr inttoptr (i64 {previous} to ptr)
  call void %next(i32 %number)
  ret void
}}
"""


def _assembled(word: int, previous: int) -> bytes:
    """The same for x86-64, given the two addresses."""
    return b"".join(
        (
            b"\xf3\x0f\x1e\xfa",  # endbr64
            b"\x48\xa1" + word.to_bytes(8, "little"),  # mov rax, [word]
            b"\x48\x85\xc0",  # test rax, rax
            b"\x74\x07",  # jz pass
            b"\x48\xc7\x00\x01\x00\x00\x00",  # mov qword ptr [rax], 1
            b"\x48\xa1" + previous.to_bytes(8, "little"),  # pass: mov rax, [previous]
            b"\xff\xe0",  # jmp rax, which finds the signal's number in edi, as it came
        )
    )


_NOT_FUNCTIONS: Final = (None, 0, 1)
"""What C's ``signal`` gives in place of a handler: none, SIG_DFL, SIG_IGN."""

_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int)(("PyOS_getsig", ctypes.pythonapi))
_set = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(("PyOS_setsig", ctypes.pythonapi))


class StopOnSignal:
    """Has SIGINT write 1 to a word in memory, and then do what it did. Used by one thread at a time."""

    def __init__(self) -> None:
        self._word = ctypes.c_void_p(0)
        self._previous = ctypes.c_void_p(0)
        self._installed = ctypes.c_int64(0)
        self.address_of_installed = ctypes.addressof(self._installed)

    @property
    def installed(self) -> bool:
        """Whether it is in place."""
        return self._installed.value != 0

    @installed.setter
    def installed(self, installed: bool) -> None:
        self._installed.value = installed

    @cached_property
    def _code(self) -> LoadedCode:
        if linker.SUPPORTED:
            code = _assembled(ctypes.addressof(self._word), ctypes.addressof(self._previous))
            held = pages.place(len(code), lambda base: code)
            return LoadedCode(held.address, held)
        return self._made_by_llvm()

    def _made_by_llvm(self) -> LoadedCode:
        import llvmlite.binding as llvm

        loader.initialise()
        text = _HANDLER.format(word=ctypes.addressof(self._word), previous=ctypes.addressof(self._previous))
        machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="default", jit=True)
        return loader.load(machine.emit_object(llvm.parse_assembly(text)), "weft_on_signal")

    def install(self, word: int) -> None:
        """Begin, where SIGINT raises KeyboardInterrupt; with any other handler a launch may have to go on."""
        code = self._code
        previous = _get(signal.SIGINT)
        if previous in _NOT_FUNCTIONS or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return
        self._word.value = word
        if previous != code.address:
            self._previous.value = previous
        self.installed = True
        _set(signal.SIGINT, code.address)

    def remove(self) -> None:
        """End."""
        if self.installed:
            self.installed = False
            self._word.value = 0
            if _get(signal.SIGINT) == self._code.address:
                _set(signal.SIGINT, self._previous.value)
