"""What knows nothing of the game: compiling, files, texts, seeds, what is installed.

    jit          `kernel`: compile a function with Numba; where compiled code is kept
    simd         words of the processor that Python lacks
    files        read with a bound, write whole or not at all
    texts        text in messages and on the terminal
    spreadsheet  CSV as spreadsheets write it
    jobs         jobs in this process or in several
    seeding      one seed for every deal and every bot
    options      a type and a range for each field of a dataclass, and one check
    shell        what all programs share: exit codes, Ctrl-C, commands to print
    extras       packages that only a part needs
    imports      what is imported when
    version      the version of this package
"""
