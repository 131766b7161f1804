"""Rules of generateContent, from Google's pages and the errors people reported.

The API reads camelCase and snake_case alike (it is protobuf's JSON), and so does the judge.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from tests.judge._rules import Body, Found, Table, entry, found, items, objects, once, text

TABLE = Table()

DATA = {
    "text",
    "inline_data",
    "file_data",
    "function_call",
    "function_response",
    "executable_code",
    "code_execution_result",
    "tool_call",
    "tool_response",
}
"""The oneof `data` of a part."""
BESIDE = {"thought", "thought_signature", "video_metadata", "media_resolution", "part_metadata"}
GEMINI_3 = re.compile(r"(models/)?gemini-([3-9]|\d\d)")
NO_PREFILL = re.compile(r"(models/)?gemini-(3\.[5-9]|[4-9]|\d\d)")
"""pipecat-ai/pipecat#5821: 2.x, 3 and 3.1 go on with a model turn at the end, later ones refuse it."""


@cache
def snake(key: str) -> str:
    """Write a key as the errors do."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower()


def snaked(part: dict[str, Any]) -> dict[str, Any]:
    """Write the keys of a part as the errors do."""
    return {snake(str(key)): value for key, value in part.items()}


class Content(NamedTuple):
    """One entry of contents."""

    at: int
    role: str
    parts: list[dict[str, Any]]
    """With snake_case keys; what is no object is left out."""

    def calls(self) -> list[dict[str, Any]]:
        """Return the function calls."""
        return [entry(part["function_call"]) for part in self.parts if "function_call" in part]

    def responses(self) -> list[dict[str, Any]]:
        """Return the function responses."""
        return [entry(part["function_response"]) for part in self.parts if "function_response" in part]


@once
def contents(request: Body) -> list[Content]:
    """Return the contents with their places."""
    return [
        Content(
            at,
            text(content.get("role")),
            [snaked(part) for _, part in objects(content.get("parts"))],
        )
        for at, content in objects(request.get("contents"))
    ]


@once
def parts(request: Body) -> Iterator[tuple[str, Content, dict[str, Any]]]:
    """Yield path, content and part."""
    for content in contents(request):
        for spot, part in enumerate(content.parts):
            yield f"contents[{content.at}].parts[{spot}]", content, part


def model(request: Body) -> str:
    """Return the model's name, if the request says one."""
    return text(request.get("model"))


@TABLE.rule(
    "* GenerateContentRequest.contents: contents is not specified\n",
    "https://github.com/langchain-ai/langchain-google/issues/1393",
)
def no_contents(request: Body) -> Iterator[Found]:
    """Something to answer."""
    if request.get("contents") in (None, [], ()):
        yield found("contents")


@TABLE.rule(
    "Invalid value at '{where}' ({expected}), {value}",
    "https://github.com/egoist/chatwise-releases/issues/536",
)
def wrong_type(request: Body) -> Iterator[Found]:
    """A value of another JSON type."""

    def wrong(path: str, value: Any, types: Any, expected: str) -> Iterator[Found]:
        if value is not None and not isinstance(value, types):
            yield found(path, expected, expected=expected, value=str(value)[:80])

    of = "type.googleapis.com/google.ai.generativelanguage.v1beta"
    yield from wrong("contents", request.get("contents"), list | tuple, f"{of}.Content")
    for at, content in enumerate(items(request.get("contents"))):
        if not isinstance(content, dict):
            yield found(f"contents[{at}]", "Content", expected=f"{of}.Content", value=str(content)[:80])
            continue
        yield from wrong(f"contents[{at}].role", content.get("role"), str, "TYPE_STRING")
        yield from wrong(f"contents[{at}].parts", content.get("parts"), list | tuple, f"{of}.Part")
        for spot, part in enumerate(items(content.get("parts"))):
            if not isinstance(part, dict):
                path = f"contents[{at}].parts[{spot}]"
                yield found(path, "Part", expected=f"{of}.Part", value=str(part)[:80])
    for path, _, part in parts(request):
        yield from wrong(f"{path}.text", part.get("text"), str, "TYPE_STRING")
        for key in ("function_call", "function_response", "inline_data", "file_data"):
            yield from wrong(f"{path}.{key}", part.get(key), dict, f"{of}.{key}")


