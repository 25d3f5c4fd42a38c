"""Messages: a length (u32), a kind (one byte), and a payload. Numbers are little-endian.

    request                              reply
    m  JSON: what to make                m  JSON: spaces and properties
    r  seed (u64), or nothing            s  the state after the reset
    s  action (i64)                      s  reward (f64), terminated (u8), truncated (u8), lives (i32, -1: none)
    k  nothing                           k  snapshot
    l  snapshot                          s  the state of the snapshot
    any                                  x  JSON: type, message and traceback of an exception

The worker begins with an `h` message, JSON: the version of the protocol and of Python. A reply `s` says that the frame of the
observation is in the shared file. End of file on the requests ends the worker.
"""

import json
import os
import struct

HEADER = struct.Struct("<IB")
STATE = struct.Struct("<dBBi")
SEED = struct.Struct("<Q")
ACTION = struct.Struct("<q")


class Pipes:
    def __init__(self, requests, replies):
        self._requests = os.fdopen(requests, "rb", buffering=1 << 16)
        self._replies = replies

    def receive(self):
        """The kind and the payload of the next request; None at the end."""
        header = self._requests.read(HEADER.size)
        if len(header) < HEADER.size:
            return None
        length, kind = HEADER.unpack(header)
        payload = self._requests.read(length) if length else b""
        return None if len(payload) < length else (chr(kind), payload)

    def send(self, kind, payload=b""):
        message = memoryview(HEADER.pack(len(payload), ord(kind)) + payload)
        while message:
            message = message[os.write(self._replies, message) :]

    def send_json(self, kind, value):
        self.send(kind, json.dumps(value).encode())

    def send_state(self, reward, terminated, truncated, lives):
        self.send("s", STATE.pack(reward, terminated, truncated, lives))
