"""Native code for what the emulator does most: an interpreter of rows, compiled once for a machine and kept on disk."""
