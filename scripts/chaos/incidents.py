"""Sixteen incidents on real clusters: any member's first page must name each with its cause within ten seconds.

Each incident is staged, must be named by every member that runs, is fixed as an operator would fix it, and must then
be gone from all pages. The program prints how long each took. The status is 1 if one was not named in time, or stayed.
--pictures keeps the first page of each incident as Chromium shows it, on a desk and on a phone.

1. On a cluster of three: no consumer, poison message, blocked group, stuck in flight, dead letters growing, failing
   subscription, member dead, member cut off, member behind, disk filling, upgrade half done, incompatible build, a
   client that floods a member, and a proxy without a master.
2. On a cluster whose members have clocks of their own: a clock that is off, and a purge by mistake.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.system.cluster.clocked import Skew
from tests.system.cluster.cluster import HOST, Cluster
from tests.system.cluster.incidents import (
    QUEUES,
    ClockOff,
    DiskFills,
    FailingSubscription,
    Flood,
    HalfUpgraded,
    Incident,
    IncompatibleBuild,
    MemberBehind,
    MemberCutOff,
    MemberDead,
    ProxyWithoutMaster,
    Purge,
    check_gone,
    check_named,
)

Make = Callable[[Cluster, ExitStack], Incident]

PLAIN: dict[str, Make] = {
    **{each.__name__: lambda _, __, each=each: each() for each in QUEUES},  # type: ignore[misc]
    "FailingSubscription": lambda cluster, stack: FailingSubscription(stack),
    "MemberDead": lambda _, __: MemberDead(),
    "MemberCutOff": lambda _, __: MemberCutOff(),
    "MemberBehind": lambda _, __: MemberBehind(),
    "DiskFills": lambda _, __: DiskFills(),
    "HalfUpgraded": lambda _, __: HalfUpgraded(),
    "IncompatibleBuild": lambda _, __: IncompatibleBuild(),
    "Flood": lambda _, __: Flood(),
    "ProxyWithoutMaster": lambda cluster, stack: ProxyWithoutMaster(stack, cluster),
}
CLOCKED: dict[str, Make] = {"ClockOff": lambda _, __: ClockOff(), "Purge": lambda _, __: Purge()}


VIEWS = {"desk": (1_280, 900, "light"), "phone": (390, 844, "dark")}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pictures", type=Path, metavar="DIR", help="keep pictures of the first pages here, as build/ui"
    )
    parser.add_argument("--incident", metavar="NAME,...", help=f"only these of {', '.join((*PLAIN, *CLOCKED))}")


def main(options: argparse.Namespace) -> int:
    only = options.incident.split(",") if options.incident else [*PLAIN, *CLOCKED]
    skews = (Skew(), Skew(), Skew())
    with ExitStack() as stack:
        camera = Camera(options.pictures, stack) if options.pictures else None
        found = [
            *_on_a_cluster({name: make for name, make in PLAIN.items() if name in only}, (), camera),
            *_on_a_cluster({name: make for name, make in CLOCKED.items() if name in only}, skews, camera),
        ]
    failed = [name for name, failure in found if failure]
    print(f"{len(found)} incidents, {len(found) - len(failed)} named in time and gone when fixed", flush=True)
    for name, failure in found:
        if failure:
            print(f"{name}: {failure}", flush=True)
    return int(bool(failed))


class Camera:
    """A real browser that keeps pictures in a folder."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        from playwright.sync_api import sync_playwright

        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        self._browser: Any = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        stack.callback(self._browser.close)

    def take(self, url: str, name: str) -> None:
        for view, (width, height, scheme) in VIEWS.items():
            page = self._browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(url)
            page.screenshot(path=str(self._folder / f"incident-{name}-{view}.png"))
            page.close()


def _on_a_cluster(incidents: dict[str, Make], skews: tuple[Skew, ...], camera: Camera | None) -> list[tuple[str, str]]:
    """Return each incident's name with its failure, which is empty if it was named in time and left when fixed."""
    if not incidents:
        return []
    directory = Path(tempfile.mkdtemp(prefix="elasticq-chaos-incidents-"))
    cluster = Cluster(directory, skews=skews)
    found = []
    try:
        cluster.start()
        for name, make in incidents.items():
            found.append((name, _one(cluster, name, make, camera)))
    finally:
        cluster.end()
    if not any(failure for _, failure in found):
        shutil.rmtree(directory)
    return found


def _one(cluster: Cluster, name: str, make: Make, camera: Camera | None) -> str:
    """Stage an incident, check the pages, fix it, and check them again. Return what went wrong, empty if nothing."""
    failure = ""
    with ExitStack() as stack:
        incident = make(cluster, stack)
        incident.stage(cluster)
        try:
            named_s = max(check_named(cluster, [incident]).values())
        except AssertionError as error:
            failure, named_s = str(error), float("nan")
        if camera is not None:
            camera.take(f"http://{HOST}:{incident.shown_by(cluster)[0].admin_port}/", name)
        began_s = time.monotonic()
        incident.fix(cluster)
        try:
            check_gone(cluster, [incident])
        except AssertionError as error:
            failure = failure or f"it stays: {error}"
        gone_s = time.monotonic() - began_s
    print(f"{name}: named after {named_s:.1f} s, gone {gone_s:.1f} s after the begin of its fix", flush=True)
    return failure
