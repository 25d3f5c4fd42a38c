"""The worker process: one environment, one request at a time."""

import os
import sys


def claim_pipes():
    """The protocol's pipes. What the environment prints goes to stderr, and its stdin is empty: also for C code."""
    requests, replies = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, replies


if __name__ == "__main__":
    requests, replies = claim_pipes()
    from rem_env.worker import serve

    serve(requests, replies)
