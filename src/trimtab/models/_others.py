"""Models of Mistral and of others whose windows are documented."""

from __future__ import annotations

from dataclasses import replace

from trimtab.models._facts import Framing, Margin, ModelFacts

__all__ = ["ALIASES", "ROWS"]

_CHECKED = "2026-11-22"

# Tekken makes 1.13 times o200k's tokens of 6,567 real messages (2026-11).
_FRAMING = Framing(
    per_request_tokens=1,
    per_message_tokens=2,
    roles_counted=False,
    tools_style="json",
    tools_tokens=2,
    tools_saved_by_system_tokens=0,
)


# Begins each request with {"reasoning_effort": "none"}, in brackets: 12 tokens (billed, 2026-11).
_SETTINGS = replace(_FRAMING, per_request_tokens=13)


def _mistral(name: str, window_tokens: int | None, page: str, framing: Framing = _FRAMING) -> ModelFacts:
    return ModelFacts(
        name=name,
        provider="mistral",
        window_tokens=window_tokens,
        encoding="tekken",
        near_encoding="o200k_base",
        text_factor=1.13,
        exact=True,
        framing=framing,
        margin=Margin(tokens=8, per_mille=150),
        source="https://docs.mistral.ai/models/" + page,
        checked=_CHECKED,
    )


def _window(name: str, provider: str, window_tokens: int, output_tokens: int, source: str) -> ModelFacts:
    return ModelFacts(
        name=name,
        provider=provider,
        window_tokens=window_tokens,
        output_tokens=output_tokens,
        source=source,
        checked=_CHECKED,
    )


_DEEPSEEK = "https://api-docs.deepseek.com/quick_start/pricing"
_ZAI = "https://docs.z.ai/guides/overview/pricing"

ROWS = (
    _mistral("mistral-large-latest", 262_144, "mistral-large-3-25-12"),
    _mistral("mistral-medium-latest", 262_144, "model-cards/mistral-medium-3-5-26-04"),
    _mistral("mistral-small-latest", 262_144, "model-cards/mistral-small-4-0-26-03", _SETTINGS),
    _mistral("codestral-latest", 128_000, "model-cards/codestral-25-08"),
    _mistral("magistral-medium-latest", None, "overview"),
    _mistral("ministral-8b-latest", None, "overview"),
    _window("deepseek-chat", "deepseek", 131_072, 8_192, _DEEPSEEK),
    _window("deepseek-reasoner", "deepseek", 131_072, 65_536, _DEEPSEEK),
    _window("glm-4.7", "z.ai", 200_000, 128_000, _ZAI),
    _window("glm-5", "z.ai", 200_000, 128_000, _ZAI),
    _window("glm-5.2", "z.ai", 1_000_000, 128_000, _ZAI),
)

ALIASES = {
    "mistral-large-2512": "mistral-large-latest",
}
"""What "latest" stands for."""
