"""What processors can do with the eight bytes of a word and Python has no word for."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core import config as _config
from numba.extending import intrinsic

config: Any = _config


@intrinsic
def _largest_byte(typing_context: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = ir.VectorType(ir.IntType(8), 8)
        reduce = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.IntType(8), [lanes]),
            "llvm.vector.reduce.umax.v8i8",
        )
        return builder.zext(builder.call(reduce, [builder.bitcast(args[0], lanes)]), ir.IntType(64))

    return types.uint64(types.uint64), codegen


def _largest_byte_plain(word: Any) -> Any:
    """The largest of the eight bytes of a uint64."""
    return np.uint64(max(int(word).to_bytes(8, "little")))


largest_byte = _largest_byte_plain if config.DISABLE_JIT else _largest_byte
