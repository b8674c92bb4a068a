"""CSE leaves control flow alone, as the module says: even equal loops and branches without effects stay, each of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from weft.transforms import Cse

LOOP = """
    %{0} = scf.for %i{0} = %n to %m step %n iter_args(%a{0} = %n) -> (i32) : i32 {{
      scf.yield %a{0} : i32
    }}
"""
BRANCH = """
    %{0} = scf.if %flag -> (i32) {{
      scf.yield %n : i32
    }} else {{
      scf.yield %m : i32
    }}
"""
WHILE = """
    %{0} = scf.while (%a{0} = %n) : (i32) -> i32 {{
      scf.condition(%flag) %a{0} : i32
    }} do {{
    ^bb0(%b{0} : i32):
      scf.yield %b{0} : i32
    }}
"""


@pytest.mark.parametrize(
    ("text", "kind"), [(LOOP, scf.ForOp), (BRANCH, scf.IfOp), (WHILE, scf.WhileOp)], ids=["for", "if", "while"]
)
def test_equal_control_flow_stays(kernel: Callable[[str, str], ModuleOp], text: str, kind: type) -> None:
    module = kernel("%n: i32, %m: i32, %flag: i1", text.format("x") + text.format("y"))
    Cse().apply(Context(), module)
    module.verify()
    assert sum(isinstance(op, kind) for op in module.walk()) == 2
