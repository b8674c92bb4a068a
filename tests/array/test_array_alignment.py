"""Alignments by hand, and their laws on random executions."""

from __future__ import annotations

import random

from weft.array.comparing.alignment import align, pairs


def joined(a: str, b: str) -> str:
    """An alignment in letters: equal elements once, others marked by their side."""
    sides = {True: "-", False: "+"}
    return " ".join(
        a[i] if i is not None and j is not None else f"{sides[j is None]}{a[i] if i is not None else b[j or 0]}"
        for i, j in pairs(a, b)
    )


def test_by_hand() -> None:
    assert joined("abc", "abc") == "a b c"
    assert joined("", "ab") == "+a +b"
    assert joined("ab", "") == "-a -b"
    # A branch: one side does x, the other y and z, both go on with c.
    assert joined("abxc", "abyzc") == "a b -x +y +z c"
    # A loop of five turns and one of three: the first three are the same, and what follows is.
    assert joined("llllle", "llle") == "l l l -l -l e"
    # A helper h called twice by one side and once, at its second place, by the other.
    assert joined("mhnho", "nho") == "-m -h n h o"


def test_three_executions() -> None:
    # All do a and c; the second and third do b, the third d besides.
    assert align(["ac", "abc", "abdc"]) == [[0, 0, 0], [None, 1, 1], [None, None, 2], [1, 2, 3]]
    assert align(["ab"]) == [[0], [1]]


def test_laws() -> None:
    rng = random.Random(5)
    for _ in range(300):
        executions = ["".join(rng.choices("abc", k=rng.randrange(8))) for _ in range(rng.choice((2, 3)))]
        rows = align(executions)
        for column, execution in enumerate(executions):
            # Each operation once, in order.
            assert [row[column] for row in rows if row[column] is not None] == list(range(len(execution)))
        for row in rows:
            letters = {executions[c][i] for c, i in enumerate(row) if i is not None}
            assert len(letters) == 1
        same = [executions[0]] * 2
        assert align(same) == [[i, i] for i in range(len(same[0]))]
