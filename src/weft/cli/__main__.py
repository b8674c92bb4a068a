"""``python -m weft.cli``: the ``weft`` command where its script is not on the path."""

import sys

from weft.cli import main

sys.exit(main())
