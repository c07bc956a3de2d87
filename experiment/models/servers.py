"""The server and key that a model's settings name."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from experiment.configuration import config_file, read_config
from experiment.models.engine import NotThereYet
from stimuli.errors import UserError

OPENAI_URL = "https://api.openai.com/v1"
_AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


@dataclass(frozen=True)
class ApiServer:
    """An OpenAI-compatible server."""

    base_url: str
    is_openai: bool  # whether it is OpenAI itself
    # whether it is Azure with its own URL format: deployments, and a version in each
    is_azure: bool = False
    api_version: str | None = None  # Azure's version

    @property
    def has_openai_models(self) -> bool:
        """Whether it hosts OpenAI's own models with OpenAI's parameters: OpenAI itself, or Azure."""
        return self.is_openai or self.is_azure or is_azure_host(self.base_url)

    @property
    def is_own(self) -> bool:
        """Whether it is on this machine or network, where requests cost nothing and no one else waits."""
        host = urlsplit(self.base_url).hostname or ""
        if host == "localhost" or host.endswith((".localhost", ".local")):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return "." not in host
        return address.is_loopback or address.is_private


def server_of(options: Mapping[str, object]) -> ApiServer:
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
    return ApiServer(
        base_url.rstrip("/"),
        host.endswith(".openai.com"),
        is_azure=version is not None,
        api_version=None if version is None else str(version),
    )


def is_azure_host(base_url: str) -> bool:
    """Return whether an address is one of Azure's own."""
    return (urlsplit(base_url).hostname or "").endswith(_AZURE_HOSTS)


OPENAI_KEY = "OPENAI_API_KEY"
AZURE_KEY = "AZURE_OPENAI_API_KEY"
_KEY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*_API_KEY")


def find_key(options: Mapping[str, object]) -> str | None:
    """Return the key for a model's server, or None if the server is the user's own and no key is named.

    A key in ``OPENAI_API_KEY`` is sent to OpenAI only, one in ``AZURE_OPENAI_API_KEY`` to Azure's hosts only; another server
    gets a key only if the model names it with ``key_env``, so that no study can send a key to a server of its choice unnoticed.
    """
    key_variable, server = options.get("key_env"), server_of(options)
    if key_variable is None and not server.has_openai_models:
        return None
    if key_variable is None and server.is_azure and not is_azure_host(server.base_url):
        raise UserError(
            f"api_version is given, and {server.base_url} is none of Azure's own addresses",
            mend="Name the variable that holds this server's key with key_env: AZURE_OPENAI_API_KEY goes to Azure alone.",
        )
    name = str(key_variable) if key_variable is not None else OPENAI_KEY if server.is_openai else AZURE_KEY
    if not _KEY_NAME.fullmatch(name):
        raise UserError(
            f"key_env is {name!r}; the name of a key ends in _API_KEY",
            mend="Keep the key in a variable such as MYSERVER_API_KEY and give that name.",
        )
    key = os.environ.get(name) or read_config().get("keys", {}).get(name)
    if not key:
        raise NotThereYet(
            f"there is no key: {name} is not set",
            mend=f'Set {name} in the environment, or write {name} = "…" under [keys] in {config_file()} (mode 0600).'
            + (" For your own server give base_url." if key_variable is None else ""),
        )
    return str(key).strip()
