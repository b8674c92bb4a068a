"""Memory: arenas of bytes, the checks on every access, and who has seen whose writes."""
