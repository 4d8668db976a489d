"""What hypothesis draws: dice for the simulator, and the values that the leaves are tested with."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from bantam.core import messages
from bantam.core.messages import Message, Messages
from bantam.core.wire import assemble
from tests import servers, world
from tests.servers import Reply

TAPE_BYTES = 300


@dataclass(repr=False)
class Tape:
    """Dice whose throws were all drawn at once, which is fast and shrinks well. At its end come zeros."""

    throws: bytes
    at: int = 0

    def __repr__(self) -> str:
        return f"Tape(bytes.fromhex({self.throws.rstrip(bytes(1)).hex()!r}))"

    def number(self, most: int) -> int:
        size = 1 if most < 256 else 3
        throw = self.throws[self.at : self.at + size]
        self.at += size
        return int.from_bytes(throw, "big") % (most + 1)


tapes = st.binary(min_size=TAPE_BYTES, max_size=TAPE_BYTES).map(Tape)

# --- values


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(servers.KEYS) | st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)
json_objects = st.dictionaries(st.sampled_from(servers.KEYS) | st.text(), json_values, max_size=4)

any_text = st.text(st.characters(codec=None), max_size=20)
"""Text as Python has it: half characters and control characters included."""

wild_text = st.lists(st.sampled_from(servers.WORDS) | st.text(max_size=3), max_size=6).map("".join)
"""Text that can be sent, with all that terminals and protocols trip over."""


def halved(text: str) -> str:
    """The text with each character beyond U+FFFF as two halves, as JSON spells it."""
    units = text.encode("utf-16-le", "surrogatepass")
    return "".join(units[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2))


def conversation(dice: servers.Dice) -> Messages:
    """A valid conversation of some turns, as the loop would have written it."""
    said: list[Message] = [messages.system("You are Bantam.")]
    for _ in range(dice.number(4)):
        said.append(messages.user(servers.text(dice) or "hello"))
        for _ in range(dice.number(2)):
            partial = assemble.merge(assemble.Partial(), servers.whole(servers.reply(dice)))
            message = messages.normalised(assemble.finished(partial))
            if not messages.is_empty(message):
                size = servers.pick(dice, (1, 10, 300))
                results = [messages.tool_result(call["id"], "y" * size) for call in message.get("tool_calls", ())]
                said += [message, *results]
    return tuple(said)


conversations = tapes.map(conversation)
any_messages = tapes.map(lambda dice: tuple(world.message(dice) for _ in range(dice.number(6))))
"""What stands in a file instead of a conversation."""

configs = tapes.map(world.config)
replies: st.SearchStrategy[Reply] = tapes.map(servers.reply)


def parts_of(whole: bytes) -> st.SearchStrategy[list[bytes]]:
    """The bytes, cut anywhere."""
    cuts = st.lists(st.integers(0, len(whole)), max_size=8).map(sorted)
    return cuts.map(lambda at: [whole[a:b] for a, b in zip([0, *at], [*at, len(whole)], strict=True)])


def is_json(value: Any) -> bool:
    """Whether a value is JSON and stays equal on the way through text."""
    return bool(json.loads(json.dumps(value, allow_nan=False)) == value)


def is_part_of(some: Sequence[Any], all_: Sequence[Any]) -> bool:
    """Whether `some` is `all_` less some of its items."""
    rest = iter(all_)
    return all(any(item == other for other in rest) for item in some)
