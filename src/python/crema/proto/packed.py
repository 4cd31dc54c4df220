"""Packed fields as arrays: millions of weights are copied as bytes, not one by one as Python
numbers."""
import numpy as np

__all__ = ['add_packed', 'read_packed']

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5  # how the wire format stores a field


def _read_varint(data, position):
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _varint(value):
    found = bytearray()
    while value > 0x7f:
        found.append(value & 0x7f | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _dtype(field):
    return np.dtype('<f8' if field.type == field.TYPE_DOUBLE else '<f4')


def read_packed(message, name):
    """Returns the numbers in a packed field of floats or doubles as an array."""
    field = message.DESCRIPTOR.fields_by_name[name]
    data = message.SerializeToString()
    position = 0
    while position < len(data):
        tag, position = _read_varint(data, position)
        kind, length = tag & 7, 0
        if kind == _VARINT:
            _, position = _read_varint(data, position)
        elif kind == _BYTES:
            length, position = _read_varint(data, position)
        else:
            length = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}[kind]
        if tag >> 3 == field.number:
            return np.frombuffer(data, _dtype(field), length // _dtype(field).itemsize, position)
        position += length
    return np.empty(0, _dtype(field))


def add_packed(message, name, values):
    """Adds the numbers of an array to a packed field of floats or doubles."""
    field = message.DESCRIPTOR.fields_by_name[name]
    data = np.ascontiguousarray(values, _dtype(field)).tobytes()
    if data:
        message.MergeFromString(_varint(field.number << 3 | _BYTES) + _varint(len(data)) + data)
