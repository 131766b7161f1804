"""The pages of one conversation, and the parts of them that are asked for one by one."""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from trimtab._shared.checks import unknown_name
from trimtab.errors import ConfigurationError, ContextError, UnknownNameError
from trimtab.inspector.chart import chart_of, meter_of
from trimtab.inspector.compare import Pair, align, changes
from trimtab.inspector.guard import policy_for_style, style_of
from trimtab.inspector.log import Log, undo_words
from trimtab.inspector.questions import SESSION, Question, whole
from trimtab.inspector.quotes import LOST, quotes_in
from trimtab.inspector.subject import Collection, Subject
from trimtab.inspector.views import (
    CHANGED,
    FILTERS,
    GONE,
    MORE_TOKENS,
    Asked,
    Entry,
    Fate,
    More,
    View,
    Views,
    in_lines,
    keep,
    more_room,
    preview_in,
    write_time,
)
from trimtab.inspector.words import in_page, render
from trimtab.models import dollars_for
from trimtab.models.prices import find_pricing
from trimtab.replay import Replayed, chart_page
from trimtab.replay.table import cells_of, notes_of
from trimtab.report.html import overview_fragment
from trimtab.report.text import in_dollars, plain, plural
from trimtab.session import SessionRule
from trimtab.session.options import LEAST_BUDGET
from trimtab.stores import Event

__all__ = ["Inspector"]

MOST_ROWS = 100
"""Rows a page asks for at once; three such windows are the most that it ever holds."""
FIRST_ROWS = 40
MOST_FOUND = 50
MOST_RECALLED = 20
MOST_BILLS = 4
SHOWN_CHARS = 20_000
"""Of a message that is opened; all of it is one click away."""
FOUND_CHARS = 120
"""Around what was searched for."""
BILL_ROWS = 100
AT_ONCE_MESSAGES = 500
"""Of a conversation whose bill is played when the page is opened; a longer one waits to be asked."""
MOST_MODELS = 4


