"""Memory: arenas of bytes, the checks on every access, and which threads have seen which writes."""
