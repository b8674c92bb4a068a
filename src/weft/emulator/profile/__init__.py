"""Counting what a launch did: the rules, the counters, and the profile made of them."""

from weft.emulator.profile.metrics import METRICS, Metric
from weft.emulator.profile.profile import NOT_MODELLED, Launch, Profile
from weft.emulator.profile.ptxas import Resources
from weft.emulator.profile.rows import Counts, InstructionRow, LineRow

__all__ = ["METRICS", "NOT_MODELLED", "Counts", "InstructionRow", "Launch", "LineRow", "Metric", "Profile", "Resources"]
