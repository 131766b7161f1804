"""Messages read and measured one by one, and the units they make."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab.conversation.pairing import pair
from trimtab.counting.shorten import marker_with
from trimtab.counting.sizes import Fixed, Shares, Sizes, sizes_for
from trimtab.errors import CountingError, FormatError
from trimtab.formats import Dict, Format, Path, Structure, TextSlot, detect, leading_system, mapping_of
from trimtab.formats.foreign import check_message
from trimtab.formats.handles import call_text, is_safe_id
from trimtab.formats.origin import OriginName, Origins, check_origin, lower
from trimtab.session.options import Options
from trimtab.session.plain import copy_plain, holds_texts
from trimtab.session.state import Members
from trimtab.strategies.clamp_results import clamp_texts, text_size
from trimtab.strategies.fact_extractor import FACTS_TAG, Fact, facts_message
from trimtab.strategies.rules_message import RULES_TAG, found_rules_message, rules_message
from trimtab.strategies.summarizer import SUMMARY_TAG, role_notes, summary_message

if TYPE_CHECKING:
    from trimtab.report import SummaryCheck

RESULT_TAG = "tool_result"
"""The element around a late result whose call was already summarized."""

RECALL_TAG = "recalled"
"""The element around a recalled message."""

CLAMP_MARKER = marker_with("message {}")
"""Marks the place in a view where a result was cut, with the id of its event for `Session.view_of`."""

_READ_MARKER = marker_with(call_text("{}"))
"""The same where the model has a tool that reads it: event ids are told apart where ids of calls are not."""

# Signs that leave no trace on a screen, and that a model may read over: Default_Ignorable_Code_Point and
# category Cf of Unicode 16, controls that are no blanks, lone surrogates.
_UNSEEN = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)


def _letters_of(name: str) -> str:
    """Match a name, whatever stands unseen between its letters."""
    return f"[{_UNSEEN}]*".join(name)


_TAGS = (SUMMARY_TAG, RESULT_TAG, RECALL_TAG, FACTS_TAG, RULES_TAG)

# No two repeats in a row that may match the same, and none may match `<`: each sign is looked at once.
_IMITATION = re.compile(
    rf"<[\s/{_UNSEEN}]*(?:{'|'.join(map(_letters_of, _TAGS))})",
    re.IGNORECASE,
)
"""The beginning of what could be an element of trimtab's.

What stands in it is not looked at: an attribute may hold `>`, go on for pages, or spell the name of trimtab
in character references.
"""

_OWN_NAME = re.compile(_letters_of("trimtab"), re.IGNORECASE)

_REFERENCE = re.compile(r"(&#x?)([0-9a-f]+)", re.IGNORECASE)
"""A character by its number. HTML takes any number of zeros before it; no character has eight digits."""


def imitations(text: str, /) -> list[int]:
    """Return where, in the text of a message, an element begins that looks like one of trimtab's marks.

    An element of one of its names, and its own name anywhere: `<summary>` alone is common in web pages.
    """
    places = [found.start() for found in _IMITATION.finditer(text)]
    return places if places and _OWN_NAME.search(_without_references(text)) else []


def _without_references(text: str) -> str:
    """Return the text with its character references written out."""
    from html import unescape  # not above: it brings every named entity of HTML

    # Python refuses to read numbers of thousands of digits.
    return unescape(_REFERENCE.sub(lambda found: found[1] + found[2].lstrip("0")[:8], text))


def escape_marks(format: Format, message: Dict, /) -> Dict:
    """Return the message, or a copy in which what looks like a mark of trimtab's is escaped.

    Only the sign that opens it changes, so that the text still reads as what it is: text. The texts of a
    message are looked at as one: providers put them one behind the other.
    """
    slots = list(format.texts(message))
    places = imitations("".join(slot.text for slot in slots))
    if not places:
        return message
    texts: dict[Path, str] = {}
    start = 0
    for slot in slots:
        end = start + len(slot.text)
        here = places[bisect_left(places, start) : bisect_left(places, end)]
        if here:
            borders = [place - start for place in here]
            pieces = [slot.text[one:after] for one, after in pairwise((0, *borders, len(slot.text)))]
            texts[slot.path] = "".join((pieces[0], *("&lt;" + piece[1:] for piece in pieces[1:])))
        start = end
    return mapping_of(format.with_texts(message, texts))


def result_as_text(format: Format, message: Dict, answers: Sequence[tuple[str, int | None]], /) -> Dict:
    """Write results whose calls are no longer in view as marked, escaped text.

    It stands there as something the user passes on: no role with more say than that. Where the message
    holds more than results, that stays beside them, and is said by who said it. `answers` are the call id and
    the part of each result as the format read them; part None: the whole message.
    """
    from html import escape  # not above: it brings every named entity of HTML

    key = format.rules.parts_key
    results = {part for _, part in answers if part is not None}
    said = [
        slot.text
        for slot in format.texts(message)
        if not results or (slot.path[0] == key and slot.path[1] in results)
    ]
    body = escape("\n".join(said), quote=False)
    of = escape(", ".join(call_id for call_id, _ in answers), quote=True)
    text = f'<{RESULT_TAG} of="{of}" by="trimtab">\n{body}\n</{RESULT_TAG}>'
    if not results:
        return format.message("user", [text])
    # Without the results first: what stood apart is neighbours then.
    rest = [part for at, part in enumerate(message[key]) if at not in results]
    rest = escape_marks(format, {**message, key: rest})[key]
    role = "assistant" if format.kind(message) == "assistant" else "user"
    return format.message(role, [text, *rest])


class Read(NamedTuple):
    """What a format tells about one message."""

    kind: str
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    bound: bool
    """Whether it belongs to the message before it."""
    kept: bool
    """Whether it replaces everything before it."""


class Shown(NamedTuple):
    """A message as a view shows it, and whether it is unchanged."""

    message: Dict
    as_text: bool
    """The result of a missing call."""
    escaped: bool
    """It looked like a mark of trimtab's."""
    clamped: bool = False
    """A result in it was above its share."""
    origins: Origins = frozenset()
    """The origins of its content, even if it is shown in another role."""
    whole: Dict | None = None
    """How it is shown while it is the newest, if it is cut later."""


