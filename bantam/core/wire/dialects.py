"""The dialects by their names, as `api=` of model.cfg has them."""

from collections.abc import Mapping

from bantam.core.wire import chat
from bantam.core.wire.dialect import Dialect

CHAT = "chat"
DIALECTS: Mapping[str, Dialect] = {CHAT: chat}
PATHS = tuple(dialect.PATH for dialect in DIALECTS.values())
