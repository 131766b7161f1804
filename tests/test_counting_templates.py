"""Counts of open models: sums are held against requests rendered whole, by a real vocabulary and jinja2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment
from tokenizers import Tokenizer

from tests.chat_vocabulary import CHATML, TEMPLATES, THINKING, TURNS, chat_tokenizer, mistral_counter
from trimtab import counter_for, fit
from trimtab.counting import CountRequest, TemplateCounter, counter_from_tokenizer
from trimtab.errors import ConfigurationError, CountingError, MissingExtraError


def made(template: Any, **options: Any) -> TemplateCounter:
    """Make a counter of the shared tokenizer."""
    return counter_from_tokenizer(chat_tokenizer(), chat_template=template, **options)


def call(id: str, name: str = "search", arguments: str = '{"q": "tokens"}') -> dict[str, Any]:
    """Make a message with a call, as the wire holds it."""
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": id, "type": "function", "function": function}],
    }


def result(id: str, content: str = "nothing found") -> dict[str, Any]:
    """Make the result of a call."""
    return {"role": "tool", "tool_call_id": id, "content": content}


SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "What is a token?"}
ANSWER = {"role": "assistant", "content": "A piece of text."}
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]


def test_a_whole_request_is_what_jinja_and_the_tokenizer_say() -> None:
    """Rendered here by an environment of our own, and split by the package."""
    entries = [SYSTEM, USER, ANSWER, USER]
    text = (
        Environment(trim_blocks=True, lstrip_blocks=True)
        .from_string(CHATML)
        .render(messages=entries, tools=None, add_generation_prompt=True)
    )
    expected = len(chat_tokenizer().encode(text, add_special_tokens=False))
    counter = made(CHATML)
    assert counter.exact
    assert counter.count_whole(entries) == expected == counter.count(entries)


REQUESTS = {
    "one user": [USER],
    "system": [SYSTEM, USER, ANSWER, USER],
    "a call": [USER, call("a"), result("a")],
    "calls in a row": [SYSTEM, USER, call("a"), result("a"), call("b"), result("b", "x " * 50), ANSWER, USER],
}


@pytest.mark.parametrize("tools", [None, TOOLS], ids=["bare", "tools"])
@pytest.mark.parametrize("messages", REQUESTS.values(), ids=REQUESTS.keys())
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_sums_are_not_below_the_whole(template: str, messages: list[Any], tools: Any) -> None:
    """And above it by no more than the template treats messages differently by their place."""
    counter = made(template)
    whole = counter.count_whole(messages, tools=tools)
    # a merge over the border of system text and tools may differ by a token
    most = counter.spread_tokens * len(messages) + 1
    assert whole <= counter.count_request(CountRequest(messages, tools=tools)) <= whole + most


def test_results_of_parallel_calls_cost_what_they_do_in_one_group() -> None:
    """The template opens a group once for all results of a message."""
    calls = call("a") | {"tool_calls": [*call("a")["tool_calls"], *call("b")["tool_calls"]]}
    messages = [USER, calls, result("a"), result("b"), ANSWER, USER]
    counter = made(CHATML)
    assert counter.count(messages) == counter.count_whole(messages)


def test_sums_on_real_conversations_are_the_whole(data_dir: Path) -> None:
    """Forty recorded chats with fourteen tools, from each user on, to the token."""
    lines = (data_dir / "tau_airline_gpt4o.jsonl").read_text(encoding="utf-8").splitlines()[:40]
    tools = json.loads((data_dir / "tau_airline_gpt4o.tools.json").read_text(encoding="utf-8"))
    counter = made(CHATML)
    differences = set()
    for line in lines:
        messages = json.loads(line)["messages"]
        while messages[-1]["role"] == "assistant":
            messages.pop()
        for start in [at for at, message in enumerate(messages) if message["role"] == "user"][:2]:
            window = [*messages[:1], *messages[start:]]
            whole = counter.count_whole(window, tools=tools)
            differences.add(counter.count_request(CountRequest(window, tools=tools)) - whole)
    assert differences <= {0, 1}


def test_a_fitted_request_rendered_whole_is_within_its_limit() -> None:
    """What the server is charged, not only the sum."""
    messages = [SYSTEM]
    for at in range(60):
        messages += [USER, call(f"c{at}"), result(f"c{at}", f"found {at} " * (at % 7)), ANSWER]
    messages.append(USER)
    counter = made(THINKING)
    for limit in (120, 333, 1_000):
        fitted = fit(messages, limit, counter=counter, tools=TOOLS)
        assert len(fitted.messages) < len(messages)
        assert counter.count_whole(fitted.messages, tools=TOOLS) <= limit


def test_a_margin_is_said() -> None:
    """A token where sums were exact, more where the template treats messages by their place."""
    assert made(CHATML).margin_tokens(10_000) == 1
    assert made(THINKING).margin_tokens(10_000) == 301


def test_reasoning_costs_the_most_it_may() -> None:
    """The template shows it in the turn that goes on, and drops it later."""
    counter = made(THINKING)
    thought = call("a") | {"reasoning_content": "long thoughts " * 40}
    plain = counter.count_message(call("a"))
    assert counter.count_message(thought) >= plain + 80
    in_turn = [USER, thought, result("a")]
    assert counter.count(in_turn) >= counter.count_whole(in_turn)
    assert counter.count_whole([*in_turn, ANSWER, USER]) < counter.count_whole(in_turn)


def test_the_other_names_of_reasoning_are_known() -> None:
    """Servers write `reasoning`; the template reads `reasoning_content`."""
    counter = made(THINKING)
    named = [call("a") | {key: "long thoughts " * 40} for key in ("reasoning", "reasoning_content")]
    assert counter.count_message(named[0]) == counter.count_message(named[1])


def test_what_the_template_refuses_is_an_error_in_its_words() -> None:
    """Where it refuses for good; a window without a user is counted by its sum."""
    turns = made(TURNS, variables={"bos_token": "<|endoftext|>"}, name="turns")
    with pytest.raises(CountingError, match="turns refused the messages: Role system not supported"):
        turns.count([SYSTEM, USER])
    with pytest.raises(CountingError, match="No tools here"):
        turns.count_request(CountRequest([USER], tools=TOOLS))
    with pytest.raises(CountingError, match=r"message 1: .*Role tool not supported") as caught:
        turns.count([USER, result("a")])
    assert caught.value.index == 1
    thinking = made(THINKING)
    assert thinking.count([ANSWER]) > 0
    with pytest.raises(CountingError, match="No user query found"):
        thinking.count_whole([ANSWER])


def test_users_and_answers_in_turns_are_counted_in_turns() -> None:
    """The template refuses two users in a row, so each is measured behind an answer."""
    counter = made(TURNS, variables={"bos_token": "<|endoftext|>"})
    messages = [USER, ANSWER, USER]
    assert counter.count(messages) == counter.count_whole(messages)
    assert counter.count_whole(messages) - made(TURNS).count_whole(messages) == 1, "bos_token is a variable"


def test_arguments_null_content_and_parts_are_as_the_template_takes_them() -> None:
    """Found by trial: the arguments are in the count, however the template wants them."""
    long = call("a", arguments=json.dumps({"q": "one two three four five six"}))
    for template in TEMPLATES.values():
        counter = made(template)
        assert counter.count_message(long) >= counter.count_message(call("a")) + 5
        assert counter.count_whole([USER, long, result("a")]) >= counter.count_whole(
            [USER, call("a"), result("a")]
        )


def test_arguments_that_are_no_json_are_counted_as_they_are() -> None:
    """A model may break off in the middle."""
    assert made(CHATML).count_message(call("a", arguments='{"q": "tok')) > 0


def test_special_tokens_in_a_text_cost_whichever_is_more() -> None:
    """One token to a server that lets them act, several to one that does not."""
    counter = made(CHATML)
    assert len(chat_tokenizer().encode("<|im_end|>", add_special_tokens=False)) == 1
    as_text = counter_for("gpt-4").count_text("<|im_end|>")
    assert counter.count_text("<|im_end|>") >= as_text > 1
    plain, odd = (counter.count([{"role": "user", "content": text}]) for text in ("a", "a<|im_end|>"))
    assert odd - plain >= as_text
    whole = counter.count_whole([{"role": "user", "content": "a<|im_end|>"}])
    assert whole == plain + 1, "the whole is what a server counts"


def test_system_text_apart_and_tools_of_other_forms_are_rendered() -> None:
    """As the leading system message; a schema under `input_schema` is a function's."""
    counter = made(CHATML)
    assert counter.count_request(CountRequest([USER], system="Be brief.")) == counter.count([SYSTEM, USER])
    bare = [{"name": "search", "input_schema": {"type": "object"}}]
    assert counter.count_request(CountRequest([USER], tools=bare)) == counter.count_request(
        CountRequest([USER], tools=TOOLS)
    )
    assert counter.count_request(CountRequest([USER], extra={"functions": TOOLS})) > counter.count([USER])


