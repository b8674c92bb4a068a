"""Runs the ports of ``docs/porting.md`` in the packages themselves (``make oracles``).

The programs below are those of the document in the words of DALI, JAX and PyTorch, each run in its package's environment on
the arrays that the document makes. The unported ones must differ in as many elements as the document prints, the
ported ones in none. Exits with 1 where they do not.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracles import environments

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "porting.md"

_DALI: Final = """
import numpy as np
from nvidia.dali import fn, math, pipeline_def, types

given = dict(np.load("augment.npz"))

def source(name):
    return fn.external_source(lambda: [given[name]], batch=True)

@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def augment(alpha=100, contrast=1.2):
    image, overlay, noise = source("image"), source("overlay"), source("noise")
    mixed = (overlay * alpha + image * (255 - alpha)) // 255
    stretched = (mixed - 128) * contrast + 128
    noisy = stretched + noise
    return fn.cast(math.clamp(noisy, 0, 255), dtype=types.UINT8)

pipeline = augment(exec_pipelined=False, exec_async=False)
pipeline.build()
np.savez("dali.npz", result=np.array(pipeline.run()[0][0]))
"""

_JAX: Final = """
import jax
import jax.numpy as jnp
import numpy as np

given = {name: jnp.asarray(array) for name, array in np.load("augment.npz").items()}
state = {name: jnp.asarray(array) for name, array in np.load("adam.npz").items()}
state |= {name: state[name].astype(jnp.bfloat16) for name in "pg"}

def augment(image, overlay, noise, alpha=100, contrast=1.2):
    mixed = (overlay * alpha + image * (255 - alpha)) // 255
    stretched = (mixed - 128) * contrast + 128
    noisy = stretched + noise
    return jnp.clip(noisy, 0, 255).astype("uint8")

def widened(image, overlay, noise, alpha=100, contrast=1.2):
    return augment(image.astype("int32"), overlay.astype("int32"), noise, alpha, contrast)

def ported(image, overlay, noise, alpha=100, contrast=1.2):
    image, overlay = image.astype("int32"), overlay.astype("int32")
    mixed = (overlay * alpha + image * (255 - alpha)) // 255
    stretched = (mixed - 128) * contrast + 128
    noisy = stretched + noise
    return jnp.floor(jnp.clip(noisy, 0, 255) + 0.5).astype("uint8")

def adam(p, g, m, v, step, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * (g * g)
    unbiased = m / (1 - b1**step)
    spread = jnp.sqrt(v / (1 - b2**step)) + eps
    return (p - lr * unbiased / spread).astype("bfloat16"), m, v

results = {f.__name__: f(**given) for f in (augment, widened, ported)}
results |= {f"adam{i}": array.astype(jnp.float32) for i, array in enumerate(adam(**state))}
np.savez("jax.npz", **results)
"""

_TORCH: Final = """
import numpy as np
import torch

state = {name: torch.from_numpy(array) for name, array in np.load("adam.npz").items()}
state |= {name: state[name].to(torch.bfloat16) for name in "pg"}

def adam(p, g, m, v, step, r1, r2, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    m = b1 * m + r1 * g
    v = b2 * v + r2 * (g * g)
    unbiased = m / (1 - b1**step)
    spread = torch.sqrt(v / (1 - b2**step)) + eps
    return (p - lr * unbiased / spread).to(torch.bfloat16), m, v

factors = [1 - 0.9, 1 - 0.999]
rounded = [float(torch.tensor(factor, dtype=torch.bfloat16)) for factor in factors]
np.savez("torch.npz", **{
    f"{name}{i}": array.to(torch.float32).numpy()
    for name, chosen in (("adam", factors), ("ported", rounded))
    for i, array in enumerate(adam(**state, r1=chosen[0], r2=chosen[1]))
})
"""


def main() -> int:
    """Runs the programs and compares; the exit status."""
    names, printed = _document()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        np.savez(home / "augment.npz", image=names["image"], overlay=names["overlay"], noise=names["noise"])
        p, g, m, v, step = names["state"]
        np.savez(home / "adam.npz", p=p.astype(np.float32), g=g.astype(np.float32), m=m, v=v, step=step)
        results: dict[str, Any] = {}
        for package, program in (("dali", _DALI), ("jax", _JAX), ("torch", _TORCH)):
            command = [str(environments.python(package)), "-W", "ignore", "-c", program]
            subprocess.run(command, check=True, cwd=home)
            with np.load(home / f"{package}.npz") as found:
                results |= {f"{package} {name}": found[name] for name in found.files}
    pairs = {
        **{f"jax {name}": "dali result" for name in ("augment", "widened", "ported")},
        **{f"torch {name}{i}": f"jax adam{i}" for name in ("adam", "ported") for i in range(3)},
    }
    found = {one: int(np.count_nonzero(results[one] != results[other])) for one, other in pairs.items()}
    expected = dict(zip(pairs, (*printed[:2], 0, 0, *printed[2:], 0, 0, 0), strict=True))
    for name, count in found.items():
        sys.stdout.write(f"{name}: {count} elements differ from {pairs[name]}, expected {expected[name]}\n")
    return int(found != expected)


def _document() -> tuple[dict[str, Any], list[int]]:
    """What the document's blocks define, and the counts it prints, in order."""
    names: dict[str, Any] = {}
    out = io.StringIO()
    for code in re.findall(r"```python\n(.*?)```\n", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL):
        with contextlib.redirect_stdout(out):
            exec(code, names)
    return names, [int(count) for count in re.findall(r"return\S*: (\d+) of", out.getvalue())]


if __name__ == "__main__":
    raise SystemExit(main())
