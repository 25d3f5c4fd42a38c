"""Environments: how they are made, and one interface for single and vector environments."""

import importlib
import os
import sys

import numpy as np

from .frames import Frames, image_layout, scale_of

# Packages that register environments when they are imported, by the beginning of an id.
PACKAGES = {"ALE/": "ale_py", "MiniGrid-": "minigrid", "BabyAI-": "minigrid", "procgen": "procgen"}


class Unsupported(Exception):
    """An environment that the agent cannot play."""


def constructor(wanted):
    """A function from keyword arguments to an environment."""
    if wanted["kind"] == "gym":
        import gymnasium

        for prefix, package in PACKAGES.items():
            if wanted["id"].startswith(prefix):
                module = importlib.import_module(package)
                if package == "ale_py":
                    gymnasium.register_envs(module)
        return lambda **kwargs: gymnasium.make(wanted["id"], **kwargs)
    sys.path.insert(0, os.getcwd())
    factory = importlib.import_module(wanted["module"])
    for name in wanted["factory"].split("."):
        factory = getattr(factory, name)
    return factory


def make(wanted):
    """The environment, and whether it is seen by what it renders."""
    construct, kwargs, see = constructor(wanted), wanted["kwargs"], wanted["observation"]
    if see != "render":
        env = construct(**kwargs)
        if see == "observation" or image_layout(spaces_of(env)[0]):
            return env, False
        if getattr(env, "render_mode", None) == "rgb_array":
            return env, True
        env.close()
    if "render_mode" not in kwargs:
        kwargs = {**kwargs, "render_mode": "rgb_array"}
    try:
        return construct(**kwargs), True
    except TypeError as error:
        if see == "render" or "render_mode" not in str(error):
            raise
        raise Unsupported(
            f"its observations are no images, and it cannot render: {error}"
        ) from error


def is_vector(env):
    return hasattr(env, "num_envs") and hasattr(env, "single_action_space")


def spaces_of(env):
    if is_vector(env):
        return env.single_observation_space, env.single_action_space
    return env.observation_space, env.action_space


def action_names(env, space):
    """The names of discrete actions."""
    if type(space).__name__ != "Discrete":
        raise Unsupported(f"the action space {space} is not discrete")
    count = int(space.n)
    bare = getattr(env, "unwrapped", env)
    try:
        names = [str(name).lower() for name in bare.get_action_meanings()]
    except Exception:
        try:
            names = [action.name.lower() for action in bare.actions]
        except Exception:
            names = []
    return names if len(names) == count else [str(action) for action in range(count)]


def lives_of(info):
    try:
        return int(np.asarray(info["lives"]).reshape(-1)[0])
    except Exception:
        return -1


class Single:
    """An environment of gymnasium.Env's interface."""

    def __init__(self, env):
        self.env = env

    def reset(self, seed):
        observation, info = pair(self.env.reset(seed=seed))
        return observation, info

    def step(self, action):
        result = self.env.step(action)
        if len(result) != 5:
            raise Unsupported(f"step returned {len(result)} values; since Gym 0.26 there are 5")
        return result


def pair(result):
    if not isinstance(result, tuple) or len(result) != 2:
        raise Unsupported("reset did not return an observation and a dictionary; since Gym 0.26 it does")
    return result


class Vector:
    """A vector environment with one environment in it, whatever its autoreset mode."""

    def __init__(self, env):
        if env.num_envs != 1:
            raise Unsupported(
                f"it is a vector of {env.num_envs} environments; make it with num_envs=1: `collect.envs` plays several"
            )
        self.env = env
        mode = (env.metadata or {}).get("autoreset_mode")
        name = str(getattr(mode, "name", mode)).upper().replace(" ", "_")
        # Without a mode: NEXT_STEP, that of Gymnasium 1.0.
        self.mode = name if name in ("SAME_STEP", "DISABLED") else "NEXT_STEP"
        self._over, self._next = False, None

    def reset(self, seed):
        over, self._over = self._over, False
        if seed is None and over and self.mode == "SAME_STEP":
            return self._next
        if seed is None and over and self.mode == "NEXT_STEP":
            # The step after the end resets, whatever the action.
            observation, _, _, _, info = self.env.step(np.zeros(1, self.env.single_action_space.dtype))
            return observation[0], first(info)
        observation, info = pair(self.env.reset(seed=seed))
        return observation[0], first(info)

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(np.array([action]))
        observation, terminated, truncated = observation[0], bool(terminated[0]), bool(truncated[0])
        self._over = terminated or truncated
        if self._over and self.mode == "SAME_STEP":
            self._next = (np.array(observation), first(info))
            final = info.get("final_obs", info.get("final_observation"))
            if final is not None:
                observation = final[0]
        return observation, reward[0], terminated, truncated, first(info)


def first(info):
    """The infos of the first environment, as far as the bridge reads them."""
    lives = info.get("lives")
    return {} if lives is None else {"lives": lives}


class Environment:
    """An environment whose observations become frames in the shared file."""

    def __init__(self, wanted):
        env, self.renders = make(wanted)
        self.env = env
        self.calls = Vector(env) if is_vector(env) else Single(env)
        observation, action = spaces_of(env)
        self.names = action_names(env, action)
        self.start = int(getattr(action, "start", 0))
        if self.renders:
            # Some environments can only render after a reset. The next one has a seed.
            self.calls.reset(0)
            image = np.asarray(self._render())
            if image.ndim not in (2, 3) or image.dtype != np.uint8:
                raise Unsupported(f"it renders {image.dtype} of the shape {image.shape}, not an image")
            self.frames = Frames(wanted["frames"], image.shape, np.uint8, False, None)
        else:
            layout = image_layout(observation)
            if layout is None:
                raise Unsupported(f"the observation space {observation} is no space of images")
            scale = None if observation.dtype == np.uint8 else scale_of(observation)
            self.frames = Frames(wanted["frames"], observation.shape, observation.dtype, layout[3], scale)

    def snapshots(self):
        return callable(getattr(self.env, "snapshot", None)) and callable(getattr(self.env, "restore", None))

    def _render(self):
        image = self.env.render()
        # A vector environment renders one image for each environment.
        return image[0] if isinstance(image, (list, tuple)) else image

    def _show(self, observation):
        self.frames.write(self._render() if self.renders else observation)

    def reset(self, seed):
        observation, info = self.calls.reset(seed)
        self._show(observation)
        return 0.0, False, False, lives_of(info)

    def step(self, action):
        observation, reward, terminated, truncated, info = self.calls.step(self.start + action)
        self._show(observation)
        return float(reward), bool(terminated), bool(truncated), lives_of(info)

    def snapshot(self):
        return bytes(self.env.snapshot())

    def restore(self, snapshot):
        self._show(self.env.restore(snapshot))
        return 0.0, False, False, -1
