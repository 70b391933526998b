"""Coverage-guided fuzzing of what arrives at a member: python scripts/fuzz.py all --minutes 10 --jobs 2 --corpus DIR

Each target of tests/system/fuzz runs in a process of its own. atheris instruments the sources; make fuzz installs it.
A target starts from its seeds, its kept inputs, and the inputs in DIR/TARGET that earlier runs collected.
The program shortens each finding for a few seconds, prints it and writes it to DIR/findings. Then the run goes on, and
its status is 1. It prints one line of JSON for each target: number of inputs, seconds of CPU, and findings.

--keep runs all inputs in DIR, one after the other. It writes a small set that covers the same steps of the sources
to tests/system/fuzz/corpus, which make test replays. --input FILE runs the one input in that file.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = str(ROOT / "elasticq") + os.sep
TIMEOUT_S = 20  # libFuzzer ends a process whose input takes longer; TooExpensive is found long before
RSS_MB_MAX = 1_536
SHORTEN_S = 5.0
WRITTEN_MAX = 50  # findings written for one target; later ones probably have the same causes


def main() -> int:
    asked = _arguments()
    sys.path.insert(0, str(ROOT))
    os.environ["ELASTICQ_PURE"] = "1"  # compiled modules have no coverage
    if asked.child:
        fuzz(asked.targets[0], asked.minutes * 60, asked.corpus)
    from tests.system.fuzz.targets import TARGETS

    names = list(TARGETS) if asked.targets == ["all"] else asked.targets
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        print(f"no such targets: {', '.join(unknown)}; there are: {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    if asked.input is not None:
        from tests.system.fuzz.target import judge

        for name in names:
            judge(TARGETS[name], asked.input.read_bytes())
        return 0
    if asked.keep:
        for name in names:
            print(json.dumps(keep(name, asked.corpus)), flush=True)
        return 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        outcomes = list(pool.map(lambda name: run(name, asked.minutes, asked.corpus), names))
    return int(any(outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=["all"], help="names of targets; all by default")
    parser.add_argument("--minutes", type=float, default=1, help="minutes of fuzzing for each target (1)")
    parser.add_argument("--jobs", type=int, default=2, help="targets that run at the same time (2)")
    parser.add_argument(
        "--corpus", type=Path, default=ROOT / "build" / "fuzz", help="folder that collects inputs (build/fuzz)"
    )
    parser.add_argument("--keep", action="store_true", help="rewrite the repository's kept inputs")
    parser.add_argument("--input", type=Path, help="run only the one input in this file")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


# --- the runs ---------------------------------------------------------------------------


def run(name: str, minutes: float, corpus: Path) -> bool:
    """Fuzz one target in a process of its own; return whether it has a finding or failed."""
    findings = corpus / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    log = findings / f"{name}.log"
    command = [sys.executable, __file__, name, "--child", "--minutes", str(minutes), "--corpus", str(corpus)]
    with log.open("w") as errors:
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
    if ended.returncode or not lines:
        tail = log.read_text(errors="replace").splitlines()[-30:]
        lines = [json.dumps({"target": name, "ended": ended.returncode, "findings": 1, "log": tail})]
    print(lines[-1], flush=True)
    found = bool(json.loads(lines[-1])["findings"])
    if not found:
        log.unlink()
    return found


def fuzz(name: str, seconds: float, corpus: Path) -> None:
    """Fuzz one target in this process. Never return: the process ends when the time is over."""
    import atheris

    with atheris.instrument_imports(include=["elasticq"]):
        from tests.system.fuzz.targets import TARGETS
    compiled = [each.__name__ for each in list(sys.modules.values()) if _is_compiled(each)]
    assert not compiled, f"these are not sources: {compiled}"
    target = TARGETS[name]
    inputs = corpus / name
    for data in (*target.seeds, *_kept(name)):
        _write(inputs, data)
    words = corpus / f"{name}.dict"
    tokens = [_escaped(token) for token in target.tokens if token]
    words.write_text("".join(f'"{token}"\n' for token in tokens))
    found = Findings(name, target, corpus / "findings")
    fuzzer = Fuzzer(name, found, inputs, time.monotonic() + seconds)
    options = [f"-max_len={target.bytes_max}", f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={RSS_MB_MAX}", "-verbosity=0"]
    options += [f"-dict={words}"] if tokens else []
    options += [f"-artifact_prefix={corpus / 'findings' / name}-", "-reload=0", "-print_final_stats=0"]
    atheris.Setup([sys.argv[0], *options, str(inputs)], fuzzer.take)
    atheris.Fuzz()


def _is_compiled(module: Any) -> bool:
    return module.__name__.startswith("elasticq") and not str(getattr(module, "__file__", "")).endswith(".py")


def _kept(name: str) -> list[bytes]:
    from tests.system.fuzz import corpus

    return corpus.read(name)


def _write(folder: Path, data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


def _escaped(token: str) -> str:
    return "".join(chr(byte) if chr(byte).isalnum() else f"\\x{byte:02x}" for byte in token.encode())


class Fuzzer:
    """A consumer of libFuzzer's inputs. It ends the process when the time is over."""

    def __init__(self, name: str, found: "Findings", inputs: Path, until_s: float) -> None:
        self._name = name
        self._found = found
        self._inputs = inputs
        self._until_s = until_s
        self._began_s = time.process_time()
        self._count = 0

    def take(self, data: bytes) -> None:
        self._count += 1
        self._found.judge(data)
        if time.monotonic() > self._until_s:
            self._end()

    def _end(self) -> None:
        told = {
            "target": self._name,
            "inputs": self._count,
            "cpu_s": round(time.process_time() - self._began_s, 1),
            "corpus": sum(1 for _ in self._inputs.iterdir()),
            "findings": len(self._found.shortest),
        }
        print(json.dumps(told), flush=True)
        sys.stderr.flush()
        os._exit(0)  # libFuzzer would end the process without a message


