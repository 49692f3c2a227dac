"""A user's own models play wherever a bot is named on the command line, and nowhere else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxx_env import arena, bots
from oxx_env.bots import own
from oxx_env.commands import _cli
from oxx_env.game.table import Table

MODELS = """
import numpy as np

class Plain:
    def act(self, view, rng):
        return int(rng.choice(view.legal))

class Observer:
    observe = True
    def act(self, observation, action_mask, rng):
        assert observation.dtype == np.float32 and action_mask.dtype == np.int8
        return rng.choice(np.flatnonzero(action_mask))

class Batch:
    observe = batch = True
    def __init__(self):
        self.sizes = []
    def act(self, observations, masks, rngs):
        self.sizes.append(len(rngs))
        assert len(observations) == len(masks) == len(rngs)
        return [r.choice(np.flatnonzero(m)) for r, m in zip(rngs, masks)]

class Sized(Batch):
    '''Shows what is in its batch.'''
    def act(self, observations, masks, rngs):
        skip = len(rngs) + int(observations.sum())
        return [np.flatnonzero(m)[(i + skip) % m.sum()] for i, m in enumerate(masks)]

def factory():
    return Plain()

class Fails:
    def act(self, view, rng):
        return self.helper(view)
    def helper(self, view):
        raise KeyError("no such thing")

class Later(Plain):
    games = 0
    def act(self, view, rng):
        if len(view.hand) == 4 and not view.history():
            Later.games += 1
        if Later.games > 5:
            raise RuntimeError("enough")
        return super().act(view, rng)

class TooHigh:
    def act(self, view, rng):
        return 12

class Illegal(Observer):
    def act(self, observation, action_mask, rng):
        return np.flatnonzero(action_mask == 0)[0]

class NotANumber(Observer):
    def act(self, observation, action_mask, rng):
        return float("nan")

class WrongShape(Batch):
    def act(self, observations, masks, rngs):
        return [0]

class Exits:
    def act(self, view, rng):
        raise SystemExit(0)

class OnlyBatch(Plain):
    batch = True

class NoAct:
    pass

class NotMade:
    def __init__(self, file):
        pass

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with `models.py` in it."""
    (tmp_path / "models.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tiny models of stable-baselines3, by the names of their classes."""
    import gymnasium
    from sb3_contrib import MaskablePPO, RecurrentPPO
    from stable_baselines3 import DQN, PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    from oxx_env.envs.vector import BaronOxxVecEnv

    folder = tmp_path_factory.mktemp("models")
    envs = BaronOxxVecEnv(4, players=2, illegal_action="substitute", seed=1)
    few: dict[str, Any] = {"n_steps": 4, "batch_size": 16, "n_epochs": 1, "seed": 1}
    few |= {"device": "cpu", "policy_kwargs": {"net_arch": [16]}}
    MaskablePPO("MlpPolicy", envs, **few).learn(16).save(folder / "MaskablePPO")
    normalised = VecNormalize(envs, norm_reward=False)
    PPO("MlpPolicy", normalised, **few).learn(16).save(folder / "normalised")
    normalised.save(str(folder / "statistics"))
    policy = few["policy_kwargs"]
    dqn = DQN("MlpPolicy", envs, buffer_size=100, seed=1, device="cpu", policy_kwargs=policy)
    dqn.learn(40).save(folder / "DQN")
    RecurrentPPO("MlpLstmPolicy", envs, n_steps=4, batch_size=16, device="cpu").save(
        folder / "RecurrentPPO"
    )
    other = DummyVecEnv([lambda: gymnasium.make("CartPole-v1")])
    PPO("MlpPolicy", other, device="cpu").save(folder / "cartpole")
    broken = MaskablePPO("MlpPolicy", envs, **few)
    broken.policy.action_net.bias.data.fill_(float("nan"))
    broken.save(folder / "nan")
    return folder


def command(capsys: Any, *words: object) -> tuple[int, str, str]:
    code = _cli.main([str(word) for word in words])
    told = capsys.readouterr()
    return code, told.out, told.err


def without_timing(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text)
    del data["timing"]
    return data


# --- all forms ------------------------------------------------------------------------------------


def test_all_forms_that_choose_alike_play_alike(folder: Path) -> None:
    forms = ["py:models.py:Plain", "py:models:Plain", "py:models.py:factory"]
    forms += [f"py:models.py:{name}" for name in ("Observer", "Batch")]
    for match in (1, 2):
        results = [
            arena.play([f, "greedy"], players=3, games=12, match=match, seed=1, own_code=True)
            for f in forms
        ]
        assert len({(r.bots[0].mean_points, r.bots[1].mean_points) for r in results}) == 1


