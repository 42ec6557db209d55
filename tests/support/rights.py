"""Running as one for whom the modes of files count, also where the tests run as root."""

import ctypes
import os


def without_roots_rights() -> None:
    """In a child, before it becomes another program: of root's capabilities, not those that pass by a file's mode."""
    if os.geteuid() == 0:
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0  # PR_CAPBSET_DROP
