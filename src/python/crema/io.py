"""Images and messages as NumPy arrays: loading, resizing, preparing a net's inputs, Datum and BlobProto."""
import os

import numpy as np

from .proto import caffe_pb2
from .proto.packed import add_packed, read_packed

__all__ = [
    'Transformer', 'array_to_blobproto', 'array_to_datum', 'arraylist_to_blobprotovector_str', 'blobproto_to_array',
    'blobprotovector_str_to_arraylist', 'caffe_pb2', 'datum_to_array', 'flip_image', 'load_image', 'load_mean',
    'oversample', 'resize', 'resize_image'
]


# Messages.

def blobproto_to_array(blob, return_diff=False):
    """Returns the values of a BlobProto (its gradients with return_diff) as an array of its shape.

    Raises ValueError if the values do not fill the shape.
    """
    name = 'diff' if return_diff else 'data'
    values = read_packed(blob, name if len(getattr(blob, name)) else f'double_{name}').astype(float)
    if any(blob.HasField(name) for name in ('num', 'channels', 'height', 'width')):
        shape = (blob.num, blob.channels, blob.height, blob.width)
    else:
        shape = tuple(blob.shape.dim)
    if values.size != np.prod(shape, dtype=int):
        raise ValueError(f'A blob of shape {shape} with {values.size} values')
    return values.reshape(shape)


def array_to_blobproto(arr, diff=None):
    """Returns a BlobProto with the shape and values of an array, and those of `diff` as its gradients."""
    arr = np.asarray(arr)
    if diff is not None and np.shape(diff) != arr.shape:
        raise ValueError(f'The gradients are of shape {np.shape(diff)}, the values of {arr.shape}')
    blob = caffe_pb2.BlobProto()
    blob.shape.dim.extend(arr.shape)
    add_packed(blob, 'data', arr)
    if diff is not None:
        add_packed(blob, 'diff', diff)
    return blob


def arraylist_to_blobprotovector_str(arraylist):
    """Returns the bytes of a BlobProtoVector with these arrays."""
    vector = caffe_pb2.BlobProtoVector()
    vector.blobs.extend([array_to_blobproto(arr) for arr in arraylist])
    return vector.SerializeToString()


arraylist_to_blobprotovecor_str = arraylist_to_blobprotovector_str  # as Caffe spells it


def blobprotovector_str_to_arraylist(str):
    """Returns the arrays in the bytes of a BlobProtoVector."""
    vector = caffe_pb2.BlobProtoVector()
    vector.ParseFromString(str)
    return [blobproto_to_array(blob) for blob in vector.blobs]


def array_to_datum(arr, label=None):
    """Returns a Datum with an array of (channels, height, width): bytes for uint8, otherwise floats."""
    arr = np.asarray(arr)
    if arr.ndim != 3:
        raise ValueError(f'Incorrect array shape: a Datum has (channels, height, width), the array {arr.shape}')
    datum = caffe_pb2.Datum()
    datum.channels, datum.height, datum.width = arr.shape
    if arr.dtype == np.uint8:
        datum.data = arr.tobytes()
    else:
        datum.float_data.extend(arr.astype(float).ravel().tolist())
    if label is not None:
        datum.label = int(label)
    return datum


def datum_to_array(datum):
    """Returns the values of a Datum as an array of (channels, height, width); an encoded image in the order B, G, R.

    The label is datum.label.
    """
    if datum.encoded:
        import io
        with _pil_image().open(io.BytesIO(datum.data)) as image:
            if image.mode in ('L', '1', 'I;16'):
                return np.array(image.convert('L'))[np.newaxis]
            return np.array(image.convert('RGB'))[:, :, ::-1].transpose(2, 0, 1).copy()
    shape = (datum.channels, datum.height, datum.width)
    if len(datum.data):
        values = np.frombuffer(datum.data, dtype=np.uint8).copy()
    else:
        values = np.array(datum.float_data, dtype=float)
    if values.size != np.prod(shape, dtype=int):
        raise ValueError(f'A Datum of shape {shape} with {values.size} values')
    return values.reshape(shape)


