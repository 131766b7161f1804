"""The look of all pages: type, spacing and colour of inspector, report, replay page and notebooks.

Write `var(--NAME)` in a page's own style; no page has a colour or a size of letters of its own.

* Letters: `--sans` for all that is read, `--mono` for what is written for a machine.
* Sizes of letters: `--text` to read, `--text-small` beside it, `--text-large` over a part (h2),
  `--text-title` over a page (h1), `--text-figure` for the number one came for. `--strong` is the weight of
  what is read first.
* Room between things: `--space-1` to `--space-6`, which are 4, 8, 12, 16, 24 and 40 px.
* Shapes: `--radius` of corners, `--page` the width of a page of text, `--bar` the height of a bar.
* Paper: `--back` the page, `--card` a box on it, `--line` a border, `--ink` words, `--soft` words beside.
* What one can press: `--accent` links, the focus, the one button that counts; `--on-accent` words on it.
* Verdicts: `--good` it fits, `--bad` it does not, `--warn` look here.
* What became of a message: `--kept`, `--pinned`, `--changed`, `--summarized`, `--evicted`, `--inserted`;
  `--beside` takes room and is no message.
* Things that are only told apart, as blocks of a budget or policies of a chart: `--series-1` to
  `--series-8`.

Each colour is given for a light and a dark page, and stands as words (at 4.5 to 1) on `--back` and `--card`.
The light ones can still be seen as bars (at 3 to 1) on black: a notebook may be dark and not say so. Nothing
is said by a colour alone. A phone is a page of at most `40rem`, which a style has to write out.
"""

from __future__ import annotations

__all__ = ["PAGE_TOKENS", "PART_TOKENS", "SERIES"]

SERIES = 8
"""Colours of things that are only told apart; of more of them, colours come again."""

_SCALE = """
--sans: system-ui, -apple-system, "Segoe UI", sans-serif;
--mono: ui-monospace, "SF Mono", Menlo, Consolas, monospace;
--text: max(15px, .9375rem); --text-small: max(13px, .8125rem); --text-large: max(17px, 1.0625rem);
--text-title: max(22px, 1.375rem); --text-figure: max(28px, 1.75rem); --strong: 600;
--space-1: 4px; --space-2: 8px; --space-3: 12px; --space-4: 16px; --space-5: 24px; --space-6: 40px;
--radius: 6px; --page: 64rem; --bar: 12px;
""".strip()

_COLOURS = """
--accent: light-dark(#0b6e99, #7cc7e8); --on-accent: light-dark(#ffffff, #10222b);
--good: light-dark(#1a7f4b, #63d297); --bad: light-dark(#c0273f, #ff8f9e);
--warn: light-dark(#8f6000, #e5b25d);
--kept: light-dark(#1b7a6e, #5fc7b8); --pinned: light-dark(#2c6f8a, #8fd0ea);
--changed: light-dark(#9a6700, #e5b25d); --summarized: light-dark(#7a4fc4, #bfa5ea);
--evicted: light-dark(#6a7180, #a8b0bd); --inserted: light-dark(#1d5fd1, #8fb8ff);
--beside: light-dark(#6a7180, #a8b0bd);
--series-1: light-dark(#0b6e99, #62bce2); --series-2: light-dark(#b54e06, #f2a463);
--series-3: light-dark(#2f7d32, #7fc983); --series-4: light-dark(#7a4fc4, #c3a2f2);
--series-5: light-dark(#be2d5a, #f488aa); --series-6: light-dark(#866800, #d9bd4e);
--series-7: light-dark(#0f766e, #5ad1c4); --series-8: light-dark(#566275, #a6b3c6);
""".strip()

_OWN_PAPER = """
--back: light-dark(#ffffff, #1a1817); --card: light-dark(#f7f6f5, #24211f);
--line: light-dark(#d6d3d1, #47423e);
--soft: light-dark(#57534e, #b5b0ab); --ink: light-dark(#1c1917, #e9e7e5);
""".strip()

_PAPER_OF_OTHERS = """
--back: transparent; --card: color-mix(in srgb, currentColor 5%, transparent);
--line: color-mix(in srgb, currentColor 22%, transparent);
--soft: color-mix(in srgb, currentColor 78%, transparent); --ink: currentColor;
""".strip()

PAGE_TOKENS = f":root {{ color-scheme: light dark;\n{_SCALE}\n{_COLOURS}\n{_OWN_PAPER} }}"
"""Of a page of our own."""
PART_TOKENS = f""".trimtab {{
{_SCALE}
{_COLOURS}
{_PAPER_OF_OTHERS} }}
[data-jp-theme-light="true"] .trimtab, .vscode-light .trimtab {{ color-scheme: light }}
[data-jp-theme-light="false"] .trimtab, .vscode-dark .trimtab, html[theme="dark"] .trimtab
{{ color-scheme: dark }}"""
"""Of what stands in a page of others, as a notebook: words have their colour; dark is what they call so."""
