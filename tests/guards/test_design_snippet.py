"""The snippet of the design's public surface runs, as far as what it uses exists."""

from __future__ import annotations

from pathlib import Path


def test_the_front_door_fits_and_validates() -> None:
    """The lines of `fit` and `validate`, word for word."""
    from trimtab import fit, validate

    messages = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello! How can I help?"},
        {"role": "user", "content": "What is a token?"},
    ]

    fitted = fit(messages, budget=8_192, model="gpt-4o")
    assert [mine is yours for mine, yours in zip(fitted.messages, messages, strict=True)] == [True] * 4
    assert fitted.report is not None

    violations = validate(messages, format="openai_chat")
    assert list(violations) == []


def test_budgets_and_strategies_of_the_snippet_can_be_made() -> None:
    """`Budget(128_000, output_reserve=4_096)`, `Strict()`, `Drop()` and `SlidingWindow()`, word for word."""
    from trimtab import Budget, Drop, SlidingWindow, Strict

    assert Budget(128_000, output_reserve=4_096).input_tokens == 123_904
    assert (Strict().name, Drop().name, SlidingWindow().name) == ("strict", "drop", "sliding_window")


def test_a_context_is_filled_and_fitted() -> None:
    """The lines of `Context`, word for word."""
    from trimtab import Budget, Context, Drop, Strict

    facts, documents = "The user is called Ada.", ["Tea is a drink.", "Coffee is another."]
    history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]
    question = "What is tea?"

    context = Context(Budget(128_000, output_reserve=4_096), model="gpt-4o")
    context.add("system", "You are a helpful assistant.", priority=100, strategy=Strict())
    context.add("facts", facts, priority=90)
    context.add("documents", documents, priority=40, max_ratio=0.4, strategy=Drop())
    context.add("history", history, priority=50, min_ratio=0.2)
    context.add("question", question, priority=95, strategy=Strict())
    fitted = context.fit()

    assert [message["role"] for message in fitted.messages] == ["system", *["user"] * 4, "assistant", "user"]
    assert fitted.messages[4] is history[0]
    assert fitted.report.fits


def test_a_session_is_kept_in_a_file(tmp_path: Path) -> None:
    """The lines of `Session`, word for word but for the folder."""
    from trimtab import Session
    from trimtab.stores import SQLiteStore

    chats, summarize = str(tmp_path / "chats.db"), len
    session = Session(
        budget=8_192,
        system="…",
        summarizer=lambda m: f"{summarize(m)}",
        store=SQLiteStore(chats),
        id="user-1",
    )
    session.add({"role": "user", "content": "Hello"})

    assert [message["content"] for message in session.messages()] == ["…", "Hello"]
    assert [event.message["content"] for event in list(session.history())] == ["Hello"]
