"""The hooks of ``triton.knobs`` around the compilation of a kernel."""

from __future__ import annotations

import time
from typing import Any

from weft.runtime import stages
from weft.triton import knobs
from weft.triton.runtime.driver import driver
from weft.triton.runtime.preloading import Specialization, written


def compiled(kernel: Any, warmup: bool) -> None:
    """Tells ``jit_cache_hook`` and ``jit_post_compile_hook`` of a kernel that has been compiled; what they return is ignored."""
    hooks = (knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook)
    if hooks == (None, None):
        return
    told = _description(kernel, warmup)
    for hook in hooks:
        if hook is not None:
            hook(**told)


def listened(kernel: Any, began: int) -> None:
    """Tells ``knobs.compilation.listener`` of a kernel: what the parts of its compilation took, or that it was compiled before.
    ``began``: when it was asked for, in nanoseconds."""
    listener = knobs.compilation.listener
    times = stages.taken(kernel.src.fn)
    if listener is None:
        return
    parts = times or {"ttir": max(1, (time.perf_counter_ns() - began) // 1000)}
    lowering = [(name, took) for name, took in parts.items() if name not in {"ttir", "store"}]
    listener(
        src=kernel.src,
        metadata=kernel.metadata._asdict(),
        metadata_group=kernel.metadata_group,
        times=knobs.CompileTimes(parts["ttir"], lowering, parts.get("store", 0)),
        cache_hit=times is None,
    )


def _description(kernel: Any, warmup: bool) -> dict[str, Any]:
    source, metadata = kernel.src, kernel.metadata
    types = ", ".join(f"{name}: {spelled}" for name, spelled in source.signature.items())
    options = {
        name: getattr(metadata, name)
        for name in ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion", "launch_cooperative_grid")
    }
    shown = ", ".join(f"{name}={value}" for name, value in options.items())
    target = driver.active.get_current_target()
    data = Specialization(
        f"{source.fn.__module__}.{source.fn.__qualname__}",
        vars(target),
        kernel.options.disjoint,
        dict(kernel.options.launch),
        kernel.signature,
    )
    return {
        "key": kernel.hash,
        "repr": f"{source.fn.__qualname__}[{shown}]({types})",
        "fn": source.fn,
        "compile": {
            "key": kernel.hash,
            "signature": source.signature,
            "device": driver.active.get_current_device(),
            "constants": source.constants,
            **options,
            "extern_libs": (),
            "configs": [source.attrs],
            "specialization_data": written(data),
            "is_warmup": warmup,
        },
        "is_manual_warmup": warmup,
        "already_compiled": False,
    }
