"""What cannot be used, as a value: functions that read something return it in place of what they read."""

from bantam.core.base.record import dataclass


@dataclass(frozen=True)
class Problem:
    """Something that cannot be used: one line that names file, line and what to do."""

    text: str
