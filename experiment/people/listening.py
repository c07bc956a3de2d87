"""Sockets to listen at, the errors when one cannot be had, and the addresses at which others find this computer."""

from __future__ import annotations

import errno
import ipaddress
import socket
from contextlib import suppress

from stimuli.errors import UserError

BACKLOG = 1024


def listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen at every address of a host, all at one port; port 0 is any free one."""
    found: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            if found:
                address = (address[0], found[0].getsockname()[1], *address[2:])
            try:
                found.append(_bound(socket.socket(family, kind, protocol), address))
            except OSError as error:
                # a name such as localhost may stand for an address that this computer does not have
                if not found or error.errno == errno.EADDRINUSE:
                    raise
    except OSError as error:
        for listening in found:
            listening.close()
        raise cannot_listen(error, host, port) from error
    return found


def _bound(listening: socket.socket, address: tuple[object, ...]) -> socket.socket:
    try:
        if hasattr(
            socket, "SO_EXCLUSIVEADDRUSE"
        ):  # Windows, where SO_REUSEADDR would let two programs listen
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
    """Return what to tell a user whose port cannot be listened at."""
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
    found: list[str] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        # connecting a datagram socket sends nothing; it only chooses the outward address
        probe.connect(("192.0.2.1", 9))
        found.append(probe.getsockname()[0])
    with suppress(OSError):
        found += [str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    return [
        address
        for address in dict.fromkeys(found)
        if not ipaddress.ip_address(address).is_loopback and address != "0.0.0.0"
    ]
