"""Mutants of what an input item of the Responses API is, and of what it is bound to."""

from __future__ import annotations

from tests.mutants.mutants import module

TESTS = "test_openai_responses.py test_openai_responses_faults.py test_openai_responses_flows.py"

RESPONSES = (
    module(
        "formats/openai_responses/read.py",
        TESTS,
        ('if "role" in item or "content" in item:', 'if "role" in item:'),
        ('return "item_reference" if as_text(item.get("id")) else ""', 'return ""'),
        ('if name == "tool_search_output" and not _by_client(item):', "if False:"),
        ('if name == "tool_search_call" and not _by_client(item):', "if False:"),
        (
            'return execution == "client" if isinstance(execution, str)',
            'return execution == "client" if True',
        ),
        ('return as_text(item.get("approval_request_id")) or ""', 'return ""'),
        (
            'if name == "mcp_approval_request":\n        return next(numbered([as_text(item.get("id"))]))',
            "if False:\n        pass",
        ),
        (
            'as_text(item.get("call_id")) or as_text(item.get("id")) or ""',
            'as_text(item.get("call_id")) or ""',
        ),
        ('if name == "program_output" or _is_by_program(following):', 'if name == "program_output":'),
        ('if name == "program_output" or _is_by_program(following):', "if _is_by_program(following):"),
        ('    if before != "assistant":\n        return False\n', ""),
        ('return type_of(item) == "item_reference"  #', "return False  #"),
        ('    if behind != "assistant":\n        return False\n', ""),
        ("return not (_is_plain_message(item) and _is_plain_message(following))", "return True"),
        ("_is_plain_message(item) and _is_plain_message(following)", "_is_plain_message(following)"),
        ('while after < len(items) and type_of(items[after]) == "reasoning":', "while False:"),
        ('followed = kind_of(item) == "assistant"\n        elif', "followed = True\n        elif"),
        ('elif not followed and as_text(item.get("id")) is not None:', "elif not followed:"),
        ('and item.get("call_id") is None', "and True"),
        ('.removesuffix("_call")', ""),
    ),
    module(
        "formats/openai_responses/__init__.py",
        TESTS,
        ("index > max(structure.kept, default=-1)", "True"),
        ("                structure.references.add(index)\n", ""),
        ("                structure.elsewhere = True\n", ""),
        ("if beyond == stop and is_bound(previous, following):", "if False:"),
        ("        self._bind_references(messages, start, stop, structure)\n", ""),
        ("structure.dangling.update(dangling(messages, start, stop))", "pass"),
        ("if item_of(part, key):", "if False:"),
        ("if call_id_of(mapping_of(message)) in call_ids else message", "if False else message"),
        ("if request.system is not None:", "if False:"),
        ('and only["role"] == "user":', "and True:"),
        ("message = without_keys(mapping_of(message), _OUTPUT_KEYS)", "pass"),
        ("if is_output_message(entry):", "if False:"),
        ("        if not taken:\n            return message\n", ""),
    ),
)
