"""Networks of this machine joined by links that carry packets after a while. What runs in them is many_hosts.py's."""

import fcntl
import os
import select
import shutil
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from socket import inet_aton, inet_ntoa
from typing import Self

_MTU = 9000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_QUEUE = 10_000  # packets under way; beyond it they are dropped, as anywhere


def why_not() -> str | None:
    """Why no such networks can be made here; None where they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not all(shutil.which(program) for program in ("ip", "unshare", "setpriv")):
        return "ip, unshare or setpriv (Debian's iproute2, util-linux) is not installed"
    if not any(Path("/usr/lib/postgresql").glob("*/bin/postgres")):
        return "PostgreSQL is not installed where Debian keeps it"
    tried = subprocess.run("ip netns add salon-try && ip netns del salon-try && test -c /dev/net/tun", shell=True, check=False)
    return "the machine does not allow network namespaces or has no /dev/net/tun" if tried.returncode else None


class NetworkFaults:
    """Network namespaces `salon-<name>`, each with one address, for as long as the block lasts.

    A packet from one to another arrives after `delay_s`; what is from or to an address in `lost` never does. There is no way out.
    """

    def __init__(self, addresses: Mapping[str, str], delay_s: float) -> None:
        self._addresses, self._delay_s = addresses, delay_s
        self.lost: set[str] = set()
        self._ends: dict[bytes, int] = {}  # by address
        self._over = threading.Event()
        self._carrying = threading.Thread(target=self._carry, name="links")

    def __enter__(self) -> Self:
        for number, (name, address) in enumerate(self._addresses.items()):
            _ip(f"netns add salon-{name}")
            end, device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK), f"salon{number}"
            fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH", device.encode(), _IFF_TUN | _IFF_NO_PI))
            self._ends[inet_aton(address)] = end
            _ip(f"link set {device} netns salon-{name}")
            _ip(f"-n salon-{name} addr add {address}/24 dev {device}")
            _ip(f"-n salon-{name} link set {device} mtu {_MTU} txqueuelen {_QUEUE} up")
            _ip(f"-n salon-{name} link set lo up")
        self._carrying.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._carrying.join()
        for end in self._ends.values():
            os.close(end)
        for name in self._addresses:
            _ip(f"netns del salon-{name}")

    def _carry(self) -> None:
        waiting: deque[tuple[float, int, bytes]] = deque(maxlen=_QUEUE)
        poll = select.poll()
        for end in self._ends.values():
            poll.register(end, select.POLLIN)
        while not self._over.is_set():
            wait_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.2
            for end, _ in poll.poll(wait_s * 1000):
                packet = os.read(end, _MTU)
                to = self._ends.get(packet[16:20])  # IPv4's destination; its source stands before it
                if to is not None and not self.lost.intersection({inet_ntoa(packet[12:16]), inet_ntoa(packet[16:20])}):
                    waiting.append((time.monotonic() + self._delay_s, to, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, to, packet = waiting.popleft()
                with suppress(BlockingIOError):  # lost, and sent again by TCP
                    os.write(to, packet)


def _ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)
