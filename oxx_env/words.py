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


@intrinsic
def _larger_bytes(typing_context: Any, one: Any, other: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = ir.VectorType(ir.IntType(8), 8)
        a, b = (builder.bitcast(arg, lanes) for arg in args)
        larger = builder.select(builder.icmp_unsigned(">", a, b), a, b)
        return builder.bitcast(larger, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def _columns(typing_context: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, number = ir.IntType(64), ir.IntType(32)
        rows: Any = ir.Constant(ir.VectorType(word, 8), [0] * 8)
        for row, arg in enumerate(args):
            rows = builder.insert_element(rows, arg, number(row))
        lanes = builder.bitcast(rows, ir.VectorType(ir.IntType(8), 64))
        order = [8 * (lane % 8) + lane // 8 for lane in range(64)]
        turned = builder.shuffle_vector(lanes, lanes, ir.Constant(ir.VectorType(number, 64), order))
        words = builder.bitcast(turned, ir.VectorType(word, 8))
        found = [builder.extract_element(words, number(index)) for index in range(8)]
        return context.make_tuple(builder, signature.return_type, found)

    word = types.uint64
    return types.UniTuple(word, 8)(word, word, word, word, word), codegen


@intrinsic
def _write_bytes(
    typing_context: Any, array: Any, at: Any, stride: Any, word: Any, factor: Any
) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, real = ir.IntType(32), ir.FloatType()
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        lanes = builder.bitcast(args[3], ir.VectorType(ir.IntType(8), 8))
        factors: Any = ir.Constant(ir.VectorType(real, 8), ir.Undefined)
        for lane in range(8):
            factors = builder.insert_element(factors, args[4], number(lane))
        floats = builder.fmul(builder.uitofp(lanes, factors.type), factors)
        place = args[1]
        for lane in range(5):
            value = builder.extract_element(floats, number(lane))
            builder.store(value, builder.gep(data, [place]))
            place = builder.add(place, args[2])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.uint64, types.float32), codegen


def _write_bytes_plain(array: Any, at: int, stride: int, word: Any, factor: Any) -> None:
    """Write the five lowest bytes of a word, each times a factor, to `array` float32 [N].

    The lowest goes to entry `at`, each other one `stride` entries beyond the one before.
    """
    for index, byte in enumerate(int(word).to_bytes(8, "little")[:5]):
        array[at + index * stride] = np.float32(byte) * factor


def _columns_plain(*words: Any) -> tuple[Any, ...]:
    """Five words of eight bytes as eight words: byte r of word k is byte k of argument r."""
    rows = [int(word).to_bytes(8, "little") for word in words]
    return tuple(np.uint64(int.from_bytes(bytes(c), "little")) for c in zip(*rows, strict=True))


def _larger_bytes_plain(one: Any, other: Any) -> Any:
    """Of each of the eight bytes of two words the larger one."""
    pairs = zip(int(one).to_bytes(8, "little"), int(other).to_bytes(8, "little"), strict=True)
    return np.uint64(int.from_bytes(bytes(map(max, pairs)), "little"))


def _fetch_plain(array: Any, offset: int) -> None:
    """Say that the cache line `offset` bytes into an array, or beyond it, will be written soon.

    Changes nothing but the time that the writing takes.
    """


compiled = not config.DISABLE_JIT
fetch = _fetch if compiled else _fetch_plain
larger_bytes = _larger_bytes if compiled else _larger_bytes_plain
columns = _columns if compiled else _columns_plain
write_bytes = _write_bytes if compiled else _write_bytes_plain
