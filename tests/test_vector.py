"""The batch of games for stable-baselines3."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.vec_env import VecMonitor

from oxx_env import cards
from oxx_env.envs.vector import BaronOxxVecEnv
from oxx_env.game.observe import OBS, observe
from oxx_env.game.table import Table
from oxx_env.game.views import View

RULES = ("base", "color", "positive", "color+positive")


def choose(envs: BaronOxxVecEnv, rng: np.random.Generator) -> np.ndarray:
    """A random legal action for each environment."""
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in envs.action_masks()])


def play(envs: BaronOxxVecEnv, steps: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    out: list[Any] = [envs.reset()]
    for _ in range(steps):
        out.append(envs.step(choose(envs, rng)))
    return out


def new_deck(rng: np.random.Generator) -> Any:
    return cards.random_deck("balanced", rng)


class First:
    """A bot of Python's: the first legal action."""

    def act(self, view: View, rng: np.random.Generator) -> int:
        return view.legal[0]


class Any_:
    """A bot of Python's: any legal action."""

    def act(self, view: View, rng: np.random.Generator) -> int:
        return int(rng.choice(view.legal))


def test_shapes_and_types_are_those_of_the_spaces() -> None:
    envs = BaronOxxVecEnv(6, players=(2, 4), rules=RULES, seed=1)
    observations = envs.reset()
    assert observations.shape == (6, OBS) and observations.dtype == np.float32
    masks = envs.action_masks()
    assert masks.shape == (6, 10) and masks.dtype == np.bool_ and masks.any(axis=1).all()
    observations, rewards, dones, infos = envs.step(masks.argmax(axis=1))
    assert observations.dtype == rewards.dtype == np.float32 and rewards.shape == (6,)
    assert dones.dtype == np.bool_ and len(infos) == 6
    assert all(envs.observation_space.contains(row) for row in observations)


@pytest.mark.parametrize("opponents", [("greedy",), ("random", "greedy"), (Any_(), "greedy")])
def test_the_same_seed_and_actions_give_the_same_matches(opponents: Any) -> None:
    def run() -> list[Any]:
        envs = BaronOxxVecEnv(
            6, (2, 3, 4), RULES, opponents=opponents[:1], games_per_match=2, seed=3
        )
        return [play(envs, 60), play(envs, 5)]

    for first, second in zip(run(), run(), strict=True):
        np.testing.assert_array_equal(first[0], second[0])
        for one, two in zip(first[1:], second[1:], strict=True):
            for a, b in zip(one[:3], two[:3], strict=True):
                np.testing.assert_array_equal(a, b)
            for a, b in zip(one[3], two[3], strict=True):
                for info in (a, b):
                    info.get("episode", {}).pop("t", None)
                np.testing.assert_equal(a, b)


def test_environment_i_starts_with_the_deal_of_seed_plus_i() -> None:
    envs = BaronOxxVecEnv(3, 3, "color", seed=40)
    envs.reset()
    again = BaronOxxVecEnv(3, 3, "color")
    assert again.seed(40) == [40, 41, 42]
    again.reset()
    for index in range(3):
        table = Table(3, "color")
        table.deal(40 + index)
        told = table.view(0).to_dict()
        assert envs.view(index).to_dict() == again.view(index).to_dict() == told
    envs.reset()
    assert envs.view(0).hand != again.view(0).hand


def test_the_environments_go_through_all_combinations() -> None:
    envs = BaronOxxVecEnv(9, (2, 5), ("base", "positive"), ("balanced", "two-color"))
    kinds = list(zip(*(envs.get_attr(name) for name in ("players", "rules", "deck")), strict=True))
    assert len(set(kinds)) == 8 and kinds[8] == kinds[0]
    envs.reset()
    for (players, rules, deck), view in zip(kinds, envs.env_method("view"), strict=True):
        assert (view.players, view.rules, view.deck) == (players, rules, deck)
        assert view.to_dict()["deck"]["cards"] == cards.load_deck(deck).tolist()