def load_mean(filename):
    """Returns the mean in a file, .npy or .binaryproto, as an array of (channels, height, width) or (channels)."""
    filename = os.fsdecode(filename)
    if filename.endswith('.npy'):
        return np.load(filename)
    with open(filename, 'rb') as file:
        blob = caffe_pb2.BlobProto.FromString(file.read())
    mean = blobproto_to_array(blob)
    return mean[0] if mean.ndim == 4 and len(mean) == 1 else mean


# Inputs of nets.

class Transformer:
    """Converts images from load_image to a net's input, and back.

    `inputs` are the shapes of the inputs, {'data': (batch, channels, height, width)}. Steps that are not set are
    skipped.
    """

    def __init__(self, inputs):
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self.transpose = {}
        self.channel_swap = {}
        self.raw_scale = {}
        self.mean = {}
        self.input_scale = {}

    def __check_input(self, in_):
        if in_ not in self.inputs:
            raise ValueError(f'{in_} is not one of the net inputs: {", ".join(self.inputs)}')

    def preprocess(self, in_, data):
        """Returns an image (height, width, channels) as the input `in_` takes it: (channels, height, width), float32.

        The steps, in order: resize to the input, transpose, swap channels, multiply by raw_scale, subtract the mean,
        multiply by input_scale. The image itself does not change.
        """
        self.__check_input(in_)
        values = np.array(data, dtype=np.float32)
        size = self.inputs[in_][2:]
        if values.shape[:2] != size:
            values = resize_image(values, size)
        if in_ in self.transpose:
            values = values.transpose(self.transpose[in_])
        if in_ in self.channel_swap:
            values = values[list(self.channel_swap[in_]), :, :]
        if in_ in self.raw_scale:
            values *= self.raw_scale[in_]
        if in_ in self.mean:
            values -= self.mean[in_]
        if in_ in self.input_scale:
            values *= self.input_scale[in_]
        return values

    def deprocess(self, in_, data):
        """Undoes preprocess: returns the image at the net's size."""
        self.__check_input(in_)
        values = np.array(data, dtype=np.float32).squeeze()
        if in_ in self.input_scale:
            values /= self.input_scale[in_]
        if in_ in self.mean:
            values += self.mean[in_]
        if in_ in self.raw_scale:
            values /= self.raw_scale[in_]
        if in_ in self.channel_swap:
            values = values[np.argsort(self.channel_swap[in_]), :, :]
        if in_ in self.transpose:
            values = values.transpose(np.argsort(self.transpose[in_]))
        return values

    def set_transpose(self, in_, order):
        """Sets the order of axes: (2, 0, 1) for images of (height, width, channels)."""
        self.__check_input(in_)
        if len(order) != len(self.inputs[in_]) - 1:
            raise ValueError(
                f'Transpose order needs to have the same number of dimensions as the input: {order} for an input of '
                f'shape {self.inputs[in_]}')
        self.transpose[in_] = tuple(order)

    def set_channel_swap(self, in_, order):
        """Sets the order of channels, after the transpose: (2, 1, 0) makes B, G, R of R, G, B."""
        self.__check_input(in_)
        if len(order) != self.inputs[in_][1]:
            raise ValueError(
                f'Channel swap needs to have the same number of dimensions as the input channels: {order} for an input '
                f'of shape {self.inputs[in_]}')
        self.channel_swap[in_] = tuple(order)

    def set_raw_scale(self, in_, scale):
        """Sets the factor before the mean is subtracted: 255 for nets trained on values from 0 to 255."""
        self.__check_input(in_)
        self.raw_scale[in_] = scale

    def set_mean(self, in_, mean):
        """Sets the mean to subtract: one value per channel, or (channels, height, width), resized to the input."""
        self.__check_input(in_)
        mean = np.asarray(mean)
        shape = self.inputs[in_][1:]
        if mean.ndim == 1:
            if len(mean) != shape[0]:
                raise ValueError(f'Mean channels incompatible with input: {len(mean)} and {shape[0]}')
            self.mean[in_] = mean[:, np.newaxis, np.newaxis]
            return
        if mean.ndim == 2:
            mean = mean[np.newaxis]
        if mean.ndim != 3:
            raise ValueError(f'Mean shape invalid: {mean.shape} is not (channels, height, width)')
        if mean.shape != shape:
            if mean.shape[0] not in (1, shape[0]):
                raise ValueError(f'Mean shape incompatible with input shape: {mean.shape} and {shape}')
            mean = resize_image(mean.transpose(1, 2, 0), shape[1:]).transpose(2, 0, 1)
        self.mean[in_] = mean

    def set_input_scale(self, in_, scale):
        """Sets the factor after the mean was subtracted."""
        self.__check_input(in_)
        self.input_scale[in_] = scale