class MessageReader:
    """Reads and measures messages one by one, as an options' format and counter say."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.format = options.wire_format
        # In a context, what stands beside the messages is charged there.
        fixed = Fixed(system=self.system_apart, tools=options.tools) if options.context is None else None
        self._sizes: Sizes = sizes_for(options.tokens_by, [], fixed)
        self._clamp = options.clamp
        self._binds_thinking = options.binds_thinking
        self._count_text = text_size(sizes_for(options.tokens_by, [], Fixed()), self.format)

    @property
    def answer_tokens(self) -> int | None:
        """How much of a result is shown whole, whatever the view holds; None: any is."""
        return None if self._clamp is None else self._clamp.limit_tokens

    def count_text(self, text: str, /) -> int:
        """Count the tokens of one text, as is done to see whether it is too large."""
        return self._count_text(text)

    @property
    def system_apart(self) -> Any:
        """The system text, if the wire form keeps it outside the messages and no context has it."""
        options = self.options
        apart = options.context is None and not self.format.rules.system_in_messages
        return options.system if apart else None

    def fixed_tokens(self) -> int:
        """Return the cost of a request in addition to its messages."""
        if self.options.context is not None:
            return 0
        # Without system text a summary or an anchor may come to stand first, and may be a system message.
        return self._beside(self._sizes, leads_system=self.system_message() is not None)

    def framing_tokens(self) -> int:
        """Return the cost of an empty request."""
        return self._beside(sizes_for(self.options.tokens_by, [], Fixed()), leads_system=True)

    def _beside(self, sizes: Sizes, *, leads_system: bool) -> int:
        if not isinstance(sizes, Shares):
            return sizes.most_fixed_tokens(leads_system)
        try:
            return sizes.request_tokens([])
        except CountingError:
            return 0  # a black box that refuses a request without messages charges nothing for one

    def tokens(self, message: Dict, /) -> int:
        """Return the tokens of one message."""
        return self._sizes.alone(message)

    def lasting_tokens(self, message: Dict, /) -> int:
        """Return the tokens of one message that no change to what was before it takes.

        Args:
            message: The message, of whose thinking a view takes leave first where the model binds it.
        """
        return self.tokens(self._bare(message))

    def passing_tokens(self, message: Dict, /) -> int:
        """Return what of a message is thinking that the model binds to what was before it.

        Args:
            message: The message; of one that is nothing else it is none.
        """
        bare = self._bare(message)
        return 0 if bare is message else self.tokens(message) - self.tokens(bare)

    def _bare(self, message: Dict) -> Dict:
        bare = self.format.without_thinking(message) if self._binds_thinking else message
        return message if bare is None else bare

    def read(self, message: Dict, /, behind: Iterable[Dict] = ()) -> Read:
        """Look a message over: whom it is from, which calls it makes or answers.

        Args:
            message: The message.
            behind: The messages of the unit it stands directly behind: it may be bound to them, and what
                it answers may go by them.
        """
        messages = [*behind, message]
        at = len(messages) - 1
        structure = self._structure(messages)
        pair(structure, range(len(messages)))  # which names what is answered without an id
        answers = tuple(call_id for call_id, _ in structure.answers.get(at, ()))
        return Read(
            self.format.kind(message),
            structure.calls.get(at, ()),
            answers,
            bound=at - 1 in structure.bound or at - 1 in structure.thought,
            kept=at in structure.kept,
        )

    def check(self, message: Dict, /) -> None:
        """Refuse a message with which no view could be sent.

        Raises:
            FormatError: It cannot be read, or has the role or the shape of another wire form.
        """
        try:
            check_message(message, self.format.name)
        except FormatError as error:
            other = detect([message])
            if other.name == self.format.name:
                raise
            raise FormatError(
                f"{error}; or, if the session is to have messages of {other.name}, make it with"
                f" format={other.name!r}"
            ) from None
        self.read(message)

    def _structure(self, messages: list[Dict]) -> Structure:
        structure = Structure(len(messages))
        self.format.scan(messages, 0, len(messages), structure)
        return structure

    def answers(self, message: Dict, /) -> tuple[tuple[str, int | None], ...]:
        """Return the ids of the calls whose results a message has, each with its part; None: all of it."""
        return tuple(self._structure([message]).answers.get(0, ()))

    def open_calls(self, messages: Iterable[Dict], /) -> tuple[str, ...]:
        """List the calls among the messages of a unit whose results are not there."""
        listed = list(messages)
        pairing = pair(self._structure(listed), range(len(listed)))
        return tuple(call_id for _, call_id in pairing.unanswered)

    def leads(self, unit: SessionUnit, /) -> bool:
        """Tell whether the provider accepts a unit as the first of a conversation."""
        if unit.leads is None:
            first = next(iter(unit.members.values()))
            fault = self.format.order_fault(None, first, parted=True)
            unit.leads = fault is None and self.format.kind(first) != "system"
        return unit.leads

    def show(self, data: Mapping[str, Any], /, id: str | None) -> Shown:
        """Return a message of the log as a view shows it.

        Args:
            data: What the log has of it.
            id: That of its event, for the marker where a result is cut; None: none is.
        """
        message = data["message"]
        if data.get("alone"):
            said = self.clamp(message, id)
            answers = self._structure([message]).answers.get(0, ())
            return Shown(
                result_as_text(self.format, said, answers),
                as_text=True,
                escaped=False,
                clamped=said is not message,
                origins=self.origins(data),
                whole=result_as_text(self.format, message, answers)
                if self._is_spared(said, message)
                else None,
            )
        safe = escape_marks(self.format, message)
        # Behind the escapes: the marker has the name of trimtab in it, which would make marks of common tags.
        said = self.clamp(safe, id)
        return Shown(
            said,
            as_text=False,
            escaped=safe is not message,
            clamped=said is not safe,
            origins=self.origins(data),
            whole=safe if self._is_spared(said, safe) else None,
        )

    def _is_spared(self, said: Dict, message: Dict) -> bool:
        """Tell whether a cut message is shown in full while it is the newest."""
        return said is not message and self._clamp is not None and self._clamp.spares_newest

    def origins(self, data: Mapping[str, Any], /) -> Origins:
        """Return the origins of a message of the log: by its form, and lowered by the host if so.

        Args:
            data: What the log has of it.
        """
        return lower(self.format.origins(data["message"]), data.get("origin"))

    def check_origin(self, message: Dict, origin: object, /) -> OriginName | None:
        """Return the origin that the host gave a message, if it lowers something.

        Raises:
            ConfigurationError: It is not an origin, or would raise the message's authority.
        """
        return None if origin is None else check_origin(self.format.origins(message), origin)

    def clamp(self, message: Dict, id: str | None, /) -> Dict:
        """Cut what is too large; a marker has the id by which the full text is found."""
        clamp = self._clamp
        if clamp is None or id is None:
            return message
        slots = self.format.texts(message)
        if clamp.spares_newest and _byte_count(slots) <= clamp.limit_tokens:
            # A token holds a byte or more, so none of this can pass the limit: it is not counted for it.
            # Where a counter charges more than that, a result that does may stay whole, as with no limit.
            return message
        cut = clamp_texts(
            self.format,
            slots,
            clamp.share_tokens,
            count=self._count_text,
            limit_tokens=clamp.limit_tokens,
            text_limit_tokens=clamp.text_limit_tokens,
            marker=(_READ_MARKER if clamp.offers_reading and is_safe_id(id) else CLAMP_MARKER).format(id),
        )
        return mapping_of(self.format.with_texts(message, cut)) if cut else message

    def system_message(self) -> Dict | None:
        """Write the system text as a message, where it is one."""
        if self.options.context is not None:
            return None  # in a context it stands at the front of the request, not of the history
        return next(iter(leading_system(self.options.system, self.format)), None)

    def summary_message(self, text: str, messages: int, origins: Origins, /) -> Dict:
        """Write a summary as a message, marked and escaped."""
        options = self.options
        return summary_message(
            self.format,
            options.summary_role,
            text,
            messages=messages,
            origins=origins,
            trusted=options.trust_summaries,
        )

    def facts_message(self, facts: Sequence[Fact], /) -> Dict:
        """Write facts as a message, marked and escaped, in the role of a summary."""
        options = self.options
        return facts_message(self.format, options.summary_role, facts, trusted=options.trust_summaries)

    def rules_message(self, rules: Sequence[str], /) -> Dict:
        """Write the host's rules as a message, marked and escaped."""
        return rules_message(self.format, rules)

    def found_rules_message(self, rules: Sequence[str], /) -> Dict:
        """Write rules that users said as a message, marked and escaped, in the role of a summary."""
        return found_rules_message(self.format, self.options.summary_role, rules)

    def role_notes(self, origins: Origins, /) -> tuple[str, ...]:
        """Say that a summary or facts of these sources are not written in the role asked for."""
        options = self.options
        return role_notes(self.format, options.summary_role, origins, trusted=options.trust_summaries)


