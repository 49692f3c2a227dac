"""Pictures and text to look at: a table as SVG, pixels and window, a game as film, the terminal.

    render    a view as SVG text, pixels, and in a window
    film      a recorded game as pictures and GIF
    terminal  a view as colored text
    plot      lines with intervals, as figures of training draw them
"""
