"""Drives `worker` processes: a stream of verdicts for a list of items, whatever happens to the process."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from fuzz.case import NATIVE
from fuzz.worker import ON, Verdict

TESTS = Path(__file__).parents[1]


def verdicts(items: Sequence[str], timeout: float, machines: Sequence[str] = (NATIVE,)) -> Iterator[Verdict]:
    """One verdict for each item on the machines, in order. An item that ends its process is a ``crash``, one that takes
    longer than ``timeout`` seconds a ``timeout``; the items after it run in a new process."""
    done = 0
    while done < len(items):
        for verdict in _one_process(items[done:], timeout, machines):
            done += 1
            yield verdict


def _one_process(items: Sequence[str], timeout: float, machines: Sequence[str]) -> Iterator[Verdict]:
    """Verdicts up to the first item that ends the process, that one included."""
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "WEFT_CACHE": "0"}
    command = [sys.executable, "-m", "fuzz.worker", f"{ON}{','.join(machines)}", *items]
    current = items[0]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment) as process,
    ):
        if process.stdout is None:
            raise RuntimeError("the worker has no output")
        lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        reader = threading.Thread(target=_read, args=(process.stdout, lines), daemon=True)
        reader.start()
        try:
            while (line := lines.get(timeout=timeout)).endswith(b"\n"):
                record = json.loads(line)
                current = record["item"]
                if "kind" in record:
                    yield Verdict(**record)
                    current = ""
        except queue.Empty:
            process.kill()
            reader.join()  # before the pipe is closed
            yield Verdict(current, "timeout", f"no result within {timeout:g} s")
            return
        except GeneratorExit:
            process.kill()
            reader.join()
            raise
        reader.join()
        status = process.wait()
        if status:
            errors.seek(0)
            reason = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            yield Verdict(current or items[0], "crash", f"{reason}\n{errors.read()[-2000:]}".strip())


def _read(stream: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Puts the stream's lines, then an empty one. Of a thread: Windows waits for sockets only."""
    for line in stream:
        lines.put(line)
    lines.put(b"")