@TABLE.rule(
    "Invalid JSON payload received. Unknown name \"{about}\" at '{where}': Cannot find field.",
    "https://github.com/gera2ld/ai.nvim/issues/13",
)
def unknown_field(request: Body) -> Iterator[Found]:
    """A key of another API: `content`, `type`, `tool_calls`."""
    for at, content in objects(request.get("contents")):
        for key in content:
            if key not in ("role", "parts"):
                yield found(f"contents[{at}]", key)
    for path, _, part in parts(request):
        for key in part:
            if key not in DATA and key not in BESIDE:
                yield found(path, key)


@TABLE.rule(
    "Invalid JSON payload received. Unknown name \"{about}\" at '{where}': Proto field is not repeating, "
    "cannot start list.",
    "https://github.com/symfony/ai/pull/2065",
)
def list_for_object(request: Body) -> Iterator[Found]:
    """Arguments and responses are objects, whatever the function returned."""
    for path, _, part in parts(request):
        for key, field in (("function_call", "args"), ("function_response", "response")):
            if isinstance(entry(part.get(key)).get(field), list | tuple):
                yield found(f"{path}.{key}", field)


@TABLE.rule("Please use a valid role: user, model.", "https://github.com/songquanpeng/one-api/issues/1385")
def unknown_role(request: Body) -> Iterator[Found]:
    """The assistant is `model`, instructions stand apart. `function` is of older models."""
    for content in contents(request):
        if content.role not in ("user", "model", "function", ""):
            yield found(f"contents[{content.at}].role", content.role)


@TABLE.rule(
    "Role 'function' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, USER, ASSISTANT, "
    "DEVELOPER, CONTEXT, USER_CONTEXT, MODEL, USER.",
    "https://github.com/blakeblackshear/frigate/pull/24013",
)
def function_role(request: Body) -> Iterator[Found]:
    """Models after 3.1 want function responses of the user."""
    for content in contents(request):
        if content.role == "function" and NO_PREFILL.match(model(request)):
            yield found(f"contents[{content.at}].role", content.role)


@TABLE.rule(
    "* GenerateContentRequest.{where}: contents.parts must not be empty.\n",
    "https://github.com/vercel/ai/issues/3775",
)
def no_parts(request: Body) -> Iterator[Found]:
    """A content has a part."""
    for at, content in objects(request.get("contents")):
        if content.get("parts") in (None, [], ()):
            yield found(f"contents[{at}].parts", text(content.get("role")))


@TABLE.rule(
    "* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field\n",
    "https://github.com/boldsoftware/sketch/issues/68",
)
def part_without_data(request: Body) -> Iterator[Found]:
    """A part holds something; a signature alone is something."""
    for path, _, part in parts(request):
        if not any(part.get(key) is not None for key in (*DATA, "thought_signature")):
            yield found(path)


@TABLE.rule(
    "Invalid value at '{where}' (oneof), oneof field 'data' is already set. Cannot set '{about}'",
    "https://github.com/Wei-Shaw/sub2api/issues/1045",
)
def part_with_two(request: Body) -> Iterator[Found]:
    """A part holds one thing."""
    for path, _, part in parts(request):
        held = [key for key in part if key in DATA and part[key] is not None]
        if len(held) > 1:
            yield found(path, held[-1])


@TABLE.rule(
    "Unable to submit request because it has an empty text parameter. Add a value to the parameter and try "
    "again. Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini",
    "https://github.com/PublicAffairs/openai-gemini/issues/38",
    elsewhere="Vertex AI and models of 2024; the Gemini API takes an empty text of 2.5 and 3 today",
)
def empty_text(request: Body) -> Iterator[Found]:
    """A text has characters, but for one that only carries a signature."""
    for path, _, part in parts(request):
        if part.get("text") == "" and not part.get("thought_signature"):
            yield found(path)


@TABLE.rule(
    "* GenerateContentRequest.{where}.name: Name cannot be empty.\n",
    "https://github.com/router-for-me/CLIProxyAPI/pull/2103",
)
def no_name(request: Body) -> Iterator[Found]:
    """Calls and responses name the function."""
    for path, _, part in parts(request):
        for key in ("function_call", "function_response"):
            if isinstance(part.get(key), dict) and not part[key].get("name"):
                yield found(f"{path}.{key}")


@once
def turns(request: Body) -> list[Content]:
    """Join neighbours that call, and neighbours that answer: golden requests do so and were accepted."""
    made: list[Content] = []
    for content in contents(request):
        last = made[-1] if made else None
        if last and last.role == content.role and same_work(last, content):
            made[-1] = last._replace(parts=[*last.parts, *content.parts])
        else:
            made.append(content)
    return made


