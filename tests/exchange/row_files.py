"""The files that exchange_cases writes for a row: NAME.values, and the list of its arrays."""
import numpy


def blobs(text, values):
    """The named arrays of a list such as "data:2,3;" taken from the front of `values`."""
    result = {}
    for item in filter(None, text.split(";")):
        name, _, extents = item.rpartition(":")
        shape = [int(extent) for extent in extents.split(",") if extent]
        count = int(numpy.prod(shape))
        result[name] = values[:count].reshape(shape)
        values = values[count:]
    return result, values
