"""A data source that yields nothing. It shows scripts/bench spark what a task of any Python data source costs."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition


class Floor(DataSource):
    @classmethod
    def name(cls) -> str:
        return "floor"

    def schema(self) -> str:
        return self.options["columns"]

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return FloorReader(int(self.options["partitions"]))


class FloorReader(DataSourceStreamReader):
    def __init__(self, tasks: int) -> None:
        self._tasks = tasks

    def initialOffset(self) -> dict[str, int]:
        return {"batch": 0}

    def latestOffset(self, *_: Any) -> dict[str, int]:
        return {"batch": 1}

    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return iter(())
