"""Classification of images with a trained net."""
import warnings
from typing import TYPE_CHECKING

import numpy as np

from . import io
from ._crema import TEST
from .preparation import transformer_arguments
from .pycaffe import Net

__all__ = ['Classifier']

if TYPE_CHECKING:
    _NetType = type
else:
    _NetType = type(Net)


def transformer_of(net, mean, input_scale, raw_scale, channel_swap):
    """The Transformer for a net's first input, from images of (height, width, channels)."""
    name = net.inputs[0]
    transformer = io.Transformer({name: tuple(net.blobs[name].shape)})
    transformer.set_transpose(name, (2, 0, 1))
    if mean is not None:
        transformer.set_mean(name, mean)
    if input_scale is not None:
        transformer.set_input_scale(name, input_scale)
    if raw_scale is not None:
        transformer.set_raw_scale(name, raw_scale)
    if channel_swap is not None:
        transformer.set_channel_swap(name, channel_swap)
    return transformer


class _ClassifierType(_NetType):
    """Makes the trainable classifier (crema.learn.Classifier) if no files of a trained net are given."""

    def __call__(cls, *args, **kwargs):
        if cls is Classifier and len(args) + ('model_file' in kwargs) + ('pretrained_file' in kwargs) < 2:
            from . import learn
            return learn.Classifier(*args, **kwargs)
        return super().__call__(*args, **kwargs)


class Classifier(Net, metaclass=_ClassifierType):
    """A trained net that classifies images: Classifier(model_file, pretrained_file, ...).predict(images).

    model_file is the net's prototxt with one input, pretrained_file its weights. image_dims (height, width) is the
    size to resize images to before cropping to the net's input (default: the size of the input). mean,
    input_scale, raw_scale and channel_swap are those of io.Transformer. Omitted arguments come from the comments of
    model_file, if `crema deploy` wrote it, for images from io.load_image.

    Without the two files it is crema.learn's scikit-learn-style classifier:
    Classifier().fit(X, y).predict(X).
    """

    def __init__(self, model_file, pretrained_file, image_dims=None, mean=None, input_scale=None, raw_scale=None,
                 channel_swap=None):
        super().__init__(model_file, pretrained_file, TEST)
        self.crop_dims = np.array(self.blobs[self.inputs[0]].shape[2:])
        given = {'image_dims': image_dims, 'mean': mean, 'input_scale': input_scale, 'raw_scale': raw_scale,
                 'channel_swap': channel_swap}
        stated = transformer_arguments(model_file, self.inputs[0], tuple(self.crop_dims))
        if stated is not None:
            given.update((name, value) for name, value in stated.items() if given[name] is None)
        elif all(value is None for value in (mean, input_scale, raw_scale, channel_swap)):
            warnings.warn(f'{model_file} does not say how images become the input: they are taken as they are, without '
                          'mean, scale and another order of channels; `crema deploy` writes it', stacklevel=2)
        image_dims = given.pop('image_dims')
        self.transformer = transformer_of(self, **given)
        self.image_dims = self.crop_dims if image_dims is None or len(image_dims) == 0 else np.array(image_dims)
        if (self.image_dims < self.crop_dims).any():
            raise ValueError(
                f'image_dims {tuple(self.image_dims)} are smaller than the net\'s input {tuple(self.crop_dims)}')

    def predict(self, inputs, oversample=True):
        """Returns the probabilities of the classes, (images, classes).

        inputs are images of (height, width, channels), as io.load_image returns them. With oversample the result is the
        mean over ten crops (io.oversample), otherwise that of the centre crop.
        """
        images = np.array([io.resize_image(image, self.image_dims) for image in inputs])
        if len(images) == 0:
            raise ValueError('predict needs at least one image')
        if oversample:
            images = io.oversample(images, self.crop_dims)
        else:
            top, left = ((self.image_dims - self.crop_dims) / 2.0).astype(int)
            images = images[:, top:top + self.crop_dims[0], left:left + self.crop_dims[1]]
        name = self.inputs[0]
        data = np.array([self.transformer.preprocess(name, image) for image in images])
        predictions = np.asarray(self.forward_all(**{name: data})[self.outputs[0]])
        if oversample:
            predictions = predictions.reshape(len(predictions) // 10, 10, -1).mean(1)
        return predictions
