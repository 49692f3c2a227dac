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

CACHE_LINE = 64  # bytes


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


@intrinsic
def _fetch(typing_context: Any, array: Any, offset: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer, number = ir.PointerType(ir.IntType(8)), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.gep(builder.bitcast(data, pointer), [args[1]])
        prefetch = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [pointer, number, number, number]),
            "llvm.prefetch.p0i8",
        )
        for_writing, near, data_cache = number(1), number(3), number(1)
        builder.call(prefetch, [address, for_writing, near, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


def _fetch_plain(array: Any, offset: int) -> None:
    """Say that the cache line `offset` bytes into an array, or beyond it, will be written soon.

    Changes nothing but the time that the writing takes.
    """


def _largest_byte_plain(word: Any) -> Any:
    """The largest of the eight bytes of a uint64."""
    return np.uint64(max(int(word).to_bytes(8, "little")))


largest_byte = _largest_byte_plain if config.DISABLE_JIT else _largest_byte
fetch = _fetch_plain if config.DISABLE_JIT else _fetch
