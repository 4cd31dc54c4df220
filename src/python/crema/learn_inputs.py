"""Applies a data layer's transform_param to arrays."""

import os

import numpy as np

from .proto import caffe_pb2

DONE = ("scale", "mean_value", "mean_file", "mirror", "crop_size", "gray")
# Of red, green and blue.
BRIGHTNESS = (0.299, 0.587, 0.114)


class Inputs:
    """Converts arrays to a net's inputs.

    given: the shape of a sample of X, channels first; shape: that of a sample in the net. train, test: the
    transform_param of the data layer of each phase, or None. Raises ValueError for fields other than DONE.
    """

    def __init__(self, given, train=None, test=None):
        self.given = tuple(int(extent) for extent in given)
        self.steps = [Steps(param, self.given) for param in (train, test)]
        self.shape = self.steps[0].shape
        if self.steps[1].shape != self.shape:
            raise ValueError(
                "transform_param makes samples of %s for training and of %s for tests"
                % (self.shape, self.steps[1].shape)
            )

    def set_scale(self, scale):
        for steps in self.steps:
            steps.scale = scale

    def arrays(self, X, generator=None):
        """Samples (N,) + shape for the net, float32. With a generator it crops and mirrors at random, as in
        training."""
        samples = np.asarray(X, np.float32)
        given = self.given
        if samples.ndim == 4 and samples.shape[1:] != given and samples.shape[3:] + samples.shape[1:3] == given:
            samples = samples.transpose(0, 3, 1, 2)
        return self.steps[1 if generator is None else 0].done(samples.reshape((len(X),) + given), generator)


class Steps:
    """Those of one phase: grey, crop, mirror, mean, scale."""

    def __init__(self, param, given):
        self.scale, self.mirror, self.crop, self.weights, self.mean = 1.0, False, 0, None, None
        self.shape = given
        if param is None:
            return
        other = [field.name for field, _ in param.ListFields() if field.name not in DONE]
        if other:
            raise ValueError(
                "transform_param { %s } is not done to arrays, only %s are: remove it and transform X yourself"
                % (other[0], ", ".join(DONE))
            )
        self.scale, self.mirror, self.crop = param.scale, param.mirror, param.crop_size
        if (self.mirror or self.crop or param.HasField("gray") or param.mean_file) and len(given) != 3:
            raise ValueError("transform_param is for images, but a sample of X has shape %s" % (given,))
        if param.HasField("gray"):
            if given[0] != 3:
                raise ValueError("transform_param { gray } needs images of 3 channels, X has %d" % given[0])
            self.weights = np.array(BRIGHTNESS if param.gray == param.RGB else BRIGHTNESS[::-1], np.float32)
            self.shape = (1,) + given[1:]
        if param.mean_file:
            self.mean = read_mean(param.mean_file, self.shape)
        elif param.mean_value:
            self.mean = np.array(param.mean_value, np.float32).reshape((-1,) + (1,) * (len(given) - 1))
            if len(self.mean) not in (1, self.shape[0]):
                raise ValueError("transform_param has %d mean_values for %d channels" % (len(self.mean), self.shape[0]))
        if self.crop:
            if self.crop > min(given[1:]):
                raise ValueError("crop_size %d is larger than the images, %d x %d" % ((self.crop,) + given[1:]))
            self.shape = (self.shape[0], self.crop, self.crop)

    def done(self, samples, generator):
        if self.weights is not None:
            samples = np.tensordot(samples, self.weights, ([1], [0]))[:, None]
        if self.mean is not None:
            samples = samples - self.mean
        if self.crop:
            size, extents = self.crop, np.array(samples.shape[2:])
            if generator is None:
                top, left = (extents - size) // 2
                samples = samples[:, :, top : top + size, left : left + size]
            else:
                corners = generator.integers(extents - size + 1, size=(len(samples), 2))
                samples = np.stack([s[:, t : t + size, l : l + size] for s, (t, l) in zip(samples, corners)])
        if self.mirror and generator is not None:
            turned = generator.random(len(samples)) < 0.5
            samples = np.where(turned[:, None, None, None], samples[..., ::-1], samples)
        return samples if self.scale == 1 else samples * np.float32(self.scale)


def read_mean(path, shape):
    """The mean from a file of compute_image_mean."""
    blob = caffe_pb2.BlobProto()
    with open(os.fspath(path), "rb") as file:
        blob.ParseFromString(file.read())
    values = np.array(blob.data, np.float32)
    if values.size != np.prod(shape):
        raise ValueError("%s: a mean of %d values, but images have the shape %s" % (path, values.size, shape))
    return values.reshape(shape)
