"""Words as eight bytes: the compiled forms say the same as the plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oxx_env.lib import simd
from oxx_env.lib.jit import kernel

FACTORS = (0.25, 1.0, 0.2, 3.0, 0.1, 7.0, 1 / 3, 5.0)


@pytest.fixture
def some() -> tuple[np.uint64, ...]:
    """Eight words of random bytes, the highest ones among them."""
    rng = np.random.default_rng(3)
    return tuple(np.uint64(word) for word in rng.integers(2**64, size=8, dtype=np.uint64))


@kernel
def highest_sums(some: Any, mask: Any, added: Any) -> Any:
    return simd.highest_sums(some[:6], mask, added)


@kernel
def columns(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return simd.columns(a, b, c, d, e)


@kernel
def write_one(array: Any, some: Any, factors: Any) -> None:
    simd.write_rows(array, 2, 11, some[:1], factors[:1])


@kernel
def write_three(array: Any, some: Any, factors: Any) -> None:
    simd.write_rows(array, 2, 11, some[:3], factors[:3])


@kernel
def write_six(array: Any, some: Any, factors: Any) -> None:
    simd.write_rows(array, 2, 6, some[:6], factors[:6])


@kernel
def write_eight(array: Any, some: Any, factors: Any) -> None:
    simd.write_rows(array, 2, 11, some, factors)


@pytest.mark.parametrize(
    ("write", "count", "stride"),
    [(write_one, 1, 11), (write_three, 3, 11), (write_six, 6, 6), (write_eight, 8, 11)],
)
def test_rows_are_written_as_told_and_nothing_beside_them(
    write: Any, count: int, stride: int, some: tuple[np.uint64, ...]
) -> None:
    factors = tuple(np.float32(factor) for factor in FACTORS)
    array, told = (np.full(64, 99, np.float32) for _ in range(2))
    write(array, some, factors)
    simd._write_rows_plain(told, 2, stride, some[:count], factors[:count])
    assert array.tobytes() == told.tobytes()
    assert told[2 + stride] == np.float32(int(some[0]) >> 8 & 0xFF) * factors[0]
    assert int((told == 99).sum()) == 64 - 5 * count


def test_the_highest_of_six_sums_is_taken_byte_by_byte(some: tuple[np.uint64, ...]) -> None:
    few = tuple(np.uint64(int(word) & 0x3F3F3F3F3F3F3F3F) for word in some)  # sums stay in bytes
    mask = np.uint64(0xFF00FFFF00FF00FF)
    assert highest_sums(few, mask, few[7]) == simd._highest_sums_plain(few[:6], mask, few[7])
    two = np.uint64(5), np.uint64(7)
    assert simd._highest_sums_plain(two, np.uint64(0xFF), 0x0104) == 0x0404040404040409
    assert simd._highest_sums_plain((np.uint64(5),), np.uint64(0), 4) == 0x0404040404040404


def test_columns_turn_rows_by_ninety_degrees(some: tuple[np.uint64, ...]) -> None:
    turned = columns(*some[:5])
    assert turned == simd._columns_plain(*some[:5])
    assert [int(turned[2]) >> 8 * row & 0xFF for row in range(5)] == [
        int(word) >> 16 & 0xFF for word in some[:5]
    ]


@kernel
def affine(w: Any, x: Any, y: Any, shape: Any, add: Any, relu: Any) -> None:
    simd.affine(w, 3, x, y, shape, add, relu)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_a_matrix_product_in_registers_is_that_of_numpy(add: bool, relu: bool) -> None:
    rng = np.random.default_rng(0)
    for rows, inputs, outputs in ((1, 5, 8), (1, 64, 72), (3, 7, 40), (4, 64, 64), (12, 29, 16)):
        w, x, y = (
            rng.normal(size=size).astype(np.float32)
            for size in ((inputs + 1) * outputs + 3, (rows, inputs + 2), (rows + 1, outputs + 1))
        )
        expected = y.copy()
        affine(w, x, y, (rows, inputs, outputs), add, relu)
        simd._affine_plain(w, 3, x, expected, (rows, inputs, outputs), add, relu)
        assert np.abs(expected[:rows, :outputs]).mean() > 0.5
        np.testing.assert_allclose(y, expected, atol=2e-5)


@kernel
def dot(w: Any, x: Any, count: Any) -> Any:
    return simd.dot(w, 1, x, count)


def test_a_dot_product_in_lanes_is_that_of_numpy() -> None:
    w, x = np.random.default_rng(0).normal(size=(2, 65)).astype(np.float32)
    assert dot(w, x, 64) == pytest.approx(simd._dot_plain(w, 1, x, 64), abs=1e-5)
