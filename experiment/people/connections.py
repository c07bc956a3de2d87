"""Connections to one server, with limits on their number per address and on their duration.

An address that opens too many connections loses those that were idle longest; other callers are not affected. Connections that
send or read too slowly are cut by :meth:`Connections.cut_overdue`, called once a second.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import struct
import sys
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from stimuli.errors import UserError

KEPT_FILES = 256
"""Open files that are not connections: databases, logs, libraries."""
FILES_A_CONNECTION = 2
"""The connection itself, and the file that it sends or receives."""
MOST_FILES = 65_536
RESET = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)


@dataclass(frozen=True)
class CallerLimits:
    """Limits on what each caller can use of a server."""

    per_address: int = 500
    per_network: int = 1_000
    total: int = 4_000
    requests: int = 3_000
    window_s: float = 10.0
    head_s: float = 10.0
    silent_s: float = 20.0
    idle_s: float = 75.0
    body_grace_s: float = 10.0
    body_rate: float = 1_000.0
    stalled_s: float = 30.0


BEHIND_PROXY = CallerLimits(idle_s=300.0)
"""A proxy keeps its connections longer than a browser, and closes them itself."""


def raise_file_limit() -> int:
    """Raise this process's limit on open files to the system's maximum; return it."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows, where sockets are not files and their number has no such limit
        return MOST_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    # macOS reports an infinite limit but refuses more than 10,240
    for number in (wanted, min(wanted, 10_240)):
        if soft == resource.RLIM_INFINITY or soft >= number:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
        except (OSError, ValueError):
            continue
        soft = number
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def within_files(limits: CallerLimits, files: int) -> CallerLimits:
    """Return limits whose total fits a number of open files, with at most half for one address."""
    total = max(16, min(limits.total, (files - KEPT_FILES) // FILES_A_CONNECTION))
    return replace(
        limits,
        total=total,
        per_address=min(limits.per_address, total // 2),
        per_network=min(limits.per_network, total * 3 // 4),
    )


@lru_cache(maxsize=4096)
def caller_of(address: str) -> str:
    """Return the caller of an address: the address itself, or the /64 of IPv6, usually one household or laboratory."""
    return _within(address, 32, 64)


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return the network of an address: its /24, or the /48 of IPv6."""
    return _within(address, 24, 48)


def _within(address: str, bits: int, bits_of_six: int) -> str:
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return str(ipaddress.ip_network((ip, bits if ip.version == 4 else bits_of_six), strict=False))


class InProgress:
    """Counts the requests in progress behind a proxy, by their address and network."""

    def __init__(self, limits: CallerLimits) -> None:
        self._limits = limits
        self._callers, self._networks = Counter[str](), Counter[str]()

    def begin(self, address: str) -> bool:
        """Count a request; return False, without counting it, if there are too many."""
        caller, network = caller_of(address), network_of(address)
        is_full = self._callers[caller] >= self._limits.per_address
        if is_full or self._networks[network] >= self._limits.per_network:
            return False
        self._callers[caller] += 1
        self._networks[network] += 1
        return True

    def end(self, address: str) -> None:
        """Remove a request that :meth:`begin` counted."""
        for counts, key in ((self._callers, caller_of(address)), (self._networks, network_of(address))):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]


class Phase(Enum):
    """The stage that a connection has reached."""

    HEAD = "waits for a request"
    BODY = "sends a body"
    WORK = "is being answered"
    ANSWER = "reads its answer"


class _Place:
    """The connections of an address, of a network, or of all: their number, and the idle ones, longest first."""

    __slots__ = ("most", "open", "waiting")

    def __init__(self, most: int) -> None:
        self.most = most
        self.open = 0
        self.waiting: OrderedDict[Connection, None] = OrderedDict()


class Connection:
    """One connection, from its acceptance to its end."""

    __slots__ = (
        *("address", "is_secure", "transport", "_table", "_places", "_phase", "_since", "_head_since"),
        *("_received", "_was_answered"),
    )

    def __init__(self, table: Connections, address: str, places: tuple[_Place, ...]) -> None:
        self.address = address
        self.is_secure = False
        self.transport: asyncio.Transport | None = None
        self._table = table
        self._places = places
        self._phase = Phase.HEAD
        self._since = table.now()
        self._head_since: float | None = None
        self._received = 0
        self._was_answered = False
        for place in places:
            place.open += 1
            place.waiting[self] = None

    @property
    def is_waiting(self) -> bool:
        """Whether all of its requests were answered."""
        return self._phase is Phase.HEAD

    @property
    def is_forgotten(self) -> bool:
        """Whether it is no longer counted."""
        return not self._places

    def heard(self, size: int) -> None:
        """Record that bytes arrived."""
        self._received += size
        if self._phase is Phase.HEAD and self._head_since is None:
            self._head_since = self._table.now()

    def turn_to(self, phase: Phase) -> None:
        """Record the connection's new phase."""
        was_waiting = self._phase is Phase.HEAD
        self._phase = phase
        self._since = self._table.now()
        self._head_since = None
        self._received = 0
        if phase is Phase.HEAD:
            self._was_answered = True
            for place in self._places:
                place.waiting[self] = None
        elif was_waiting:
            for place in self._places:
                place.waiting.pop(self, None)

    def moved(self) -> None:
        """Record that its caller has read a part of the answer."""
        self._since = self._table.now()

    def is_overdue(self, now: float, limits: CallerLimits) -> bool:
        """Return whether its caller takes longer than allowed."""
        waited = now - self._since
        if self._phase is Phase.WORK:
            return False
        if self._phase is Phase.BODY:
            return self._received < (waited - limits.body_grace_s) * limits.body_rate
        if self._phase is Phase.ANSWER:
            return waited > limits.stalled_s
        if self._head_since is not None:
            return now - self._head_since > limits.head_s
        # the end of a short answer may still wait for its reader
        if self.transport is not None and self.transport.get_write_buffer_size() > 0:
            return waited > limits.stalled_s
        return waited > (limits.idle_s if self._was_answered else limits.silent_s)

    def end(self) -> None:
        """Close it once its answer has been read."""
        if self.transport is None:
            self.forget()
        else:
            self.transport.close()

    def cut(self) -> None:
        """Close it now, and stop counting it."""
        if self.transport is not None:
            if self._phase is Phase.ANSWER or self.transport.get_write_buffer_size() > 0:
                # otherwise the system keeps unread data for minutes
                socket_of = self.transport.get_extra_info("socket")
                socket_of.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.transport.abort()
        self.forget()

    def forget(self) -> None:
        """Stop counting it; may be called twice."""
        places, self._places = self._places, ()
        for place in places:
            place.open -= 1
            place.waiting.pop(self, None)
        self._table.forget(self)


class Connections:
    """All connections of a server, counted by address and network."""

    def __init__(self, limits: CallerLimits) -> None:
        self.limits = limits
        self.now = asyncio.get_running_loop().time
        self._all = _Place(limits.total)
        self._places: dict[tuple[str, str], _Place] = {}
        self._open: dict[Connection, tuple[tuple[str, str], ...]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._open))

    def admit(self, address: str) -> Connection | None:
        """Return a new connection, after room was made for it; None if all others are busy."""
        keys = (("address", caller_of(address)), ("network", network_of(address)))
        mosts = (self.limits.per_address, self.limits.per_network)
        for key, most in zip(keys, mosts, strict=True):
            place = self._places.get(key)
            if place is not None and place.open >= most and not self.make_room(place):
                return None
        if self._all.open >= self._all.most and not self.make_room():
            return None
        # looked up again: making room may have removed an empty place
        places = [self._places.setdefault(key, _Place(most)) for key, most in zip(keys, mosts, strict=True)]
        connection = Connection(self, address, (*places, self._all))
        self._open[connection] = keys
        return connection

    def make_room(self, place: _Place | None = None) -> bool:
        """Close the connection that was idle longest, of one place or of all; return whether there was one."""
        longest = next(iter((self._all if place is None else place).waiting), None)
        if longest is None:
            return False
        longest.cut()
        return True

    def forget(self, connection: Connection) -> None:
        """Drop a connection that ended."""
        for key in self._open.pop(connection, ()):
            if self._places[key].open == 0:
                del self._places[key]

    def cut_overdue(self) -> int:
        """Close the connections whose callers take longer than allowed; return their number."""
        now = self.now()
        overdue = [connection for connection in self._open if connection.is_overdue(now, self.limits)]
        for connection in overdue:
            connection.cut()
        return len(overdue)


BACKLOG = 1024


def listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at every address of a host on one port; 0 is any free port."""
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            if sockets:
                address = (address[0], sockets[0].getsockname()[1], *address[2:])
            try:
                sockets.append(_bound(socket.socket(family, kind, protocol), address))
            except OSError as error:
                # a name such as localhost may resolve to an address that this computer lacks
                if not sockets or error.errno == errno.EADDRINUSE:
                    raise
    except OSError as error:
        for listening in sockets:
            listening.close()
        raise cannot_listen(error, host, port) from error
    return sockets


def _bound(listening: socket.socket, address: tuple[object, ...]) -> socket.socket:
    try:
        # on Windows, SO_REUSEADDR would let two programs listen
        listening.setsockopt(
            socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR), 1
        )
        if listening.family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


def cannot_listen(error: OSError, host: str, port: int) -> UserError:
    """Return the error for a port that the server cannot listen on."""
    if error.errno == errno.EADDRINUSE:
        return UserError(
            f"port {port} is in use, perhaps by another wrods",
            mend=f"Stop the other program, or choose another port: --port {port + 1}",
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return UserError(
            f"port {port} may not be opened by you", mend="Choose a port above 1023: --port 8000"
        )
    return UserError(f"cannot listen at {host}:{port}: {error.strerror}", mend="Check --host and --port.")


def lan_addresses() -> list[str]:
    """Return the addresses at which other computers of the network may reach this one, likeliest first."""
    addresses: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        # connecting a datagram socket sends nothing; it only selects the outgoing address
        probe.connect(("192.0.2.1", 9))
        addresses.append(probe.getsockname()[0])
    with suppress(OSError):
        addresses += [
            str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        ]
    return [
        address
        for address in dict.fromkeys(addresses)
        if not ipaddress.ip_address(address).is_loopback and address != "0.0.0.0"
    ]
