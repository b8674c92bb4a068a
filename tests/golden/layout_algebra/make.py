"""Makes algebra.jsonl from the recorded operations (README.md says how those were made).

Usage: python make.py RECORDED, a JSON list of objects with "op", its arguments, and "out" or "error".
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, cast


def layout(entry: Any) -> str:
    """``{"bases": [[dim, vectors], ..], "out_dims": [[dim, size], ..]}`` as one line of text."""

    def basis(vector: list[int]) -> str:
        return str(vector[0]) if len(vector) == 1 else f"({','.join(map(str, vector))})"

    inputs = ", ".join(f"{dim}: [{','.join(map(basis, vectors))}]" for dim, vectors in entry["bases"])
    return f"{{{inputs}}} -> [{', '.join(f'{dim}: {size}' for dim, size in entry['out_dims'])}]"


def compact(value: Any) -> Any:
    """A layout as text, anything else as it is."""
    if isinstance(value, dict) and "bases" in value:
        return layout(cast("dict[str, Any]", value))
    return cast("object", value)


def message(error: str) -> str:
    """What was asserted or reported, without source positions and continuation lines."""
    first = error.splitlines()[0].removeprefix("crash signal=SIGABRT ")
    return re.sub(r"^python: .*?: (?=Assertion)", "", first)


def main(recorded: str) -> None:
    lines: list[str] = []
    for entry in json.loads(Path(recorded).read_text(encoding="utf-8")):
        compacted = {key: compact(value) for key, value in entry.items()}
        if "error" in compacted:
            compacted["error"] = message(compacted["error"])
        lines.append(json.dumps(compacted, separators=(",", ":")))
    (Path(__file__).parent / "algebra.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
