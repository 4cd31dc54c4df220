"""The messages of nets, solvers and data, caffe_pb2, and their documentation:
describe(caffe_pb2.PoolingParameter)."""
import contextlib

from . import caffe_pb2
from .comments import describe

with contextlib.suppress(AttributeError, TypeError):  # protobuf's upb classes may refuse attributes

    def _repr_html_(self):
        from ..display import message_html
        return message_html(self)

    caffe_pb2.NetParameter._repr_html_ = _repr_html_

__all__ = ['caffe_pb2', 'describe']
