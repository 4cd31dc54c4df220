"""Nets written in Python.

    from crema import layers as L, params as P, NetSpec

    n = NetSpec()
    n.data, n.label = L.Data(source='train_lmdb', backend=P.Data.LMDB, batch_size=64, ntop=2)
    n.ip = L.InnerProduct(n.data, num_output=10, weight_filler=dict(type='xavier'))
    n.relu = L.ReLU(n.ip, in_place=True)
    n.loss = L.SoftmaxWithLoss(n.ip, n.label)
    open('net.prototxt', 'w').write(str(n.to_proto()))

Each function of `layers` makes one layer: its arguments are the bottoms, its keywords the fields of the layer or of
the message with the parameters of its type. It returns the layer's top, a tuple of `ntop` tops, or with ntop=0 the
layer itself. Tops assigned to a NetSpec get the attribute's name; other layers are named after their types,
Convolution1 and so on.
"""
import difflib
from collections import Counter

from .proto import caffe_pb2, describe

__all__ = [
    'Function', 'Layers', 'NetSpec', 'Parameters', 'Top', 'assign_proto', 'layers', 'param_name_dict', 'params',
    'to_proto'
]

# Types whose parameters are in a message with a different name.
_MESSAGES_OF_OTHERS = {
    **dict.fromkeys(['Convolution3D', 'ConvolutionDepthwise', 'Deconvolution', 'Deconvolution3D',
                     'DepthwiseConvolution', 'Im2col', 'NdConvolution'], ['convolution']),
    **dict.fromkeys(['NdPooling', 'Pooling3D', 'PoolingND'], ['pooling']),
    **dict.fromkeys(['LSTM', 'RNN'], ['recurrent']),  # LSTMParameter is that of a fork's Lstm
    **dict.fromkeys(['ImageLabelmapData', 'ImageSegData'], ['image_data']),
    **dict.fromkeys(['SigmoidCrossEntropyLoss', 'SoftmaxWithLoss'], ['loss', 'softmax']),
    'Lstm': ['lstm'],
    'SparseInnerProduct': ['inner_product'],
}


def _fields(message):
    return message.DESCRIPTOR.fields_by_name


def _is_repeated(field):
    # protobuf 6 deprecates `label`, and older ones have no `is_repeated`.
    repeated = getattr(field, 'is_repeated', None)
    return field.label == field.LABEL_REPEATED if repeated is None else repeated


def param_name_dict():
    """Returns {layer type: name of its parameters without "_param"}, such as {'InnerProduct': 'inner_product', ...}."""
    names = {}
    for field in caffe_pb2.LayerParameter.DESCRIPTOR.fields:
        if not field.name.endswith('_param') or field.message_type is None:
            continue
        layer_type = field.message_type.name
        if layer_type.endswith('Parameter'):
            layer_type = layer_type[:-len('Parameter')]
        name = field.name[:-len('_param')]
        # Of several fields of one message the one with the same name.
        if layer_type not in names or name.replace('_', '') == layer_type.lower():
            names[layer_type] = name
    return names


def _value_for(field, value):
    """Converts a Python or NumPy value to that of a message's field."""
    if field.enum_type is not None and isinstance(value, str):
        number = field.enum_type.values_by_name.get(value)
        if number is None:
            raise ValueError(f'"{value}" is not a value of {field.name}: it is one of '
                             f'{", ".join(v.name for v in field.enum_type.values)}')
        return number.number
    return value.item() if hasattr(value, 'item') and hasattr(value, 'dtype') else value


def _assign_message(message, value):
    if isinstance(value, dict):
        message.SetInParent()
        for name, item in value.items():
            assign_proto(message, name, item)
    elif hasattr(value, 'DESCRIPTOR'):
        message.CopyFrom(value)
    else:
        raise TypeError(f'{message.DESCRIPTOR.name} takes a dict or a message, not {value!r}')


