"""Adds to the extension module's Net: blobs and layers by name, passes with arrays in and out."""
import os
from collections import OrderedDict
from itertools import zip_longest

import numpy as np

from ._crema import TEST, TRAIN, Blob, BlobVec, Net, NetLayer, _forget_other_threads, set_threads

__all__ = ['Blob', 'Net', 'NetLayer', 'from_dlpack', 'set_phase_test', 'set_phase_train']

_phase = TRAIN  # of nets that are opened without one


def set_phase_train():
    """Nets opened by Net(file, weights) are for training from now on; Caffe's interface of 2014."""
    global _phase
    _phase = TRAIN


def set_phase_test():
    """Nets opened by Net(file, weights) are for testing from now on; Caffe's interface of 2014."""
    global _phase
    _phase = TEST


def from_dlpack(source):
    """An array over the memory of another library's tensor in the CPU's memory (PyTorch, JAX), without a copy; also for
    a Blob. Write it into a net with net.blobs['data'].data[...] = crema.from_dlpack(tensor).
    """
    return np.from_dlpack(source)


def _kept(make):
    """A property that is made once for each net."""
    key = '_kept_' + make.__name__

    def read(self):
        kept = self.__dict__.get(key)
        if kept is None:
            kept = self.__dict__[key] = make(self)
        return kept

    return property(read, doc=make.__doc__)


@_kept
def _blobs(self):
    """The blobs by name, in the order in which layers make them: an OrderedDict of Blob."""
    return OrderedDict(zip(self._blob_names, self._blob_list))


@_kept
def _layers(self):
    """The layers in order, with those of type Split that hand a blob on to several readers. A layer written in Python is
    the object of its class.
    """
    return self._layer_list


@_kept
def _layer_dict(self):
    """The layers by name: an OrderedDict."""
    return OrderedDict(zip(self._layer_names, self.layers))


@_kept
def _params(self):
    """The parameters by layer: an OrderedDict of lists of Blob, weights first, then the bias."""
    named = ((name, BlobVec(self._layer_blobs(i))) for i, name in enumerate(self._layer_names))
    return OrderedDict((name, blobs) for name, blobs in named if blobs)


@_kept
def _blob_loss_weights_by_name(self):
    """The loss weight of each blob: an OrderedDict of numbers."""
    return OrderedDict(zip(self._blob_names, self._blob_loss_weights))


@_kept
def _input_names(self):
    """The names of the blobs that a program fills: tops of Input layers."""
    names = self._blob_names
    return [names[i] for i in self._inputs]


@_kept
def _output_names(self):
    """The names of the blobs that no layer reads: the net's results."""
    names = self._blob_names
    return [names[i] for i in self._outputs]


@_kept
def _top_names(self):
    """The names of each layer's tops, by layer: an OrderedDict of lists."""
    return _names_of(self, self._top_ids)


@_kept
def _bottom_names(self):
    """The names of each layer's bottoms, by layer: an OrderedDict of lists."""
    return _names_of(self, self._bottom_ids)


def _names_of(net, ids):
    names = net._blob_names
    return OrderedDict((layer, [names[j] for j in ids(i)]) for i, layer in enumerate(net._layer_names))


@_kept
def _index_of_layer(self):
    return {name: i for i, name in reversed(list(enumerate(self._layer_names)))}


def _layer_index(net, name):
    """Of the first layer of this name."""
    index = _index_of_layer.fget(net).get(name)
    if index is None:
        raise ValueError(f'the net has no layer {name!r}; its layers are {", ".join(net._layer_names)}')
    return index


def _blob(net, name):
    blob = net.blobs.get(name)
    if blob is None:
        raise KeyError(f'the net has no blob {name!r}; its blobs are {", ".join(net.blobs)}')
    return blob


def _fill(net, arrays, names, attribute, what):
    if arrays.keys() != set(names):
        given, wanted = (', '.join(sorted(each)) or 'none' for each in (arrays, names))
        raise ValueError(f'{what} {given} were given, but the net has {wanted}')
    for name, array in arrays.items():  # all of them before the first is written
        shape, wanted = np.shape(array), net.blobs[name].shape
        if shape[:1] != wanted[:1] or not _fits(shape, wanted):
            raise ValueError(f'{name}: an array of shape {shape} was given, but the blob has the shape {wanted}')
    for name, array in arrays.items():
        getattr(net.blobs[name], attribute)[...] = array


