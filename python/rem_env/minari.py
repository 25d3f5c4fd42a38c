"""Converts a Minari data set (HDF5) to NumPy files: `python -m rem_env.minari FILE DIR`. Needs h5py and numpy."""

import json
import os
import sys

import h5py
import numpy as np


def images(group):
    """The images of the observations: the array itself, or the only image in a dictionary."""
    if isinstance(group, h5py.Dataset):
        return group
    found = [group[name] for name in group if isinstance(group[name], h5py.Dataset) and group[name].ndim in (3, 4)]
    if len(found) != 1:
        raise ValueError(f"the observations have {len(found)} arrays of images, not one: {list(group)}")
    return found[0]


def convert(file, directory):
    os.makedirs(directory)
    with h5py.File(file, "r") as data:
        names = [name for name in data if name.startswith("episode_")]
        for name in sorted(names, key=lambda name: int(name.split("_")[1])):
            episode = data[name]
            if not isinstance(episode["actions"], h5py.Dataset) or episode["actions"].ndim > 1:
                raise ValueError("the actions are not discrete")
            frames = np.asarray(images(episode["observations"]))
            if frames.ndim == 4 and frames.shape[-1] not in (1, 3) and frames.shape[1] in (1, 3):
                frames = np.moveaxis(frames, 1, -1)
            np.savez(
                os.path.join(directory, f"{int(name.split('_')[1]):08}.npz"),
                frames=np.ascontiguousarray(frames),
                actions=np.asarray(episode["actions"]),
                rewards=np.asarray(episode["rewards"]),
                terminations=np.asarray(episode["terminations"]),
                truncations=np.asarray(episode["truncations"]),
            )
        return len(names)


if __name__ == "__main__":
    try:
        convert(*sys.argv[1:3])
    except Exception as error:
        print(json.dumps({"type": type(error).__name__, "message": str(error)}))
        sys.exit(1)