def same_work(one: Content, other: Content) -> bool:
    """Say whether both call, or both answer."""
    return bool((one.calls() and other.calls()) or (one.responses() and other.responses()))


@TABLE.rule(
    "Please ensure that function call turn comes immediately after a user turn or after a function response "
    "turn.",
    "https://github.com/google-gemini/gemini-cli/issues/11814",
)
def call_turn_misplaced(request: Body) -> Iterator[Found]:
    """A turn that calls is the model's, and answers somebody: it neither leads nor follows the model."""
    before = ""
    for content in turns(request):
        if content.calls() and (before in ("", "model") or content.role != "model"):
            yield found(f"contents[{content.at}]", content.calls()[0].get("name"))
        before = content.role


@TABLE.rule(
    "Please ensure that function response turn comes immediately after a function call turn.",
    "https://github.com/langchain-ai/langchain/issues/27799",
)
def response_turn_misplaced(request: Body) -> Iterator[Found]:
    """A turn of responses follows the turn that called."""
    before: Content | None = None
    for content in turns(request):
        responses = content.responses()
        if responses and (before is None or not before.calls() or content.role == "model"):
            yield found(f"contents[{content.at}]", responses[0].get("name"))
        before = content


@once
def exchanges(request: Body) -> Iterator[tuple[Content, Content]]:
    """Yield each turn that calls with the turn behind it."""
    for content, after in pairwise(turns(request)):
        if content.calls():
            yield content, after


def names(made: list[dict[str, Any]]) -> Counter[str]:
    """Count the functions of calls or responses."""
    return Counter(text(one.get("name")) for one in made)


@TABLE.rule(
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn.",
    "https://github.com/google-gemini/gemini-cli/issues/16415",
)
def uneven_responses(request: Body) -> Iterator[Found]:
    """Every call of a turn is answered in the next content, and nothing else is."""
    for content, after in exchanges(request):
        if len(content.calls()) != len(after.responses()):
            yield found(f"contents[{after.at}]", ",".join(sorted(names(content.calls()))))


@TABLE.rule("Request contains an invalid argument.", "https://github.com/archestra-ai/archestra/pull/7583")
def response_of_another_function(request: Body) -> Iterator[Found]:
    """Responses carry the names of the functions called; the API says no more than this."""
    for content, after in exchanges(request):
        calls, responses = names(content.calls()), names(after.responses())
        if calls.total() == responses.total() and calls != responses:
            yield found(f"contents[{after.at}]", ",".join(sorted((responses - calls).elements())))


@TABLE.rule(
    "functionResponse.id does not match functionCall.id",
    "https://github.com/router-for-me/CLIProxyAPI/issues/5199",
)
def response_of_another_id(request: Body) -> Iterator[Found]:
    """Where both sides have ids, they are the same."""
    for content, after in exchanges(request):
        calls = [one.get("id") for one in content.calls()]
        responses = [one.get("id") for one in after.responses()]
        if len(calls) == len(responses) and all(isinstance(id_, str) and id_ for id_ in (*calls, *responses)):
            for id_ in sorted(set(responses) - set(calls)):
                yield found(f"contents[{after.at}]", id_)


@TABLE.rule(
    "Requests ending with a model turn are not supported.", "https://github.com/pipecat-ai/pipecat/pull/5821"
)
def ends_with_model(request: Body) -> Iterator[Found]:
    """Models after 3.1 continue no answer."""
    listed = contents(request)
    if listed and listed[-1].role == "model" and NO_PREFILL.match(model(request)):
        yield found("contents")


@TABLE.rule(
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
    "function call `default_api:{about}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
    "https://github.com/nanbingxyz/5ire/issues/405",
)
def missing_signature(request: Body) -> Iterator[Found]:
    """Gemini 3: the first call of every step since the user last spoke carries its signature."""
    if not GEMINI_3.match(model(request)):
        return
    listed = contents(request)
    spoken = [place for place, one in enumerate(listed) if one.role != "model" and not one.responses()]
    for content in listed[spoken[-1] if spoken else 0 :]:
        calling = [part for part in content.parts if "function_call" in part]
        if content.role == "model" and calling and not calling[0].get("thought_signature"):
            name = entry(calling[0]["function_call"]).get("name")
            yield found(f"contents[{content.at}]", name, position=content.at + 1)