def _fits(shape, wanted):
    try:
        return shape == wanted or np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def _forward(self, blobs=None, start=None, end=None, **kwargs):
    """One forward pass.

    blobs: names of blobs to return besides the outputs. start, end: the names of the first and the last layer to run;
    None: the net's. Other keywords are the net's inputs: either all of them or none, in which case they keep their
    values.
    Returns a dict of arrays by name: the outputs, or with `end` the tops of that layer. They are views of the blobs, so
    they change with the next pass.
    """
    if not (blobs or kwargs) and start is None and end is None:
        self._forward(0, len(self.layers) - 1)
        by_name = self.blobs
        return {name: by_name[name].data for name in self.outputs}
    first = 0 if start is None else _layer_index(self, start)
    last = len(self.layers) - 1 if end is None else _layer_index(self, end)
    wanted = [_blob(self, name) and name for name in blobs or []]
    wanted += self.outputs if end is None else self.top_names[end]
    if kwargs:
        _fill(self, kwargs, self.inputs, 'data', 'inputs')
    self._forward(first, last)
    return {name: self.blobs[name].data for name in dict.fromkeys(wanted)}


def _backward(self, diffs=None, start=None, end=None, **kwargs):
    """One backward pass. It adds to the gradients of parameters (clear_param_diffs() sets them to zero).

    diffs: names of blobs whose gradients to return besides the inputs'. start, end: the names of the first (upper) and
    the last layer to run; None: the net's last and first. Other keywords are gradients of the net's outputs: either all
    of them or none.
    Returns a dict of arrays by name: the gradients of the inputs, or with `end` of the bottoms of that layer.
    """
    first = len(self.layers) - 1 if start is None else _layer_index(self, start)
    last = 0 if end is None else _layer_index(self, end)
    wanted = [_blob(self, name) and name for name in diffs or []]
    wanted += self.inputs if end is None else self.bottom_names[end]
    if kwargs:
        _fill(self, kwargs, self.outputs, 'diff', 'gradients of')
    self._backward(first, last)
    return {name: self.blobs[name].diff for name in dict.fromkeys(wanted)}


def _backward_from_layer(self, start_name, start_diff, diffs=None, zero_higher=False):
    """One backward pass from the middle of the net, of the deep visualization toolbox.

    start_name: the layer to begin with. start_diff: the gradient of its top. diffs: names of blobs whose gradients to
    return besides the inputs'. zero_higher: set the gradients of the blobs above to zero, which they truly are.
    Returns a dict of arrays by name: the gradients of the inputs and of `diffs`.
    """
    return _from_layer(self, start_name, start_diff, diffs, zero_higher, self._backward)


def _deconv_from_layer(self, start_name, start_diff, diffs=None, zero_higher=False, deconv_type='Zeiler & Fergus'):
    """The same with ReLUs that let only positive gradients through: with deconv_type 'Zeiler & Fergus' all of these,
    with 'Guided Backprop' those of values that were positive.
    """
    guided = {'Zeiler & Fergus': False, 'Guided Backprop': True}
    if deconv_type not in guided:
        raise ValueError(f'deconv_type {deconv_type!r}: it is one of {", ".join(map(repr, guided))}')
    return _from_layer(self, start_name, start_diff, diffs, zero_higher,
                       lambda first, last: self._deconv(first, last, guided[deconv_type]))


def _from_layer(net, start_name, start_diff, diffs, zero_higher, run):
    start = _layer_index(net, start_name)
    names = net.top_names[start_name]
    if len(names) != 1:
        raise ValueError(f'layer {start_name!r} has {len(names)} tops: a pass begins with the gradient of one')
    blob = net.blobs[names[0]]
    if np.shape(start_diff) != blob.shape:
        raise ValueError(f'start_diff has the shape {np.shape(start_diff)}, but blob {names[0]!r} has {blob.shape}')
    wanted = [*net.inputs, *(_blob(net, name) and name for name in diffs or [])]
    blob.diff[...] = start_diff
    run(start, 0)
    if zero_higher:
        below = {name for layer in list(net.top_names)[:start + 1] for name in net.top_names[layer]}
        for name in net.blobs.keys() - below:
            net.blobs[name].diff[...] = 0
    return {name: net.blobs[name].diff for name in dict.fromkeys(wanted)}


