"""Images: from observations and renderings to bytes in shared memory."""

import mmap
import os

import numpy as np


def image_layout(space):
    """Height, width, channels and whether channels come first, of a space of images; None for other spaces."""
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    if not shape or not hasattr(space, "low") or dtype is None:
        return None
    if dtype != np.uint8 and not (np.issubdtype(dtype, np.floating) and scale_of(space)):
        return None
    if len(shape) == 2:
        return (*shape, 1, False)
    if len(shape) != 3:
        return None
    if shape[2] in (1, 3):
        return (*shape, False)
    if shape[0] in (1, 3):
        return (shape[1], shape[2], shape[0], True)
    return None


def scale_of(space):
    """The factor from a float image to bytes: its values are in [0, 1] or [0, 255]."""
    if not np.all(space.low == 0):
        return None
    return {1.0: 255.0, 255.0: 1.0}.get(float(np.max(space.high)))


class Frames:
    """Checks and converts images of one layout, and writes them to the shared file."""

    def __init__(self, path, shape, dtype, channels_first, scale):
        self._shape, self._dtype = tuple(shape), np.dtype(dtype)
        self._channels_first, self._scale = channels_first, scale
        if len(self._shape) == 2:
            layout = (*self._shape, 1)
        elif channels_first:
            layout = (self._shape[1], self._shape[2], self._shape[0])
        else:
            layout = self._shape
        self.layout = tuple(int(n) for n in layout)
        self.bytes = int(np.prod(self.layout))
        file = os.open(path, os.O_RDWR)
        os.ftruncate(file, self.bytes)
        self._memory = mmap.mmap(file, self.bytes)
        os.close(file)
        self._target = np.ndarray(self.layout, np.uint8, buffer=self._memory)

    def write(self, image):
        image = np.asarray(image)
        if image.shape != self._shape:
            raise ValueError(f"the image has the shape {image.shape}, not {self._shape} as its space says")
        if image.dtype != self._dtype:
            if self._dtype != np.uint8 or not np.can_cast(image.dtype, np.uint8):
                raise ValueError(f"the image is of {image.dtype}, not {self._dtype} as its space says")
        if self._scale is not None:
            if not np.isfinite(image).all():
                raise ValueError("the image has values that are not finite numbers")
            image = np.clip(np.rint(image * self._scale), 0, 255)
        if self._channels_first:
            image = np.moveaxis(image, 0, -1)
        np.copyto(self._target, image.reshape(self.layout), casting="unsafe")
