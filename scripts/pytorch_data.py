"""Experience, batches and weights of a run of `rem` for PyTorch; see scripts/compare-with-pytorch."""

import json
import struct
import tomllib

import numpy as np
import torch
from safetensors.torch import load_file

from pytorch_model import Tokenizer, WorldModel

# Frames per tokenizer call outside training.
ENCODE_BATCH = 100
# crates/rem/src/seeds.rs: what random numbers are used for.
PURPOSE = {"tokenizer": 4, "world_model": 5}


def config(run):
    return tomllib.loads((run / "config.toml").read_text())


def under(arrays, prefix):
    """The arrays whose names start with `prefix.`, with this prefix removed."""
    return {name.removeprefix(prefix + "."): array for name, array in arrays.items() if name.startswith(prefix + ".")}


def last_checkpoint(run):
    return max(path for path in (run / "checkpoints").iterdir() if path.suffix != ".tmp")


def experience(run):
    """The replay of the last checkpoint: frames [n, size, size, 3], actions, rewards, and outcomes (1: terminated)."""
    manifest = json.loads((last_checkpoint(run) / "manifest.json").read_text())
    parts = [read_chunk(run / "replay" / chunk["file"]) for chunk in manifest["replay"]]
    return [np.concatenate(part) for part in zip(*parts)]


