"""A deck's CSV as spreadsheets write it: encoding, separator, and the words of the header.

A German or French Excel separates by semicolons and writes Windows-1252, a Chinese one GBK or Big5;
"Unicode text" is UTF-16 with tabs. Headers are read in English, German, French and Chinese, in any
order and in capitals too; rows may end in empty cells.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

SEPARATORS = (",", ";", "\t")
# What a header may call each column, as `_plain` writes it.
WORDS: dict[str, str] = {
    "number": "number no nr card # nummer zahl karte kartennummer numero n carte chiffre"
    " 編號 编号 號碼 号码 數字 数字 牌號 牌号 號 号",
    "blue": "blue blau bleu 藍 蓝 藍色 蓝色",
    "yellow": "yellow gelb jaune 黃 黄 黃色 黄色",
    "green": "green grün gruen vert 綠 绿 綠色 绿色",
    "red": "red rot rouge 紅 红 紅色 红色",
    "black": "black schwarz noir 黑 黑色",
    "white": "white weiss blanc 白 白色",
}
COLUMNS = tuple(WORDS)
_COLUMN = {word: column for column, words in WORDS.items() for word in words.split()}
_OLD_ENCODINGS = ("cp1252", "gb18030", "big5", "mac_roman")
_SEPARATOR = re.compile(r'"?sep=(.)"?[,;\t]*', re.IGNORECASE)  # Excel's own first line


def decode(data: bytes) -> str:
    """The text of a file. Raises UnicodeDecodeError.

    What is no UTF-8 (with or without a mark) and no marked UTF-16 is taken for one of the older
    encodings only where that makes the first line the header of a deck.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        for encoding in _OLD_ENCODINGS:
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError:
                continue
            first = next((fields for _, fields in rows(text)), [])
            if set(columns(first)) >= set(COLUMNS):
                return text
        raise


def rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """(1-based line, fields) of every line that is not blank, without Excel's `sep=;`."""
    lines = [(at, line) for at, line in enumerate(re.split(r"\r\n|\n|\r", text), 1) if line.strip()]
    named = _SEPARATOR.fullmatch(lines[0][1].rstrip(" ")) if lines else None
    if named:
        del lines[0]
    separator = named[1] if named else _separator(lines[0][1] if lines else "")
    for at, line in lines:
        fields = _split(line, separator)
        if any(fields):
            yield at, fields


def columns(header: Sequence[str]) -> list[str]:
    """What each column of a header is, one of `COLUMNS` or empty; empty cells at its end are left
    out."""
    known = [_COLUMN.get(_plain(field), "") for field in header]
    while known and not known[-1] and not header[len(known) - 1]:
        known.pop()
    return known


def _separator(first: str) -> str:
    """By which one the first line holds the most words of a header, or else the most fields."""
    found = [(_split(first, separator), separator) for separator in SEPARATORS]
    counts = [(sum(map(bool, columns(fields))), len(fields)) for fields, _ in found]
    return found[max(range(len(found)), key=lambda index: counts[index])][1]


def _split(line: str, separator: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=separator))]
    except csv.Error:  # a field longer than the csv module takes
        return [line]


def _plain(word: str) -> str:
    """A word of a header without capitals, accents of French, dots and degree signs."""
    word = word.casefold().strip(" .:°º")
    return word.replace("é", "e").replace("è", "e").replace("u\u0308", "ü")
