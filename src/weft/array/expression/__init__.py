"""What an expression is: its nodes, to which the semantics are already applied, and what may be asked of them.

No rule is decided here and nothing is computed.
"""
