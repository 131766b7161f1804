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
            "assistant| dated name| ends with assistant| ends with user| frequency_penalty| logprobs| "
            "max_tokens| n| name without a date| parallel_tool_calls False| presence_penalty| seed| "
            "several tools| stream| stream_options of no type| stream_options.include_usage| system| "
            "system after nothing| temperature| tool| tool, inner type integer| tool, inner type string| "
            "tool, its description| tool, its function| tool, its name| tool, its parameters| "
            "tool, its type| tool, property description| tool, property enum| tool, property items| "
            "tool, property title| tool, property type array| tool, property type boolean| "
            "tool, property type integer| tool, property type string| tool, schema properties| "
            "tool, schema required| tool, schema type object| tool_choice auto| tool_choice function| "
            "tool_choice required| tool_choice.function| tool_choice.type| "
            "tools or schema behind a mark of system text| top_p| user| user: image, detail not given| "
            "user: text as a part| "
        ),
    ),
    (
        "openai_chat",
        ("gpt-4.1 gpt-4.1-mini gpt-4.1-nano gpt-4o gpt-4o-mini "),
        (
            "assistant| assistant after assistant| assistant: call| assistant: name| assistant: no text| "
            "assistant: several texts| assistant: text as a part| dated name| developer| "
            "developer after nothing| empty text| ends with assistant| ends with tool| ends with user| "
            "frequency_penalty| host azure| host openrouter| max_completion_tokens| max_tokens| "
            "name without a date| parallel_tool_calls False| presence_penalty| "
            "response_format json_object| response_format json_schema| "
            "response_format, property description| response_format, property type string| "
            "response_format, schema properties| response_format, schema type object| "
            "response_format.json_schema| response_format.type| stop| stream| stream_options of no type| "
            "stream_options.include_usage| system| system after assistant| system after nothing| "
            "temperature| tool| tool, inner type integer| tool, its description| tool, its function| "
            "tool, its name| tool, its parameters| tool, its type| tool, property default| "
            "tool, property description| tool, property enum| tool, property items| tool, property title| "
            "tool, property type array| tool, property type boolean| tool, property type integer| "
            "tool, property type string| tool, schema additionalProperties| tool, schema properties| "
            "tool, schema required| tool, schema type object| tool: result| tool_choice auto| "
            "tool_choice function| tool_choice required| tool_choice.function| tool_choice.type| "
            "tools or schema behind a mark of system text| top_p| user| user after user| "
            "user: image, detail auto| user: name| user: name that is its role| user: no text| "
            "user: text as a part| "
        ),
    ),
    (
        "openai_chat",
        ("gpt-5 gpt-5-mini gpt-5-nano gpt-5.4 gpt-5.4-mini "),
        (
            "assistant| assistant: call| assistant: no text| assistant: text as a part| dated name| "
            "empty text| ends with assistant| ends with tool| ends with user| host azure| "
            "host openrouter| logprobs| max_completion_tokens| name without a date| reasoning_effort| "
            "response_format json_schema| response_format, property type string| "
            "response_format, schema additionalProperties| response_format, schema description| "
            "response_format, schema properties| response_format, schema required| "
            "response_format, schema type object| response_format.json_schema| response_format.type| "
            "seed| service_tier| several tools| stream| stream_options of no type| "
            "stream_options.include_usage| system| system after nothing| tool| tool, its description| "
            "tool, its function| tool, its name| tool, its parameters| tool, its type| "
            "tool, property description| tool, property type string| tool, schema additionalProperties| "
            "tool, schema properties| tool, schema required| tool, schema type object| tool: result| "
            "tool_choice auto| tool_choice function| tool_choice.function| tool_choice.type| "
            "tools or schema behind a mark of system text| user| user: text as a part| "
        ),
    ),
    (
        "openai_chat",
        ("o3 o3-mini o4-mini "),
        (
            "assistant| dated name| ends with user| host openrouter| name without a date| "
            "reasoning_effort| stream| stream_options of no type| stream_options.include_usage| user| "
        ),
    ),
    (
        "openai_responses",
        ("o3-mini o4-mini "),
        (
            "ends with user| max_output_tokens| name without a date| reasoning of no type| "
            "reasoning.effort| reasoning.summary| user| "
        ),
    ),
)