def test_another_wire_form_costs_what_chat_does() -> None:
    """Two calls of one Anthropic message, and both results in one user's message."""
    calls = call("a") | {"tool_calls": [*call("a")["tool_calls"], *call("b")["tool_calls"]]}
    chat = [USER, calls, result("a"), result("b")]
    uses = [{"type": "tool_use", "id": id, "name": "search", "input": {"q": "tokens"}} for id in "ab"]
    results = [{"type": "tool_result", "tool_use_id": id, "content": "nothing found"} for id in "ab"]
    messages = [USER, {"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    for counter in (made(CHATML), mistral_counter()):
        expected = counter.count_request(CountRequest(chat, system="Be brief."))
        found = counter.with_format("anthropic").count_request(CountRequest(messages, system="Be brief."))
        assert expected <= found <= expected + 3


def test_unknown_keys_and_images_cost_something() -> None:
    """No template has a place for them; a server may."""
    counter = made(CHATML)
    image = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
    with_image = {"role": "user", "content": [{"type": "text", "text": USER["content"]}, image]}
    assert counter.count_message(with_image) > counter.count_message(USER) + 80
    assert counter.count_message(USER | {"mood": "curious"}) > counter.count_message(USER)


def test_text_parts_are_joined_by_line_ends() -> None:
    """As vLLM joins them for a template that takes texts."""
    parts = {"role": "user", "content": [{"type": "text", "text": text} for text in ("one", "two")]}
    counter = made(CHATML)
    assert counter.count_message(parts) == counter.count_message({"role": "user", "content": "one\ntwo"})


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A folder as the hub keeps models, without a template."""
    folder = tmp_path / "acme-8b"
    folder.mkdir()
    (folder / "tokenizer.json").write_text(chat_tokenizer().to_str(), encoding="utf-8")
    config = {"bos_token": {"content": "<|endoftext|>", "lstrip": False}, "eos_token": "<|im_end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_a_folder_of_a_model_is_read(model_folder: Path) -> None:
    """Its template may be a file, or in the configuration, alone or in a list by name; so are its tokens."""
    with pytest.raises(ConfigurationError, match="acme-8b has no chat template"):
        counter_from_tokenizer(model_folder)
    (model_folder / "chat_template.jinja").write_text(TURNS, encoding="utf-8")
    by_file = counter_from_tokenizer(model_folder)
    assert by_file.name == "acme-8b"
    assert by_file.count([USER]) == made(TURNS, variables={"bos_token": "<|endoftext|>"}).count([USER])
    (model_folder / "chat_template.jinja").unlink()
    config = model_folder / "tokenizer_config.json"
    written = json.loads(config.read_text(encoding="utf-8"))
    named = [{"name": "default", "template": TURNS}, {"name": "tool_use", "template": CHATML}]
    for template, same in ((TURNS, by_file), (named, made(CHATML))):
        config.write_text(json.dumps(written | {"chat_template": template}), encoding="utf-8")
        assert counter_from_tokenizer(model_folder / "tokenizer.json").count([USER]) == same.count([USER])


def test_truncation_in_the_file_cuts_no_count(model_folder: Path) -> None:
    """Some models ship a tokenizer.json that cuts at 512 tokens; the caller's object stays as it was."""
    tokenizer = type(chat_tokenizer()).from_str(chat_tokenizer().to_str())
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=64)
    counter = counter_from_tokenizer(tokenizer, chat_template=CHATML)
    assert counter.count_text("word " * 100) > 100
    assert counter.count_text("word") == 1
    assert tokenizer.truncation is not None


class Rendering:
    """What of a tokenizer of transformers is used; the real one is a megabyte-large dependency of tests.

    Checked against transformers 5.23 by hand (2026-11-22): six models, equal to the token.
    """

    name_or_path = "/models/acme-8b"

    @property
    def backend_tokenizer(self) -> Tokenizer:
        """The tokenizer inside it."""
        return chat_tokenizer()

    def apply_chat_template(self, conversation: Any, *, tools: Any = None, **options: Any) -> str:
        """Render the template given, or its own."""
        assert options.pop("tokenize") is False
        template = options.pop("chat_template") or CHATML
        environment = Environment(trim_blocks=True, lstrip_blocks=True)
        return environment.from_string(template).render(messages=conversation, tools=tools, **options)


def test_a_tokenizer_of_transformers_renders_itself() -> None:
    """Its own template, rendered by its own method, split by the tokenizer inside it."""
    counter = counter_from_tokenizer(Rendering())
    assert counter.name == "acme-8b"
    for messages in REQUESTS.values():
        assert counter.count_request(CountRequest(messages, tools=TOOLS)) == made(CHATML).count_request(
            CountRequest(messages, tools=TOOLS)
        )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("no/such/folder", "trimtab downloads nothing"),
        (object(), "counter_from_text"),
        (len, "counter_from_text"),
    ],
)
def test_what_is_no_tokenizer_is_an_error(given: Any, says: str) -> None:
    """With what to pass instead."""
    with pytest.raises(ConfigurationError, match=says):
        counter_from_tokenizer(given)


