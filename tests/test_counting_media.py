"""What images, sounds and files cost, from as much of them as a message holds."""

from __future__ import annotations

import base64
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.complexity.counting_machine import operations_of
from trimtab.counting import TextCounter
from trimtab.formats import Media, get_format
from trimtab.models import MediaRule, facts_for


def png(width: int, height: int) -> bytes:
    """Make the first bytes of a PNG."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIB", 13, b"IHDR", width, height, 8)


def gif(width: int, height: int) -> bytes:
    """Make the first bytes of a GIF."""
    return b"GIF89a" + struct.pack("<HHB", width, height, 0)


def jpeg(width: int, height: int) -> bytes:
    """Make a JPEG up to its frame, with 60,000 bytes of EXIF before it."""
    exif = b"\xff\xe1" + struct.pack(">H", 60_000) + b"\xff\xc0" * 29_999
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 17, 8, height, width, 3)
    return b"\xff\xd8" + exif + b"\xff\xc4\x00\x04\x00\x00" + frame + bytes(16)


def webp_lossy(width: int, height: int) -> bytes:
    """Make the first bytes of a lossy WebP."""
    return b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0" + b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)


def webp_lossless(width: int, height: int) -> bytes:
    """Make the first bytes of a lossless WebP."""
    bits = (width - 1) | (height - 1) << 14
    return b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", bits) + bytes(8)


def webp_extended(width: int, height: int) -> bytes:
    """Make the first bytes of an extended WebP."""
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + sides


def encoded(data: bytes) -> str:
    """Write bytes as base64."""
    return base64.b64encode(data).decode()


def image(data: str | None, detail: str | None = None) -> Media:
    """Make an image of a message."""
    return Media("image", detail, data, None)


def counter_by(rule: MediaRule) -> TextCounter:
    """Make a counter of media by a rule."""
    return TextCounter(len, name="characters", media=rule)


def media_tokens(media: Media, rule: MediaRule) -> int:
    """Count one medium."""
    return counter_by(rule).media_tokens(media)


def is_seen(media: Media, rule: MediaRule) -> bool:
    """Tell whether a medium shows what it costs."""
    return counter_by(rule).sees(media)


PIXELS = MediaRule(image_tokens=0, pixels_per_token=1, long_pixels=100_000)
"""Each pixel is charged, so that a count tells an image's size."""


@pytest.mark.parametrize("make", [png, gif, jpeg, webp_lossy, webp_lossless, webp_extended])
@given(st.integers(1, 16_000), st.integers(1, 16_000))
def test_the_size_of_an_image_is_read_from_its_first_bytes(
    make: Callable[[int, int], bytes], width: int, height: int
) -> None:
    """In every form providers take, and in both alphabets of base64: google-genai writes that of URLs."""
    data = make(width, height)
    for written in (encoded(data), base64.urlsafe_b64encode(data).decode()):
        made = image(written)
        assert is_seen(made, PIXELS)
        assert media_tokens(made, PIXELS) == width * height


@pytest.mark.parametrize("marker", [0xC4, 0xC8, 0xCC])
def test_tables_before_the_frame_of_a_jpeg_are_no_frame(marker: int) -> None:
    """Three of the markers from C0 to CF are not the start of one (T.81, table B.1)."""
    table = bytes([0xFF, marker, 0, 9, 8, 0, 1, 0, 1, 3, 0])
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, 30, 40, 3) + bytes(16)
    assert media_tokens(image(encoded(b"\xff\xd8" + table + frame)), PIXELS) == 40 * 30


@given(st.binary(max_size=60) | st.builds(lambda cut: jpeg(10, 10)[:cut], st.integers(0, 60_040)))
def test_what_is_no_image_has_no_size(data: bytes) -> None:
    """Cut off, damaged, or something else: no error, at most a size."""
    assert media_tokens(image(encoded(data)), PIXELS) > 0
    assert not is_seen(image("not base64 at all!"), PIXELS)


