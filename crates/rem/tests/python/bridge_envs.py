"""Environments for tests of the bridge. Each factory makes one kind of trouble, or none."""

import os
import signal
import sys
import time

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class Walk(gymnasium.Env):
    """A random position; action 1 moves it, at the fourth move the episode terminates. The image is as bright as the
    position; the reward is the position. Truncated after `limit` steps."""

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, shape=(20, 30, 3), dtype=np.uint8, high=255, limit=9, start=0, render_mode=None):
        self.observation_space = spaces.Box(0, high, shape, dtype)
        self.action_space = spaces.Discrete(2, start=start)
        self.render_mode = render_mode
        self.high, self.limit, self.first = high, limit, start

    def get_action_meanings(self):
        # The tests find the process by this name.
        return [f"pid {os.getpid()}", "MOVE"]

    def image(self):
        space = self.observation_space
        return np.full(space.shape, self.position * self.high // 255 if self.high > 1 else self.position / 255, space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.moves, self.steps = int(self.np_random.integers(0, 100)), 0, 0
        return self.image(), {}

    def step(self, action):
        action = int(action) - self.first
        assert action in (0, 1)
        self.steps += 1
        self.moves += action
        self.position += action * int(self.np_random.integers(1, 10))
        terminated = self.moves == 4
        return self.image(), float(self.position), terminated, self.steps >= self.limit, {"lives": 4 - self.moves}

    def render(self):
        return np.full((12, 12, 3), self.position, np.uint8)


def plain(**kwargs):
    return Walk(**kwargs)


def vector_only():
    """Observations are no images; it renders if it is told to."""

    class Hidden(Walk):
        def __init__(self, render_mode=None):
            super().__init__(render_mode=render_mode)
            self.observation_space = spaces.Box(-1, 1, (4,), np.float32)

        def image(self):
            return np.zeros(4, np.float32)

    return Hidden


def rendered(render_mode=None):
    return vector_only()(render_mode=render_mode)


def never_rendered():
    return vector_only()()


class Faulty(Walk):
    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        if self.steps == 3:
            observation, reward = self.fault(observation, reward)
        return observation, reward, terminated, truncated, info


def raises():
    def fault(observation, reward):
        raise ValueError("the third step\nalways fails")

    return Faulty(fault)


def hangs():
    def fault(observation, reward):
        time.sleep(3600)

    return Faulty(fault)


def exits():
    def fault(observation, reward):
        sys.exit("enough")

    return Faulty(fault)


def dies():
    def fault(observation, reward):
        print("last words")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)

    return Faulty(fault)


def nan_reward():
    return Faulty(lambda observation, reward: (observation, float("nan")))


def wrong_shape():
    return Faulty(lambda observation, reward: (observation[:, :-1], reward))


def wrong_type():
    return Faulty(lambda observation, reward: (observation.astype(np.float64), reward))


def nan_image():
    env = Faulty(lambda observation, reward: (observation * np.nan, reward))
    env.observation_space, env.high = spaces.Box(0, 1, (20, 30, 3), np.float32), 1
    return env


def prints():
    """Writes to stdout from Python and from below, and reads stdin."""

    def fault(observation, reward):
        print("hello " * 10_000)
        os.write(1, b"raw bytes\n" * 1000)
        assert sys.stdin.read() == ""
        return observation, reward

    print("imported")
    return Faulty(fault)


def continuous():
    env = Walk()
    env.action_space = spaces.Box(-1, 1, (2,))
    return env


def old_step():
    env = Walk()
    step = env.step
    env.step = lambda action: step(action)[:4]
    return env


class Saved(Walk):
    """Its state can be saved."""

    def snapshot(self):
        import pickle

        return pickle.dumps((self.np_random, self.position, self.moves, self.steps))

    def restore(self, snapshot):
        import pickle

        self.np_random, self.position, self.moves, self.steps = pickle.loads(snapshot)
        return self.image()


def saved():
    return Saved()


def vector(mode, count=1):
    return SyncVectorEnv([Walk] * count, autoreset_mode=AutoresetMode[mode])


def nothing():
    """Does nothing, for measuring the bridge."""

    class Nothing(gymnasium.Env):
        observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)
        action_space = spaces.Discrete(2)
        image = np.zeros((64, 64, 3), np.uint8)

        def reset(self, *, seed=None, options=None):
            return self.image, {}

        def step(self, action):
            return self.image, 0.0, False, False, {}

    return Nothing()


def unseeded():
    """A seed does not determine it."""

    class Unseeded(Walk):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=None, options=options)

    return Unseeded()
