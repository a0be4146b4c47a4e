"""Durations, byte sizes and CPU amounts as people write them, read and printed back.

Everything here raises ValueError with a sentence that says what would be right. It knows no resource and no field.
"""

import re
from datetime import timedelta
from decimal import Decimal
from types import MappingProxyType

# The same texts stand in the CRDs, so they keep to what RE2 and Python both understand.
DURATION_PATTERN = r"^([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?$"
BYTES_PATTERN = r"^[0-9]{1,19}([.][0-9]{1,6})?(k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$"
CPU_PATTERN = r"^([0-9]{1,7}m|[0-9]{1,4}([.][0-9]{1,3})?)$"

_DURATION_UNITS = MappingProxyType(
    {
        "d": timedelta(days=1),
        "h": timedelta(hours=1),
        "m": timedelta(minutes=1),
        "s": timedelta(seconds=1),
        "ms": timedelta(milliseconds=1),
    }
)
_DURATION_PART = re.compile(r"([0-9]+)(ms|[dhms])")
_BINARY = MappingProxyType({unit: 1024**power for power, unit in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi"))})
_DECIMAL = MappingProxyType({unit: 1000**power for power, unit in enumerate(("", "k", "M", "G", "T", "P"))})


def parse_duration(text: str) -> timedelta:
    """Read '1h30m', '500ms' or '7d'; units go from the largest to the smallest."""
    if not text or not _fits(DURATION_PATTERN, text):
        raise ValueError(
            f"{text!r} is not a duration: write a number and its unit (d, h, m, s, ms), for instance 30s or 1h30m"
        )
    try:
        return sum((int(n) * _DURATION_UNITS[unit] for n, unit in _DURATION_PART.findall(text)), timedelta())
    except OverflowError:
        raise ValueError(f"{text!r} is too long for a duration") from None


def format_duration(value: timedelta) -> str:
    """Print a duration so that parse_duration reads the same one again (to the millisecond)."""
    rest, parts = value, []
    for unit, length in _DURATION_UNITS.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_bytes(text: str | int) -> int:
    """Read '10Gi', '500M' or a plain number of bytes."""
    written = str(text)
    match = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", written) if _fits(BYTES_PATTERN, written) else None
    if match is None:
        raise ValueError(
            f"{written!r} is not a size: write a number and its unit (Ki, Mi, Gi, Ti or k, M, G, T), for instance 10Gi"
        )
    number, unit = match.groups()
    size = Decimal(number) * (_BINARY.get(unit) or _DECIMAL[unit])
    if size != int(size):
        raise ValueError(f"{written!r} is not a whole number of bytes")
    return int(size)


def format_bytes(size: int) -> str:
    """Print a size in the largest unit that keeps it exact."""
    for unit, factor in (*reversed([*_BINARY.items()]), *reversed([*_DECIMAL.items()])):
        if unit and size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def parse_cpu(text: str | int) -> Decimal:
    """Read '500m', '2', 2 or '0.5' as cores."""
    written = str(text)
    if not _fits(CPU_PATTERN, written):
        raise ValueError(
            f"{written!r} is not an amount of CPU: write cores or thousandths of a core, for instance '2' or 500m"
        )
    return Decimal(written[:-1]) / 1000 if written.endswith("m") else Decimal(written)


def format_cpu(cores: Decimal) -> str:
    """Print cores as a whole number where they are one, and else in thousandths."""
    return str(int(cores)) if cores == int(cores) else f"{int(cores * 1000)}m"


def _fits(pattern: str, text: str) -> bool:
    """Whether all of the text fits; Python's own `$` would let a line break through at the end."""
    return re.match(pattern, text) is not None and not text.endswith("\n")