TILES = facts_for("gpt-4o").media
PATCHES = facts_for("gpt-4.1-nano").media


@pytest.mark.parametrize(
    ("rule", "size", "tokens"),
    [
        # the examples of the provider's guide
        pytest.param(TILES, (1_024, 1_024), 765, id="square"),
        pytest.param(TILES, (2_048, 4_096), 1_105, id="tall"),
        # billed: 1,119 of which 14 were text and framing
        pytest.param(TILES, (3_008, 2_000), 1_105, id="billed"),
        # never scaled up: 85 + 170
        pytest.param(TILES, (128, 64), 255, id="small"),
        pytest.param(TILES, (1, 100_000), 85 + 4 * 170, id="a-line"),
        # 204 patches x 2.46, and 2
        pytest.param(PATCHES, (540, 360), 504, id="patches"),
        pytest.param(facts_for("gpt-5-mini").media, (256, 256), 2 + 77, id="patches-measured"),
        pytest.param(facts_for("gpt-5-mini").media, (1_024, 1_024), 2 + 1_229, id="patches-measured-large"),
        pytest.param(facts_for("gpt-5-mini").media, (9_000, 9_000), 2 + 1_844, id="patches-capped"),
    ],
)
def test_an_image_costs_what_the_rule_says(rule: MediaRule, size: tuple[int, int], tokens: int) -> None:
    """By tiles or by patches."""
    data = "data:image/png;base64," + encoded(png(*size))
    assert media_tokens(image(data), rule) == tokens


@pytest.mark.parametrize(
    "data", [None, "https://example.org/a.png", "data:image/png;base64,", "data:image/png"]
)
def test_an_image_of_unknown_size_costs_the_most_it_can(data: str | None) -> None:
    """We do not look it up, and err high."""
    assert media_tokens(image(data), TILES) == 85 + 8 * 170
    assert media_tokens(image(data, "low"), TILES) == 85
    assert media_tokens(image(data), PATCHES) == 2 + 3_779


@given(st.integers(1, 20_000), st.integers(1, 20_000))
def test_no_known_size_costs_more_than_the_unknown(width: int, height: int) -> None:
    """So an estimate of the unknown errs high only."""
    data = encoded(png(width, height))
    for rule in (TILES, PATCHES):
        assert media_tokens(image(data), rule) <= media_tokens(image(None), rule)


@pytest.mark.parametrize("kind", ["image", "audio", "file"])
def test_a_counter_may_charge_all_media_the_same(kind: Literal["image", "audio", "file"]) -> None:
    """As counters made from a text function do."""
    assert media_tokens(Media(kind, None, "A" * 1_000, None), MediaRule(part_tokens=85)) == 85


def test_sound_is_charged_by_the_second() -> None:
    """Ten tokens, and three; a WAV says its rate, others are taken at 64 kbit/s."""
    head = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + struct.pack("<II", 16_000, 32_000)
    seven_seconds = encoded(head + bytes(7 * 32_000 - len(head)))
    assert media_tokens(Media("audio", None, seven_seconds, None), TILES) == 70 + 3
    assert media_tokens(Media("audio", None, encoded(bytes(8_000)), None), TILES) == 10 + 3
    assert media_tokens(Media("audio", None, None, None), TILES) == 3


def test_a_file_is_charged_by_its_bytes_and_pages() -> None:
    """A PDF by its bytes, at most 1,500 a page it says it has; another by its bytes; unseen 1,500."""
    two_pages = b"%PDF-1.4 /Type /Pages /Type /Page /Type/Page " + bytes(100_000)
    assert (
        media_tokens(Media("file", None, "data:application/pdf;base64," + encoded(two_pages), None), TILES)
        == 3_000
    )
    assert media_tokens(Media("file", None, encoded(b"%PDF-1.4" + bytes(15_992)), None), TILES) == 1_000
    assert media_tokens(Media("file", None, encoded(bytes(3_000)), None), TILES) == 1_000
    assert media_tokens(Media("file", None, None, "file-abc"), TILES) == 1_500


