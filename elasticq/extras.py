"""The command that installs an extra. No package index has elasticq, so the command names its wheel."""

from elasticq import __version__


def how_to_install(extra: str) -> str:
    """Return the command that installs elasticq with ``extra``, such as ``hocon``, and where its wheel comes from."""
    return f"pip install --find-links dist 'elasticq[{extra}]=={__version__}' (make dist puts the wheels into dist/)"
