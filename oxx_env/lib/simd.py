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
def _highest_sums(typing_context: Any, words: Any, mask: Any, bytes_: Any) -> Any:
    count = len(words)
    assert count % 2 == 0

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, number = ir.IntType(64), ir.IntType(32)
        two, lanes = ir.VectorType(word, 2), ir.VectorType(ir.IntType(8), 16)

        def pair(one: Any, other: Any) -> Any:
            found = builder.insert_element(ir.Constant(two, ir.Undefined), one, number(0))
            return builder.bitcast(builder.insert_element(found, other, number(1)), lanes)

        def larger(a: Any, b: Any) -> Any:
            return builder.select(builder.icmp_unsigned(">", a, b), a, b)

        kept, addends = pair(args[1], args[1]), pair(args[2], args[2])
        highest: Any = None
        for k in range(0, count, 2):  # two words at once
            one, other = (builder.extract_value(args[0], index) for index in (k, k + 1))
            order = ir.Constant(ir.VectorType(number, 16), [k] * 8 + [k + 1] * 8)
            added = builder.shuffle_vector(addends, addends, order)
            sums = builder.add(builder.and_(pair(one, other), kept), added)
            highest = sums if highest is None else larger(highest, sums)
        halves = builder.bitcast(highest, two)
        eight = ir.VectorType(ir.IntType(8), 8)
        one, other = (
            builder.bitcast(builder.extract_element(halves, number(half)), eight) for half in (0, 1)
        )
        return builder.bitcast(larger(one, other), word)

    return types.uint64(types.UniTuple(types.uint64, count), types.uint64, types.uint64), codegen


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
def _write_rows(
    typing_context: Any, array: Any, at: Any, stride: Any, words: Any, factors: Any
) -> Any:
    count = len(words)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number, real = ir.IntType(32), ir.FloatType()
        data = context.make_array(signature.args[0])(context, builder, args[0]).data

        columns: Any = ir.Constant(ir.VectorType(ir.IntType(64), 8), [0] * 8)
        for k in range(count):
            columns = builder.insert_element(columns, builder.extract_value(args[3], k), number(k))
        lanes = builder.bitcast(columns, ir.VectorType(ir.IntType(8), 64))
        multiply: Any = ir.Constant(ir.VectorType(real, 8), ir.Undefined)
        for k in range(count):
            multiply = builder.insert_element(
                multiply, builder.extract_value(args[4], k), number(k)
            )
        kept = ir.Constant(ir.VectorType(number, count), list(range(count)))
        place = args[1]
        for row in range(5):
            own = ir.Constant(ir.VectorType(number, 8), [8 * k + row for k in range(8)])
            bytes_ = builder.shuffle_vector(lanes, lanes, own)
            floats = builder.fmul(builder.uitofp(bytes_, multiply.type), multiply)
            values = builder.shuffle_vector(floats, floats, kept)
            target = builder.bitcast(builder.gep(data, [place]), ir.PointerType(values.type))
            builder.store(values, target, align=4)
            place = builder.add(place, args[2])
        return context.get_dummy_value()

    several = types.UniTuple(types.uint64, count), types.UniTuple(types.float32, count)
    return types.void(array, types.intp, types.intp, *several), codegen


def _write_rows_plain(array: Any, at: int, stride: int, words: Any, factors: Any) -> None:
    """Write the five lowest bytes of up to eight words, each word times its factor.

    Byte r of word k goes to entry `at` + r * `stride` + k of `array` float32 [N].
    """
    for k, (word, factor) in enumerate(zip(words, factors, strict=True)):
        for row, byte in enumerate(int(word).to_bytes(8, "little")[:5]):
            array[at + row * stride + k] = np.float32(byte) * factor


def _columns_plain(*words: Any) -> tuple[Any, ...]:
    """Five words of eight bytes as eight words: byte r of word k is byte k of argument r."""
    rows = [int(word).to_bytes(8, "little") for word in words]
    return tuple(np.uint64(int.from_bytes(bytes(c), "little")) for c in zip(*rows, strict=True))


def _highest_sums_plain(words: Any, mask: Any, bytes_: Any) -> Any:
    """The highest of some sums, byte by byte: of (word k & `mask`) plus byte k of `bytes_`."""
    added = int(bytes_).to_bytes(8, "little")
    sums = [
        [byte + more for byte in (int(word) & int(mask)).to_bytes(8, "little")]
        for word, more in zip(words, added, strict=False)
    ]
    return np.uint64(
        int.from_bytes(bytes(max(s) & 0xFF for s in zip(*sums, strict=True)), "little")
    )


def _fetch_plain(array: Any, offset: int) -> None:
    """Say that the cache line `offset` bytes into an array, or beyond it, will be written soon.

    Changes nothing but the time that the writing takes.
    """


compiled = not config.DISABLE_JIT
fetch = _fetch if compiled else _fetch_plain
highest_sums = _highest_sums if compiled else _highest_sums_plain
columns = _columns if compiled else _columns_plain
write_rows = _write_rows if compiled else _write_rows_plain