def _forward_all(self, blobs=None, **kwargs):
    """Runs forward() on arrays of any length, batch by batch; the last batch is filled up with zeros.

    blobs, keywords: as in forward(). Returns a dict of arrays by name, as long as what was given.
    """
    count = _length_of(kwargs)
    found = {}
    for batch in self._batch(kwargs):
        for name, array in self.forward(blobs=blobs, **batch).items():
            found.setdefault(name, []).extend(array.copy() if array.ndim else [array.copy()])
    return {name: np.asarray(rows)[:count] for name, rows in found.items()}


def _forward_backward_all(self, blobs=None, diffs=None, **kwargs):
    """Runs forward() and backward() on arrays of any length, batch by batch; the last batch is filled up with zeros.

    blobs, diffs, keywords: as in forward() and backward(). Returns two dicts of arrays by name: blobs and gradients.
    """
    inputs = {name: kwargs[name] for name in self.inputs if name in kwargs}
    outputs = {name: kwargs[name] for name in self.outputs if name in kwargs}
    unknown = kwargs.keys() - inputs.keys() - outputs.keys()
    if unknown:
        raise ValueError(f'{", ".join(sorted(unknown))}: neither inputs nor outputs of the net')
    count = _length_of(kwargs)
    found, found_diffs = {}, {}
    forward = self._batch(inputs) if inputs else ()
    backward = self._batch(outputs) if outputs else ()
    for batch, gradients in zip_longest(forward, backward, fillvalue={}):
        for into, arrays in ((found, self.forward(blobs=blobs, **batch)),
                             (found_diffs, self.backward(diffs=diffs, **gradients))):
            for name, array in arrays.items():
                into.setdefault(name, []).extend(array.copy() if array.ndim else [array.copy()])
    cut = [{name: np.asarray(rows)[:count] for name, rows in into.items()} for into in (found, found_diffs)]
    return cut[0], cut[1]


def _length_of(arrays):
    lengths = {name: len(array) for name, array in arrays.items()}
    if not lengths:
        raise ValueError('no arrays were given')
    if len(set(lengths.values())) > 1:
        raise ValueError(f'the arrays have different lengths: {lengths}')
    return next(iter(lengths.values()))


def _batch(self, blobs):
    """Divides arrays into batches: a generator of dicts of arrays by name. The last one is filled up with zeros."""
    count = _length_of(blobs)
    size = next(iter(self.blobs.values())).shape[0]
    for begin in range(0, count, size):
        batch = {name: np.asarray(array[begin:begin + size]) for name, array in blobs.items()}
        missing = size - min(size, count - begin)
        if missing:
            batch = {name: np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)])
                     for name, array in batch.items()}
        yield batch


def _set_input_arrays(self, data, labels, layer=''):
    """Gives a MemoryData layer its images (N x C x H x W) and labels (N); N must be a multiple of its batch size. The
    next pass begins with the first of them. layer: its name; by default the net's first layer.
    """
    labels = np.asarray(labels)
    if labels.ndim == 0:
        raise ValueError('set_input_arrays: labels must be an array, one for each image')
    self._set_input_arrays(np.asarray(data), labels, layer)


def __getattr__(name):
    """Gives this module the solvers too, as in pycaffe."""
    if name.endswith('Solver'):
        from . import solvers
        return getattr(solvers, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def _repr_html_(self):
    from . import display
    return display.net_html(self)


# The extension module creates the nets of solvers, so Net's methods are attached to its class.
Net.blobs = _blobs
Net.params = _params
Net.layers = _layers
Net.layer_dict = _layer_dict
Net.blob_loss_weights = _blob_loss_weights_by_name
Net.inputs = _input_names
Net.outputs = _output_names
Net.top_names = _top_names
Net.bottom_names = _bottom_names
Net.forward = _forward
Net.backward = _backward
Net.backward_from_layer = _backward_from_layer
Net.deconv_from_layer = _deconv_from_layer
Net.forward_all = _forward_all
Net.forward_backward_all = _forward_backward_all
Net.set_input_arrays = _set_input_arrays
Net._batch = _batch
Net._blobs = property(lambda self: list(self.blobs.values()))
if '_repr_html_' not in Net.__dict__:
    Net._repr_html_ = _repr_html_
for _name, _method in list(vars(Net).items()):
    if callable(_method) and getattr(_method, '__module__', '') == __name__ and _name != '_repr_html_':
        _method.__name__ = _name
        _method.__qualname__ = f'Net.{_name}'

def _after_fork():
    """A forked process has no OpenMP threads, but the library waits for them; with one thread it does not."""
    _forget_other_threads()
    set_threads(1)


os.register_at_fork(after_in_child=_after_fork)
