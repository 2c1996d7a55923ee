"""What comes from outside, as strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from stormlet.model.configuration import OPTIONS
from stormlet.model.storm_names import NAMES

ODD = (
    *(
        "",
        " ",
        "-",
        "--",
        "-x",
        "--help",
        "=",
        "a=b",
        "==",
        "a\tb",
        "a\nb",
        '"',
        "'",
        "\\",
        "%s",
        "{0}",
        "[bold]",
    ),
    *("0", "-0", "-1", "1.5", "1e3", "1e999", "1e-400", "nan", "inf", "-inf", "0x10", "1_000", "٣", "9" * 25),
    *("9" * 5000, "true", "TRUE", "none", "null", "[]", "{}", "[" * 2000, "(" * 2000, '{"a":' * 2000),
    *("\x1b[31m", "\x00", "\ufeff", "\u202e", "\udcff", "\ud800", "\U0001f600", "e\u0301", "x" * 5000),
    *(
        "/",
        ".",
        "..",
        "~",
        "//",
        "/dev/null",
        "flow.py",
        "flow.py:",
        ":topology",
        "flow.py:topology:x",
        "flow",
    ),
)
"""What people and shells have written before."""

texts = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=()), max_size=30)
"""With lone surrogates, which is how Python reads arguments that are no UTF-8."""

numbers = (
    st.integers().map(str)
    | st.floats().map(str)
    | st.sampled_from(["0", "1", "-1", "1e999", "nan", "9" * 25, "1" + "0" * 400, "0.0000001"])
)

names = st.sampled_from([*OPTIONS, *NAMES]) | texts

settings_given = st.builds("{}={}".format, names, texts | numbers) | texts
"""What stands after ``--set``."""


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes of which some are flipped, doubled, lost or others."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        match draw(st.sampled_from(["flip", "cut", "insert", "repeat", "lose"])):
            case "flip" if data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[at:]
            case "insert":
                data[at:at] = draw(st.binary(max_size=8) | st.sampled_from([b"\x00", b"\n", b"[" * 3000]))
            case "repeat":
                data[at:at] = data[at : at + draw(st.integers(0, 60))]
            case _:
                del data[at : at + draw(st.integers(0, 60))]
    return bytes(data)
