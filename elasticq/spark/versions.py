"""The versions of PySpark that each part of the integration needs. An older one is refused in one sentence."""

from typing import Final

from elasticq.spark.options import OptionError

FORMAT: Final = (4, 1)  # the first with Arrow writers and filters for Python data sources
STREAMS: Final = (4, 2)  # the first that names the start of a batch to the source, and reports Trigger.AvailableNow


def need(version: tuple[int, int], what: str) -> None:
    """Raise OptionError if this PySpark is older than ``version``, which ``what`` needs."""
    import pyspark

    if tuple(map(int, pyspark.__version__.split(".")[:2])) < version:
        raise OptionError(
            f"{what} needs PySpark {version[0]}.{version[1]} or newer and this is {pyspark.__version__}, on which"
            f" {'writing, batch reads, ' if version == STREAMS else ''}consume and foreachPartition work"
        )
