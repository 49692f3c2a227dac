"""A reinforcement-learning environment for the card game 6 nimmt! Baron Oxx."""

__version__ = "0.1.0"