@pytest.mark.parametrize("reward", ["points", "relative", "win"])
@pytest.mark.parametrize("opponents", ["greedy", "python"])
def test_rewards_of_an_episode_sum_to_its_result_times_the_scale(
    reward: str, opponents: str
) -> None:
    envs = BaronOxxVecEnv(
        8,
        players=(2, 5),
        rules=RULES,
        opponents=(First(),) if opponents == "python" else (opponents,),
        seat=1,
        games_per_match=2,
        reward=reward,
        reward_scale=0.5,
        seed=2,
    )
    sums, lengths, ended = np.zeros(8), np.zeros(8, int), 0
    sizes, rules = envs.get_attr("players"), envs.get_attr("rules")
    for _, rewards, dones, infos in play(envs, 110)[1:]:
        sums += rewards
        lengths += 1
        for g in np.flatnonzero(dones):
            info = infos[g]
            points = np.array(info["scores"]) * (1 if "positive" in rules[g] else -1)
            wanted = {
                "points": points[1],
                "relative": points[1] - (points.sum() - points[1]) / (sizes[g] - 1),
                "win": (1 in info["winners"]) / len(info["winners"]),
            }
            assert sums[g] == pytest.approx(0.5 * wanted[reward], abs=1e-4)
            assert info["episode"]["r"] == pytest.approx(sums[g], abs=1e-4)
            assert info["episode"]["l"] == lengths[g]
            assert [s for s, rank in enumerate(info["ranks"]) if rank == 1] == info["winners"]
            sums[g], lengths[g] = 0, 0
            ended += 1
    assert ended >= 8


def test_a_finished_match_is_followed_by_a_new_deal() -> None:
    envs = BaronOxxVecEnv(4, seed=5)
    ended = 0
    rng = np.random.default_rng(0)
    envs.reset()
    for _ in range(80):
        observations, _, dones, infos = envs.step(choose(envs, rng))
        for g in range(4):
            np.testing.assert_array_equal(observations[g], observe(envs.view(g)))
            assert bool(infos[g]) == dones[g]
            if dones[g]:
                ended += 1
                view = envs.view(g)
                assert view.phase == "card" and len(view.hand) == 4 and view.scores == [0, 0]
                assert view.to_dict()["match"] == {"game": 1, "of": 1, "points": [0, 0]}
                last = infos[g]["terminal_observation"]
                assert last.shape == (OBS,) and not np.array_equal(last, observations[g])
                assert last[0] == last[1] == 0  # neither card nor row phase
                assert infos[g]["TimeLimit.truncated"] is False
    assert ended >= 4


def test_learners_decide_in_every_step() -> None:
    envs = BaronOxxVecEnv(8, (2, 3, 10), RULES, opponents=("random",), seed=1)
    rng = np.random.default_rng(0)
    envs.reset()
    for _ in range(60):
        masks = envs.action_masks()
        assert (masks.sum(axis=1) >= 2).all() and not masks[:, 9].any()
        for mask, view in zip(masks, envs.env_method("view"), strict=True):
            assert np.flatnonzero(mask).tolist() == view.legal and view.seat in view.to_act
        envs.step(choose(envs, rng))


def test_observations_already_given_out_do_not_change() -> None:
    envs = BaronOxxVecEnv(3, seed=1)
    first = envs.reset()
    kept = first.copy()
    play(envs, 5)
    np.testing.assert_array_equal(first, kept)


def test_each_match_has_its_own_deck_where_a_function_makes_them() -> None:
    envs = BaronOxxVecEnv(
        3, deck=lambda rng: cards.random_deck("balanced", rng), opponents=(First(),), seed=9
    )
    envs.reset()
    seen = {str(view.to_dict()["deck"]["cards"]) for view in envs.env_method("view")}
    assert len(seen) == 3
    table = Table(2, deck=lambda rng: cards.random_deck("balanced", rng))
    table.deal(9)
    assert envs.view(0).to_dict() == table.view(0).to_dict()
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(60):
        *_, dones, _ = envs.step(choose(envs, rng))
        for g in np.flatnonzero(dones):
            ended += 1
            deck = str(envs.view(g).to_dict()["deck"]["cards"])
            assert deck not in seen
            seen.add(deck)
    assert ended >= 3


