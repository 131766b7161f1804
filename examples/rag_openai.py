"""Questions about this project's documents: what a request may hold is said by examples/policy.toml."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from openai import OpenAI

from trimtab.policy import load_policy

HERE = Path(__file__).parent
POLICY = load_policy(HERE / "policy.toml")  # read once; each request fills a copy of it
CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Ask me."}]


def found(question: str) -> list[str]:
    """Return the sections that share words with a question, best first."""
    words = set(re.findall(r"\w{4,}", question.lower()))
    pages = [page.read_text(encoding="utf-8") for page in (HERE.parent / "docs").rglob("*.md")]
    sections = [section for page in pages for section in page.split("\n## ")]
    return sorted(sections, key=lambda text: -len(words & set(re.findall(r"\w{4,}", text.lower()))))[:8]


def main(question: str) -> None:
    """Answer a question from the documents."""
    request = POLICY.clone().replace("system", "Answer from the documents, or say that they do not tell.")
    request.replace("documents", found(question)).replace("history", CHAT).replace("question", question)
    fitted = request.fit()
    answer = OpenAI().chat.completions.create(model="gpt-4o", messages=fitted.messages)
    print(answer.choices[0].message.content)
    for block in fitted.report.blocks:
        print(f"{block.name:10} {block.tokens_after:6,} tokens: {', '.join(block.actions)}")


if __name__ == "__main__":
    main(sys.argv[1])