# Images.

def _pil_image():
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('Reading images needs Pillow: pip install pillow') from error
    return Image


def load_image(filename, color=True):
    """Returns the image in a file as float32 of 0 to 1: (height, width, 3) in the order R, G, B, or (height, width, 1).

    color=False makes it grey. Ignores transparency.
    """
    with _pil_image().open(filename) as image:
        deep = image.mode.startswith('I')
        grey = deep or image.mode in ('1', 'L', 'LA', 'F')
        if image.mode == 'F':
            values = np.array(image)
        elif deep:
            values = np.array(image).astype(float) / 65535
        else:
            values = np.array(image.convert('L' if grey else 'RGB')) / 255.0
    if grey:
        values = values[:, :, np.newaxis]
        if color:
            values = np.tile(values, (1, 1, 3))
    elif not color:
        values = (values @ [0.2125, 0.7154, 0.0721])[:, :, np.newaxis]
    return values.astype(np.float32)


def _interpolate(values, axis, positions):
    """Interpolates along an axis at these positions, which must be inside it."""
    lower = np.clip(np.floor(positions).astype(int), 0, max(values.shape[axis] - 2, 0))
    upper = np.minimum(lower + 1, values.shape[axis] - 1)
    shape = [1] * values.ndim
    shape[axis] = len(positions)
    share = (positions - lower).reshape(shape)
    return values.take(lower, axis) * (1 - share) + values.take(upper, axis) * share


def _centres(old, new):
    """Positions of the centres of `new` pixels in a row of `old` ones."""
    return (np.arange(new) + 0.5) * old / new - 0.5


def _spline(values, new_dims, order, centred):
    try:
        from scipy import ndimage
    except ImportError as error:
        raise ImportError(
            f'Interpolation of order {order} needs SciPy (pip install scipy); orders 0 and 1 do without') from error
    factors = tuple(new / old for new, old in zip(new_dims, values.shape)) + (1,)
    mode = 'grid-constant' if centred else 'constant'
    return ndimage.zoom(values, factors, order=order, mode=mode, grid_mode=centred)


def resize_image(im, new_dims, interp_order=1):
    """Returns an image (height, width, channels) at new_dims, (height, width), as float32.

    interp_order is the order of the spline: 0 takes the nearest pixel, 1 is linear. As in Caffe, images of 1
    or 3 channels are resized by their pixels' centres, and fade to their smallest value at an enlarged border;
    others are resized from corner to corner.
    """
    im = np.asarray(im)
    new_dims = tuple(int(extent) for extent in new_dims)
    if im.ndim != 3 or 0 in im.shape:
        raise ValueError(f'resize_image takes an image of (height, width, channels), not of shape {im.shape}')
    if len(new_dims) != 2 or min(new_dims) < 1:
        raise ValueError(f'resize_image makes an image of (height, width), both at least 1, not {new_dims}')
    values = im.astype(float)
    if im.shape[-1] not in (1, 3):
        if interp_order > 1:
            return _spline(values, new_dims, interp_order, False).astype(np.float32)
        for axis, new in enumerate(new_dims):
            positions = np.linspace(0, im.shape[axis] - 1, new)
            values = (_interpolate(values, axis, positions) if interp_order else
                      values.take(np.floor(positions + 0.5).astype(int), axis))
        return values.astype(np.float32)

    least, most = values.min(), values.max()
    if not most > least:
        return np.full(new_dims + im.shape[-1:], least, dtype=np.float32)
    values -= least
    if interp_order > 1:
        values = np.clip(_spline(values / (most - least), new_dims, interp_order, True), 0, 1) * (most - least)
        return (values + least).astype(np.float32)
    for axis, new in enumerate(new_dims):
        positions = _centres(im.shape[axis], new)
        if interp_order:
            border = [(1, 1) if other == axis else (0, 0) for other in range(3)]
            values = _interpolate(np.pad(values, border), axis, positions + 1)
        else:
            values = values.take(np.clip(np.floor(positions + 0.5).astype(int), 0, im.shape[axis] - 1), axis)
    return (values + least).astype(np.float32)


