"""Mutants of batches: what puts packed results together, and which columns are written."""

from __future__ import annotations

from tests.mutants.mutants import module

BATCH = (
    module(
        "batch/parquet.py",
        "batch/test_files.py",
        ("RowGroups.add", "if values.get(_SCHEMA) != self._schema:", "if False:"),
        ("RowGroups.add", "moved_by = self._size - len(_MAGIC)", "moved_by = self._size"),
        ("RowGroups.add", "self._count += count", "self._count += 1"),
        ("RowGroups.add", "self._rows += ", "self._rows = "),
        ("RowGroups.add", "self._size += ", "self._size = "),
        ("pack", " and table.num_rows:", ":"),
        ("", "{9: None, ", "{"),
        ("", "10: None, 11: None, ", "10: None, "),
        ("", "_CHUNK, 5: None}", "_CHUNK}"),
        ("_copy", "offset + moved_by if offset else 0", "offset + moved_by"),
        ("_footer", "if not file.endswith(_MAGIC):", "if False:"),
        ("_end", "return at + number if kind == _BINARY else at", "return at + number"),
        ("_items", "if count < 15 else", "if count < 16 else"),
        ("_structs", "if count < 15 else", "if count < 14 else"),
    ),
    module(
        "batch/task.py",
        "batch/test_kernel.py",
        ("BatchTask._checked_columns", "if name not in known:", "if False:"),
        ("BatchTask._checked_columns", ", ERROR, self.column)", ", ERROR)"),
        ("BatchTask._checked_columns", "isinstance(given, str) or ", ""),
        (
            "BatchTask._checked_columns",
            "tuple(name for name in COLUMNS[self.operation] if name in given)",
            "tuple(given)",
        ),
    ),
    module(
        "batch/rows.py",
        "batch/test_kernel.py",
        ("columns_of", "options.columns is None or name in options.columns", "True"),
        ("_of_fit", "fitted.report if of_report else None", "fitted.report"),
    ),
)
