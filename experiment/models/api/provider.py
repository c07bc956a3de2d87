"""A provider's files, batches and jobs, asked through the ``openai`` client: what it refuses ends the command."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from experiment.models.api.retrying import RunStopped, judge_status, said, unreached
from experiment.models.keys import find_key
from experiment.models.servers import Server, server_of


class Provider:
    """A model's server with the key to it."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.server = server_of(options)
        self.key = find_key(options, is_openai=self.server.is_openai, is_azure=self.server.is_azure)
        self.client = _client(self.server, self.key)

    def answer(self, call: Callable[[], Any], failed: str) -> Any:
        """Call the client."""
        import openai

        try:
            return call()
        except openai.APIStatusError as error:
            body = json.dumps(error.body) if isinstance(error.body, dict) else str(error)
            verdict = judge_status(error.status_code, body, error.response.headers, secret=self.key)
            raise RunStopped(
                f"{failed}: {verdict.reason}",
                mend="Give the same command again later; what was handed over stays handed over.",
            ) from error
        except openai.APIConnectionError as error:
            raise unreached(self.server.base_url, said(str(error), self.key)) from error


def _client(server: Server, key: str | None) -> Any:
    import openai

    if server.is_azure:
        return openai.AzureOpenAI(
            api_key=key, azure_endpoint=server.base_url, api_version=server.api_version, max_retries=2
        )
    return openai.OpenAI(api_key=key or "none", base_url=server.base_url, max_retries=2)
