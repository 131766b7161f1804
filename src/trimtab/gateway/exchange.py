"""One request and its answer: read, fitted, sent on, and the answer passed through as it comes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from time import perf_counter
from types import TracebackType
from typing import Any, NamedTuple, Self

import httpcore2 as httpcore

from trimtab.errors import BudgetExceededError
from trimtab.formats.api_answers import write_error
from trimtab.formats.api_paths import ApiCall, path_of, read_path
from trimtab.gateway.bill import BillReader, charge_in
from trimtab.gateway.body_bytes import BodyBytes
from trimtab.gateway.encodings import AnswerReader
from trimtab.gateway.fits import MOST_QUICK_BYTES, Answered, Fits, FittedCall
from trimtab.gateway.guard import Guard
from trimtab.gateway.headers import Headers, for_client, for_upstream
from trimtab.gateway.keys import Keys
from trimtab.gateway.recent import blocks_of
from trimtab.gateway.record import Record
from trimtab.gateway.settings import Limits, Upstream
from trimtab.gateway.upstreams import FAILURES, Upstreams, failure_of

_log = logging.getLogger("trimtab.gateway")

MOST_REFUSAL_BYTES = 256 * 2**10
"""Of an answer that refuses a request, which is read before it is passed on."""

GONE = 499
"""What the log has for a status where the client did not wait for one."""

_REFUSES = (400, 413, 422)
"""How upstreams answer what is too long, or has thinking that they do not know."""


class Rooms(NamedTuple):
    """What all requests of a gateway share."""

    guard: Guard
    fits: Fits
    upstreams: Upstreams
    limits: Limits
    held: BodyBytes
    keys: Keys


class _ClientGone(Exception):
    """The client closed its connection, or takes nothing of its answer."""


class _Broken(Exception):
    """The answer of an upstream broke off, so that of the gateway must, too: whoever reads it has to know."""


class _Answer:
    """An answer of an upstream, whose first parts may be looked at before it is passed on.

    Args:
        response: The answer, as it comes.
    """

    def __init__(self, response: httpcore.Response) -> None:
        self.status: int = response.status
        self.headers: Headers = response.headers
        self._response = response
        self._stream = response.aiter_stream()
        self._seen: list[bytes] = []
        said = self.header(b"content-length")
        is_known = said.isdigit() and not self.header(b"transfer-encoding")
        self.length = int(said) if is_known else None
        """How many bytes it has; None: its head does not say so."""
        self._is_closed = False

    def header(self, name: bytes) -> str:
        """Return the value of a header; "" if it is not there."""
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == name), "")

    async def peek(self, most: int) -> bytes:
        """Return the first bytes, about so many, or all of them; they are still passed on."""
        size = 0
        async for part in self._stream:
            self._seen.append(part)
            size += len(part)
            if size >= most:
                break
        return b"".join(self._seen)

    async def parts(self) -> AsyncIterator[bytes]:
        """Give all parts."""
        for part in self._seen:
            yield part
        async for part in self._stream:
            yield part

    def close(self) -> None:
        """Give the connection back, or close it where the answer is not at its end.

        In a task of its own, as who asks for it may be cancelled: a connection that is given back by half is
        lost for good. Nobody waits for it.
        """
        if self._is_closed:
            return
        self._is_closed = True
        closing = asyncio.ensure_future(self._response.aclose())
        _CLOSING.add(closing)
        closing.add_done_callback(_close_ended)


_CLOSING: set[asyncio.Future[None]] = set()
"""What is in progress; an event loop itself keeps no task from being collected."""


def _close_ended(closing: asyncio.Future[None]) -> None:
    _CLOSING.discard(closing)
    error = None if closing.cancelled() else closing.exception()
    if error is not None:  # by its class: its words may quote an address
        _log.warning("a connection to a server ended with %s; the answer was passed on", type(error).__name__)


class _Watch:
    """Ends what is done for a client once that is gone.

    Args:
        receive: The receiving end of the request.
        after: Set once nobody else receives.
    """

    def __init__(self, receive: Any, after: asyncio.Event) -> None:
        self._receive, self._after = receive, after
        self._is_gone = False

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        self._watch = asyncio.create_task(self._wait())
        return self

    async def _wait(self) -> None:
        await self._after.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._is_gone = True
        if self._task is not None:
            self._task.cancel()

    def stop(self) -> None:
        """Look no longer: the answer is there but for its end, which is also said to who waits here."""
        self._watch.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.cancel()
        if self._is_gone and kind is asyncio.CancelledError and self._task is not None:
            self._task.uncancel()
            raise _ClientGone from error


class Exchange:
    """One request and its answer.

    Args:
        scope: The request, as ASGI has it.
        receive: Where its body comes from.
        send: Where its answer goes.
        rooms: What all requests share.
        is_full: Whether as many requests are in progress as there may be.
    """

    def __init__(self, scope: Any, receive: Any, send: Any, rooms: Rooms, *, is_full: bool) -> None:
        self._receive, self._send, self._is_full = receive, send, is_full
        self._guard, self._fits, self._upstreams, self._limits, self._held, keys = rooms
        self._headers: Headers = scope["headers"]
        self._first: Mapping[bytes, bytes] = dict(reversed(self._headers))
        """Headers by name; of several with one name the first."""
        self._method: str = scope["method"]
        self._path, self._token = self._guard.target(scope["raw_path"])
        query: bytes = scope["query_string"]
        self._target = self._path + (b"?" + query if query else b"")
        self.record = Record(method=self._method, path=self._guard.log_path(self._path))
        names = keys.find(self._headers, self._target)
        self._key = next(iter(names), "")
        self._has_two_keys = len(names) > 1
        self._api, self._call = self._read_paths()
        self._body_read = asyncio.Event()
        self._held_bytes = 0
        """Of its body, in memory."""
        self._asked: _Answer | None = None
        """The answer of its upstream."""
        self._has_begun = False
        """Whether the head of an answer was sent, so that no other can be."""
        self._is_last = False
        """Whether the connection is closed behind the answer: nobody knows where its next request begins."""

    def _read_paths(self) -> tuple[str, ApiCall]:
        """Read whose path this is, and what is asked for by the path that its upstream gets.

        A server's own path may make one of a conversation of what came: `/messages` with `URL/v1`.
        """
        names = {name.decode("latin-1") for name, _ in self._headers}
        came = read_path(path_of(self._target), names)
        upstream = self._upstreams.find(came.api, came.named, self._key)
        if upstream is None:  # none for all models: which one it is, the body says
            return came.api, came
        target = self._upstreams.target(upstream, self._target)
        if target == self._target:
            return came.api, came
        sent = read_path(path_of(target), names)
        is_found = came.form is None and sent.form is not None
        return came.api, sent if is_found else sent._replace(api=came.api)

    def _header(self, name: bytes) -> str:
        """Return the value of a header; "" if it is not there."""
        return self._first.get(name, b"").decode("latin-1")

    def _paths(self, model: str | None) -> Collection[str]:
        """List how routes may name the path that an upstream gets."""
        return self._upstreams.paths(self._upstreams.find(self._api, model, self._key), self._target)

    async def run(self) -> None:
        """Answer the request; an answer that breaks off is not brought to its end."""
        record = self.record
        record.api, record.form, record.counts = self._call.api, self._call.form or "", self._call.counts
        try:
            await self._run()
        except Answered as error:
            await self._answer(error)
        except _Broken:
            record.end = "upstream_failed"
        except _ClientGone:
            record.end = "client_gone"
            record.status = record.status or GONE
        except asyncio.CancelledError:
            record.end = "drained"  # the time that answers in progress had is over
            if not self._has_begun:
                self._is_last = True
                await self._answer(self._error(503, "this gateway is about to end: ask again", record.end))
            raise
        except Exception as error:  # a fault of ours, or of what we stand on: who runs it has to find it
            record.end = f"failed: {type(error).__name__}"
            if not self._has_begun:
                await self._answer(self._error(500, "this gateway failed with this request", record.end))
        else:
            record.end = "done"
        finally:
            self._held.take(-self._held_bytes)
            if self._asked is not None:
                self._asked.close()

    async def _run(self) -> None:
        most = self._limits.max_header_bytes
        if sum(len(name) + len(value) for name, value in self._headers) + len(self._target) > most:
            self._is_last = True
            raise self._error(431, f"the head has more than {most:,} bytes", "too_large")
        refusal = self._guard.refuse(self._headers, self._path, self._token)
        if refusal is not None:
            self._is_last = True
            raise self._error(*refusal)
        if self._has_two_keys:
            why = "the request has two keys that are known here, and which one counts is not: send one"
            raise self._error(400, why, "two_keys")
        if self._header(b"upgrade"):
            # 426 is what has clients of Responses over WebSocket fall back to plain requests at once.
            self._is_last = True
            raise self._error(426, "this gateway has no WebSocket: send a plain request", "upgrade")
        if self._is_full:
            raise self._error(503, "this gateway has as many requests as it takes: ask again", "busy")
        if self._method == "POST" and self._call.form is not None:
            await self._fit_and_pass()
        else:
            await self._pass()

    # -- the request

    async def _pass(self) -> None:
        """Send a request on as it comes, in parts."""
        upstream = self._upstream(self._call.named)
        length = self._header(b"content-length")
        headers = for_upstream(
            self._headers, host=self._upstreams.host(upstream), readable=False, decoded=False
        )
        content = None
        if self._header(b"transfer-encoding") or length not in ("", "0"):
            framed = (b"content-length", length.encode()) if length else (b"transfer-encoding", b"chunked")
            headers.append(framed)
            content = self._parts()
        else:
            self._body_read.set()
            if length:
                headers.append((b"content-length", b"0"))
        async with _Watch(self._receive, self._body_read) as watch:
            answer = await self._ask(upstream, headers, content)
            self._body_read.set()  # an upstream may answer before it has read all
            await self._pass_answer(answer, watch)

    async def _parts(self) -> AsyncIterator[bytes]:
        """Give the body as it comes.

        Raises:
            Answered: A part of it did not come in time.
        """
        more = True
        while more:
            try:
                async with asyncio.timeout(self._limits.stall_seconds):
                    part, more = await self._part()
            except TimeoutError:
                raise self._slow_body() from None
            yield part
        self._body_read.set()

    async def _part(self) -> tuple[bytes, bool]:
        """Take the next part of the body, and whether there is more."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise _ClientGone
        part: bytes = message.get("body", b"")
        self.record.body_bytes += len(part)
        return part, message.get("more_body", False)

    async def _fit_and_pass(self) -> None:
        fitted, blocks = await self._fit(await self._body())
        upstream = self._upstream(fitted.named)
        self._note(fitted, blocks)
        async with _Watch(self._receive, self._body_read) as watch:
            answer = await self._ask_fitted(upstream, fitted)
            again = await self._fit_again(answer, fitted) if answer.status in _REFUSES else None
            if again is not None:
                answer.close()
                fitted, blocks = again
                self._note(fitted, blocks)
                answer = await self._ask_fitted(upstream, fitted)
            reader = BillReader(answer.header(b"content-type"), answer.header(b"content-encoding"))
            try:
                await self._pass_answer(answer, watch, reader)
            finally:  # a client may close behind the last event, and what was billed was said before it
                if answer.status < 300 and not fitted.call.counts:
                    await self._charge(fitted, reader.read())

    async def _charge(self, fitted: FittedCall, usage: Mapping[str, Any] | None) -> None:
        """Take in what a request was billed."""
        record, fits = self.record, self._fits
        if fits.waits:
            record.billed = await asyncio.to_thread(fits.learn, fitted, usage)
        else:
            record.billed = fits.learn(fitted, usage)
        record.parts, record.dollars = charge_in(usage, fitted.model)

    async def _body(self) -> bytes:
        """Read a whole body.

        Raises:
            Answered: It is too long, or did not come in time.
        """
        most = self._limits.max_body_bytes
        length = self._header(b"content-length")
        if length.isdigit() and int(length) > most:
            raise self._error(413, f"the body has more than {most:,} bytes", "too_large")
        stall_seconds, now = self._limits.stall_seconds, asyncio.get_running_loop().time
        end = now() + self._limits.body_seconds
        parts, more = list[bytes](), True
        try:
            async with asyncio.timeout_at(min(now() + stall_seconds, end)) as patience:
                while more:
                    part, more = await self._part()
                    parts.append(part)
                    if self.record.body_bytes > most:
                        raise self._error(413, f"the body has more than {most:,} bytes", "too_large")
                    self._hold(self.record.body_bytes)
                    if more:
                        patience.reschedule(min(now() + stall_seconds, end))
        except TimeoutError:
            raise self._slow_body() from None
        self._body_read.set()
        return b"".join(parts)

    def _hold(self, size: int) -> None:
        """Have so many bytes of the body in memory, or more.

        Raises:
            Answered: All requests together have no room for them.
        """
        more = max(0, size - self._held_bytes)
        if not self._held.take(more):
            why = "this gateway has as many bytes of requests in memory as it takes: ask again"
            raise self._error(503, why, "busy")
        self._held_bytes += more

    def _slow_body(self) -> Answered:
        self._is_last = True  # what comes of it later is no request
        return self._error(408, "the body did not come in time", "slow_body")

    async def _fit(self, content: bytes) -> tuple[FittedCall, Sequence[int]]:
        """Read and fit a request, in a thread where that takes long; returns its blocks with it."""
        began, encoding = perf_counter(), self._header(b"content-encoding")
        came = self._call, content, encoding, self._headers, self._target, self._key, self._paths
        read, asked = partial(self._fits.read, *came), None
        if encoding:
            asked = await asyncio.to_thread(read)
            self._hold(len(content) + asked.text_bytes)
        elif len(content) <= MOST_QUICK_BYTES:
            asked = read()

        def fit() -> tuple[FittedCall, Sequence[int]]:
            found, record = asked or read(), self.record
            record.model, record.asked, record.budget = found.model, found, found.budget
            fitted = self._fits.fit(found)
            record.fit_ms = round((perf_counter() - began) * 1000, 2)
            return fitted, self._blocks(fitted)

        is_quick = asked is not None and self._fits.is_quick(asked)
        return fit() if is_quick else await asyncio.to_thread(fit)

    def _blocks(self, fitted: FittedCall) -> Sequence[int]:
        """Number what is sent, if it is a conversation and no compression of one."""
        is_plain = fitted.is_changed or not self._header(b"content-encoding")
        return blocks_of(fitted.content) if is_plain and fitted.conversation else ()

    def _note(self, fitted: FittedCall, blocks: Sequence[int]) -> None:
        """Note what is sent."""
        record = self.record
        record.asked, record.blocks = fitted, blocks
        record.told, record.reasons, record.conversation = fitted.told, fitted.reasons, fitted.conversation

    def _upstream(self, model: str | None) -> Upstream:
        found = self._upstreams.find(self._api, model, self._key)
        if found is None:
            named = "" if model is None else f" with the model {model!r:.100}"
            why = f"this gateway has no upstream for the API {self._api}{named}: start it with --upstream"
            raise self._error(404, why, "no_upstream")
        self.record.upstream = found.name
        return found

    async def _ask_fitted(self, upstream: Upstream, fitted: FittedCall) -> _Answer:
        host = self._upstreams.host(upstream)
        headers = for_upstream(self._headers, host=host, readable=True, decoded=fitted.is_changed)
        headers.append((b"content-length", b"%d" % len(fitted.content)))
        self.record.sent_bytes = len(fitted.content)
        return await self._ask(upstream, headers, fitted.content)

    async def _ask(self, upstream: Upstream, headers: Any, content: Any) -> _Answer:
        """Ask an upstream; whatever comes then, its answer is closed when the exchange ends."""
        try:
            response = await self._upstreams.ask(upstream, self._method, self._target, headers, content)
        except FAILURES as error:
            raise self._error(*failure_of(error)) from error
        self._asked = answer = _Answer(response)
        if not 200 <= answer.status <= 599:  # none that a server can send on
            why = f"the upstream answered with the status {answer.status}, which nobody knows"
            raise self._error(502, why, "upstream_failed")
        return answer

    async def _fit_again(
        self, answer: _Answer, fitted: FittedCall
    ) -> tuple[FittedCall, Sequence[int]] | None:
        """Read why an upstream refused a request, and fit that otherwise; None: the answer is passed on."""
        try:
            said = await answer.peek(MOST_REFUSAL_BYTES)
        except FAILURES as error:
            raise self._error(*failure_of(error)) from error
        text = AnswerReader(answer.header(b"content-encoding")).read(said)

        def fit() -> tuple[FittedCall, Sequence[int]] | None:
            again = self._fits.fit_again(fitted, text)
            return None if again is None else (again, self._blocks(again))

        return await asyncio.to_thread(fit)

    # -- the answer

    async def _pass_answer(self, answer: _Answer, watch: _Watch, reader: BillReader | None = None) -> None:
        """Pass an answer on as it comes; each part is sent before anything else is done with it."""
        record = self.record
        record.status, record.first_ms = answer.status, record.since()
        await self._start(answer.status, for_client(answer.headers, self._own_headers()))
        more = True
        try:
            async for part in answer.parts():
                more = record.answer_bytes + len(part) != answer.length
                if not more:
                    watch.stop()  # who has all of it may close at once, and is not gone
                await self._say_part(part, more=more)
                record.answer_bytes += len(part)
                if reader is not None:
                    reader.take(part)
        except FAILURES as error:
            raise _Broken from error
        finally:
            answer.close()
        if more:
            watch.stop()
            await self._say_part(b"", more=False)

    async def _answer(self, error: Answered) -> None:
        """Answer in the place of an upstream."""
        record = self.record
        record.status, record.end = error.status, error.reason
        record.told = error.told or record.told  # what was sent stands, also where its upstream failed
        if isinstance(error.__cause__, BudgetExceededError):
            record.refusal = error.__cause__
        body = json.dumps(error.body).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        if error.status == 503:
            headers.append((b"retry-after", b"1"))
        if self._is_last:
            headers.append((b"connection", b"close"))
        try:
            await self._start(error.status, [*headers, *self._own_headers()])
            body = b"" if self._method == "HEAD" else body
            await self._say_part(body, more=False)
        except _ClientGone:
            record.end = "client_gone"

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._has_begun = True
        await self._say({"type": "http.response.start", "status": status, "headers": headers})

    async def _say_part(self, body: bytes, *, more: bool) -> None:
        await self._say({"type": "http.response.body", "body": body, "more_body": more})

    async def _say(self, message: dict[str, Any]) -> None:
        """Send a part; a client that takes nothing for long is as good as gone."""
        try:
            async with asyncio.timeout(self._limits.stall_seconds):
                await self._send(message)
        except (TimeoutError, OSError) as error:
            raise _ClientGone from error

    def _own_headers(self) -> list[tuple[bytes, bytes]]:
        """Write what the gateway tells a client; the report is a dictionary of RFC 9651."""
        made = [(b"trimtab-request-id", self.record.id.encode())]
        told = [f"{key}={value}" for key, value in self.record.told.items() if value is not None]
        return [*made, (b"trimtab-report", ", ".join(told).encode())] if told else made

    def _error(self, status: int, message: str, reason: str) -> Answered:
        said = f"trimtab: {message}"
        return Answered(status, write_error(self._call.api, status, said), reason)
