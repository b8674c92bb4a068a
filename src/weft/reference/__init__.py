"""What each tile op means, in NumPy: slow, obvious, and the definition that every other backend is tested against."""

from weft.reference.interpreter import run
from weft.reference.memory import OutOfBoundsError
from weft.reference.programs import UndefinedBehaviourError

__all__ = ["OutOfBoundsError", "UndefinedBehaviourError", "run"]
