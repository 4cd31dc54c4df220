"""The classes are made when the module is imported; see caffe_pb2.py."""
from typing import Any

TRAIN: int
TEST: int

def __getattr__(name: str) -> Any: ...
