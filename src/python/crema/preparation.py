"""Image preparation for the inputs of a net: the comments that `crema deploy` writes into a deploy file."""
import os

from google.protobuf import text_format

from . import io
from .proto import caffe_pb2

_MARK = '# crema: '


def read_preparation(path):
    """Returns the caffe_pb2.NetPreparation of a net's file; it is empty if the file has none.

    Relative paths are resolved against the net's folder.
    """
    with open(os.fspath(path), encoding='utf-8', errors='replace') as file:
        lines = [line.rstrip('\n') for line in file]
    # The others are blank, so that a mistake is named with its line.
    fields = '\n'.join(' ' * len(_MARK) + line[len(_MARK):] if line.startswith(_MARK) else '' for line in lines)
    preparation = caffe_pb2.NetPreparation()
    try:
        text_format.Parse(fields, preparation)
    except text_format.ParseError as error:
        raise ValueError(f'{path}:{error}') from error
    folder = os.path.dirname(path)

    def beside(name):
        here = os.path.join(folder, name)
        return here if os.path.exists(here) else name

    for one in preparation.input:
        if one.transform_param.HasField('mean_file'):
            one.transform_param.mean_file = beside(one.transform_param.mean_file)
    if preparation.HasField('labels'):
        preparation.labels = beside(preparation.labels)
    return preparation


def transformer_arguments(path, name, crop):
    """The arguments of io.Transformer for RGB images from 0 to 1, as load_image returns them, and image_dims.

    name is the net's input, crop its (height, width). Returns None if the file has none for that input.
    """
    stated = [one for one in read_preparation(path).input if one.name == name]
    if not stated:
        return None
    stated, transform = stated[0], stated[0].transform_param
    arguments = {'raw_scale': 255, 'image_dims': None, 'mean': None, 'input_scale': None, 'channel_swap': None}
    if stated.HasField('channels') and stated.channels == stated.BGR:
        arguments['channel_swap'] = (2, 1, 0)
    if stated.resize_height:
        arguments['image_dims'] = (stated.resize_height, stated.resize_width)
    if transform.scale != 1:
        arguments['input_scale'] = transform.scale
    if transform.HasField('mean_file'):
        mean = io.load_mean(transform.mean_file)
        if mean.ndim == 3 and mean.shape[1] >= crop[0] and mean.shape[2] >= crop[1]:
            top, left = (mean.shape[1] - crop[0]) // 2, (mean.shape[2] - crop[1]) // 2
            mean = mean[:, top:top + crop[0], left:left + crop[1]]  # of what is cropped
        arguments['mean'] = mean
    elif transform.mean_value:
        arguments['mean'] = list(transform.mean_value)
    return arguments
