"""The Python that kernels are not written in, and what to write instead: data for messages."""

from __future__ import annotations

from typing import Final

_COMPREHENSION: Final = "write a 'for' loop over tl.static_range, or compute with whole tiles"
_ASYNC: Final = "kernels run to their end without suspending"

SYNTAX: Final[dict[str, tuple[str, str | None]]] = {
    "AsyncFor": ("'async for'", _ASYNC),
    "AsyncFunctionDef": ("'async def'", _ASYNC),
    "AsyncWith": ("'async with'", _ASYNC),
    "Await": ("'await'", _ASYNC),
    "ClassDef": ("a class", "pass tuples, or separate arguments"),
    "Delete": ("'del'", "variables need no deleting; leave it out"),
    "Dict": ("a dict", "use a tuple, or separate variables"),
    "DictComp": ("a comprehension", _COMPREHENSION),
    "FunctionDef": ("a nested function", "define it beside the kernel and decorate it with @weft.jit"),
    "GeneratorExp": ("a comprehension", _COMPREHENSION),
    "Global": ("'global'", "pass the value as an argument, and store results through pointers"),
    "Import": ("'import'", "import at the top of the file"),
    "ImportFrom": ("'import'", "import at the top of the file"),
    "Lambda": ("a lambda", "define a function beside the kernel and decorate it with @weft.jit"),
    "Match": ("'match'", "use 'if' and 'elif'"),
    "Nonlocal": ("'nonlocal'", "return the value from the helper"),
    "Raise": ("'raise'", "use tl.static_assert for what is known at compile time; nothing can be raised at run time"),
    "Set": ("a set", "use a tuple"),
    "SetComp": ("a comprehension", _COMPREHENSION),
    "Starred": ("a starred expression here", "only calls and tuples unpack with '*'"),
    "Try": ("'try'", "nothing can be raised at run time; check with 'if'"),
    "TryStar": ("'try'", "nothing can be raised at run time; check with 'if'"),
    "With": ("'with'", "leave it out"),
    "Yield": ("'yield'", "store results through pointers"),
    "YieldFrom": ("'yield'", "store results through pointers"),
}
"""AST class -> its name to users, and advice."""

OTHER_NAMES: Final[dict[str, str]] = {
    **{"absolute": "abs", "fabs": "abs", "divide": "fdiv", "true_divide": "fdiv", "amax": "max", "amin": "min"},
    **{
        "ones": "full",
        "full_like": "full",
        "transpose": "trans",
        "matmul": "dot",
        "fmin": "minimum",
        "fmax": "maximum",
    },
    **{"add": "add", "subtract": "sub", "multiply": "mul", "concatenate": "cat"},
}
"""Names in NumPy and its relatives of what the language calls otherwise."""
