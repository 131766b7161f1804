"""`allocate`: the room is shared by rank; caps, floors and what must stay hold as SPEC D5 says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.plain_allocation import plain_limits
from trimtab import BudgetExceededError, ConfigurationError
from trimtab.context import Claim, allocate, offers


def claim(line: str) -> Claim:
    """Write a claim in a word: `a50` needs 50; rank `^2`, floor `>10`, cap `<30`, must `!5`, share `%3`."""
    numbers = {"^": 0, ">": 0, "<": None, "!": 0, "%": None}
    name, rest, key = line[0], line[1:], ""
    need = ""
    for letter in rest:
        if letter in numbers:
            key = letter
            numbers[key] = 0
        elif key:
            numbers[key] = (numbers[key] or 0) * 10 + int(letter)
        else:
            need += letter
    return Claim(
        name=name,
        need_tokens=int(need),
        rank=numbers["^"] or 0,
        floor_tokens=numbers[">"] or 0,
        cap_tokens=numbers["<"],
        must_tokens=numbers["!"] or 0,
        share=numbers["%"],
    )


def limits(line: str, room: int, **options: object) -> str:
    """Allocate claims written in words, and write the limits."""
    allocation = allocate([claim(word) for word in line.split()], room, **options)
    return " ".join(f"{name}{tokens}" for name, tokens in allocation.limits.items())


@pytest.mark.parametrize(
    ("claims", "room", "expected"),
    [
        pytest.param("a50 b40", 100, "a50 b40", id="room-to-spare"),
        pytest.param("a50 b50", 100, "a50 b50", id="exactly"),
        pytest.param("a50 b51", 100, "a49 b51", id="one-over-the-older-gives-way"),
        pytest.param("a50^1 b60", 100, "a50 b50", id="rank-goes-first"),
        pytest.param("a500^1 b60", 100, "a100 b0", id="rank-takes-all"),
        pytest.param("a500^1<70 b60", 100, "a70 b30", id="cap"),
        pytest.param("a50<20 b10", 100, "a20 b10", id="cap-holds-though-all-fits"),
        pytest.param("a500^1 b60>30", 100, "a70 b30", id="floor-of-a-lower-block"),
        pytest.param("a500^1 b10>30", 100, "a90 b10", id="floor-is-no-more-than-the-need"),
        pytest.param("a500^1 b60>30<20", 100, "a80 b20", id="floor-is-lowered-to-the-cap"),
        pytest.param("a90>60 b90>60", 100, "a10 b90", id="floors-pass-the-room"),
        pytest.param("a500^9 b60!40", 100, "a60 b40", id="what-must-stay-is-set-aside"),
        pytest.param("a500^9>90 b60!40", 100, "a60 b40", id="and-is-kept-where-floors-are-ignored"),
        pytest.param("a90%1 b90%3", 100, "a25 b75", id="shares"),
        pytest.param("a90%1 b30%3", 100, "a70 b30", id="a-share-above-the-need-is-divided-again"),
        pytest.param("a90%1>40 b90%3", 100, "a40 b60", id="a-floor-above-the-share"),
        pytest.param("a90%1 b90%3<50", 100, "a50 b50", id="a-cap-below-the-share"),
        pytest.param("a90%1 b90%1 c90%1", 100, "a33 b33 c34", id="the-largest-remainder"),
        pytest.param("a90%1 b90%2 c90%3", 100, "a17 b33 c50", id="a-larger-remainder-goes-first"),
        pytest.param("a90%1>50 b90%1<20 c90%1", 75, "a50 b12 c13", id="the-larger-breach-is-fixed-first"),
        pytest.param("a90%3 b90", 100, "a75 b25", id="no-share-beside-one-is-1"),
        pytest.param("a90%3 b90 c500^1<40", 100, "a45 b15 c40", id="shares-of-what-is-left"),
        pytest.param("a5", 0, "a0", id="no-room"),
        pytest.param("", 5, "", id="no-blocks"),
    ],
)
def test_limits(claims: str, room: int, expected: str) -> None:
    """Each block gets what is left over what is set aside and held for those below."""
    assert limits(claims, room) == expected


def test_ties_first_serves_who_was_added_first() -> None:
    """seeds/001 serves in order of adding, seeds/000 trims the older."""
    assert limits("a60 b60", 100, ties="first") == "a60 b40"
    assert limits("a60 b60", 100, ties="newest") == "a40 b60"
    assert limits("a90%1 b90%1 c90%1", 100, ties="first") == "a34 b33 c33"


def test_it_says_when_floors_are_ignored() -> None:
    """Only where they do not fit beside what must stay."""
    assert not allocate([claim("a90>60"), claim("b90>40")], 100).floors_ignored
    assert allocate([claim("a90>60"), claim("b90>41")], 100).floors_ignored
    assert allocate([claim("a90>60"), claim("b90>40"), claim("c9!1")], 100).floors_ignored


@pytest.mark.parametrize(
    ("claims", "block", "needed", "limit"),
    [
        pytest.param("a90!60 b90!41", "a", 101, 100, id="the-room"),
        pytest.param("a90!60^1 b90!41", "b", 101, 100, id="the-one-served-last-is-named"),
        pytest.param("a90!60<50", "a", 60, 50, id="a-cap"),
    ],
)
def test_what_must_stay_and_does_not_fit(claims: str, block: str, needed: int, limit: int) -> None:
    """It is never ignored; the error has the numbers."""
    with pytest.raises(BudgetExceededError) as raised:
        limits(claims, 100)
    assert (raised.value.block, raised.value.needed_tokens, raised.value.limit_tokens) == (
        block,
        needed,
        limit,
    )
    assert f"{needed - limit} too few" in str(raised.value)


@pytest.mark.parametrize(
    ("claims", "room", "options", "words"),
    [
        ([claim("a5"), claim("a6")], 10, {}, "two claims are named 'a'"),
        ([Claim(name="a", need_tokens=-1)], 10, {}, "claim 'a' has a negative"),
        ([claim("a5")], -1, {}, "room_tokens must be >= 0"),
        ([claim("a5")], 10, {"ties": "last"}, "ties must be 'newest' or 'first', not 'last'"),
    ],
)
def test_nonsense_is_refused(claims: list[Claim], room: int, options: dict[str, str], words: str) -> None:
    """Each error says what it found."""
    with pytest.raises(ConfigurationError, match=words):
        allocate(claims, room, **options)


def _settle(claims: list[Claim], room: int, used: dict[str, int]) -> list[tuple[str, int]]:
    """Run the fold with blocks that use at most so much; list the offers."""
    fold, made = offers(claims, room, ties="newest"), []
    try:
        offer = next(fold)
        while True:
            name = claims[offer.at].name
            made.append((name, offer.limit_tokens))
            offer = fold.send(min(offer.limit_tokens, used.get(name, 10**9)))
    except StopIteration:
        return made


def test_what_a_block_does_not_use_goes_on_to_the_next() -> None:
    """A strategy of whole messages seldom uses its limit to the token."""
    assert _settle([claim("a80^2"), claim("b90")], 100, {"a": 55}) == [("a", 80), ("b", 45)]


def test_room_held_for_a_floor_and_not_used_is_offered_again_from_the_top() -> None:
    """The documents drop out whole, so the history gets their floor after all."""
    claims = [claim("h500^2"), claim("d90>30")]
    assert _settle(claims, 100, {"d": 0}) == [("h", 70), ("d", 30), ("h", 100)]


def test_what_the_first_takes_of_a_second_offer_the_next_does_not_get() -> None:
    """And what it leaves goes on."""
    claims = [claim("h80^3"), claim("b500^2"), claim("d90>30")]
    assert _settle(claims, 100, {"d": 0}) == [("h", 70), ("b", 0), ("d", 30), ("h", 80), ("b", 20)]


def test_who_may_not_be_asked_twice_is_not_offered_again() -> None:
    """Another summary would cost another call of a model."""
    claims = [Claim(name="h", need_tokens=500, rank=2, once=True), claim("d90>30")]
    assert _settle(claims, 100, {"d": 0}) == [("h", 70), ("d", 30)]


def test_of_shares_what_is_left_goes_to_the_other_members_first() -> None:
    """The first served uses half of its part; the second gets the rest."""
    assert _settle([claim("a90%1"), claim("b90%1")], 100, {"b": 20}) == [("b", 50), ("a", 80)]


numbers = st.integers(0, 60)
claims_of = st.lists(
    st.builds(
        Claim,
        name=st.just("?"),
        need_tokens=numbers,
        rank=st.integers(0, 3),
        floor_tokens=st.one_of(st.just(0), numbers),
        cap_tokens=st.one_of(st.none(), numbers),
    ),
    max_size=6,
).map(lambda claims: [_named(claim, at) for at, claim in enumerate(claims)])


def _named(claim: Claim, at: int, **changes: object) -> Claim:
    values = {name: getattr(claim, name) for name in Claim.__slots__}
    return Claim(**{**values, "name": f"b{at}", **changes})


@given(claims=claims_of, room=st.integers(0, 150), ties=st.sampled_from(["newest", "first"]))
def test_limits_are_those_of_a_plain_restatement(claims: list[Claim], room: int, ties: str) -> None:
    """D5 written again in another way, from the numbers alone."""
    allocation = allocate(claims, room, ties=ties)
    assert allocation.limits == plain_limits(claims, room, ties=ties)


@given(claims=claims_of, room=st.integers(0, 150))
def test_the_room_and_the_caps_hold_and_nothing_is_wasted(claims: list[Claim], room: int) -> None:
    """The sum is within the room; room is unused only where every block has its need or its cap."""
    allocation = allocate(claims, room)
    assert sum(allocation.limits.values()) + allocation.unused_tokens == room
    for one in claims:
        assert 0 <= allocation.limits[one.name] <= one.most_tokens
        if allocation.unused_tokens:
            assert allocation.limits[one.name] == one.most_tokens
    if not allocation.floors_ignored:
        for one in claims:
            assert allocation.limits[one.name] >= min(one.floor_tokens, one.most_tokens)


@given(claims=claims_of.filter(len), room=st.integers(0, 150), data=st.data())
def test_a_higher_rank_never_lowers_a_limit(claims: list[Claim], room: int, data: st.DataObject) -> None:
    """Raising one block's rank costs the others, not itself."""
    at = data.draw(st.integers(0, len(claims) - 1))
    raised = list(claims)
    raised[at] = _named(claims[at], at, rank=claims[at].rank + data.draw(st.integers(1, 4)))
    assert allocate(raised, room).limits[f"b{at}"] >= allocate(claims, room).limits[f"b{at}"]


