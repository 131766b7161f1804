"""Mutants of what an input item of the Responses API is, and of what it is bound to."""

from __future__ import annotations

from tests.mutants.mutants import module

TESTS = "test_openai_responses.py test_openai_responses_faults.py test_openai_responses_flows.py"

RESPONSES = (
    module(
        "formats/openai_responses/read.py",
        TESTS,
        ("type_of", 'if "role" in item or "content" in item:', 'if "role" in item:'),
        ("type_of", 'return "item_reference" if as_text(item.get("id")) else ""', 'return ""'),
        ("kind_of", 'if name == "tool_search_output" and not _by_client(item):', "if False:"),
        ("call_id_of", 'if name == "tool_search_call" and not _by_client(item):', "if False:"),
        (
            "_by_client",
            'return execution == "client" if isinstance(execution, str)',
            'return execution == "client" if True',
        ),
        ("answered_id_of", 'return as_text(item.get("approval_request_id")) or ""', 'return ""'),
        (
            "call_id_of",
            'if name == "mcp_approval_request":\n'
            '        return next(complete_ids([as_text(item.get("id"))]))',
            "if False:\n        pass",
        ),
        (
            "answered_id_of",
            'as_text(item.get("call_id")) or as_text(item.get("id")) or ""',
            'as_text(item.get("call_id")) or ""',
        ),
        (
            "is_bound",
            'if name == "program_output" or is_by_program(following):',
            'if name == "program_output":',
        ),
        (
            "is_bound",
            'if name == "program_output" or is_by_program(following):',
            "if is_by_program(following):",
        ),
        ("is_bound", '    if before != "assistant":\n        return False\n', ""),
        ("is_bound", 'return type_of(item) == "item_reference"  #', "return False  #"),
        ("is_bound", '    if behind != "assistant":\n        return False\n', ""),
        ("is_bound", "return not (is_plain_message(item) and is_plain_message(following))", "return True"),
        (
            "is_bound",
            "is_plain_message(item) and is_plain_message(following)",
            "is_plain_message(following)",
        ),
        (
            "lone_reasoning",
            'while after < len(items) and type_of(items[after]) == "reasoning":',
            "while False:",
        ),
        (
            "lone_reasoning",
            'followed = kind_of(item) == "assistant"\n        elif',
            "followed = True\n        elif",
        ),
        (
            "lone_reasoning",
            'elif not followed and as_text(item.get("id")) is not None:',
            "elif not followed:",
        ),
        ("kind_of", 'item.get("call_id") is None and', ""),
        ("tool_name", '.removesuffix("_call")', ""),
    ),
    module(
        "formats/openai_responses/__init__.py",
        TESTS,
        ("OpenAIResponses.scan", "index > max(structure.kept, default=-1)", "True"),
        ("OpenAIResponses.scan", "                structure.references.add(index)\n", ""),
        ("OpenAIResponses.scan", "                structure.elsewhere = True\n", ""),
        ("OpenAIResponses.scan", "if beyond == stop and is_bound(previous, following):", "if False:"),
        ("OpenAIResponses.scan", "        self._bind_references(messages, start, stop, structure)\n", ""),
        ("OpenAIResponses.scan", "structure.dangling.update(lone_reasoning(messages, start, stop))", "pass"),
        ("OpenAIResponses.with_texts", "if item_of(part, key):", "if False:"),
        (
            "OpenAIResponses.without_calls",
            "if call_id_of(mapping_of(message)) in call_ids else message",
            "if False else message",
        ),
        ("OpenAIResponses.write_request", "if request.system is not None:", "if False:"),
        ("OpenAIResponses.write_request", 'and only["role"] == "user":', "and True:"),
        ("OpenAIResponses.with_role", "message = without_keys(mapping_of(message), _OUTPUT_KEYS)", "pass"),
        ("OpenAIResponses.with_text", "if is_output_message(entry):", "if False:"),
        ("OpenAIResponses.with_cache_control", "        if not taken:\n            return message\n", ""),
    ),
)
