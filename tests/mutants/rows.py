"""All modules that have mutants."""

from __future__ import annotations

from tests.mutants.baseline import BASELINE
from tests.mutants.batch import BATCH
from tests.mutants.bedrock import BEDROCK
from tests.mutants.contexts import CONTEXTS
from tests.mutants.front import FRONT
from tests.mutants.inspector import INSPECTOR
from tests.mutants.kernel import KERNEL
from tests.mutants.models import MODELS
from tests.mutants.near import NEAR
from tests.mutants.reading import READING
from tests.mutants.replay import REPLAY
from tests.mutants.responses import RESPONSES
from tests.mutants.servers import SERVERS
from tests.mutants.sessions import SESSIONS
from tests.mutants.stores import STORES
from tests.mutants.strategies import STRATEGIES
from tests.mutants.summaries import SUMMARIES

SERVICES = (*STORES, *SERVERS, *SESSIONS, *BASELINE)
ENGINE = (*KERNEL, *READING, *RESPONSES, *BEDROCK, *FRONT)
MODULES = (
    *ENGINE,
    *CONTEXTS,
    *STRATEGIES,
    *SUMMARIES,
    *MODELS,
    *SERVICES,
    *REPLAY,
    *NEAR,
    *INSPECTOR,
    *BATCH,
)
