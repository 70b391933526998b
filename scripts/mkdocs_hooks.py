"""Hooks of MkDocs: the differences between the site and the pages in the repository, which people also read.

- They remove ``no-run: why`` after a block's language: only tests/system/docs/ reads it.
- They replace a link out of docs/ with its text, because its target is not on the site.
- They make a link to the folder adr/ lead to its first page.
- They put every decision in docs/adr into the navigation, listed or not.
- They add the OpenAPI document of the REST API as ``openapi.json``.
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
    """Return the page's text for the site.

    A link that begins with ``../`` leaves docs/ if the page is directly in docs/. From docs/adr it may lead to a page
    of docs/, and such a link stays.
    """
    text = _EXCUSE.sub(r"\1", markdown).replace("](adr)", "](adr/0001-pure-core-thin-shells.md)")
    return _OUTSIDE.sub(r"\1", text)