def test_opponents_see_views_and_not_the_learners_pick() -> None:
    seen: list[View] = []

    class Watcher:
        def act(self, view: View, rng: np.random.Generator) -> int:
            seen.append(view)
            return view.legal[0]

    envs = BaronOxxVecEnv(2, 4, opponents=("random", Watcher()), seat=1, seed=1)
    play(envs, 10)
    assert {view.seat for view in seen} == {2, 3}
    for view in seen:
        others = [seat for seat in range(4) if seat != view.seat]
        assert not view.game["picks"][others].any() and not view.game["hands"][others].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "at least 1"),
        ({"players": 11}, "2 to 10"),
        ({"players": (2, 1)}, "2 to 10"),
        ({"players": ()}, "at least one"),
        ({"rules": ("base", "colour")}, "unknown rule set 'colour'"),
        ({"deck": ("balanced", "marked")}, "marked"),
        ({"opponents": ("clever",)}, "unknown bot"),
        ({"opponents": ("greedy", "greedy")}, "2 opponents for 1 seats"),
        ({"players": (2, 4), "seat": 2}, "seat 2: with 2 players"),
        ({"reward": "money"}, "unknown reward"),
        ({"games_per_match": 0}, "games_per_match"),
        ({"games_per_match": 1.5}, "games_per_match must be an integer"),
        ({"seed": 1.5}, "the seed must be an integer"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_a_bad_argument_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BaronOxxVecEnv(**{"num_envs": 2, **arguments})


def test_an_illegal_action_is_named_with_the_legal_ones_and_changes_nothing() -> None:
    envs = BaronOxxVecEnv(3, seed=1)
    with pytest.raises(RuntimeError, match="call reset"):
        envs.step(np.zeros(3, int))
    envs.reset()
    before = envs.batch._games.tobytes()
    for action in (5, 9, 10, -1):
        with pytest.raises(
            ValueError, match=f"environment 1: player_0: action {action} .* slots 0, 1, 2, 3"
        ):
            envs.step(np.array([0, action, 0]))
    for actions in (np.zeros(2, int), np.zeros(3), np.zeros((3, 2), int)):
        with pytest.raises(ValueError, match="actions must be 3 integers"):
            envs.step(actions)
    assert envs.batch._games.tobytes() == before


def test_substitute_plays_legal_actions_instead() -> None:
    envs = BaronOxxVecEnv(3, illegal_action="substitute", seed=1)
    envs.reset()
    for _ in range(40):
        _, rewards, _, _ = envs.step(np.full(3, 9))
        assert np.isfinite(rewards).all()


def test_terminate_ends_the_match_of_who_offends() -> None:
    envs = BaronOxxVecEnv(3, 4, reward="win", illegal_action="terminate", seed=1)
    envs.reset()
    views = [envs.view(g) for g in range(3)]
    _, rewards, dones, infos = envs.step(np.array([0, 9, 1]))
    assert dones.tolist() == [False, True, False] and rewards[1] == 0 and infos[0] == {}
    assert infos[1]["illegal"] == [0] and infos[1]["winners"] == [1, 2, 3]
    assert infos[1]["ranks"] == [4, 1, 1, 1] and infos[1]["scores"] == [246, 0, 0, 0]
    assert envs.view(1).phase == "card" and envs.view(1).hand != views[1].hand
    assert envs.view(1).to_dict()["match"]["points"] == [0] * 4


def steps_of(envs: BaronOxxVecEnv, steps: int, patience: int = 0) -> list[Any]:
    """What first legal actions are told; each step is tried again when it raises."""
    told: list[Any] = [envs.reset()]
    for _ in range(steps):
        actions = envs.action_masks().argmax(axis=1)
        while True:
            try:
                told.append(envs.step(actions))
                break
            except (RuntimeError, KeyboardInterrupt):
                patience -= 1
                assert patience >= 0
        for info in told[-1][3]:
            info.get("episode", {}).pop("t", None)
    return told


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("call", [1, 2, 7, 150])
def test_a_bot_that_raises_leaves_the_step_undone(call: int, stop: type[BaseException]) -> None:
    class Stubborn(Any_):
        left = call

        def act(self, view: View, rng: np.random.Generator) -> int:
            action = super().act(view, rng)
            self.left -= 1
            if self.left == 0:
                raise stop("no")
            return action

    def make(bot: Any) -> BaronOxxVecEnv:
        decks = ("balanced", lambda rng: cards.random_deck("balanced", rng))
        return BaronOxxVecEnv(4, (2, 3), RULES[:2], decks, (bot,), seed=3)

    bot = Stubborn()
    np.testing.assert_equal(steps_of(make(bot), 40, patience=1), steps_of(make(Any_()), 40))
    assert bot.left < 0


def test_a_deck_function_that_raises_leaves_the_step_undone() -> None:
    calls = 0

    def deck(rng: np.random.Generator, stop: bool = True) -> Any:
        nonlocal calls
        made = cards.random_deck("balanced", rng)
        calls += stop
        if calls in (5, 7):
            raise RuntimeError("no deck")
        return made

    envs = BaronOxxVecEnv(3, deck=deck, opponents=(Any_(),), seed=3)
    plain = BaronOxxVecEnv(3, deck=lambda rng: deck(rng, False), opponents=(Any_(),), seed=3)
    np.testing.assert_equal(steps_of(envs, 50, patience=2), steps_of(plain, 50))
    assert calls > 7
    assert envs.view(0).to_dict() == plain.view(0).to_dict()


def test_ctrl_c_at_any_line_of_a_step_leaves_it_as_before() -> None:
    from test_interrupted import stopped_everywhere

    decks = ("balanced", new_deck)
    envs = BaronOxxVecEnv(2, deck=decks, opponents=(Any_(),), illegal_action="substitute", seed=1)
    envs.reset()

    def told(envs: BaronOxxVecEnv) -> Any:
        states = [rng.bit_generator.state for rng in envs.batch._bot_rngs.values()]
        batch = envs.batch
        return [batch.masks(), states, batch._games.tobytes(), batch._decks.tobytes()]

    def step(envs: BaronOxxVecEnv) -> Any:
        *told, infos = envs.step(np.full(2, 9))
        return [told, [info.get("scores") for info in infos]]

    lines = stopped_everywhere(envs, step, told)
    while not step(twin := copy.deepcopy(envs))[0][2][1]:
        envs = twin
    # A match ends now, and the next one's deck is made.
    assert lines > 50 and stopped_everywhere(envs, step, told) > lines


def test_learning_goes_on_after_ctrl_c() -> None:
    """In a bot, in the middle of a step; the steps before and after are all counted."""
    import torch
    from sb3_contrib import MaskablePPO

    torch.set_num_threads(1)

    class Stubborn(First):
        left = 300

        def act(self, view: View, rng: np.random.Generator) -> int:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return super().act(view, rng)

    bot = Stubborn()
    envs = BaronOxxVecEnv(4, 2, opponents=(bot,), seed=1)
    model = MaskablePPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=1, seed=0)
    with pytest.raises(KeyboardInterrupt):
        model.learn(10_000)
    done = model.num_timesteps
    assert 0 < done < 10_000
    model.learn(256, reset_num_timesteps=False)
    assert model.num_timesteps >= done + 256 and bot.left < 0