def assign_proto(proto, name, val):
    """Sets the field `name` of a message to a value of Python.

    A dict becomes a message, a list (tuple, array) a repeated field; one value for a repeated field is a list of one.
    Values of enums may be given by name. Raises AttributeError for a field that the message does not have.
    """
    field = _fields(proto).get(name)
    if field is None:
        near = difflib.get_close_matches(name, list(_fields(proto)), 1)
        raise AttributeError(f'{proto.DESCRIPTOR.name} has no field "{name}"' +
                             (f': did you mean {near[0]}?' if near else ''))
    if _is_repeated(field):
        if hasattr(val, 'tolist'):
            val = val.tolist()
        several = isinstance(val, (list, tuple, range)) or type(val).__name__.startswith('Repeated')
        values = list(val) if several else [val]
        if not values:
            return
        target = getattr(proto, name)
        if field.message_type is not None:
            for item in values:
                _assign_message(target.add(), item)
        else:
            target.extend([_value_for(field, item) for item in values])
    elif field.message_type is not None:
        _assign_message(getattr(proto, name), val)
    else:
        setattr(proto, name, _value_for(field, val))


class _Writer:
    """Writes layers in the order of computation, each once, and names the unnamed ones."""

    def __init__(self, names=()):
        self.names = dict(names)
        self.taken = set(self.names.values())
        self.counts = Counter()
        self.layers = {}

    def name_of_top(self, top):
        if top not in self.names:
            self.names[top] = self.automatic_name(top.fn.type_name)
        return self.names[top]

    def name_of_layer(self, function):
        if function not in self.names:
            self.names[function] = (self.name_of_top(function.tops[0]) if function.tops
                                    else self.automatic_name(function.type_name))
        return self.names[function]

    def automatic_name(self, type_name):
        while True:
            self.counts[type_name] += 1
            name = f'{type_name}{self.counts[type_name]}'
            if name not in self.taken:
                self.taken.add(name)
                return name

    def write(self, function):
        """Writes the inputs of `function`, then itself. Uses a stack, because nets are deeper than Python's recursion
        limit."""
        stack = [(function, iter(function.inputs))]
        while stack:
            current, inputs = stack[-1]
            if current in self.layers:
                stack.pop()
                continue
            following = next((top.fn for top in inputs if top.fn not in self.layers), None)
            if following is not None:
                stack.append((following, iter(following.inputs)))
                continue
            self.layers[current] = self.message(current)
            stack.pop()

    def message(self, function):
        layer = caffe_pb2.LayerParameter()
        layer.type = function.type_name
        layer.bottom.extend(self.layers[top.fn].top[top.n] for top in function.inputs)
        if function.in_place:
            layer.top.extend(layer.bottom)
        else:
            layer.top.extend(self.name_of_top(top) for top in function.tops)
        layer.name = self.name_of_layer(function)
        for name, value in function.params.items():
            try:
                assign_proto(function.message_with(layer, name), name, value)
            except (AttributeError, TypeError, ValueError) as error:
                kind = next(kind for kind in (AttributeError, TypeError, ValueError) if isinstance(error, kind))
                raise kind(f'layer "{layer.name}" ({layer.type}), {name}: {error}') from error
        return layer

    def net(self):
        net = caffe_pb2.NetParameter()
        net.layer.extend(self.layers.values())
        return net


def to_proto(*tops):
    """Returns the NetParameter of all layers that compute the given tops."""
    writer = _Writer()
    for top in tops:
        writer.write(top.fn)
    return writer.net()


class Top:
    """One top of a layer: `fn` is the layer, `n` which of its tops."""

    def __init__(self, fn, n):
        self.fn = fn
        self.n = n

    def __repr__(self):
        return f'<top {self.n} of a {self.fn.type_name} layer>'

    def to_proto(self):
        """Returns the NetParameter of all layers that compute this top."""
        return to_proto(self)


class Function:
    """One layer: its type, its bottoms and the fields of its message."""

    def __init__(self, type_name, inputs, params):
        for index, bottom in enumerate(inputs):
            if not isinstance(bottom, Top):
                raise TypeError('%s input %d is not a Top (type is %s)' % (type_name, index, type(bottom)))
        self.type_name = type_name
        self.inputs = inputs
        self.params = dict(params)
        self.ntop = self.params.pop('ntop', 1)
        self.in_place = self.params.pop('in_place', False)
        self.tops = tuple(Top(self, n) for n in range(self.ntop))

    @property
    def fn(self):
        """The layer itself: a layer without tops can be assigned and written like a top."""
        return self

    def parameter_fields(self):
        """The fields of a layer's message with the parameters of this type."""
        own = [_param_names[self.type_name]] if self.type_name in _param_names else []
        return [f'{stem}_param' for stem in _MESSAGES_OF_OTHERS.get(self.type_name, own)]

    def message_with(self, layer, name):
        """The message, in `layer`, that has the field: the layer's parameters or the layer."""
        candidates = self.parameter_fields()
        if name.endswith('param') and name in _fields(layer):
            return layer
        for candidate in candidates:
            message_type = _fields(layer)[candidate].message_type
            if name in message_type.fields_by_name:
                return getattr(layer, candidate)
        if name in _fields(layer) or not candidates:
            return layer
        return getattr(layer, candidates[0])  # has no such field either, and lists those it has

    def __repr__(self):
        return f'<{self.type_name} layer>'


