"""Pages of the manual on terminals that are narrower than their lines."""

import re
from pathlib import Path

import pytest

from bantam.core.words.wrap import Page, laid, plain, width

pytestmark = pytest.mark.core
MANUAL = Path(__file__).parents[3] / "bantam/manual"
WRITTEN = """\
# A title

Prose whose lines were
ended by hand.

* an item that goes on
  in a second line
* another

    bantam -p "TEXT"    # only the answer

| status | meaning                 |
| ------ | ----------------------- |
| 0      | done                    |
| 3      | a budget stopped it     |

```sh
if true; then
  true
fi
```

  name   what it is
"""


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 120])
@pytest.mark.parametrize("file", sorted(MANUAL.glob("*.md")), ids=lambda file: file.stem)
def test_a_page_fits_and_loses_nothing(file: Path, columns: int) -> None:
    text = file.read_text(encoding="utf-8")
    shown = laid(Page(text), columns)
    assert max(map(width, shown.split("\n"))) <= columns
    drawn = r"[\s|-]"  # of tables, which are as narrow as they can be
    assert re.sub(drawn, "", shown) == re.sub(drawn, "", text)


def test_a_page_that_fits_is_as_it_was_written() -> None:
    assert laid(Page(WRITTEN), 42) == laid(Page(WRITTEN), 0) == plain(Page(WRITTEN)) == WRITTEN


def test_paragraphs_and_items_are_filled_and_code_and_rows_are_lines_of_their_own() -> None:
    assert (
        laid(Page(WRITTEN), 36)
        == """\
# A title

Prose whose lines were ended by
hand.

* an item that goes on in a second
  line
* another

    bantam -p "TEXT"
    # only the answer

| status | meaning
| --- | --- |
| 0      | done
| 3      | a budget stopped it

```sh
if true; then
  true
fi
```

  name   what it is
"""
    )
