"""The messages of nets, solvers and data, caffe_pb2, and their documentation:
describe(caffe_pb2.PoolingParameter)."""
from . import caffe_pb2
from .comments import describe

__all__ = ['caffe_pb2', 'describe']
