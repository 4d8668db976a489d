"""Text that may have come from anywhere: valid UTF-8 of it, and what of it a terminal may be given."""

import re


def clean(text: str, lone_halves: str = "replace") -> str:
    """Text that is valid UTF-8: the halves of a surrogate pair are joined, a lone half is replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", lone_halves)
    return text


def paired(text: str) -> str:
    """Text with the halves of surrogate pairs joined; a lone half stays, since its other half may come."""
    return clean(text, "surrogatepass")


def safe(text: str) -> str:
    """Text without anything that a terminal would act on, newlines and tabs apart."""
    return _UNSAFE.sub(_sign, clean(text).replace("\r\n", "\n"))


_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode's pictures of control characters
    return "\u2421" if code == 0x7F else f"<{code:02X}>"