class Inspector:
    """Answers for one subject, one question after the other."""

    def __init__(
        self, subject: Subject, *, token: str, base: str = "", collection: Collection | None = None
    ) -> None:
        self._subject = subject
        self._base, self._token, self._collection = base, token, collection
        self._log = None if subject.session is None else Log(subject.session)
        self._subjects: OrderedDict[str, Subject] = OrderedDict()
        self._views: OrderedDict[str, Views] = OrderedDict()
        self._texts: tuple[View | None, list[str]] = (None, [])
        self._bills: OrderedDict[object, Replayed] = OrderedDict()

    @property
    def names(self) -> dict[str, Any]:
        """What every page of it is told."""
        return {"base": self._base, "subject": self._subject, "collection": self._collection}

    def refresh(self) -> None:
        """Read what came since; what was taken back is not shown again."""
        if self._log is not None and self._log.refresh():
            self._forget()

    def _for_model(self, model: str) -> Subject:
        """Return the subject for a model that a page chose; for none its own.

        Raises:
            UnknownNameError: Nobody knows the model.
        """
        make = self._subject.for_model
        if make is None or model in ("", self._subject.model):
            return self._subject
        return keep(self._subjects, model, lambda: make(model), most=MOST_MODELS)

    def _views_of(self, model: str) -> Views:
        name = None if self._log is None else self._log.name
        return keep(self._views, model, lambda: Views(self._for_model(model), name=name), most=MOST_MODELS)

    def _forget(self) -> None:
        """Keep nothing of what was said: something of it was taken back."""
        self._views.clear()
        self._texts = (None, [])
        self._bills.clear()

    def take_back(self, request: Request, form: Mapping[str, str]) -> Response:
        """Undo a decision."""
        if self._subject.read_only:
            return PlainTextResponse("This inspector is read-only.\n", status_code=403)
        log = self._session_log()
        # else a form sent twice takes back what nobody asked for
        events = log.undone_by(form.get("event", ""))
        if events[-1].id != form.get("last", ""):
            return self._ask(request, events, has_grown=True)
        event = log.undo(form["event"])
        root = request.scope.get("root_path", "")
        return RedirectResponse(
            f"{root}{self._base}/timeline?{urlencode({'done': event.version})}", status_code=303
        )

    def _session_log(self) -> Log:
        if self._log is None:
            raise UnknownNameError("a file has no timeline; only a session has one", name="timeline")
        return self._log

    def _render(self, template: str, request: Request, *, status: int = 200, **values: Any) -> Response:
        names = {**self.names, "model": self._model(request), "newest": self._version(None)}
        return render(template, request, status=status, **{**names, **values})

    def _model(self, request: Request) -> str:
        """Return the model that a page chose; nothing where it is the subject's own."""
        model = request.query_params.get("model", "").strip()[:200]
        return "" if model == self._subject.model else model

    # Views.

    @property
    def _policies(self) -> list[str]:
        return ([SESSION] if self._log else []) + list(self._subject.policies)

    def _question(self, request: Request, suffix: str = "", place: int = 0) -> Question:
        policies = self._policies
        default = policies[min(place, len(policies) - 1)]
        question = replace(Question.of(request.query_params, default, suffix), model=self._model(request))
        if question.edited is None:
            question = replace(question, edited=write_time(question.policy, self._subject.policies))
        version, since = self._version(question.version), None
        if self._log is not None and version is not None and question.policy == SESSION and not suffix:
            since = self._log.since(version, question.since)
        return replace(question, version=version, since=since)

    def _version(self, asked: int | None) -> int | None:
        """Return the version that is asked for, of a session the newest where none is.

        Raises:
            ConfigurationError: There is no such version.
        """
        if self._log is None:
            return None
        if asked is not None and asked > self._log.version:
            raise ConfigurationError(f"there is no version {asked:,}: the newest is {self._log.version:,}")
        return self._log.version if asked is None else asked

    def _view(self, question: Question) -> View:
        if question.policy == SESSION and self._log is not None:
            version = self._log.version if question.version is None else question.version
            return self._log.view(version, question.window, since=question.since or 0)
        if not question.policy.startswith("{"):  # else a page could have any file of the machine read
            _check_known(question.policy, self._policies)
        asked = Asked(question.policy, question.version, question.edited)
        return self._views_of(question.model).view(asked, question.window)

    def _wider(self, question: Question, view: View) -> More | None:
        """Say what a budget with more tokens would bring back; None where that cannot be worked out."""
        try:
            return more_room(view, self._view(replace(question, window=view.window + MORE_TOKENS)))
        except ContextError:  # what is shown needs no answer to what might be
            return None

    def _rows(self, view: View, only: str, window: range) -> list[dict[str, Any]]:
        """Make rows of a filtered list; each knows how many messages before it are not sent."""
        shown = view.listed_in(only)
        most = view.most_in(only)
        found = []
        for place in window:
            at = shown[place]
            gap = at - (shown[place - 1] + 1 if place else 0) if only == "sent" else 0
            entry = view.entries[at]
            size = 100 * view.sizes[at] / most if entry.is_sized else None
            before = 100 * (entry.before or 0) / most if entry.kind in CHANGED else 0
            found.append({**_row(view, at, entry), "place": place, "gap": gap, "size": size, "was": before})
        return found

    def _window(self, request: Request, count: int) -> range:
        start = min(whole(request.query_params, "start") or 0, max(0, count - 1))
        asked = whole(request.query_params, "count", least=1) or FIRST_ROWS
        return range(start, min(count, start + min(asked, MOST_ROWS)))

    # The conversation.

    def conversation(self, request: Request) -> Response:
        """Show what is sent, and what is not."""
        asked = request.query_params
        values: dict[str, Any] = {
            "error": "",
            "view": None,
            "policies": self._policies,
            "chosen": asked.get("policy") or self._policies[0],
            "typed": asked.get("json", ""),
            "window": asked.get("budget", ""),
            "version": asked.get("version", ""),
            "of": None,
            "slider": None,
            "since": None,
        }
        try:
            question = self._question(request)
            view = self._view_or_own(question, values)
            only = asked.get("only") or "sent"
            view.listed_in(only)
        except ContextError as error:
            values["error"] = in_page(error)
            return self._render("conversation.html", request, **values)
        own = self._view(replace(question, window=None))
        words = replace(question, version=None, edited=None, since=None).words()
        values |= {
            "error": values["error"],
            "view": view,
            "of": question.version,
            "words": question.words(),
            "newest_query": urlencode(words),
            "query": question.to_query(),
            "window": view.window,
            "own_window": own.window if self._is_session(question) else None,
            "slider": self._slider(question, own),
            "since": question.since,
            "whole_query": replace(question, since=0).to_query(),
            "only": only,
            "filters": [(word, view.name_of(word), len(view.listed_in(word))) for word in FILTERS],
            "outcome": view.report.outcome if view.report.fits and not self._is_session(question) else "",
            "chart": chart_of(view),
            "meter": meter_of(view.report),
            "fates": [(one, _row_of_fate(view, one)) for one in view.fates()],
            "kinds": {one.kind for one in view.entries},
            "asked_budget": question.window is not None,
            "gone": len(view.listed_in("evicted")),
            "more": self._wider(question, view) if view.report.fits else None,
            "note": self._for_model(question.model).note,
            "price": self._price(question, view),
            "largest": view.largest(),
            "whole_report": Markup(overview_fragment(view.report)),
            "rows": self._rows(view, only, range(min(len(view.listed_in(only)), FIRST_ROWS))),
            "total": len(view.listed_in(only)),
        }
        return self._render("conversation.html", request, **values)

    def _price(self, question: Question, view: View) -> str:
        """Write what the input costs without a cache, in dollars; nothing where that is not known."""
        model = view.report.model or question.model or self._subject.model
        dollars = None if model is None else dollars_for(model)
        pricing = None if model is None else find_pricing(model)
        if dollars is None:
            return ""
        tier = None if pricing is None else pricing.tier_of(view.report.tokens_after)
        return in_dollars(view.report.tokens_after * dollars / 1e6 * (1 if tier is None else tier.input))

    def _is_session(self, question: Question) -> bool:
        return question.policy == SESSION and self._log is not None

    def _view_or_own(self, question: Question, values: dict[str, Any]) -> View:
        """Give a view; where there is none at a budget, what is wrong, and the view at its own budget."""
        try:
            return self._view(question)
        except ContextError as error:
            if question.window is None:
                raise
            view = self._view(replace(question, window=None))
            values["error"] = f"{in_page(error)}. Shown instead: the view at its own budget."
            return view

    def _slider(self, question: Question, own: View) -> dict[str, int] | None:
        """Say between which budgets a slider goes; None where the budget is a Context's."""
        if question.policy in self._subject.fixed:
            return None
        if not self._is_session(question):
            return _slider(own, is_margin_auto=self._subject.is_margin_auto)
        version, since = int(question.version or 0), question.since or 0
        most = None if self._log is None else self._log.most_tokens(version, since=since)
        return None if most is None else _steps(LEAST_BUDGET, most)

    def growth(self, request: Request) -> Response:
        """Say whether a session has grown since a page was made."""
        self._session_log()
        words = {name: value for name, value in request.query_params.items() if name != "of"}
        of = self._version(whole(request.query_params, "of"))
        return self._render("grown.html", request, of=of, newest_query=urlencode(words))

    def rows(self, request: Request) -> Response:
        """Show some rows of the list, those that are seen."""
        view = self._view(self._question(request))
        only = request.query_params.get("only", "all")
        total = len(view.listed_in(only))
        rows = self._rows(view, only, self._window(request, total))
        return self._render("rows.html", request, rows=rows, total=total)

    def _entry(self, request: Request, view: View) -> tuple[int, Entry]:
        at = whole(request.query_params, "at")
        if at is None or at >= len(view.entries):
            there = f"there are {plural(len(view.entries), 'row')}"
            raise UnknownNameError(f"no row {at}: {there}", name=str(at))
        return at, view.entries[at]

    def message(self, request: Request) -> Response:
        """Show one message: as it came and as it is sent, as much as a page holds well."""
        question = self._question(request)
        view = self._view(question)
        at, entry = self._entry(request, view)
        parts = []
        source = view.source_text(entry)
        sent = view.sent_text(entry)
        if entry.index is not None:
            parts.append(("As it came", "came", source))
        if (entry.place is not None and sent != source) or entry.index is None:
            parts.append(("As it is sent", "sent", sent))
        shown = [
            {
                "title": title,
                "text": in_lines(text[:SHOWN_CHARS]),
                "chars": len(text),
                "cut": len(text) > SHOWN_CHARS,
                "query": question.to_query(at=at, which=which),
            }
            for title, which, text in parts
        ]
        return self._render("message.html", request, entry=entry, parts=shown, most=SHOWN_CHARS)

    def text(self, request: Request) -> Response:
        """Give all of a message as plain text."""
        view = self._view(self._question(request))
        _, entry = self._entry(request, view)
        is_sent = request.query_params.get("which") == "sent"
        text = view.sent_text(entry) if is_sent else view.source_text(entry)
        return PlainTextResponse(text.encode("utf-8", "replace"))

    def search(self, request: Request) -> Response:
        """Find words in everything that was said, what was evicted included."""
        question = self._question(request)
        view = self._view(question)
        words = request.query_params.get("q", "").strip()[:200]
        folded, found, total = words.casefold(), list[dict[str, Any]](), 0
        start = whole(request.query_params, "start") or 0
        for at, text in enumerate(self._search_texts(view)) if folded else ():
            place = text.find(folded)
            if place < 0:
                continue
            total += 1
            if start < total <= start + MOST_FOUND:
                entry = view.entries[at]
                around = _around(view.source_text(entry), folded)
                found.append({"row": view.row_of(at), "entry": entry, "around": around})
        more = question.to_query(q=words, start=start + MOST_FOUND) if total > start + MOST_FOUND else None
        return self._render(
            "search.html", request, words=words, found=found, total=total, start=start, more=more
        )

    def _search_texts(self, view: View) -> list[str]:
        """Return what each entry says, folded; kept for the view that was searched last."""
        if self._texts[0] is not view:
            self._texts = view, [view.source_text(entry).casefold() for entry in view.entries]
        return self._texts[1]

    def quotes(self, request: Request) -> Response:
        """List rules, and exact values of users, and where each is shown; what is lost comes first."""
        question = self._question(request)
        view, rules = self._view(question), list[tuple[SessionRule, int | None]]()
        if self._log is not None:
            version = self._log.version if question.version is None else question.version
            rules = self._log.rules(version, since=question.since or 0)
        found = quotes_in(view, rules)
        start = whole(request.query_params, "start") or 0
        shown = found[start : start + MOST_FOUND]
        end = start + len(shown)
        return self._render(
            "quotes.html",
            request,
            quotes=shown,
            total=len(found),
            lost=sum(one.where == LOST for one in found),
            lost_word=LOST,
            start=start,
            more=question.to_query(start=end) if end < len(found) else None,
        )

    # Two of them.

    def compare(self, request: Request) -> Response:
        """Show two views side by side."""
        given = request.query_params
        sides, error = [], ""
        only = given.get("only", "differ")
        try:
            for place, suffix in enumerate(("_a", "_b")):
                question = self._question(request, suffix, place)
                view = self._view(question)
                price = self._price(question, view)
                sides.append((question, view, meter_of(view.report), price))
        except ContextError as problem:
            error = in_page(problem)
        pairs = self._pairs(sides[0][1], sides[1][1], only) if len(sides) == 2 else []
        query = urlencode(
            {
                **{
                    key: value
                    for (question, *_), suffix in zip(sides, ("_a", "_b"), strict=False)
                    for key, value in question.words(suffix).items()
                },
                "only": only,
            }
        )
        policies = self._policies
        return self._render(
            "compare.html",
            request,
            error=error,
            sides=sides,
            given=given,
            policies=policies,
            defaults={"_a": policies[0], "_b": policies[min(1, len(policies) - 1)]},
            of=self._version(None),
            newest_query=urlencode(dict(given)),
            only=only,
            query=query,
            total=len(pairs),
            changes=changes(pairs),
            rows=self._pair_rows(pairs, range(min(len(pairs), FIRST_ROWS))),
        )

    def compare_rows(self, request: Request) -> Response:
        """Show some rows of a comparison."""
        views = [self._view(self._question(request, suffix, at)) for at, suffix in enumerate(("_a", "_b"))]
        pairs = self._pairs(views[0], views[1], request.query_params.get("only", "differ"))
        window = self._window(request, len(pairs))
        return self._render(
            "compare_rows.html", request, rows=self._pair_rows(pairs, window), total=len(pairs)
        )

    def _pairs(self, left: View, right: View, only: str) -> list[Pair]:
        return [pair for pair in align(left, right) if only != "differ" or pair.differs]

    def _pair_rows(self, pairs: Sequence[Pair], window: range) -> list[dict[str, Any]]:
        return [{**_row(pairs[at].view, at, pairs[at].entry), "pair": pairs[at]} for at in window]

    # A session.

    def timeline(self, request: Request) -> Response:
        """Show everything that happened in a session."""
        log = self._session_log()
        return self._render(
            "timeline.html",
            request,
            of=log.version,
            newest_query="",
            rows=list(enumerate(log.moments(0, FIRST_ROWS))),
            total=log.rows(log.version),
            done=whole(request.query_params, "done"),
            numbers=log.status(),
        )

    def timeline_rows(self, request: Request) -> Response:
        """Show some rows of it."""
        log = self._session_log()
        version = self._version(whole(request.query_params, "version")) or 0
        total = log.rows(version)
        window = self._window(request, total)
        rows = list(enumerate(log.moments(window.start, window.stop, version), window.start))
        return self._render("timeline_rows.html", request, rows=rows, total=total)

    def recall(self, request: Request) -> Response:
        """Find what the view of a session no longer shows."""
        words = request.query_params.get("q", "").strip()[:200]
        found = self._session_log().recall(words, MOST_RECALLED) if words else []
        return self._render("recall.html", request, words=words, found=found)

    def undo(self, request: Request) -> Response:
        """Ask before a decision is taken back."""
        return self._ask(request, self._session_log().undone_by(request.query_params.get("event", "")))

    def _ask(self, request: Request, events: Sequence[Event], *, has_grown: bool = False) -> Response:
        return self._render(
            "undo.html",
            request,
            told=undo_words(events),
            events=events,
            has_grown=has_grown,
            token=self._token,
        )

    # The bill.

    def _bill(self, request: Request, billed: Sequence[str]) -> list[Replayed]:
        given = request.query_params
        subject = self._for_model(self._model(request))
        play = subject.play
        if play is None:
            raise UnknownNameError("this conversation has no bill", name="bill")
        pricing = given.get("pricing") or subject.pricings[0]
        window = whole(given, "budget", least=1)
        known = (*subject.replayed, *subject.policies)
        asked = list(dict.fromkeys(filter(None, billed)))
        for word in asked:
            _check_known(word, known)
        _check_known(pricing, subject.pricings)
        version = self._version(whole(given, "version"))
        return [
            keep(
                self._bills,
                (word, write_time(word, subject.policies), pricing, window, version, subject.model),
                functools.partial(play, word, pricing, window, version),
                most=MOST_BILLS,
            )
            for word in asked
        ]

    def _policies_of_bill(self, given: Mapping[str, str]) -> tuple[str, str]:
        """Return the policies of a bill: where none was asked for, the first, of a short conversation."""
        if "policy_a" in given:
            return given["policy_a"], given.get("policy_b", "")
        first = self._subject.policies[0]
        try:
            messages = self._views_of("").view(Asked(first, self._version(None))).report.total_message_count
        except ContextError:  # the bill says what is wrong
            messages = 0
        return (first if messages <= AT_ONCE_MESSAGES else ""), ""

    def bill(self, request: Request) -> Response:
        """Show what each call costs under a policy or two."""
        given, error, results, of = request.query_params, "", list[Replayed](), None
        subject, billed = self._subject, ("", "")
        try:
            of = self._version(whole(given, "version"))
            subject = self._for_model(self._model(request))
            billed = self._policies_of_bill(given)
            results = self._bill(request, billed)
        except ContextError as problem:
            error = in_page(problem)
        start = whole(given, "start") or 0
        total = max((len(one.calls) for one in results), default=0)
        calls = [
            (at, [one.calls[at] if at < len(one.calls) else None for one in results])
            for at in range(start, min(total, start + BILL_ROWS))
        ]
        query = {name: given.get(name, "") for name in ("pricing", "budget", "model")}
        query |= {"policy_a": billed[0], "policy_b": billed[1]}
        shown = query if of is None else {**query, "version": str(of)}
        pricing = given.get("pricing") or next(iter(subject.pricings), "")
        return self._render(
            "bill.html",
            request,
            error=error,
            given=given,
            billed=billed,
            pricing=pricing,
            dollars=dollars_for(pricing),
            words=tuple(dict.fromkeys((*subject.policies, *subject.replayed))),
            pricings=subject.pricings,
            results=results,
            sums=_sums(results),
            notes=notes_of(results),
            calls=calls,
            start=start,
            total=total,
            step=BILL_ROWS,
            of=of,
            newest_query=urlencode(query),
            query=urlencode(shown),
        )

    def charts(self, request: Request) -> Response:
        """Draw the bill."""
        results = self._bill(request, self._policies_of_bill(request.query_params))
        page = chart_page({self._subject.name: results}, title=f"Bill of {self._subject.name}")
        return HTMLResponse(page, headers={"Content-Security-Policy": policy_for_style(style_of(page))})


