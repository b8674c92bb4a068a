"""What each tile op means, in NumPy: slow, obvious, and the definition that every other backend is tested against."""

from weft.reference.interpreter import UndefinedBehaviourError, run
from weft.reference.memory import OutOfBoundsError

__all__ = ["OutOfBoundsError", "UndefinedBehaviourError", "run"]
