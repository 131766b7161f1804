"""What the note reports of 256,000 rows, at 20,000: the same code, and a killed worker and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.batch.large import run


@pytest.mark.long
def test_twenty_thousand_conversations_are_the_same_bytes_after_every_accident(
    data_dir: Path, tmp_path: Path
) -> None:
    """Each once, in order; on a cluster with a killed node too, where Ray is: tests/integrations/ray."""
    digests = run(data_dir, tmp_path, 20_000, ray=False)
    assert len(digests) == 2
    assert len(set(digests.values())) == 1