class NetSpec:
    """A net to be written: assign tops to its attributes (or items), which name them, then call to_proto()."""

    def __init__(self):
        super().__setattr__('tops', {})

    def __setattr__(self, name, value):
        self.tops[name] = value  # checked by to_proto(), because it may be assigned again before that

    def __getattr__(self, name):
        if name == 'tops' or name not in self.tops:  # tops: not there yet while it is copied
            raise AttributeError(f'The NetSpec has no blob "{name}"')
        return self.tops[name]

    def __delattr__(self, name):
        if name not in self.tops:
            raise AttributeError(f'The NetSpec has no blob "{name}"')
        del self.tops[name]

    def __setitem__(self, name, value):
        self.__setattr__(name, value)

    def __getitem__(self, name):
        return self.tops[name]

    def __delitem__(self, name):
        del self.tops[name]

    def __contains__(self, name):
        return name in self.tops

    def __iter__(self):
        return iter(self.tops)

    def __len__(self):
        return len(self.tops)

    def __dir__(self):
        return [*super().__dir__(), *self.tops]

    def keys(self):
        """Returns the names in the order of assignment."""
        return list(self.tops)

    def vals(self):
        """Returns the tops in the order of assignment."""
        return list(self.tops.values())

    def update(self, name, params):
        """Changes fields of the layer with the top `name`."""
        self.tops[name].fn.params.update(params)

    def to_proto(self):
        """Returns the NetParameter of all assigned layers and of their inputs."""
        for name, top in self.tops.items():
            if not isinstance(top, (Top, Function)):
                raise TypeError(f'"{name}" of a NetSpec is a top or a layer without tops, not {top!r}')
        writer = _Writer({top: name for name, top in self.tops.items()})
        for top in self.tops.values():
            writer.write(top.fn)
        return writer.net()

    def _repr_html_(self):
        from .display import message_html
        return message_html(self)


class _LayerMaker:
    """layers.TYPE: makes a layer of this type with the given bottoms."""

    def __init__(self, type_name):
        self.__name__ = type_name

    @property
    def __doc__(self):
        parts = [f'Makes a {self.__name__} layer of the given bottoms.']
        for name in Function(self.__name__, (), {}).parameter_fields():
            message = _fields(caffe_pb2.LayerParameter)[name].message_type
            parts.append(describe(getattr(caffe_pb2, message.name)))
        return '\n\n'.join(parts)

    def __call__(self, *bottoms, **fields):
        function = Function(self.__name__, bottoms, fields)
        if function.ntop == 0:
            return function
        return function.tops[0] if function.ntop == 1 else function.tops

    def __repr__(self):
        return f'<layers.{self.__name__}>'


class Layers:
    """Makes layers: layers.TYPE(*bottoms, ntop=1, in_place=False, **fields) for any type."""

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return _LayerMaker(name)

    def __dir__(self):
        from . import _crema
        return [*super().__dir__(), *_crema.layer_type_list()]


class _Constants:
    """The values of the enums in one message."""

    def __init__(self, name):
        self._message = getattr(caffe_pb2, f'{name}Parameter', None)
        if self._message is None:
            raise AttributeError(f'There is no message {name}Parameter')

    def __getattr__(self, name):
        return getattr(self._message, name)

    def __dir__(self):
        return [value.name for enum in self._message.DESCRIPTOR.enum_types for value in enum.values]


class Parameters:
    """The constants of layers' fields: params.Pooling.MAX is the value of PoolingParameter."""

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return _Constants(name)


_param_names = param_name_dict()
layers = Layers()
params = Parameters()
