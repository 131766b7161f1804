"""Variables of the environment in which programs look for the URL of an API.

Each is read by a program that is named beside it (2026-11-29: the clients' installed source, for others what
repositories on GitHub hold).
"""

from __future__ import annotations

from typing import NamedTuple


class Variable(NamedTuple):
    """A variable that holds the URL of an API.

    Args:
        name: Its name.
        api: The name of the API.
        path: What its programs expect behind the host, before paths of their own.
    """

    name: str
    api: str
    path: str = ""


URL_VARIABLES = (
    Variable("OPENAI_BASE_URL", "openai", "/v1"),  # the clients; Vercel's AI SDK
    Variable("OPENAI_API_BASE", "openai", "/v1"),  # LiteLLM, Aider, LangChain
    Variable("OPENAI_API_BASE_URL", "openai", "/v1"),  # Open WebUI
    Variable("ANTHROPIC_BASE_URL", "anthropic"),  # the clients, Claude Code
    Variable("ANTHROPIC_API_URL", "anthropic"),  # LangChain, which reads it first
    Variable("ANTHROPIC_API_BASE", "anthropic"),  # LiteLLM
    Variable("GOOGLE_GEMINI_BASE_URL", "gemini"),  # Google's clients, Gemini CLI
    Variable("AZURE_OPENAI_ENDPOINT", "azure"),  # OpenAI's clients: a resource has a URL of its own
    Variable("AZURE_API_BASE", "azure"),  # LiteLLM
)
"""Not among them are those of clouds that sign a request, or whose URL depends on a region."""
