"""Mutants of Bedrock's Converse form."""

from __future__ import annotations

from tests.mutants.mutants import module

BEDROCK = (
    module(
        "formats/bedrock/__init__.py",
        "test_bedrock.py test_near_cut.py",
        ("", "results_in_one=True", "results_in_one=False"),
        ("", "claude|nova|", "claude|"),
        ("Bedrock.scan", "None if part is None else places[part]", "part"),
        (
            "Bedrock.scan",
            "[places[part] for part in structure.loose[index]]",
            "structure.loose[index]",
        ),
        ("Bedrock.order_fault", 'None if role == "user" else', "None if role else"),
        ("Bedrock.with_texts", "if not text and len(path) == 6", "if len(path) == 6"),
        ("Bedrock.without_parts", "if at - 1 in gone and", "if False and"),
        (
            "Bedrock.without_calls",
            "while left and key_of(listed[left[-1]]) == THOUGHT:",
            "while False:",
        ),
        ("Bedrock.without_calls", "places[at]\n            for", "at\n            for"),
        ("Bedrock.tool_names", "blocks[places[at]]", "blocks[at]"),
        ("Bedrock.join_results", "if key_of(block) == RESULT", "if True"),
        ("Bedrock.mark_last", 'all("text" in', 'all("text" not in'),
        ("_without", "result if left else", "result if True else"),
    ),
    module(
        "formats/bedrock/edit.py",
        "test_bedrock.py",
        ("may_be_marked", 'in (None, "pdf")', 'in (None, "pdf", "md")'),
        ("may_be_marked", '("", THOUGHT, CACHE_POINT)', '("", CACHE_POINT)'),
        ("with_tidy_points", "(kept and may_be_marked(kept[-1]))", "kept"),
        ("cache_point", "if ttl else {}", "if False else {}"),
        ("write_body", "request.tools is not config.get", "request.tools is config.get"),
        ("write_body", "given if whole else", "{} if whole else"),
        ("settings_of", "if thinking else {}", "if False else {}"),
        ("with_allowed_thoughts", '== "disabled"', '== "enabled"'),
        ("with_allowed_thoughts", "start = min(start, _first_change(request, messages))", "pass"),
        (
            "with_allowed_thoughts",
            "with_tidy_points(without_indices(blocks, gone))",
            "without_indices(blocks, gone)",
        ),
    ),
    module(
        "formats/bedrock/faults.py",
        "test_validity_and_judge.py",
        ("faults_of", "found += _front_faults(messages)", "pass"),
        ("_Run.faults", "if call_id in self._last_calls:", "if False:"),
        ("_Run.faults", "past_results = True", "past_results = False"),
        ("_message_faults", '"text" not in keys', "False"),
        ("_mixed_faults", "held | keys if", "keys if"),
        ("_block_faults", "if len(held) > 1:", "if len(held) > 2:"),
        ("_text_faults", "elif not text.strip():", "elif False:"),
        ("_result_faults", '== "error"', '== "success"'),
        ("_point_faults", "if count > MAX_CACHE_POINTS:", "if count > MAX_CACHE_POINTS + 1:"),
        ("_point_faults", "if long and short:", "if long and not short:"),
        ("_point_faults", "if before == THOUGHT:", "if False:"),
        ("_body_faults", "if not held and any", "if held and any"),
        ("_model_faults", "THOUGHT in keys[1:]", "False"),
    ),
    module(
        "formats/bedrock/read.py",
        "test_bedrock.py",
        ("kind_of", "all(key == RESULT for key in said)", "any(key == RESULT for key in said)"),
        ("kind_of", "!= CACHE_POINT]", '!= ""]'),
        ("texts_of", "and not whole and any", "and False and any"),
        ("_Found.read_thought", "self.sealed_chars += _chars_in(entry.get", "_chars_in(entry.get"),
        ("_Found.read_medium", "isinstance(data, bytes | bytearray)", "False"),
    ),
    module(
        "formats/bedrock/walk.py",
        "properties/test_walk.py test_near_cut.py",
        ("Walk._plain_blocks", "or len(results) != _count_said(blocks)", ""),
        ("Walk._plain_blocks", "if len(calls) > 1:", "if len(calls) > 2:"),
        ("Walk._plain_blocks", "first == thinks, last == thinks), tokens", "first == thinks, False), tokens"),
        ("_result_tokens", "if len(block) != 1 or", "if"),
    ),
    module(
        "formats/__init__.py",
        "test_bedrock.py test_detect.py",
        ("detect", "if found is not None and found.rules.parts_listed and", "if False and"),
        ("_by_body", "if not any(own < other for other in marks)]", "if True]"),
    ),
    module(
        "counting/schemas.py",
        "test_bedrock.py",
        ("_shown_tools", "and not _is_cache_point(entry)", ""),
        ("_schema_of", '.get("json")', '.get("jsonSchema")'),
        ("system_texts", "if _is_cache_point(part):", "if False:"),
    ),
)
"""Modules of the fifth form, and what others know of it."""
