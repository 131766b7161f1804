"""Features of requests whose bills came out exact, by wire form and family of models.

Made by `make accuracy ACCURACY="--quick --write-features"` from recorded bills: what stands here stood in a
request that was billed as counted, and no bill of a request with nothing but these was not. It holds no
recorded text.
"""

from __future__ import annotations

EXACT: tuple[tuple[str, str, str], ...] = (
    (
        "openai_chat",
        ("gpt-3.5-turbo gpt-4 gpt-4-turbo "),
        (
            "assistant| ends with assistant| ends with user| frequency_penalty| logprobs| max_tokens| n| "
            "name without a date| presence_penalty| seed| stream| stream_options of no type| "
            "stream_options.include_usage| system| system after nothing| temperature| tool| "
            "tool, its description| tool, its function| tool, its name| tool, its parameters| "
            "tool, its type| tool, property type string| tool, schema properties| "
            "tool, schema type object| top_p| user| user: image, detail not given| user: text as a part| "
        ),
    ),
    (
        "openai_chat",
        ("gpt-4.1 gpt-4.1-mini gpt-4.1-nano gpt-4o gpt-4o-mini "),
        (
            "assistant| assistant after assistant| assistant: call| assistant: no text| "
            "assistant: several texts| assistant: text as a part| dated name| developer| "
            "developer after nothing| empty text| ends with assistant| ends with tool| ends with user| "
            "frequency_penalty| host azure| host openrouter| max_completion_tokens| max_tokens| "
            "name without a date| presence_penalty| stop| stream| stream_options of no type| "
            "stream_options.include_usage| system| system after assistant| system after nothing| "
            "temperature| tool| tool, its description| tool, its function| tool, its name| "
            "tool, its parameters| tool, its type| tool, property type string| tool, schema properties| "
            "tool, schema required| tool, schema type object| tool: name| tool: result| top_p| user| "
            "user after user| user: image, detail auto| user: no text| user: text as a part| "
        ),
    ),
    (
        "openai_chat",
        ("gpt-5 gpt-5-mini gpt-5-nano gpt-5.4 gpt-5.4-mini o3 o3-mini o4-mini "),
        (
            "assistant| assistant: call| assistant: no text| dated name| ends with user| "
            "reasoning_effort| several tools| system| system after user| tool| tool, inner type string| "
            "tool, its description| tool, its function| tool, its name| tool, its parameters| "
            "tool, its strict| tool, its type| tool, property description| tool, property items| "
            "tool, property type array| tool, property type string| tool, schema additionalProperties| "
            "tool, schema properties| tool, schema required| tool, schema type object| tool: result| "
            "tool_choice auto| tool_choice none| user| user: image, detail not given| user: no text| "
            "user: text as a part| "
        ),
    ),
)
