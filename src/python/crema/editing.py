"""Edits nets and solvers as the programs' -set does."""
from .proto import caffe_pb2

__all__ = ['edit']


def _text_of(value):
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, (list, tuple)):
        return '[' + ', '.join(_text_of(each) for each in value) + ']'
    return str(value)


def edit(message, *settings):
    """A copy of a NetParameter or SolverParameter, or a NetSpec's NetParameter, with settings as the programs' -set takes
    them: edit(net, 'layer[conv1].convolution_param.num_output=20'), or edit(net, {'layer[ip].param[0].lr_mult': 0}).
    Raises crema.Error for a field, layer or element that is not there, and for a value of another type.
    """
    from google.protobuf import text_format

    from . import _crema
    if hasattr(message, 'to_proto'):
        message = message.to_proto()
    texts = []
    for setting in settings:
        pairs = [f'{path}={_text_of(value)}' for path, value in setting.items()] if hasattr(setting, 'items') else [setting]
        texts.extend(pairs)
    if isinstance(message, caffe_pb2.NetParameter):
        read = _crema._net_message
    elif isinstance(message, caffe_pb2.SolverParameter):
        read = _crema._solver_message
    else:
        raise TypeError(f'edit takes a NetParameter, a SolverParameter or a NetSpec, not {type(message).__name__}')
    return type(message).FromString(read(text_format.MessageToString(message), 'the message', texts))
