"""What is asked beside the conversation: for a summary, or for facts."""

from __future__ import annotations

from trimtab.errors import SummaryError
from trimtab.session.core import Core
from trimtab.session.effects import Steps
from trimtab.session.extract import FactJob, conclude_facts, try_extract
from trimtab.session.summarize import finish, tell_gone, try_summary
from trimtab.session.summary import Job, Written
from trimtab.strategies.fact_extractor import Fact

Outcome = Written | list[Fact] | SummaryError
"""What comes of a job."""


def try_job(core: Core, job: Job | FactJob) -> Steps[Outcome]:
    """Ask for what a job is of, or say why there is none."""
    if isinstance(job, FactJob):
        return (yield from try_extract(core, job))
    return (yield from try_summary(core, job))


def finish_job(core: Core, job: Job | FactJob, outcome: Outcome) -> Steps[bool]:
    """Carry out what came of a job, and tell what found no room beside it; True if it is in force."""
    if isinstance(job, FactJob):
        if isinstance(outcome, Written):
            raise TypeError("a summary came of a question for facts")
        seen = {} if core.working_set is None else core.working_set.view()
        done = yield from conclude_facts(core, job, outcome)
        tell_gone(core, seen)
        return done
    if isinstance(outcome, list):
        raise TypeError("facts came of a question for a summary")
    return (yield from finish(core, job, outcome))
