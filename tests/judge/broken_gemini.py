"""generateContent requests broken by hand."""

from __future__ import annotations

from typing import Any

from tests.judge._broken import Broken


def _user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def _call(city: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": f"weather_{city}", "args": {"city": city}}, **more}


def _response(city: str) -> dict[str, Any]:
    return {"functionResponse": {"name": f"weather_{city}", "response": {"result": "sunny"}}}


LOOP = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [
        _user({"text": "The weather in Paris and Rome?"}),
        {"role": "model", "parts": [_call("paris", thoughtSignature="c2ln"), _call("rome")]},
        _user(_response("paris"), _response("rome")),
        {"role": "model", "parts": [{"text": "Sunny in both."}]},
        _user({"text": "Thanks."}),
    ],
}
STEP = {"model": "gemini-3-flash-preview", "contents": LOOP["contents"][:3]}
IDS = {
    "contents": [
        _user({"text": "The weather?"}),
        {"role": "model", "parts": [{"function_call": {"id": "a", "name": "weather", "args": {}}}]},
        _user({"function_response": {"id": "a", "name": "weather", "response": {"result": "sunny"}}}),
    ]
}
SEEN = {
    "contents": [_user({"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}})],
}
OPENED = {
    "model": "gemini-2.5-flash",
    "contents": [_user({"text": "Six times seven?"}), {"role": "model", "parts": [{"text": "It is"}]}],
}
OF_FUNCTION = {
    "model": "gemini-2.5-flash",
    "contents": [
        *LOOP["contents"][:2],
        {"role": "function", "parts": [_response("paris"), _response("rome")]},
    ],
}
UNEVEN = (
    "Please ensure that the number of function response parts is equal to the number of function call "
    "parts of "
    "the function call turn."
)
NO_USER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function "
    "response turn."
)
NO_CALL = "Please ensure that function response turn comes immediately after a function call turn."


def _nameless(body: dict[str, Any]) -> None:
    body["contents"][1]["parts"][0]["function_call"]["name"] = ""
    body["contents"][2]["parts"][0]["function_response"]["name"] = ""


BROKEN = [
    Broken(
        "no_contents",
        LOOP,
        lambda body: body["contents"].clear(),
        "* GenerateContentRequest.contents: contents is not specified\n",
        "langchain-google/issues/1393",
    ),
    Broken(
        "wrong_type",
        LOOP,
        lambda body: body["contents"][0]["parts"][0].update(text=5),
        "Invalid value at 'contents[0].parts[0].text' (TYPE_STRING), 5",
        "chatwise-releases/issues/536",
    ),
    Broken(
        "unknown_field",
        LOOP,
        lambda body: body["contents"][0].update(content="The weather?"),
        "Invalid JSON payload received. Unknown name \"content\" at 'contents[0]': Cannot find field.",
        "ai.nvim/issues/13",
    ),
    Broken(
        "unknown_field",
        SEEN,
        lambda body: body["contents"][0]["parts"][0].update(type="text"),
        "Invalid JSON payload received. Unknown name \"type\" at 'contents[0].parts[0]': Cannot find field.",
        "ai.nvim/issues/13",
    ),
    Broken(
        "list_for_object",
        LOOP,
        lambda body: body["contents"][2]["parts"][0]["functionResponse"].update(response=["sunny"]),
        'Invalid JSON payload received. Unknown name "response" at '
        "'contents[2].parts[0].function_response': "
        "Proto field is not repeating, cannot start list.",
        "symfony/ai/pull/2065",
    ),
    Broken(
        "unknown_role",
        LOOP,
        lambda body: body["contents"][3].update(role="assistant"),
        "Please use a valid role: user, model.",
        "one-api/issues/1385",
    ),
    Broken(
        "unknown_role",
        LOOP,
        lambda body: body["contents"].insert(0, {"role": "system", "parts": [{"text": "Be brief."}]}),
        "Please use a valid role: user, model.",
        "one-api/issues/1385",
    ),
    Broken(
        "function_role",
        OF_FUNCTION,
        lambda body: body.update(model="gemini-3.6-flash"),
        "Role 'function' is not supported. Please use a valid role: SYSTEM, SYSTEM_1, USER, ASSISTANT, "
        "DEVELOPER, "
        "CONTEXT, USER_CONTEXT, MODEL, USER.",
        "frigate/pull/24013",
    ),
    Broken(
        "no_parts",
        LOOP,
        lambda body: body["contents"][3].update(parts=[]),
        "* GenerateContentRequest.contents[3].parts: contents.parts must not be empty.\n",
        "vercel/ai/issues/3775",
    ),
    Broken(
        "part_without_data",
        SEEN,
        lambda body: body["contents"][0]["parts"].append({"thought": True}),
        "* GenerateContentRequest.contents[0].parts[2].data: required oneof field 'data' must have one "
        "initialized field\n",
        "sketch/issues/68",
    ),
    Broken(
        "part_with_two",
        SEEN,
        lambda body: body["contents"][0]["parts"][1].update(text="a cat"),
        "Invalid value at 'contents[0].parts[1]' (oneof), oneof field 'data' is already set. Cannot set "
        "'text'",
        "sub2api/issues/1045",
    ),
    Broken(
        "empty_text",
        LOOP,
        lambda body: body["contents"][3]["parts"][0].update(text=""),
        "Unable to submit request because it has an empty text parameter. Add a value to the parameter and "
        "try "
        "again. Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini",
        "openai-gemini/issues/38",
    ),
    Broken(
        "no_name",
        IDS,
        _nameless,
        "* GenerateContentRequest.contents[1].parts[0].function_call.name: Name cannot be empty.\n",
        "CLIProxyAPI/pull/2103",
    ),
    Broken(
        "call_turn_misplaced",
        LOOP,
        lambda body: body["contents"].pop(0),
        NO_USER,
        "gemini-cli/issues/11814",
    ),
    Broken(
        "call_turn_misplaced",
        LOOP,
        lambda body: body["contents"].insert(1, {"role": "model", "parts": [{"text": "Let me look."}]}),
        NO_USER,
        "gemini-cli/issues/11814",
    ),
    Broken(
        "call_turn_misplaced",
        LOOP,
        lambda body: body["contents"][1].update(role="user"),
        NO_USER,
        "gemini-cli/issues/11814",
    ),
    Broken(
        "response_turn_misplaced",
        LOOP,
        lambda body: body["contents"].pop(1),
        NO_CALL,
        "langchain/issues/27799",
    ),
    Broken(
        "response_turn_misplaced",
        LOOP,
        lambda body: body.update(contents=body["contents"][2:]),
        NO_CALL,
        "langchain/issues/27799",
    ),
    Broken(
        "uneven_responses",
        LOOP,
        lambda body: body["contents"][2]["parts"].pop(),
        UNEVEN,
        "gemini-cli/issues/16415",
    ),
    Broken(
        "uneven_responses",
        LOOP,
        lambda body: body["contents"].pop(2),
        UNEVEN,
        "gemini-cli/issues/16415",
    ),
    Broken(
        "response_of_another_function",
        LOOP,
        lambda body: body["contents"][2]["parts"][0]["functionResponse"].update(name="tool_result"),
        "Request contains an invalid argument.",
        "archestra/pull/7583",
    ),
    Broken(
        "response_of_another_id",
        IDS,
        lambda body: body["contents"][2]["parts"][0]["function_response"].update(id="b"),
        "functionResponse.id does not match functionCall.id",
        "CLIProxyAPI/issues/5199",
    ),
    Broken(
        "ends_with_model",
        OPENED,
        lambda body: body.update(model="gemini-3.7-flash"),
        "Requests ending with a model turn are not supported.",
        "pipecat/pull/5821",
    ),
    Broken(
        "missing_signature",
        STEP,
        lambda body: body["contents"][1]["parts"][0].pop("thoughtSignature"),
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
        "work "
        "correctly, and missing thought_signature may lead to degraded model performance. Additional data, "
        "function call `default_api:weather_paris` , position 2. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
        "5ire/issues/405",
    ),
]
