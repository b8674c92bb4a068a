"""``python -m weft.run``: the command ``weft run``."""

from __future__ import annotations

import sys

from weft.cli import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
