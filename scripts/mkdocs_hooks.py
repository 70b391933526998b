"""What the site shows differently from the files: pages are also read where they lie, in the repository.

- ``no-run: why`` behind a block's language is for tests/system/docs/, and no language
- a link out of docs/ leads nowhere on the site: its text stays
- a link to the folder adr/ leads to its first page
- every decision in docs/adr is in the navigation, whether it is listed or not
- the OpenAPI document of the REST API is a file of the site, ``openapi.json``
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from elasticq.rest import openapi

_EXCUSE = re.compile(r"^( *```[a-z]+) no-run:[^\n`]*$", re.MULTILINE)
_OUTSIDE = re.compile(r"\[([^\]\n]+)\]\(\.\./(?!adr/|[a-z]+\.md)[^)\s]+\)")


def on_config(config: Any) -> Any:
    decisions = [f"adr/{page.name}" for page in sorted((Path(config["docs_dir"]) / "adr").glob("*.md"))]
    for part in config["nav"]:
        for inside in part.get("Inside", ()):
            if "Decisions" in inside:
                inside["Decisions"] = decisions
    return config


def on_files(files: Any, config: Any) -> Any:
    files.append(File.generated(config, "openapi.json", content=openapi.text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A page directly in docs/ has only what is outside above it; one in docs/adr has docs/ above it."""
    text = _EXCUSE.sub(r"\1", markdown).replace("](adr)", "](adr/0001-pure-core-thin-shells.md)")
    return _OUTSIDE.sub(r"\1", text)
