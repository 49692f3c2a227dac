"""What processors do with several numbers at once and the compiler does not find by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
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


# What of a matrix product stays in registers: some rows of the result by some columns.
BLOCK_ROWS = 5
_FEATURES = binding.get_host_cpu_features()
BLOCK_COLUMNS = 32 if _FEATURES.get("avx512f") else 16
LANES = 8  # columns are a multiple of it
_CHAINS = 2  # sums of a single row, which would otherwise wait for each other
_FMA = ("contract",)


def _affine_function(module: Any) -> Any:
    """A function of the module that does what `affine` does; made where it is not there yet.

    Arguments: w from its place on, x and its step from row to row, y and its step, rows, inputs,
    outputs, add, relu.
    """
    word, bit, floats = ir.IntType(64), ir.IntType(1), ir.PointerType(ir.FloatType())
    kinds = [floats, floats, word, floats, word, word, word, word, bit, bit]
    function = cgutils.get_or_insert_function(
        module, ir.FunctionType(ir.VoidType(), kinds), "oxx_env.affine"
    )
    if function.blocks:
        return function
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")  # at each place of a call it would crowd the cache of code
    builder = ir.IRBuilder(function.append_basic_block())
    weights, source, x_step, target, y_step, rows, inputs, outputs, add, relu = function.args

    def loop(start: Any, end: Any, step: int) -> Any:
        return cgutils.for_range_slice(builder, start, end, word(step), inc=True)

    def block(count: int, columns: int, row: Any, column: Any) -> None:
        """`count` rows of the result from `row` on, by `columns` columns from `column` on."""
        kind = ir.VectorType(ir.FloatType(), columns)
        zero = ir.Constant(kind, [0.0] * columns)

        def vector(data: Any, place: Any) -> Any:
            return builder.bitcast(builder.gep(data, [place]), kind.as_pointer())

        def line(data: Any, step: Any, r: int) -> Any:
            return builder.gep(data, [builder.mul(builder.add(row, word(r)), step)])

        def weights_of(k: Any) -> Any:
            place = builder.add(builder.mul(k, outputs), column)
            return builder.load(vector(weights, place), align=4)

        def multiply_add(total: Any, k: Any, r: int, factors: Any) -> None:
            value = builder.load(builder.gep(lines[r], [k]))
            first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, word(0))
            order = ir.Constant(ir.VectorType(ir.IntType(32), columns), [0] * columns)
            product = builder.fmul(builder.shuffle_vector(first, first, order), factors, _FMA)
            builder.store(builder.fadd(builder.load(total), product, _FMA), total)

        lines = [line(source, x_step, r) for r in range(count)]
        places = [vector(line(target, y_step, r), column) for r in range(count)]
        chains = _CHAINS if count == 1 else 1
        totals = [cgutils.alloca_once_value(builder, zero) for _ in range(count * chains)]
        bias = weights_of(inputs)
        for r in range(count):
            before = builder.select(add, builder.load(places[r], align=4), zero)
            builder.store(builder.fadd(before, bias), totals[r])
        for more in totals[count:]:
            builder.store(zero, more)
        in_chains = builder.sub(inputs, builder.urem(inputs, word(chains)))
        with loop(word(0), in_chains, chains) as (k, _):
            for chain in range(chains):
                own = builder.add(k, word(chain))
                factors = weights_of(own)
                for r in range(count):
                    multiply_add(totals[r + chain], own, r, factors)
        if chains > 1:
            with loop(in_chains, inputs, 1) as (k, _):
                multiply_add(totals[0], k, 0, weights_of(k))
        for r in range(count):
            total = builder.load(totals[r])
            for more in totals[count:]:
                total = builder.fadd(total, builder.load(more))
            positive = builder.select(builder.fcmp_ordered(">", total, zero), total, zero)
            builder.store(builder.select(relu, positive, total), places[r], align=4)

    with loop(word(0), rows, BLOCK_ROWS) as (row, _):
        left = builder.sub(rows, row)
        for count in range(1, BLOCK_ROWS + 1):
            fits = ">=" if count == BLOCK_ROWS else "=="
            with builder.if_then(builder.icmp_unsigned(fits, left, word(count))):
                columns = BLOCK_COLUMNS * (2 if count == 1 else 1)
                wide = builder.sub(outputs, builder.urem(outputs, word(columns)))
                with loop(word(0), wide, columns) as (column, _):
                    block(count, columns, row, column)
                with loop(wide, outputs, LANES) as (column, _):
                    block(count, LANES, row, column)
    builder.ret_void()
    return function


@intrinsic
def _affine(
    typing_context: Any, w: Any, at: Any, x: Any, y: Any, shape: Any, add: Any, relu: Any
) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def matrix(index: int) -> tuple[Any, Any]:
            array = context.make_array(signature.args[index])(context, builder, args[index])
            return array.data, cgutils.unpack_tuple(builder, array.shape)[-1]

        weights = builder.gep(matrix(0)[0], [args[1]])
        flags = [builder.trunc(flag, ir.IntType(1)) for flag in args[5:]]
        shape = cgutils.unpack_tuple(builder, args[4])
        function = _affine_function(builder.module)
        builder.call(function, [weights, *matrix(2), *matrix(3), *shape, *flags])
        return context.get_dummy_value()

    shape = types.UniTuple(types.intp, 3)
    return types.void(w, types.intp, x, y, shape, types.boolean, types.boolean), codegen


@intrinsic
def _dot(typing_context: Any, w: Any, at: Any, x: Any, count: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word, number = ir.IntType(64), ir.IntType(32)
        kind = ir.VectorType(ir.FloatType(), LANES)
        weights, source = (
            context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2)
        )
        total = cgutils.alloca_once_value(builder, ir.Constant(kind, [0.0] * LANES))
        with cgutils.for_range_slice(builder, word(0), args[3], word(LANES), inc=True) as (k, _):
            one, other = (
                builder.load(builder.bitcast(builder.gep(data, [at]), kind.as_pointer()), align=4)
                for data, at in ((weights, builder.add(args[1], k)), (source, k))
            )
            product = builder.fmul(one, other, flags=_FMA)
            builder.store(builder.fadd(builder.load(total), product, flags=_FMA), total)
        sums = builder.load(total)
        for half in (4, 2, 1):
            order = ir.Constant(
                ir.VectorType(number, LANES), [(lane + half) % LANES for lane in range(LANES)]
            )
            sums = builder.fadd(sums, builder.shuffle_vector(sums, sums, order))
        return builder.extract_element(sums, number(0))

    return types.float32(w, types.intp, x, types.intp), codegen


def _affine_plain(
    w: Any, at: int, x: Any, y: Any, shape: tuple[int, int, int], add: bool, relu: bool
) -> None:
    """y = x W + b, the sums held in registers.

    w      float32 [N]; W [inputs, outputs], then b [outputs], start at `at`
    x      float32 [rows or more, inputs or more]
    y      float32 [rows or more, outputs or more]
    shape  rows, inputs, outputs, the last a multiple of `LANES`
    add    is it added to y?
    relu   is the larger of that and 0 written?

    The order in which products are added depends on the shape alone, on all processors.
    """
    rows, inputs, outputs = shape
    both = w[at : at + (inputs + 1) * outputs].reshape(inputs + 1, outputs)
    result = x[:rows, :inputs] @ both[:-1] + both[-1]
    if add:
        result += y[:rows, :outputs]
    y[:rows, :outputs] = np.maximum(result, 0) if relu else result


def _dot_plain(w: Any, at: int, x: Any, count: int) -> Any:
    """The sum of `w[at + i] * x[i]` over the first `count` entries, a multiple of `LANES`."""
    return w[at : at + count] @ x[:count]


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
affine = _affine if compiled else _affine_plain
dot = _dot if compiled else _dot_plain
