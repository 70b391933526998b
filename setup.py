"""With ELASTICQ_NATIVE=1 a wheel holds the compiled modules and fits one platform; without, all is as setup.cfg says.

It never happens by itself, so that an installation needs no C compiler. scripts/native.py compiles.
"""

import os
import shutil
import sys
from configparser import ConfigParser
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class Native(Distribution):
    """One that knows that it has libraries, though setuptools does not build them."""

    def has_ext_modules(self) -> bool:
        return True


class Build(build_ext):
    """Compiles, or takes what was compiled of the same sources by the same tools."""

    def run(self) -> None:
        if lack := native.missing():
            sys.exit(f"elasticq cannot be compiled here: {lack}.")
        made = native.build(ROOT)
        if self.editable_mode or self.inplace:
            native.install(made, ROOT)
        else:
            shutil.copytree(made, self.build_lib, dirs_exist_ok=True)


class Wheel(bdist_wheel):
    """A wheel whose name tells the C library that it needs."""

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()
        return python, abi, native.platform_tag(Path(self.get_finalized_command("build").build_lib), platform)


def needed_to_build() -> list[str]:
    """Return the requirements of a build: the compiler and the packages whose types the compiled modules use."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = config["options.extras_require"]
    return "\n".join((config["options"]["install_requires"], extras["speed"], extras["native"])).split()


if os.environ.get("ELASTICQ_NATIVE", "") not in ("", "0"):
    sys.path.insert(0, str(ROOT / "scripts"))  # which a build in an environment of its own would not look into
    import native

    setup(distclass=Native, cmdclass={"build_ext": Build, "bdist_wheel": Wheel}, setup_requires=needed_to_build())
else:
    setup()
