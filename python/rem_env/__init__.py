"""The Python side of REM's environment bridge.

`rem` runs `python -m rem_env` and speaks the protocol of `protocol.py` with it over pipes. Frames travel through a file that
both map (`frames.py`). The package needs only gymnasium and numpy. A copy is compiled into `rem`, so nothing has to be
installed beside it.
"""

PROTOCOL = 1