def test_bots_may_answer_with_an_array_of_one() -> None:
    class Array:
        def __init__(self, make: Any) -> None:
            self.make = make

        def act(self, view: View, rng: np.random.Generator) -> Any:
            return self.make(view.legal[0])

    wanted = steps_of(BaronOxxVecEnv(2, opponents=(First(),), seed=1), 15)
    for make in (np.int64, np.array, lambda n: np.array([n])):
        told = steps_of(BaronOxxVecEnv(2, opponents=(Array(make),), seed=1), 15)
        np.testing.assert_equal(told, wanted)
    envs = BaronOxxVecEnv(2, opponents=(Array(float),), seed=1)
    envs.reset()
    with pytest.raises(
        ValueError, match=r"environment 0: bot .* at player_1: action 0.0 is not an"
    ):
        envs.step(np.zeros(2, int))


def test_masks_asked_before_the_first_reset_are_refused() -> None:
    envs = BaronOxxVecEnv(2, seed=1)
    with pytest.raises(RuntimeError, match=r"action_masks\(\) before the first deal: call reset"):
        envs.action_masks()
    with pytest.raises(RuntimeError, match="call reset"):
        envs.env_method("action_masks")


def test_pictures_of_all_tables_make_a_grid_for_films(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    pytest.importorskip("PIL")
    import types

    from stable_baselines3.common.vec_env import VecVideoRecorder

    films: list[Any] = []

    class Clip:
        def __init__(self, frames: list[Any], fps: int) -> None:
            films.append((frames, fps))

        def write_videofile(self, path: str) -> None:
            films.append(path)

    for name in ("moviepy", "moviepy.video", "moviepy.video.io"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    clips = types.ModuleType("moviepy.video.io.ImageSequenceClip")
    clips.ImageSequenceClip = Clip  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, clips.__name__, clips)

    envs = BaronOxxVecEnv(5, (2, 4), render_mode="rgb_array", seed=1)
    assert envs.render_mode == "rgb_array" and envs.metadata["render_fps"] == 2
    with pytest.raises(RuntimeError, match="call reset"):
        envs.render()
    film = VecVideoRecorder(envs, str(tmp_path), lambda step: step == 0, video_length=3)
    film.reset()
    for _ in range(4):
        film.step(envs.action_masks().argmax(axis=1))
    (frames, fps), path = films
    assert fps == 2 and path.endswith(".mp4")
    # Two columns of 660 pixels, three rows of 462: even numbers, as films want them.
    assert [frame.shape for frame in frames[:3]] == [(3 * 462, 2 * 660, 3)] * 3
    assert not np.array_equal(frames[0], frames[1]) and frames[0][:462, :660].std() > 10
    assert envs.get_images()[0].dtype == np.uint8 and envs.render().shape == (1386, 1320, 3)
    assert BaronOxxVecEnv(2).get_images() == [None, None]
    with pytest.raises(ValueError, match="unknown render_mode 'human': choose one of rgb_array"):
        BaronOxxVecEnv(2, render_mode="human")


def test_masks_are_served_the_way_maskable_ppo_asks_for_them() -> None:
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    envs = BaronOxxVecEnv(4, seed=1)
    envs.reset()
    assert is_masking_supported(envs) and is_masking_supported(VecMonitor(envs))
    np.testing.assert_array_equal(get_action_masks(envs), envs.action_masks())
    assert not envs.has_attr("nonsense") and envs.get_attr("render_mode", [0]) == [None]
    assert envs.env_is_wrapped(VecMonitor) == [False] * 4
    with pytest.raises(AttributeError):
        envs.env_method("nonsense")


def test_maskable_ppo_learns_on_it() -> None:
    import torch
    from sb3_contrib import MaskablePPO

    torch.set_num_threads(1)
    envs = BaronOxxVecEnv(8, (2, 3), RULES, reward="relative", seed=1)
    model = MaskablePPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=1, seed=0)
    model.learn(512)
    assert model.num_timesteps == 512 and len(model.ep_info_buffer) > 0
    observations = envs.reset()
    actions, _ = model.predict(observations, action_masks=envs.action_masks())
    assert envs.action_masks()[np.arange(8), actions].all()


def test_nothing_else_needs_torch() -> None:
    code = (
        "import sys, gymnasium, oxx_env; from oxx_env import baron_oxx_v0, envs; "
        "baron_oxx_v0.env().reset(); gymnasium.make('oxx_env/BaronOxx-v0').reset(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'stable_baselines3')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
