"""Answers requests until they end."""

import importlib.metadata
import json
import os
import platform
import signal
import threading
import time
import traceback

from . import PROTOCOL
from .protocol import ACTION, SEED, Pipes


def serve(requests, replies):
    # Ctrl-C reaches the whole group of processes; the parent decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    pipes = Pipes(requests, replies)
    pipes.send_json("h", {"protocol": PROTOCOL, "python": platform.python_version()})
    environment = None
    while True:
        request = pipes.receive()
        if request is None:
            break
        kind, payload = request
        try:
            if kind == "s":
                pipes.send_state(*environment.step(ACTION.unpack(payload)[0]))
            elif kind == "r":
                seed = SEED.unpack(payload)[0] if payload else None
                pipes.send_state(*environment.reset(seed))
            elif kind == "m":
                environment = made(json.loads(payload))
                pipes.send_json("m", properties(environment))
            elif kind == "k":
                pipes.send("k", environment.snapshot())
            elif kind == "l":
                pipes.send_state(*environment.restore(payload))
            else:
                raise ValueError(f"unknown request {kind!r}")
        except BaseException as error:  # also SystemExit: the parent decides
            pipes.send_json("x", described(error))
    if environment is not None:
        try:
            environment.env.close()
        except Exception:
            pass
    # Without waiting for threads of the environment.
    os._exit(0)


def end_with(parent):
    """Ends this process if the parent is killed while the environment does not return."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def made(wanted):
    from .envs import Environment

    return Environment(wanted)


def properties(environment):
    height, width, channels = environment.frames.layout
    return {
        "spaces": {
            "observation": {"type": "image", "height": height, "width": width, "channels": channels},
            "action": {"type": "discrete", "names": environment.names},
        },
        "snapshots": environment.snapshots(),
        "renders": environment.renders,
        "packages": packages(environment.env),
    }


def packages(env):
    """Versions of Python, of the packages of the bridge, and of the package that has the environment."""
    bare = getattr(env, "unwrapped", env)
    names = {"gymnasium", "numpy", type(bare).__module__.split(".")[0]}
    found = {"python": platform.python_version()}
    for name in sorted(names):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def described(error):
    """The exception, with the traceback from the environment's own code on."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if os.path.basename(os.path.dirname(frame.filename)) != "rem_env"]
    lines = traceback.format_list(own) + traceback.format_exception_only(type(error), error)
    message = str(error).strip() or type(error).__name__
    return {
        "type": type(error).__name__,
        "message": message,
        "traceback": "".join(lines).rstrip() if own else "",
    }
