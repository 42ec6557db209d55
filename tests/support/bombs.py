"""Packed zeros that are large once unpacked, made at next to no cost: one packed MiB, again and again. No tests here."""

import zlib
from functools import cache

_MIB = bytes(2**20)


def zlib_bomb(n_mib: int) -> bytes:
    """So many MiB of zeros in one zlib stream, a thousandth as long."""
    n_bytes = n_mib * 2**20
    adler32 = n_bytes % 65_521 << 16 | 1  # of zeros: RFC 1950, 9
    return b"\x78\x9c" + _deflated(n_mib) + adler32.to_bytes(4, "big")


@cache
def gzip_bomb(n_mib: int) -> bytes:
    """So many MiB of zeros in one gzip member."""
    crc32 = 0
    for _ in range(n_mib):
        crc32 = zlib.crc32(_MIB, crc32)
    ends = (crc32, n_mib * 2**20 % 2**32)
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + _deflated(n_mib) + b"".join(end.to_bytes(4, "little") for end in ends)


def _deflated(n_mib: int) -> bytes:
    """Blocks that look back at none before them, and so may follow one another; then the last, which is empty."""
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(_MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * n_mib + zlib.compressobj(wbits=-15).flush()
