"""Finds the key of an API: in the environment, or in the user's own ``config.toml``; never in a study."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from experiment.configuration import config_file, read_config
from experiment.models.servers import is_azure_host, server_of
from experiment.models.settings import NotThereYet
from stimuli.errors import UserError

OPENAI_KEY = "OPENAI_API_KEY"
AZURE_KEY = "AZURE_OPENAI_API_KEY"
_KEY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*_API_KEY")


def find_key(options: Mapping[str, object], *, is_openai: bool, is_azure: bool = False) -> str | None:
    """Return the key for a model's server, or None where the server is the user's own and no key is named.

    The key of ``OPENAI_API_KEY`` goes to OpenAI alone and that of ``AZURE_OPENAI_API_KEY`` to Azure's own hosts; another
    server gets one only when the model names it with ``key_env``, so that no study can send a key to a server of its
    choice unseen.
    """
    named = options.get("key_env")
    is_azures = not is_openai and is_azure_host(server_of(options).base_url)
    if named is None and not (is_openai or is_azure or is_azures):
        return None
    if named is None and is_azure and not is_azures:
        raise UserError(
            f"api_version is given, and {server_of(options).base_url} is none of Azure's own addresses",
            mend="Name the variable that holds this server's key with key_env: AZURE_OPENAI_API_KEY goes to Azure alone.",
        )
    name = str(named) if named is not None else OPENAI_KEY if is_openai else AZURE_KEY
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
            + (" For a server of your own give base_url." if named is None else ""),
        )
    return str(key).strip()
