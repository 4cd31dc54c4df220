"""Detection by classifying windows, as in R-CNN."""
import os

import numpy as np

from . import io
from ._crema import TEST
from .classifier import transformer_of
from .pycaffe import Net

__all__ = ['Detector']


class Detector(Net):
    """A trained net that classifies windows of images: Detector(model_file, pretrained_file, ...).detect_windows(...).

    mean, input_scale, raw_scale and channel_swap are those of io.Transformer. context_pad is the number of context
    pixels on each side of a window in the net's input (R-CNN: 16; default: none).
    """

    def __init__(self, model_file, pretrained_file, mean=None, input_scale=None, raw_scale=None, channel_swap=None,
                 context_pad=None):
        super().__init__(model_file, pretrained_file, TEST)
        self.transformer = transformer_of(self, mean, input_scale, raw_scale, channel_swap)
        self.configure_crop(context_pad)

    def detect_windows(self, images_windows):
        """Classifies windows of images.

        images_windows are pairs of an image's file and its windows, each (ymin, xmin, ymax, xmax). Returns a dict for
        each window with `window`, `prediction` (the net's first output) and `filename`.
        """
        name = self.inputs[0]
        places, crops = [], []
        for filename, windows in images_windows:
            image = io.load_image(filename)
            for window in windows:
                places.append((filename, window))
                crops.append(self.transformer.preprocess(name, self.crop(image, window)))
        if not crops:
            return []
        predictions = np.asarray(self.forward_all(**{name: np.array(crops)})[self.outputs[0]])
        return [{'window': window, 'prediction': prediction, 'filename': filename}
                for (filename, window), prediction in zip(places, predictions)]

    def detect_selective_search(self, image_fnames):
        """Classifies the windows that Selective Search proposes.

        It needs the module selective_search_ijcv_with_python, which is not part of crema: ImportError without it.
        """
        try:
            import selective_search_ijcv_with_python as selective_search
        except ImportError as error:
            raise ImportError(
                'Selective Search is not part of crema: detect_selective_search needs the module '
                'selective_search_ijcv_with_python; detect_windows takes windows from anywhere') from error
        filenames = [os.path.abspath(filename) for filename in image_fnames]
        return self.detect_windows(zip(filenames, selective_search.get_windows(filenames)))

    def configure_crop(self, context_pad):
        """Sets context_pad, and the colour for the area outside an image: the mean, as image pixels."""
        name = self.inputs[0]
        channels, *size = self.blobs[name].shape[1:]
        self.crop_dims = np.array([*size, channels])
        self.context_pad = context_pad
        self.crop_mean = np.zeros(self.crop_dims, dtype=np.float32)
        if not context_pad:
            return
        if 2 * context_pad >= min(size):
            raise ValueError(f'context_pad {context_pad} leaves nothing of an input of {size[0]} x {size[1]}')
        mean = self.transformer.mean.get(name)
        if mean is not None:
            # The transformer's steps before the mean, the other way round.
            mean = np.broadcast_to(mean, (channels, *size))
            if name in self.transformer.raw_scale:
                mean = mean / self.transformer.raw_scale[name]
            if name in self.transformer.channel_swap:
                mean = mean[np.argsort(self.transformer.channel_swap[name])]
            self.crop_mean = mean.transpose(1, 2, 0).astype(np.float32)

    def crop(self, im, window):
        """Returns the part of an image in a window, (ymin, xmin, ymax, xmax), with context if context_pad is set."""
        box = np.array(window, dtype=float)
        if box.shape != (4,) or not (box[2:] > box[:2]).all() or not np.isfinite(box).all():
            raise ValueError(
                f'A window is (ymin, xmin, ymax, xmax) with ymin < ymax and xmin < xmax, not {tuple(window)}')
        extent = np.array(im.shape[:2])
        if not self.context_pad:
            top, left, bottom, right = np.clip(box, 0, np.tile(extent, 2)).astype(int)
            part = im[top:bottom, left:right]
            if part.size == 0:
                raise ValueError(f'The window {tuple(window)} is outside the image of {extent[0]} x {extent[1]}')
            return part

        size = self.crop_dims[:2]
        scale = size[1] / (size[1] - 2.0 * self.context_pad)
        half = (box[2:] - box[:2] + 1) / 2.0
        centre = box[:2] + half
        box = np.round(np.concatenate([centre - scale * half, centre + scale * half]))
        pixels = size / (box[2:] - box[:2] + 1)  # of the input, per pixel of the image
        before = np.round(np.maximum(0, -box[:2]) * pixels).astype(int)
        box = np.clip(box, 0, np.tile(extent, 2))
        inside = np.round((box[2:] - box[:2] + 1) * pixels).astype(int)
        inside = np.minimum(inside, size - before)
        top, left, bottom, right = box.astype(int)
        part = im[top:bottom, left:right]
        if part.size == 0 or (inside < 1).any():
            raise ValueError(f'The window {tuple(window)} is outside the image of {extent[0]} x {extent[1]}')
        result = self.crop_mean.copy()
        result[before[0]:before[0] + inside[0], before[1]:before[1] + inside[1]] = io.resize_image(part, inside)
        return result