def resize(image, output_shape, order=1, mode='constant', cval=0, clip=True, preserve_range=False):
    """Returns an array at output_shape, (height, width) or all extents, which scripts import from here as from Caffe's
    io: scikit-image's resize of that time, without smoothing. Integers become numbers from 0 to 1 unless
    preserve_range.

    order: 0 takes the nearest pixel, 1 is linear. mode, cval: the values beyond the border, as in NumPy's pad; cval
    with
    'constant'. clip: limits results to the range of the image.
    """
    image = np.asarray(image)
    if order not in (0, 1):
        raise ValueError(f'resize: order {order}; it is 0 (the nearest pixel) or 1 (linear)')
    shape = tuple(int(extent) for extent in output_shape)
    if image.ndim == len(shape) + 1:
        shape += image.shape[-1:]
    if image.ndim != len(shape) or min(image.shape + shape) < 1:
        raise ValueError(f'resize: an image of shape {image.shape} cannot become {tuple(output_shape)}')
    values = image.astype(float)
    if not preserve_range and image.dtype.kind in 'iu':
        values /= np.iinfo(image.dtype).max
    least, most = values.min(), values.max()
    for axis, new in enumerate(shape):
        old = image.shape[axis]
        if new == old:
            continue
        positions = _centres(old, new)
        if order:
            border = [(1, 1) if other == axis else (0, 0) for other in range(values.ndim)]
            filling = {'constant_values': cval} if mode == 'constant' else {}
            values = _interpolate(np.pad(values, border, mode=mode, **filling), axis, positions + 1)
        else:
            values = values.take(np.clip(np.floor(positions + 0.5).astype(int), 0, old - 1), axis)
    return np.clip(values, least, most) if clip else values


def flip_image(im, axis=1, flow=False):
    """Returns an image (height, width, channels) mirrored: left to right with axis 1. flow: the image is optical flow
    with values from 0 to 1, and the first channel, the motion along the rows, changes its sign around 0.5. From Caffe's
    branch for recurrent nets.
    """
    flipped = np.flip(np.asarray(im), axis).copy()
    if flow:
        flipped[..., 0] = 1 - flipped[..., 0]
    return flipped


def oversample(images, crop_dims):
    """Returns ten crops of each image: the four corners, the centre, and these five mirrored.

    The images have the same size, (height, width, channels); the result is (10 * images, crop height, crop width,
    channels).
    """
    height, width = np.asarray(images[0]).shape[:2]
    crop_height, crop_width = (int(extent) for extent in crop_dims)
    if crop_height > height or crop_width > width:
        raise ValueError(f'Crops of {crop_height} x {crop_width} from images of {height} x {width}')
    corners = [(y, x) for y in (0, height - crop_height) for x in (0, width - crop_width)]
    corners.append((int(height / 2.0 - crop_height / 2.0), int(width / 2.0 - crop_width / 2.0)))
    crops = []
    for image in images:
        five = [np.asarray(image)[y:y + crop_height, x:x + crop_width] for y, x in corners]
        crops += five + [crop[:, ::-1] for crop in five]
    return np.array(crops, dtype=np.float32)
