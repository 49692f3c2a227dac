"""The PettingZoo environments in the ecosystem's module style.

`parallel_env` and `env` (AEC; `raw_env` is the same, it checks its use itself) take the arguments
of `envs.match.Match`.

>>> from oxx_env import baron_oxx_v0
>>> baron_oxx_v0.parallel_env(num_players=4).possible_agents
['player_0', 'player_1', 'player_2', 'player_3']
"""

from oxx_env.envs.aec import BaronOxxAEC as env
from oxx_env.envs.aec import BaronOxxAEC as raw_env
from oxx_env.envs.parallel import BaronOxxParallel as parallel_env

__all__ = ["env", "parallel_env", "raw_env"]