def _byte_count(slots: Iterable[TextSlot]) -> int:
    """Return how many bytes texts have in UTF-8."""
    texts = (slot.text for slot in slots)
    return sum(len(text if text.isascii() else text.encode(errors="surrogatepass")) for text in texts)


@dataclass(slots=True)
class SessionUnit:
    """Messages that are kept or evicted together and are not summarized yet."""

    first: int
    """Version of its first message."""
    members: dict[int, Dict] = field(default_factory=dict)
    """The messages as shown, by version, ascending."""
    sizes: tuple[int, ...] = ()
    """Tokens of each."""
    origins: tuple[Origins, ...] = ()
    """The origins of each message."""
    tokens: int = 0
    as_text: int = 0
    """Results among them that are shown as text, because their call is missing."""
    clamped: int = 0
    """Messages with a result that was cut to its share."""
    escaped: int = 0
    """Messages in which what looked like a mark of trimtab's was escaped."""
    whole: dict[int, Dict] = field(default_factory=dict)
    """By version, those that are cut, as they are shown while they are the newest."""
    leads: bool | None = None
    """Whether the provider accepts it as the first of a conversation; None: not checked yet."""
    _copies: list[Dict] | None = None
    """The copies in the last view, if it can be told whether they were changed since."""

    def take(self, version: int, shown: Shown, tokens: int, /) -> None:
        """Add a message."""
        # never in place: a property may be going through them in another thread
        self.members = {**self.members, version: shown.message}
        self.sizes = (*self.sizes, tokens)
        self.origins = (*self.origins, shown.origins)
        self.tokens += tokens
        self.as_text += shown.as_text
        self.escaped += shown.escaped
        self.clamped += shown.clamped
        if shown.whole is not None:
            self.whole = {**self.whole, version: shown.whole}

    def without(self, version: int, /) -> SessionUnit:
        """Return it without one of its messages."""
        rest = SessionUnit(self.first)
        columns = zip(self.sizes, self.origins, self.members.items(), strict=True)
        for size, origins, (one, message) in columns:
            if one != version:
                whole = self.whole.get(one)
                rest.take(
                    one, Shown(message, as_text=False, escaped=False, origins=origins, whole=whole), size
                )
        return rest

    def copies(self) -> list[Dict]:
        """Return copies of its messages for a view: those given before, unless somebody changed them.

        To compare costs a twentieth of a copy. What holds numbers is always copied: True is equal to 1.
        """
        held = list(self.members.values())
        known = self._copies
        if known is not None and known == held:
            return known
        copies: list[Dict] = copy_plain(held)
        self._copies = copies if holds_texts(held) else None
        return copies

    @property
    def versions(self) -> Members:
        """Versions of its messages."""
        return tuple(self.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A current summary."""

    version: int
    text: str
    messages: int
    """How many messages it replaces, including those of the summaries before it."""
    origins: Origins
    """The origins of the messages it replaces; none if they were not recorded, as before 0.2."""
    message: Dict
    tokens: int
    checked: SummaryCheck | None = None
    """What became of the values that it must keep; None: it was not checked."""
