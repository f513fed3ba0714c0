"""The string formats that a custom resource's schema can ask for, and what each accepts."""

from __future__ import annotations

import re
from datetime import date
from ipaddress import AddressValueError, IPv6Address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_GO_DURATION = re.compile(r"[-+]?(?:0|(?:(?:\d++\.?\d*+|\.\d++)(?:ns|us|µs|μs|ms|s|m|h))++)", re.ASCII)
_SCALA_DURATION = re.compile(r"(?<!\d)\d++\s*+([A-Za-zµ]++)", re.ASCII)
_SCALA_UNITS = (("ns", "nano"), ("us", "µs", "micro"), ("ms", "milli"), ("s", "sec"), ("m", "min"))
_SCALA_LONG_UNITS = (("h", "hr", "hour"), ("d", "day"), ("w", "wk", "week"))
_LABEL = r"[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?"
_HOSTNAME = re.compile(rf"(?:[^\W_](?:-?[^\W_]{{0,62}})?|(?:{_LABEL}\.)+[^\W\d_]{{2,63}})")
_MAC = re.compile(r"(?i)[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4,18}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2,9}[0-9a-f]{4}")
_MAC_BYTES = (6, 8, 20)
_CREDIT_CARD = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_ONE_BYTE = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def is_date(text: str) -> bool:
    """A day, as 2006-01-02."""
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return text.startswith("0000-") and is_date(f"2000{text[4:]}")  # Go has a year 0
    return True


def is_date_time(text: str) -> bool:
    """RFC 3339, upper or lower case."""
    day, found, clock = text.lower().partition("t")
    if not found or not is_date(day):
        return False
    matched = _CLOCK.fullmatch(clock.split("t")[0])
    return matched is not None and matched[1] <= "23" and matched[2] <= "59" and matched[3] <= "59"


def is_duration(text: str) -> bool:
    """Whether Go's time.ParseDuration takes it, or it is like "2 weeks"."""
    if _GO_DURATION.fullmatch(text):
        return True
    units = _SCALA_UNITS + _SCALA_LONG_UNITS
    return any(
        unit in variants or unit.startswith(variants[-1])
        for found in _SCALA_DURATION.findall(text)
        for unit in [found.lower()]
        for variants in units
    )


def is_ipv4(text: str) -> bool:
    """An address with dots, leading zeros allowed; IPv6 with an embedded IPv4 address is taken too."""
    if ":" in text:
        return "." in text and is_ipv6(text)
    parts = text.split(".")
    return len(parts) == 4 and all(_is_number(part, 255) for part in parts)


def _is_number(text: str, most: int) -> bool:
    if not (text.isascii() and text.isdigit()):
        return False
    digits = text.lstrip("0") or "0"
    return len(digits) <= len(str(most)) and int(digits) <= most


def is_ipv6(text: str) -> bool:
    """An address with colons, without a zone."""
    if ":" not in text or "%" in text:
        return False
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


def is_cidr(text: str) -> bool:
    """An address, a slash and the length of a prefix."""
    address, slash, length = text.partition("/")
    if not slash:
        return False
    bits = 128 if ":" in address else 32
    return (is_ipv6(address) if bits == 128 else is_ipv4(address)) and _is_number(length, bits)


def is_mac(text: str) -> bool:
    """A hardware address of 6, 8 or 20 bytes."""
    return _MAC.fullmatch(text) is not None and len(re.sub(r"[^0-9A-Fa-f]", "", text)) // 2 in _MAC_BYTES


def is_uri(text: str) -> bool:
    """An absolute URI or an absolute path."""
    if not text or any(ord(char) < 0x20 or char == "\x7f" for char in text):
        return False
    if text.startswith("/"):
        return _escapes_are_whole(text)
    if text == "*":
        return True
    scheme, colon, rest = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) or not rest.startswith("/"):
        # An opaque URI (mailto:x) passes; a relative one does not.
        return bool(colon and rest and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme))
    try:
        host = urlsplit(text).netloc.rpartition("@")[2]
        return " " not in host and urlsplit(text).port is not False and _escapes_are_whole(text)
    except ValueError:
        return False


def _escapes_are_whole(text: str) -> bool:
    return re.search(r"%(?![0-9A-Fa-f]{2})", text.partition("?")[0]) is None


def is_email(text: str) -> bool:
    """An address as in a mail header, with or without a name."""
    from email.utils import parseaddr  # slow to load, and rarely needed

    try:
        address = parseaddr(text)[1]
    except RecursionError:  # comments in comments in comments
        return False
    local, at, domain = address.rpartition("@")
    return bool(local and at and domain) and " " not in address and not domain.startswith(".") and ".." not in address


def is_hostname(text: str) -> bool:
    """A host name of labels of at most 63 bytes, 255 in all."""
    labels = text.split(".")
    return bool(_HOSTNAME.fullmatch(text)) and len(text.encode()) <= 255 and all(len(x.encode()) <= 63 for x in labels)


def is_credit_card(text: str) -> bool:
    """A known kind of card whose check digit is right."""
    digits = re.sub(r"[^0-9]+", "", text)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    doubled = [int(d) * (1 + at % 2) for at, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def is_isbn10(text: str) -> bool:
    """Ten digits, the last perhaps X, with a right check digit."""
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}X|[0-9]{10}", digits):
        return False
    return sum((at + 1) * (10 if d == "X" else int(d)) for at, d in enumerate(digits)) % 11 == 0


def is_isbn13(text: str) -> bool:
    """Thirteen digits with a right check digit."""
    digits = re.sub(r"[\s-]+", "", text)
    return (
        bool(re.fullmatch(r"[0-9]{13}", digits)) and sum(int(d) * (1, 3)[i % 2] for i, d in enumerate(digits)) % 10 == 0
    )


def _matches(pattern: str, flags: int = re.ASCII) -> Callable[[str], bool]:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


_UUID = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_HEX4 = "[0-9a-f]{4}"

FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": is_uri,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": is_mac,
    "uuid": _matches(_UUID % (_HEX4, _HEX4)),
    "uuid3": _matches(_UUID % ("3[0-9a-f]{3}", _HEX4)),
    "uuid4": _matches(_UUID % ("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
    "uuid5": _matches(_UUID % ("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": lambda text: len(text) == 11 and re.fullmatch(r"\d{3}[- ]?\d{2}[- ]?\d{4}", text, re.ASCII) is not None,
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_ONE_BYTE},{_ONE_BYTE},{_ONE_BYTE}\)"),
    "byte": _matches("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda _text: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and re.fullmatch(_NAME, text) is not None,
    "k8slongname": lambda text: len(text) <= 253 and re.fullmatch(rf"{_NAME}(\.{_NAME})*", text) is not None,
}
_INTEGER_FORMATS = ("int32", "int64")
_NUMBER_FORMATS = ("float", "double")


def supported(json_type: str, name: str) -> str:
    """The format if it is one that means something for that type, else "": unknown formats are ignored."""
    if json_type == "integer":
        return name if name in _INTEGER_FORMATS else ""
    if json_type == "number":
        return name if name in _NUMBER_FORMATS else ""
    return name if json_type in ("", "string") and name.replace("-", "") in FORMATS else ""


def checker(name: str) -> Callable[[str], bool] | None:
    """The check of a string format, or None for those that strings do not have."""
    return FORMATS.get(name.replace("-", ""))