def test_a_file_that_is_no_tokenizer_is_an_error(tmp_path: Path) -> None:
    """Not the package's own exception."""
    file = tmp_path / "tokenizer.json"
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="cannot be read as a tokenizer"):
        counter_from_tokenizer(file, chat_template=CHATML)
    file.write_text(chat_tokenizer().to_str(), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="is not JSON"):
        counter_from_tokenizer(tmp_path, chat_template=CHATML)


@pytest.mark.parametrize("template", ["{% if %}", 7, [], {"default": 1}, [{"name": "default"}]])
def test_what_is_no_template_is_an_error(template: Any) -> None:
    """When the counter is made."""
    with pytest.raises(ConfigurationError, match="chat template"):
        made(template)


def test_a_template_cannot_reach_out_of_its_sandbox() -> None:
    """Model files are other people's code."""
    with pytest.raises(CountingError, match="refused the messages: access to attribute"):
        made("{{ messages.__class__.__mro__ }}")
    with pytest.raises(CountingError, match="refused the messages"):
        made("{{ messages.append(1) }}")


def test_a_template_may_know_the_date_and_leave_loops() -> None:
    """What Hugging Face gives templates is there."""
    extras = (
        "{{ strftime_now('%Y') }}{% for message in messages %}{% if loop.first %}{% continue %}{% endif %}"
        "{{ message.content }}{% endfor %}"
    )
    counter = made(extras)
    year_tokens = counter.count_text("2026")
    assert counter.count_whole([USER, USER]) == year_tokens + counter.count_text(USER["content"])


