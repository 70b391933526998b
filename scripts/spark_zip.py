"""The builder of dist/elasticq_spark.zip for spark-submit --py-files. With it, executors need no installation.

The file holds pyspark_elasticq, elasticq.client with its table of actions, and elasticq.spark. They import only the
standard library, pyspark and pyarrow, which Spark's machines have. They use boto3 where it is installed.
"""

import argparse
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = (
    "pyspark_elasticq.py",
    "elasticq/__init__.py",
    "elasticq/extras.py",
    "elasticq/lazily.py",
    "elasticq/native.py",
    "elasticq/client/**/*.py",
    "elasticq/spark/**/*.py",
    "elasticq/model/__init__.py",
    "elasticq/model/actions.py",
)
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same sources make the same file


def make(target: Path) -> list[str]:
    """Write the zip file; return the names of the files in it."""
    paths = sorted({path for part in PARTS for path in ROOT.glob(part)})
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for path in paths:
            entry = zipfile.ZipInfo(path.relative_to(ROOT).as_posix(), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            made.writestr(entry, path.read_bytes())
        return made.namelist()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", nargs="?", type=Path, default=ROOT / "dist" / "elasticq_spark.zip")
    target = parser.parse_args().target
    names = make(target)
    print(f"{target}: {len(names)} files, {target.stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