class Findings:
    """The shortest input of each finding. A finding is one type of exception at one source line."""

    def __init__(self, name: str, target: Any, folder: Path) -> None:
        from tests.system.fuzz.target import judge

        self._name = name
        self._judge: Callable[[bytes], None] = lambda data: judge(target, data)
        self._folder = folder
        self.shortest: dict[str, bytes] = {}

    def judge(self, data: bytes) -> None:
        key = self._key(data)
        known = self.shortest.get(key)
        if key and (known is None or len(data) < len(known)) and len(self.shortest) <= WRITTEN_MAX:
            self._note(key, data)

    def _key(self, data: bytes) -> str:
        """Return the finding that the input causes, or an empty text if there is none."""
        try:
            self._judge(data)
        except Exception as error:
            return _place(error)
        return ""

    def _note(self, key: str, data: bytes) -> None:
        is_new = key not in self.shortest
        shortest = self._shortened(key, data)
        self.shortest[key] = shortest
        number = hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest()[:10]
        file = self._folder / f"{self._name}-{number}"
        file.write_bytes(shortest)
        if is_new:
            print(f"{key}\n{shortest!r}\npython scripts/fuzz.py {self._name} --input {file}", file=sys.stderr)
            try:
                self._judge(shortest)
            except Exception:
                traceback.print_exc()

    def _shortened(self, key: str, data: bytes) -> bytes:
        """Return the input with parts cut out, ever smaller ones, while it still causes the same finding."""
        until_s = time.monotonic() + SHORTEN_S
        size = len(data) // 2
        while size:
            at = 0
            while at < len(data) and time.monotonic() < until_s:
                shorter = data[:at] + data[at + size :]
                if self._key(shorter) == key:
                    data = shorter
                else:
                    at += size
            size //= 2
        return data


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    within = [frame for frame in frames if frame.filename.startswith(str(ROOT))] or list(frames)
    return f"{type(error).__name__} {Path(within[-1].filename).name}:{within[-1].lineno}"


# --- what is kept -----------------------------------------------------------------------


def keep(name: str, folder: Path) -> dict[str, object]:
    """Write the kept inputs of a target and return figures about them.

    An input is kept if it takes a step from one source line to another that no shorter input takes.
    """
    from tests.system.fuzz import corpus
    from tests.system.fuzz.targets import TARGETS

    target = TARGETS[name]
    files = (folder / name).iterdir() if (folder / name).is_dir() else ()
    given = {*target.seeds, *corpus.read(name), *(file.read_bytes() for file in files)}
    for data in list(given)[:20]:  # steps of one-time initialization do not count for an input
        _ways(target.judge, data)
    seen: set[tuple[str, int, int]] = set()
    kept = []
    for data in sorted(given, key=lambda each: (len(each), each)):
        ways = _ways(target.judge, data)
        if not ways <= seen:
            kept.append(data)
            seen |= ways
    lines = {(file, line) for file, _, line in seen}
    written = corpus.write(name, kept)
    return {"target": name, "inputs": len(given), "kept": written, "left_out": len(kept) - written, "lines": len(lines)}


def _ways(judge: Callable[[bytes], None], data: bytes) -> set[tuple[str, int, int]]:
    """Return the steps between lines of the package that an input takes, as (file, from line, to line)."""
    ways: set[tuple[str, int, int]] = set()

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE):
            return None
        before = 0

        def step(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal before
            if event == "line":
                ways.add((file, before, frame.f_lineno))
                before = frame.f_lineno
            return step

        return step

    sys.settrace(enter)
    try:
        judge(data)
    except Exception as error:
        sys.settrace(None)
        print(f"a finding: {_place(error)} {data!r}", file=sys.stderr)
    finally:
        sys.settrace(None)
    return ways


if __name__ == "__main__":
    sys.exit(main())
