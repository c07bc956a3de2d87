"""Reads which server a model's settings mean."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from stimuli.errors import UserError

OPENAI_URL = "https://api.openai.com/v1"
_AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


@dataclass(frozen=True)
class Server:
    """An OpenAI-compatible server."""

    base_url: str
    is_openai: bool  # whether it is OpenAI itself
    # whether it is Azure with its own form of addresses: deployments, and a version in each
    is_azure: bool = False
    api_version: str | None = None  # azure's version

    @property
    def has_openai_models(self) -> bool:
        """Whether OpenAI's own models answer there, with OpenAI's own set of parameters: OpenAI itself, or Azure."""
        return self.is_openai or self.is_azure or is_azure_host(self.base_url)

    @property
    def is_own(self) -> bool:
        """Whether it is on this machine or in this network, where requests cost nothing and no one else waits."""
        host = urlsplit(self.base_url).hostname or ""
        if host == "localhost" or host.endswith((".localhost", ".local")):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return "." not in host
        return address.is_loopback or address.is_private


def server_of(options: Mapping[str, object]) -> Server:
    """Return the server under ``base_url``, else the one in the variable ``OPENAI_BASE_URL``, else OpenAI."""
    base_url = str(options.get("base_url") or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)
    address = urlsplit(base_url)
    if address.scheme not in ("http", "https"):
        raise UserError(
            f"base_url {base_url!r} is no web address", mend="It begins with http:// or https://."
        )
    if "@" in address.netloc:
        raise UserError(
            f"base_url holds a user name or password for {address.hostname}",
            mend="Take it out; name the variable that holds the server's key with key_env.",
        )
    version = options.get("api_version")
    host = address.hostname or ""
    if address.scheme == "http" and (host.endswith(".openai.com") or is_azure_host(base_url)):
        raise UserError(
            f"base_url {base_url!r} would send the key in the open", mend="It begins with https:// there."
        )
    return Server(
        base_url.rstrip("/"),
        host.endswith(".openai.com"),
        is_azure=version is not None,
        api_version=None if version is None else str(version),
    )


def is_azure_host(base_url: str) -> bool:
    """Whether an address is one of Azure's own."""
    return (urlsplit(base_url).hostname or "").endswith(_AZURE_HOSTS)