def test_without_the_package_the_install_line_is_said(
    model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One extra brings both packages."""
    import sys

    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'trimtab\[tokenizers\]'"):
        counter_from_tokenizer(model_folder, chat_template=CHATML)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'trimtab\[tokenizers\]'"):
        made(CHATML)


def test_counts_are_remembered_and_can_be_forgotten() -> None:
    """A message is rendered once."""
    rendered = 0

    class Counting(Rendering):
        def apply_chat_template(self, conversation: Any, *, tools: Any = None, **options: Any) -> str:
            nonlocal rendered
            rendered += 1
            return super().apply_chat_template(conversation, tools=tools, **options)

    counter = counter_from_tokenizer(Counting())
    first = counter.count([USER, ANSWER, USER])
    before = rendered
    assert counter.count([USER, ANSWER, USER]) == first
    assert rendered == before
    counter.clear()
    assert counter.count([USER, ANSWER, USER]) == first
    assert rendered > before


def test_a_template_file_that_is_no_text_and_variables_that_are_no_mapping_are_refused(
    model_folder: Path,
) -> None:
    """Not with an error of the codec's, and not where a template is rendered."""
    (model_folder / "chat_template.jinja").write_bytes(b"\xff\xfe{{ x }}")
    with pytest.raises(ConfigurationError, match=r"chat_template\.jinja"):
        counter_from_tokenizer(model_folder)
    with pytest.raises(ConfigurationError, match="variables"):
        counter_from_tokenizer(model_folder, chat_template=TURNS, variables=5)  # type: ignore[arg-type]