def read_chunk(path):
    """A chunk in the format of crates/rem/src/data/replay/chunks.rs."""
    data = path.read_bytes()
    magic, frame_bytes, _, n = struct.unpack_from("<8sQQQ", data)
    assert magic == b"REMREPL1", path
    array = lambda dtype, count, at: np.frombuffer(data, dtype, count, at)
    size = round((frame_bytes // 3) ** 0.5)
    frames = array(np.uint8, n * frame_bytes, 32 + 6 * n).reshape(n, size, size, 3)
    return frames, array(np.uint8, n, 32), array("<f4", n, 32 + n), array(np.uint8, n, 32 + 5 * n)


class TokenizerBatches:
    """The frames of each update of a tokenizer phase, as `Trainer::sample_frames` draws them."""

    def __init__(self, run):
        frames, *_ = experience(run)
        self.frames = torch.from_numpy(frames).permute(0, 3, 1, 2).contiguous()
        self.settings = config(run)

    def __call__(self, epoch):
        updates = self.settings["tokenizer"]["optimizer"]
        rng = ChaCha8(derive_seed(self.settings["seed"], epoch, PURPOSE["tokenizer"]))
        for _ in range(updates["steps_per_epoch"]):
            chosen = [rng.below(len(self.frames)) for _ in range(updates["batch_size"])]
            yield {"frames": self.frames[chosen].float() / 127.5 - 1}


class WorldModelBatches:
    """The segments of each update of a world-model phase, as `Replay::sample_forward` draws them, with the tokens of the
    run's tokenizer."""

    @torch.no_grad()
    def __init__(self, run):
        self.settings = config(run)
        frames, actions, rewards, outcomes = experience(run)
        module = tokenizer(self.settings["tokenizer"])
        load_exported(module, load_file(last_checkpoint(run) / "tokenizer.safetensors"))
        self.codes = module.codebook.detach()
        frames = torch.from_numpy(frames).permute(0, 3, 1, 2)
        self.steps = {
            "tokens": torch.cat([module.encode(part.float() / 127.5 - 1) for part in frames.split(ENCODE_BATCH)]),
            "actions": torch.from_numpy(actions.astype(np.int64)),
            "rewards": torch.from_numpy(rewards.copy()),
            "ends": torch.from_numpy((outcomes == 1).astype(np.int64)),
        }
        # Positions that begin a segment with a step after the context, and the ends of their episodes. Only the last
        # episode may be open.
        ends = np.append(np.flatnonzero(outcomes[:-1]) + 1, len(outcomes))
        self.end_of = np.repeat(ends, np.diff(ends, prepend=0))
        self.starts = np.flatnonzero(self.end_of - np.arange(len(outcomes)) > self.settings["world_model"]["context"])

    def __call__(self, epoch):
        updates = self.settings["world_model"]["optimizer"]
        rng = ChaCha8(derive_seed(self.settings["seed"], epoch, PURPOSE["world_model"]))
        for _ in range(updates["steps_per_epoch"]):
            yield self.batch([self.starts[rng.below(len(self.starts))] for _ in range(updates["batch_size"])])
            rng.skip(2)  # the seed of the dropout masks

    def batch(self, starts):
        starts = np.array(starts)
        index = starts[:, None] + np.arange(self.settings["train"]["horizon"])
        real = torch.from_numpy(index < self.end_of[starts][:, None])
        index = torch.from_numpy(index).clamp(max=len(self.end_of) - 1)
        # Zeros where a segment is padded.
        of = lambda values: values[index] * real.view(*real.shape, *(1 for _ in values.shape[1:]))
        return {"codes": self.codes, "mask": real.float(), **{name: of(values) for name, values in self.steps.items()}}


WORD, LONG = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def derive_seed(run_seed, epoch, purpose):
    """Seeds::derive for the first attempt and index 0."""

    def mix(word):
        z = (word + 0x9E3779B97F4A7C15) & LONG
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & LONG
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & LONG
        return z ^ (z >> 31)

    state = mix(run_seed)
    for word in (epoch, purpose, 0, 0):
        rotated = ((state << 21) | (state >> 43)) & LONG
        state = mix((rotated + mix(word)) & LONG)
    return state


class ChaCha8:
    """The generator of `rem`: ChaCha with 8 rounds, its key expanded from 64 bits by PCG32."""

    def __init__(self, seed):
        key = []
        for _ in range(8):
            seed = (seed * 0x5851F42D4C957F2D + 0xA17654E46FBE17F3) & LONG
            shifted, by = (((seed >> 18) ^ seed) >> 27) & WORD, seed >> 59
            key.append(((shifted >> by) | (shifted << (32 - by))) & WORD)
        self.key, self.counter, self.words = key, 0, []

    def next(self):
        if not self.words:
            self.words = self.block()[::-1]
            self.counter += 1
        return self.words.pop()

    def block(self):
        start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *self.key, self.counter, 0, 0, 0]
        s = list(start)

        def quarter(a, b, c, d):
            for x, y, z, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                s[x] = (s[x] + s[y]) & WORD
                mixed = s[z] ^ s[x]
                s[z] = ((mixed << by) | (mixed >> (32 - by))) & WORD

        for _ in range(4):
            for i in range(4):
                quarter(i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        return [(a + b) & WORD for a, b in zip(start, s)]

    def skip(self, words):
        for _ in range(words):
            self.next()

    def below(self, n):
        """`random_range(0..n)` of u32 in the crate `rand`, version 0.10."""
        product = self.next() * n
        result, low = product >> 32, product & WORD
        if low > 2**32 - n:
            result += (low + (self.next() * n >> 32)) >> 32
        return result


def tokenizer(settings):
    return Tokenizer(*(settings[key] for key in ("vocabulary", "embedding", "channels", "downsamplings")))


def world_model(settings, tokenizer, actions, tokens_per_obs):
    keys = ("layers", "heads", "feed_forward", "context", "dropout")
    widths = tokenizer["vocabulary"], tokenizer["embedding"], actions, tokens_per_obs
    return WorldModel(*widths, *(settings[key] for key in keys))


def initial_weights(run, component):
    """The file that a run with the same seed wrote before its first epoch."""
    return run.with_name(run.name.replace("rem-f32", "rem-initial")) / f"checkpoints/epoch-000000/{component}.safetensors"


def sizes(settings, component, weights):
    """The arguments of `tokenizer` or `world_model` for a run."""
    if component == "tokenizer":
        return [settings["tokenizer"]]
    tokens = len(weights["network.Pop.prediction_tokens"])
    return settings["world_model"], settings["tokenizer"], len(weights["action_embeddings"]), tokens


def optimizer_settings(settings, component):
    """Learning rate and weight decay."""
    return [settings[component]["optimizer"][key] for key in ("learning_rate", "weight_decay")]


def load_exported(module, arrays):
    """Loads weights with the names and layouts of `rem`."""
    module.load_state_dict(exported_names(arrays))


def exported_names(arrays):
    """Weights of `rem` with the names of pytorch_model. Linear weights are [in, out] in `rem`."""
    renamed = {}
    for name, array in arrays.items():
        for old, new in [
            (".Cnn.", "."),
            ("network.Pop.retnet.", ""),
            ("network.Pop.", ""),
            (".gamma", ".weight"),
            (".beta", ".bias"),
            (".hidden.", ".0."),
            (".out.", ".2."),
        ]:
            name = name.replace(old, new)
        is_linear = array.ndim == 2 and name.endswith(".weight")
        renamed[name] = array.T if is_linear else array
    return renamed


def recorded_names(component, arrays, vocabulary):
    """Weights or gradients of the recording with the names of pytorch_model."""
    renamed = {}
    for name, array in arrays.items():
        parts = name.split(".")
        if name.endswith(".thetas"):
            continue
        if component == "tokenizer":
            if name == "embedding.weight":
                name = "codebook"
            elif parts[1] == "blocks":
                part = {"0": "norm", "2": "down" if parts[0] == "encoder" else "up", "3": "conv"}[parts[3]]
                name = ".".join([*parts[:3], part, parts[-1]])
            elif parts[1] in ("out_conv", "out_block"):
                name = f"{parts[0]}.{'out_norm' if parts[2] == '0' else 'out_conv'}.{parts[-1]}"
        elif name == "embedding.weight":
            # Rows of observations, actions and padding.
            name, array = "action_embeddings", array[vocabulary:-1]
        elif name == "placeholder_embeddings.weight":
            name, array = "prediction_tokens", array[:-1]
        else:
            name = name.replace("_model.", "").replace("retention.", "")
        renamed[name] = array
    return renamed
