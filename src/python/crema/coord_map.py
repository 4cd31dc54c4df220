"""Maps between the coordinates of two blobs, and Crop layers that align them.

A map is (axis, scale, shift): along the spatial axes from `axis` on, position i of the one blob is scale * i + shift
of the other. Elementwise layers have no axis; their map is (None, 1, 0).
"""
import numpy as np

from .net_spec import layers as L

__all__ = [
    'AxisMismatchException', 'PASS_THROUGH_LAYERS', 'UndefinedMapException', 'compose', 'conv_params', 'coord_map',
    'coord_map_from_to', 'crop', 'crop_params', 'inverse'
]

PASS_THROUGH_LAYERS = [
    'AbsVal', 'BatchNorm', 'Bias', 'BNLL', 'Clip', 'Dropout', 'Eltwise', 'ELU', 'Exp', 'GELU', 'GroupNorm', 'Log',
    'LRN', 'MVN', 'Power', 'PReLU', 'ReLU', 'ReLU6', 'Scale', 'Sigmoid', 'Split', 'Swish', 'TanH', 'Threshold'
]

_IDENTITY = (None, 1, 0)


class UndefinedMapException(Exception):
    """A layer of this type does not map coordinates."""


class AxisMismatchException(Exception):
    """Two maps have different axes."""


def conv_params(fn):
    """Returns (axis, stride, extent of the kernel, pad) of a Convolution, Deconvolution, Pooling or Im2col layer.

    All but the axis are arrays of one number, or of one per spatial axis. Refuses the old fields per axis (kernel_h
    ...).
    """
    params = fn.params
    for message in ('convolution_param', 'pooling_param'):
        params = fn.params.get(message, params)
    old = {'pad_h', 'pad_w', 'kernel_h', 'kernel_w', 'stride_h', 'stride_w'} & (set(params) | set(fn.params))
    if old:
        raise AssertionError(f'Cropping does not know {", ".join(sorted(old))}: write kernel_size, stride and pad, as '
                             'lists if they differ')
    if 'kernel_size' not in params:
        raise UndefinedMapException(f'A {fn.type_name} layer without kernel_size')

    def numbers(name, default):
        return np.array(params.get(name, default), ndmin=1)

    extent = (numbers('kernel_size', 1) - 1) * numbers('dilation', 1) + 1
    return params.get('axis', 1), numbers('stride', 1), extent, numbers('pad', 0)


def crop_params(fn):
    """Returns (axis, offset) of a Crop layer; the offset is an array of one number, or of one per cropped axis."""
    params = fn.params.get('crop_param', fn.params)
    return params.get('axis', 2), np.array(params.get('offset', 0), ndmin=1)


def coord_map(fn):
    """Returns the map of one layer, from its bottom to its top. Raises UndefinedMapException if there is none."""
    if fn.type_name in ('Convolution', 'Pooling', 'Im2col'):
        axis, stride, extent, pad = conv_params(fn)
        return axis, 1 / stride, (pad - (extent - 1) / 2) / stride
    if fn.type_name == 'Deconvolution':
        axis, stride, extent, pad = conv_params(fn)
        return axis, stride, (extent - 1) / 2 - pad
    if fn.type_name in PASS_THROUGH_LAYERS:
        return _IDENTITY
    if fn.type_name == 'Crop':
        axis, offset = crop_params(fn)
        return axis - 1, 1, -offset  # a map's axis is the last that it leaves alone, Crop's the first that it cuts
    raise UndefinedMapException(f'{fn.type_name} layers do not map coordinates')


def compose(base_map, next_map):
    """Returns the map that applies next_map, then base_map. Raises AxisMismatchException for maps of different axes."""
    base_axis, base_scale, base_shift = base_map
    next_axis, next_scale, next_shift = next_map
    if base_axis is not None and next_axis is not None and base_axis != next_axis:
        raise AxisMismatchException(f'The maps are of the axes {base_axis} and {next_axis}')
    axis = next_axis if base_axis is None else base_axis
    return axis, base_scale * next_scale, base_scale * next_shift + base_shift


def inverse(coord_map):
    """Returns the map in the other direction."""
    axis, scale, shift = coord_map
    return axis, 1 / scale, -shift / scale


def _bottoms_to_follow(fn):
    """The bottoms whose coordinates a layer maps: all, but only the first of Crop, whose second gives a size."""
    return fn.inputs[:1] if fn.type_name == 'Crop' else fn.inputs


def _walk_back(top):
    """Yields (ancestor, map from it to top), the nearest first, as far back as coordinates are mapped."""
    maps = {top: _IDENTITY}
    front = [top]
    while front:
        current = front.pop(0)
        yield current, maps[current]
        try:
            step = coord_map(current.fn)
        except UndefinedMapException:
            continue
        for bottom in _bottoms_to_follow(current.fn):
            if bottom not in maps:
                maps[bottom] = compose(maps[current], step)
                front.append(bottom)


def coord_map_from_to(top_from, top_to):
    """Returns the map from one top's coordinates to another's, through the nearest blob that both are computed from.

    Raises RuntimeError if there is no such blob that spatial layers connect to both.
    """
    from_maps = dict(_walk_back(top_from))
    for top, to_map in _walk_back(top_to):
        if top in from_maps:
            return compose(to_map, inverse(from_maps[top]))
    raise RuntimeError('Could not compute the map between the tops: no blob is connected to both by spatial layers')


def crop(top_from, top_to):
    """Returns a Crop layer's top: top_from cropped to align with top_to.

    Raises AssertionError if the two have different strides, or if the crop would be negative or a fraction of a pixel.
    """
    axis, scale, shift = coord_map_from_to(top_from, top_to)
    scale, shift = np.asarray(scale), np.asarray(shift)
    for failed, reason in ((scale != 1, f'scale mismatch on crop (scale = {scale})'),
                           (shift > 0, f'cannot crop negative width (shift = {shift})'),
                           (np.round(shift) != shift, f'cannot crop noninteger width (shift = {shift})')):
        if failed.any():
            raise AssertionError(reason)
    first_axis = 2 if axis is None else axis + 1
    return L.Crop(top_from, top_to, crop_param={'axis': first_axis, 'offset': (-np.round(shift).astype(int)).tolist()})
