"""The pages a newcomer reads: their example runs, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_example_of_the_first_page_runs() -> None:
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "start.md").read_text(), re.DOTALL)[
        0
    ]
    names: dict = {}
    exec(code, names)
    names["test_my_bound"]()
    exec(code.replace("[0.05, 0.05]", "[0.01, 0.01]"), names)
    with pytest.raises(AssertionError, match="violated"):
        names["test_my_bound"]()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([\w./-]+\.(?:md|png))", page.read_text()):
        assert (page.parent / target).exists(), target
