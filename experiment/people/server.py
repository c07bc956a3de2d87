"""Puts the application on a socket: one process, many threads, and a clean end on Ctrl-C or SIGTERM."""

from __future__ import annotations

import errno
import gc
import ipaddress
import logging
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from flask import Flask
from waitress.server import create_server

from experiment.people.large_bodies import LARGEST_REQUEST, channel_for
from stimuli.errors import UserError

THREADS = 32
BACKLOG = 1024
LAST_ANSWERS_S = 5


class Server:
    """A bound server; :meth:`run` answers until it is told to stop.

    Parameters
    ----------
    app : Flask
        The application.
    host : str
        Address to listen at; ``0.0.0.0`` for every one of this computer.
    port : int
        Port, 0 for any free one.
    behind_proxy : bool
        Believe the forwarding headers of a proxy in front.

    Raises
    ------
    UserError
        The port is taken or not allowed.
    """

    def __init__(self, app: Flask, host: str, port: int, *, behind_proxy: bool = False) -> None:
        # waitress warns whenever a request waits for a thread, which is no news when many answer at once
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        try:
            self._server = create_server(
                app,
                host=host,
                port=port,
                threads=THREADS,
                backlog=BACKLOG,
                connection_limit=BACKLOG,
                channel_timeout=60,
                max_request_body_size=LARGEST_REQUEST,
                clear_untrusted_proxy_headers=not behind_proxy,
                ident=None,
            )
        except OSError as error:
            raise cannot_listen(error, host, port) from error
        self._closing = False
        for listener in dict(getattr(self._server, "map", None) or {0: self._server}).values():
            listener.channel_class = channel_for(app)
        # a name such as localhost may stand for several addresses, and waitress then has a socket for each
        listening = getattr(self._server, "effective_listen", None)
        self.port = int(listening[0][1] if listening else self._server.effective_port)

    def run(self) -> None:
        """Answer requests; on Ctrl-C or SIGTERM finish those under way and return."""
        # what was imported stays: no collection of garbage goes through it again while participants wait
        gc.collect()
        gc.freeze()
        with _sigterm_as_interrupt():
            try:
                self._server.run()
            except KeyboardInterrupt:
                pass
            except OSError:
                if not self._closing:
                    raise
            finally:
                self._server.close()

    def close(self) -> None:
        """Stop listening (from another thread: the loop of :meth:`run` ends when its sockets are gone)."""
        self._closing = True
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=LAST_ANSWERS_S)
        self._server.close()


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not in the main thread: whoever started the thread has the signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
