"""The layout solver: layouts for a whole function, by the least price that a search finds.

problem      variables and the values between them, from the IR
candidates   the choices of each variable
tables       prices of choices and conversions
eliminate    the least sum of tables, exactly
lifetimes    the registers that values take at once
search       estimates first, plans only for what a solution uses
apply        the solution, as the rewriting takes it
price        the price of IR whose tiles have layouts, whoever chose them
"""

from weft.transforms.layouts.solve.apply import enter
from weft.transforms.layouts.solve.price import price_of
from weft.transforms.layouts.solve.search import Solution, solve

__all__ = ["Solution", "enter", "price_of", "solve"]