def _sums(results: Sequence[Replayed]) -> dict[str, list[str]]:
    """Write the sums of policies side by side, a line each; what none of them has to say is not said."""
    cells = [cells_of(one, results[0]) for one in results]
    lines = {name: [one[name] for one in cells] for name in (cells[0] if cells else ())}
    always = {"refused", "over", "invalid"}
    return {
        name: ["0" if cell == "-" else cell for cell in line]
        for name, line in lines.items()
        if name != "policy" and (name in always or not {"", "-"}.issuperset(line))
    }


def _row_of_fate(view: View, fate: Fate) -> tuple[str, int]:
    """Return the filter that shows the messages of one fate best, and the row of the first of them."""
    only = "evicted" if fate.kind in GONE else "changed" if fate.kind in CHANGED else "sent"
    return only, view.place_of(fate.first, only)


def _row(view: View, at: int, entry: Entry) -> dict[str, Any]:
    return {"at": at, "entry": entry, "preview": preview_in(view.text(entry)[:2_000])}


def _check_known(word: str, known: Sequence[str]) -> None:
    """Refuse what was not offered.

    Raises:
        UnknownNameError: It was not.
    """
    if word not in known:
        raise unknown_name(f"{word[:80]!r} is not offered here; there are: {', '.join(known)}", word, known)


