"""The versions of PySpark: one sentence says what an older one lacks."""

import pyspark
import pytest

from elasticq.spark.options import OptionError
from elasticq.spark.versions import FORMAT, STREAMS, need


def test_this_version_has_all() -> None:
    need(STREAMS, "reading a stream")


@pytest.mark.parametrize(
    ("version", "said"),
    [("4.1.4", "this is 4.1.4, on which writing, batch reads, consume and foreachPartition work"), ("3.5.9", "3.5.9")],
)
def test_an_older_version_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, version: str, said: str) -> None:
    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(OptionError, match=said):
        need(STREAMS, "reading a stream")
    with pytest.raises(OptionError, match=r"needs PySpark 9\.0 or newer"):
        need((9, 0), "reading")
    if version == "4.1.4":
        need(FORMAT, "writing")