def test_an_object_needs_no_file(folder: Path) -> None:
    space: dict[str, Any] = {}
    exec(MODELS, space)
    model = own.OwnBot(space["Batch"](), "mine")
    result = arena.play([model, "greedy"], players=2, games=100, seed=1)
    assert result.bots[0].spec == "mine" and result.timing["decisions"]["mine"] > 1000
    assert max(model.model.sizes) > 100  # matches are played beside each other


@pytest.mark.parametrize("spec", ["py:models.py:Sized", "sb3:MaskablePPO.zip:sample"])
def test_batches_are_a_function_of_the_blocks(
    spec: str, folder: Path, saved: Path, capsys: Any
) -> None:
    """Any number of games, workers, or an interruption: the same blocks."""
    (folder / "MaskablePPO.zip").write_bytes((saved / "MaskablePPO.zip").read_bytes())
    words = ["arena", spec, "greedy", "--players", 4, "--seed", 3, "--json"]
    code, one, _ = command(capsys, *words, "--games", 280, "--log", "one")
    assert code == 0
    _, two, _ = command(capsys, *words, "--games", 280, "--workers", 2)
    assert without_timing(one) == without_timing(two)
    lines = Path("one").read_text().splitlines(keepends=True)
    Path("cut").write_text("".join(lines[:40]))
    _, resumed, _ = command(capsys, *words, "--games", 280, "--log", "cut")
    assert without_timing(resumed) == without_timing(one)

    def points(path: str) -> list[Any]:
        return [json.loads(line)["points"] for line in Path(path).read_text().splitlines()[1:]]

    command(capsys, *words, "--games", 120, "--log", "short")
    assert points("cut") == points("one") and points("one")[:30] == points("short")[:30]


def test_a_log_holds_the_hash_of_the_file_and_refuses_another(folder: Path, capsys: Any) -> None:
    words = ["arena", "py:models.py:Plain", "greedy", "--players", 2, "--games", 4, "--log", "log"]
    assert command(capsys, *words)[0] == 0
    digest = hashlib.sha256((folder / "models.py").read_bytes()).hexdigest()
    assert json.loads(Path("log").read_text().splitlines()[0])["weights"] == [digest, None]
    (folder / "models.py").write_text(MODELS + "\n")
    code, _, err = command(capsys, *words)
    assert code == 2 and "was begun with weights" in err


def test_every_command_that_names_a_bot_takes_one(folder: Path, capsys: Any) -> None:
    spec, position = "py:models.py:Observer", "4p seat 0 | rows 12 7 31 20 46 | hand 3 17 52 88"
    small = ["--players", 2, "--games", 2]
    for words in (
        ["arena", spec, "py:models.py:Batch", *small],
        ["league", spec, "greedy", *small],
        ["compare", spec, "greedy", "--against", "py:models.py:Batch", *small],
        ["record", "--bots", f"{spec},greedy", "--output", "games.jsonl", "--players", 2],
        ["advise", position, "--bot", spec],
    ):
        code, _, err = command(capsys, *words)
        assert (code, err.count("\n") <= 2) == (0, True), err


# --- stable-baselines3 ----------------------------------------------------------------------------


def test_a_saved_model_plays_its_best_legal_action(saved: Path, caplog: Any) -> None:
    from sb3_contrib import MaskablePPO

    path = saved / "MaskablePPO.zip"
    bot: Any = bots.make(f"sb3:{path}", own_code=True)
    assert bot.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"loading {path}: a file of stable-baselines3 runs the code" in caplog.text
    model = MaskablePPO.load(path, device="cpu")
    table, rng = Table(4, "color+positive"), np.random.default_rng(1)
    table.deal(seed=2)
    while not table.over:
        for seat in table.deciders():
            view = table.view(seat)
            mask = np.isin(np.arange(10), view.legal)
            choice = model.predict(own.observe(view), action_masks=mask, deterministic=True)[0]
            assert bot.act(view, rng) == choice
        table.act(seat, int(choice))


def test_sample_draws_by_the_policys_probabilities(saved: Path) -> None:
    table = Table(2)
    table.deal(seed=1)
    view = table.view(0)
    bot: Any = bots.make(f"sb3:{saved / 'MaskablePPO.zip'}:sample", own_code=True)
    scores = bot.model.scores(__import__("torch").from_numpy(own.observe(view)[None]))
    chances = np.exp(scores.detach().numpy()[0, :4].astype(float))
    drawn = [bot.act(view, np.random.default_rng(seed)) for seed in range(1000)]
    shares = np.bincount(drawn, minlength=4) / 1000
    assert np.abs(shares - chances / chances.sum()).max() < 0.06