def _slider(view: View, *, is_margin_auto: bool) -> dict[str, int]:
    """Say between which budgets a slider goes: from nothing to all, as far as the model's window."""
    report = view.report
    beside = report.output_reserve_tokens + report.overhead_tokens
    used = (report.tokens_before or report.window_tokens * 2) + beside
    # a margin that is worked out grows with the budget
    share = report.margin_tokens / max(1, report.window_tokens) if is_margin_auto else 0.0
    most = math.ceil(used / (1 - share)) + 1 if 0 < share < 1 else used + report.margin_tokens
    most = max(report.window_tokens, most)
    if report.model_window_tokens is not None:
        most = min(most, max(report.model_window_tokens, report.window_tokens))
    return _steps(report.output_reserve_tokens + 1, most)


def _steps(least: int, most: int) -> dict[str, int]:
    """Divide the way of a slider: a browser counts steps from the least on, and the last is the most."""
    most = max(least, most)
    step = max(1, (most - least) // 400)
    return {"least": most - (most - least) // step * step, "most": most, "step": step}


def _around(text: str, folded: str) -> tuple[str, str, str]:
    """Cut a text around the first place where something stands in it."""
    at = text.casefold().find(folded)
    # Folding may lengthen what stands before; then the place is near, and what is marked is not the word.
    word = text[at : at + len(folded)]
    before, after = (
        text[max(0, at - FOUND_CHARS) : at],
        text[at + len(folded) : at + len(folded) + FOUND_CHARS],
    )
    return plain(before), plain(word), plain(after)