def packed_pdf(pages: int, *, size: int = 0) -> bytes:
    """Make a PDF 1.5 whose pages are compressed objects."""
    objects = b" ".join([b"<< /Type /Pages /Count 9 >>", *[b"<< /Type /Page /Parent 1 0 R >>"] * pages])
    packed = zlib.compress(objects)
    head = b"%%PDF-1.5\n9 0 obj\n<< /Filter /FlateDecode /Type /ObjStm /N 9 /Length %d >>\nstream\r\n" % len(
        packed
    )
    return head + packed + b"\nendstream endobj\n" + bytes(size)


@pytest.mark.parametrize(("model", "page"), [("claude-sonnet-4-5", 1_600), ("gemini-2.5-flash", 258)])
def test_pages_of_a_pdf_are_seen_in_its_compressed_objects(model: str, page: int) -> None:
    """As PDF 1.5 and later write them; where none can be seen, more are taken than is likely."""
    rule = facts_for(model).media
    seen = Media("file", None, encoded(packed_pdf(40, size=5_000_000)), None)
    assert is_seen(seen, rule)
    assert media_tokens(seen, rule) == 40 * page
    encrypted = Media(
        "file",
        None,
        encoded(packed_pdf(40, size=5_000_000).replace(b"/FlateDecode", b"/Other").replace(b"x\x9c", b"??")),
        None,
    )
    assert not is_seen(encrypted, rule)
    assert media_tokens(encrypted, rule) == 100 * page
    assert media_tokens(Media("file", None, encoded(b"%PDF-1.7 " + bytes(25_000)), None), rule) == 3 * page


def test_a_pdf_made_to_be_slow_is_not() -> None:
    """What is unpacked is bounded, in size and in number: a bomb takes no more than 64 MB, junk one look."""
    bomb = packed_pdf(0).replace(
        zlib.compress(b"<< /Type /Pages /Count 9 >>"), zlib.compress(bytes(500_000_000))
    )
    many = b"%PDF-1.7 " + b"/Type /ObjStm stream\n" * 20_000
    rule = facts_for("claude-sonnet-4-5").media
    tracemalloc.start()
    try:
        media_tokens(Media("file", None, encoded(bomb), None), rule)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 150_000_000  # the unpacked bytes are joined once
    looks = operations_of(lambda _: media_tokens(Media("file", None, encoded(many), None), rule))
    assert looks.lines < 10 * 20_000


# -- rules of other providers: worked examples of their documents, and of bills of the half rules are made on


@pytest.mark.parametrize(
    ("model", "size", "tokens"),
    [
        # platform.claude.com/docs/en/build-with-claude/vision: width x height / 750, long side 1,568, ~1,600
        pytest.param("claude-sonnet-4-5", (200, 200), 54, id="claude-small"),
        pytest.param("claude-sonnet-4-5", (1_000, 1_000), 1_334, id="claude-square"),
        pytest.param("claude-sonnet-4-5", (1_092, 1_092), 1_590, id="claude-largest-square"),
        pytest.param("claude-sonnet-4-5", (8_000, 4_000), 1_600, id="claude-scaled"),
        pytest.param("claude-opus-4-8", (1_920, 1_080), 2_765, id="claude-sharper"),
        # ai.google.dev/gemini-api/docs/tokens: 258 within 384 x 384, else tiles of 258; billed 3,354
        pytest.param("gemini-2.0-flash", (384, 384), 258, id="gemini-small"),
        pytest.param("gemini-2.0-flash", (3_008, 2_000), 3_354, id="gemini-tiled"),
        pytest.param("gemini-2.5-flash", (3_008, 2_000), 258, id="gemini-flat"),
    ],
)
def test_an_image_costs_what_its_provider_says(model: str, size: tuple[int, int], tokens: int) -> None:
    """By its pixels, its tiles, or the same for all."""
    seen = image(encoded(png(*size)))
    assert media_tokens(seen, facts_for(model).media) == tokens
    assert is_seen(seen, facts_for(model).media)