def test_values_of_actions_and_normalised_observations_play(saved: Path, tmp_path: Path) -> None:
    for name in ("DQN", "normalised"):
        (tmp_path / f"{name}.zip").write_bytes((saved / f"{name}.zip").read_bytes())
    (tmp_path / "normalised.vecnormalize.pkl").write_bytes((saved / "statistics").read_bytes())
    for name in ("DQN", "normalised"):
        spec = f"sb3:{tmp_path / name}.zip"
        arena.play([spec, "greedy"], players=2, games=4, own_code=True)
    normalised: Any = bots.make(spec, own_code=True)
    assert normalised.model.statistics is not None and len(normalised.sha256) == 129


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", ["py:models.py:Plain", "sb3:MaskablePPO.zip"])
def test_the_code_runs_only_where_it_is_allowed(spec: str, folder: Path) -> None:
    for call in (
        lambda: bots.make(spec),
        lambda: arena.play([spec, "greedy"], players=2, games=2),
        lambda: own_opponent(spec),
    ):
        with pytest.raises(ValueError, match="runs code of a file"):
            call()


def own_opponent(spec: str) -> None:
    import gymnasium

    gymnasium.make("oxx_env/BaronOxx-v0", opponents=(spec,))


BAD = {
    "py:none.py:Plain": "no such file: none.py",
    "py:models.py": "lacks its name: write py:FILE:NAME",
    "py:models.py:Nothing": "models.py has no Nothing; it has Plain, Observer",
    "py:models.py:number": "should be a class or a function",
    "py:models.py:NoAct": "NoAct lacks act(view, rng)",
    "py:models.py:NotMade": "cannot be made: TypeError",
    "py:models.py:OnlyBatch": "batch = True needs observe = True",
    "py:no_such_module:Plain": "cannot be imported: ModuleNotFoundError",
    "py:wrong.py:Plain": "cannot be imported: SyntaxError",
    "py:needy.py:Plain": "cannot be imported: ModuleNotFoundError: No module named 'absent'",
    "py:models.py:TooHigh": "chose 12, which is not legal; legal: [0, 1, 2, 3]; position: base 2p",
    "py:models.py:Illegal": "which is not legal; legal: [",
    "py:models.py:NotANumber": "chose NaN, which is not legal",
    "py:models.py:WrongShape": "with shape (1,); it should be (",
    "py:models.py:Exits": "failed: SystemExit",
    "sb3:none.zip": "no such file: none.zip",
    "sb3:models.py": "models.py is no model of stable-baselines3",
    "sb3:cartpole.zip": "it should be the flat observation, Box of shape (",
    "sb3:RecurrentPPO.zip": "recurrent policies (",
    "sb3:normalised.zip": "statistics of VecNormalize are missing",
    "sb3:nan.zip": "the model's output is NaN; position: base 2p",
    "sb3:DQN.zip:sample": "has no distribution to draw from",
    "sb3:DQN.zip:best": "has no option 'best'; its options: sample",
}


@pytest.mark.parametrize("spec", BAD)
def test_bad_input_is_one_sentence(spec: str, folder: Path, saved: Path, capsys: Any) -> None:
    (folder / "wrong.py").write_text("class Plain\n")
    (folder / "needy.py").write_text("import absent\n")
    for name in ("cartpole", "RecurrentPPO", "normalised", "nan", "DQN"):
        (folder / f"{name}.zip").write_bytes((saved / f"{name}.zip").read_bytes())
    code, out, err = command(capsys, "arena", spec, "greedy", "--players", 2, "--games", 2)
    (said,) = (line for line in err.splitlines() if line.startswith("oxx: "))
    assert (code, out) == (2, "") and BAD[spec] in said and "oxx_env/" not in err


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_shows_the_users_own_traceback(
    workers: int, folder: Path, capsys: Any
) -> None:
    words = ["arena", "py:models.py:Fails", "greedy", "--games", 8, "--workers", workers]
    code, _, err = command(capsys, *words)
    assert code == 2
    assert "in helper\n" in err and "oxx_env" not in err
    assert err.endswith("oxx: 'py:models.py:Fails' failed: KeyError: 'no such thing'\n")


def test_blocks_finished_before_an_exception_stay_in_the_log(folder: Path, capsys: Any) -> None:
    words = ["arena", "py:models.py:Later", "greedy", "--players", 2, "--games", 8, "--log", "log"]
    assert command(capsys, *words)[0] == 2
    assert len(Path("log").read_text().splitlines()) == 1 + 2


def test_a_missing_library_is_named(
    saved: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "stable_baselines3", None)
    code, _, err = command(capsys, "arena", f"sb3:{saved / 'DQN.zip'}", "greedy", "--games", 4)
    assert code == 2 and "needs stable-baselines3: " in err and err.count("\n") == 1