@given(
    weights=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    needs=st.lists(st.integers(0, 60), min_size=6, max_size=6),
    room=st.integers(0, 200),
)
def test_shares_are_within_one_token_of_their_weight(weights: list[int], needs: list[int], room: int) -> None:
    """Who is below its need got its weight's part of what those below their need divide."""
    claims = [
        Claim(name=f"b{at}", need_tokens=need, share=weight)
        for at, (weight, need) in enumerate(zip(weights, needs, strict=False))
    ]
    found = allocate(claims, room).limits
    hungry = [at for at, one in enumerate(claims) if found[one.name] < one.need_tokens]
    whole = sum(weights[at] for at in hungry)
    divided = sum(found[claims[at].name] for at in hungry)
    for at in hungry:
        assert abs(found[claims[at].name] - divided * weights[at] / whole) < 1.0001
    if hungry:
        assert sum(found.values()) == room


def test_what_members_leave_of_their_parts_adds_up() -> None:
    """Of 15 each has 5; the first leaves 2 of it, the second 3 of its 7, and the third is offered both."""
    claims = [Claim(name=name, need_tokens=10, share=1) for name in "abc"]
    fold = offers(claims, 15, ties="first")
    assert next(fold).limit_tokens == 5
    assert fold.send(3).limit_tokens == 7
    assert fold.send(4).limit_tokens == 8
