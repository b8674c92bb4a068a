"""Counters in unit tests: a kernel's profile asserted, or compared with one that is stored beside the test.

    def test_transpose_has_no_conflicts():
        profile = Module(ptx).launch("transpose", (4, 4), (32, 8), [out, x, 128])
        assert_profile(profile, bank_conflicts=0, global_sectors=(0, 4096))

    def test_transpose_as_it_was(profile_snapshot):
        profile_snapshot(Module(ptx).launch("transpose", (4, 4), (32, 8), [out, x, 128]))

The fixture comes with a pytest plugin that installing weft registers; ``pytest --update-profiles`` stores what it compares with.
"""

from weft.testing.assertion import assert_profile

__all__ = ["assert_profile"]