def mp3(kilobits: int, seconds: int, *, tag: bytes = b"") -> bytes:
    """Make a first MP3 frame of a bit rate, and as many bytes as last so long."""
    rates = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
    head = tag + b"\xff\xfb" + bytes([rates.index(kilobits) << 4])
    return head.ljust(kilobits * 125 * seconds, b"\0")


def mp4(seconds: int, *, wide: bool = False) -> bytes:
    """Make a movie header behind its data, as cameras write it."""
    times = (
        struct.pack(">QQIQ", 0, 0, 600, seconds * 600)
        if wide
        else struct.pack(">IIII", 0, 0, 600, seconds * 600)
    )
    header = b"mvhd" + bytes([wide, 0, 0, 0]) + times
    return b"\0\0\0\x18ftypisom" + bytes(500) + header + bytes(80)


@pytest.mark.parametrize(
    ("data", "kind", "tokens"),
    [
        pytest.param(mp3(128, 10), "audio", 320, id="mp3"),
        pytest.param(mp3(64, 10), "audio", 320, id="mp3-of-another-rate"),
        pytest.param(mp3(128, 10, tag=b"ID3\x04\0\0\0\0\0\x05abcde"), "audio", 320, id="tagged-mp3"),
        pytest.param(mp4(10), "video", 2_630, id="mp4"),
        pytest.param(mp4(10, wide=True), "video", 2_630, id="mp4-of-64-bits"),
    ],
)
def test_sound_and_video_cost_by_their_seconds(
    data: bytes, kind: Literal["audio", "video"], tokens: int
) -> None:
    """Gemini: 32 tokens a second of sound, 263 of video (ai.google.dev/gemini-api/docs/tokens)."""
    medium, rule = Media(kind, None, encoded(data), None), facts_for("gemini-2.5-flash").media
    assert media_tokens(medium, rule) == tokens
    assert is_seen(medium, rule)


@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic"])
def test_a_video_in_a_part_of_another_kind_costs_as_one(format: str) -> None:
    """Also in forms that have no part for it, which some servers' models of Gemini are asked in."""
    source = {"type": "base64", "media_type": "video/mp4", "data": encoded(mp4(10))}
    part = {"type": "video", "source": source}
    (medium,) = get_format(format).pieces({"role": "user", "content": [part]}).media
    assert (medium.kind, media_tokens(medium, facts_for("gemini-2.5-flash").media)) == ("video", 2_630)
    by_size = facts_for("gpt-4o").media
    assert media_tokens(medium, by_size) == media_tokens(medium._replace(kind="file"), by_size)
    of_no_length = Media("video", None, encoded(bytes(100)), None)
    assert is_seen(of_no_length, by_size) == is_seen(of_no_length._replace(kind="file"), by_size)


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"\xff\xfb", b"ID3", b"mvhd", b"\0\0\0\x18ftypmvhd", bytes(100)]
)
@pytest.mark.parametrize("kind", ["audio", "video"])
def test_sound_and_video_that_say_nothing_of_their_length_are_unseen(
    data: bytes, kind: Literal["audio", "video"]
) -> None:
    """They still cost something."""
    medium, rule = Media(kind, None, encoded(data), None), facts_for("gemini-2.5-flash").media
    assert not is_seen(medium, rule)
    assert media_tokens(medium, rule) >= 0


def test_a_pdf_costs_by_its_pages() -> None:
    """One that hides them costs one page, and is unseen."""
    rule = facts_for("claude-sonnet-4-5").media
    pages = Media("file", None, encoded(b"%PDF-1.7" + b"/Type /Page " * 3), None)
    hidden = Media("file", None, encoded(b"%PDF-1.7 <compressed>"), None)
    assert media_tokens(pages, rule) == 3 * rule.page_tokens
    assert media_tokens(hidden, rule) == rule.page_tokens
    assert (is_seen(pages, rule), is_seen(hidden, rule)) == (True, False)
