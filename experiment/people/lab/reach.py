"""Tries whether this computer answers at its own addresses, and names the firewall that may stand before it."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 3.0


@dataclass(frozen=True)
class Reached:
    """How an address answered; ``trouble`` is None where it did."""

    address: str
    trouble: str | None


def try_addresses(addresses: Sequence[str], port: int, authority: Path) -> list[Reached]:
    """Ask the server at each address over TLS, trusting the authority alone."""
    context = ssl.create_default_context(cafile=str(authority))
    return [Reached(address, _trouble(address, port, context)) for address in addresses]


def try_plain(addresses: Sequence[str], port: int) -> list[Reached]:
    """Ask the server at each address over plain http."""
    return [Reached(address, _trouble(address, port, None)) for address in addresses]


def _trouble(address: str, port: int, context: ssl.SSLContext | None) -> str | None:
    connection = (
        http.client.HTTPConnection(address, port, timeout=PATIENCE_S)
        if context is None
        else http.client.HTTPSConnection(address, port, timeout=PATIENCE_S, context=context)
    )
    try:
        connection.request("GET", "/robots.txt")
        status = connection.getresponse().status
    except TimeoutError:
        return f"no answer within {PATIENCE_S:g} s: a firewall seems to block port {port}"
    except ssl.SSLCertVerificationError as error:
        return f"the certificate is not valid for this address: {error.verify_message}"
    except (OSError, http.client.HTTPException) as error:
        return f"no connection: {error}"
    finally:
        connection.close()
    return None if status == 200 else f"another program answers there (HTTP {status})"


def firewall_hint(port: int) -> str | None:
    """Return what opens a port where this computer's own firewall is seen to be on, else None.

    A computer reaches itself through most firewalls, so an address that answers here may still be closed to stations.
    """
    if sys.platform == "win32":
        told = _output("netsh", "advfirewall", "show", "currentprofile", "state")
        is_on = "ON" in told.upper().split()
        mend = f"netsh advfirewall firewall add rule name=wrods dir=in action=allow protocol=TCP localport={port}"
        return f"the Windows firewall is on; run as administrator: {mend}" if is_on else None
    if sys.platform == "darwin":
        told = _output("/usr/libexec/ApplicationFirewall/socketfilterfw", "--getglobalstate")
        is_on = "enabled" in told.lower()
        return (
            "the macOS firewall is on: open System Settings, Network, Firewall, and allow Python"
            if is_on
            else None
        )
    if _output("firewall-cmd", "--state").strip() == "running":
        is_open = _output("firewall-cmd", f"--query-port={port}/tcp").strip() == "yes"
        return None if is_open else f"firewalld is on: sudo firewall-cmd --add-port={port}/tcp"
    ufw = Path("/etc/ufw/ufw.conf")
    try:
        is_on = "ENABLED=yes" in ufw.read_text("utf-8", "replace").split()
    except OSError:
        return None
    return f"ufw is on: sudo ufw allow {port}/tcp" if is_on else None


def _output(*command: str) -> str:
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
