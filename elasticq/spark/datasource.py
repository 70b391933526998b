"""The data source ``format("sqs")``: it makes readers and writers from the options."""

from typing import TYPE_CHECKING, Any

from elasticq.spark import versions

try:
    from pyspark.sql.datasource import DataSource
except ImportError:  # before Spark 4.0
    versions.need(versions.FORMAT, "format sqs")
    raise

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """The data source. Spark finds this class through the module pyspark_elasticq.

    Names in ``options`` are case-insensitive, so methods pass it on as it is. Spark sends this object to every task
    together with the reader, so each method imports what it needs. Methods raise OptionError if PySpark is too old.
    """

    @classmethod
    def name(cls) -> str:
        return "sqs"

    def schema(self) -> "StructType":
        from elasticq.spark.options import Read, parse_queue
        from elasticq.spark.schema import default_schema

        options = parse_queue(Read, self.options)
        return default_schema(options.value_format, with_handles=options.ack_mode in ("none", "commit"))

    def reader(self, schema: "StructType") -> "DataSourceReader":
        versions.need(versions.FORMAT, "reading with format sqs")
        from elasticq.spark.batch import BatchReader
        from elasticq.spark.options import Read, parse_queue

        return BatchReader(parse_queue(Read, self.options), schema)

    def streamReader(self, schema: "StructType") -> "DataSourceStreamReader":
        versions.need(versions.STREAMS, "reading a stream with format sqs")
        from elasticq.spark.options import Read, parse_queue
        from elasticq.spark.source import StreamReader

        return StreamReader(parse_queue(Read, self.options), schema)

    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceWriter":
        versions.need(versions.FORMAT, "writing with format sqs")
        from elasticq.spark import sink

        writer: Any = sink.writer(options=self.options, schema=schema, overwrite=overwrite)
        return writer  # type: ignore[no-any-return]

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "DataSourceStreamWriter":
        versions.need(versions.FORMAT, "writing a stream with format sqs")
        from elasticq.spark import sink

        writer: Any = sink.stream_writer(options=self.options, schema=schema, overwrite=overwrite)
        return writer  # type: ignore[no-any-return]
