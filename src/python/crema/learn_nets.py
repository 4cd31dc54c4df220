"""The nets that crema.Classifier and crema.Regressor train.

Either your own net, with its data layers replaced by arrays, or a small one.
"""

import os

import numpy as np

from . import _crema
from .learn_inputs import Inputs
from .proto import caffe_pb2

# Layers without bottoms that bring no data.
NOT_DATA = ("DummyData", "Parameter")


class LearnNet:
    """A net ready for arrays.

    text: the prototxt, for both phases; data, label: names of its inputs; scores: the output that is compared with the
    labels, probabilities: the one with their softmax, or None, both in TEST nets only; inputs: an Inputs.
    """

    def __init__(self, message, data, label, scores, probabilities, inputs):
        self.text = str(message)
        self.data, self.label, self.scores, self.probabilities, self.inputs = data, label, scores, probabilities, inputs


def read_message(source, kind="net"):
    """A NetParameter (kind "net") or SolverParameter ("solver") of a path, a text, a NetSpec or a message."""
    if hasattr(source, "to_proto"):
        source = source.to_proto()
    if hasattr(source, "SerializeToString"):
        source = str(source)
    source = os.fspath(source)
    name = "the %s's text" % kind
    if ":" not in source and "{" not in source or os.path.exists(source):
        name = source
        with open(source, encoding="utf-8") as file:
            source = file.read()
    read = _crema._net_message if kind == "net" else _crema._solver_message
    message = caffe_pb2.NetParameter() if kind == "net" else caffe_pb2.SolverParameter()
    message.ParseFromString(read(source, name))
    return message


def add_layer(net, name, type, bottoms, tops, phase=None, **fields):
    """Appends a layer; fields are messages as dicts, inner_product_param=dict(num_output=10). Returns its first top."""
    layer = net.layer.add(name=name, type=type, bottom=bottoms, top=tops)
    if phase is not None:
        layer.include.add(phase=phase)
    for field, values in fields.items():
        target = getattr(layer, field)
        for key, value in values.items():
            if isinstance(value, dict):
                for inner, inner_value in value.items():
                    setattr(getattr(target, key), inner, inner_value)
            elif isinstance(value, (list, tuple)):
                getattr(target, key).extend(value)
            else:
                setattr(target, key, value)
    return tops[0]


def add_inputs(net, name, tops_and_shapes):
    """Appends an Input layer with these tops: [("data", (64, 3, 32, 32)), ...]."""
    layer = net.layer.add(name=name, type="Input", top=[top for top, _ in tops_and_shapes])
    for _, shape in tops_and_shapes:
        layer.input_param.shape.add(dim=[int(d) for d in shape])


def default_net(sample, outputs, hidden):
    """A net for samples of this shape.

    Flat samples (features,): fully connected layers of `hidden` units with ReLUs. Images (channels, height, width):
    convolutions 3 x 3 with 16, 32, 64... outputs, each with ReLU and 2 x 2 max pooling, until the maps are smaller than
    8 x 8; then the same fully connected layers.
    """
    net = caffe_pb2.NetParameter(name="default")
    add_inputs(net, "data", [("data", (1,) + tuple(sample)), ("label", (1,))])
    filler = dict(type="msra")
    bottom = "data"
    if len(sample) == 3:
        size, width, number = min(sample[1:]), 16, 1
        while size >= 4 and (number == 1 or size >= 8):
            bottom = add_layer(
                net,
                "conv%d" % number,
                "Convolution",
                [bottom],
                ["conv%d" % number],
                convolution_param=dict(num_output=width, kernel_size=[3], pad=[1], weight_filler=filler),
            )
            add_layer(net, "relu_conv%d" % number, "ReLU", [bottom], [bottom])
            bottom = add_layer(
                net,
                "pool%d" % number,
                "Pooling",
                [bottom],
                ["pool%d" % number],
                pooling_param=dict(kernel_size=2, stride=2),
            )
            size, width, number = (size + 1) // 2, min(2 * width, 128), number + 1
    for number, units in enumerate(hidden, 1):
        bottom = add_layer(
            net,
            "ip%d" % number,
            "InnerProduct",
            [bottom],
            ["ip%d" % number],
            inner_product_param=dict(num_output=int(units), weight_filler=filler),
        )
        add_layer(net, "relu%d" % number, "ReLU", [bottom], [bottom])
    add_layer(
        net,
        "scores",
        "InnerProduct",
        [bottom],
        ["scores"],
        inner_product_param=dict(num_output=int(outputs), weight_filler=dict(type="xavier")),
    )
    return net


def in_phase(layer, phase):
    """Whether the rules of a layer include it in nets of this phase; ignores stages and levels."""
    phases = [rule.phase for rule in layer.include if rule.HasField("phase")]
    if layer.include:
        return not phases or phase in phases
    return all(rule.phase != phase for rule in layer.exclude if rule.HasField("phase"))


def transform_of(layers, phase):
    """The transform_param of the data layer of a phase, or None."""
    found = (l for l in layers if in_phase(l, phase) and l.HasField("transform_param"))
    return next((layer.transform_param for layer in found), None)


def sample_shape(layers, data, given):
    """The shape of a sample: the Input layer's if X has as many values, otherwise X's own."""
    for layer in layers:
        if layer.type == "Input" and data in layer.top and layer.input_param.shape:
            shapes = layer.input_param.shape
            dims = tuple(shapes[min(list(layer.top).index(data), len(shapes) - 1)].dim)[1:]
            count, total = int(np.prod(dims)), int(np.prod(given))
            if count == total:
                return dims
            raise ValueError(
                "a sample of X has shape %s, %d values, but the net's input %r takes %s, %d values"
                % (tuple(given), total, data, dims, count)
            )
    return tuple(given)


def for_arrays(message, sample, batch, label_shape, loss):
    """Makes a LearnNet of a net: data layers become Input layers, and layers for training and prediction are added.

    sample: shape of a sample of X. label_shape: that of a label, () for a class. loss: the type to add to a net without
    a loss, "SoftmaxWithLoss" or "EuclideanLoss".
    """
    layers = list(message.layer)
    sources = [l for l in layers if not l.bottom and l.type not in NOT_DATA]
    tops = list(dict.fromkeys(top for l in sources for top in l.top))
    if not tops:
        raise ValueError('the net has no data layer: it needs one, or an Input layer, with top "data"')
    if len(tops) > 2:
        raise ValueError(
            "the net has %d inputs, %s: it can have two, the data and the labels" % (len(tops), ", ".join(tops))
        )
    data = next(top for top in tops if top != "label")
    label = next((top for top in tops if top != data), "label")
    inputs = Inputs(
        sample_shape(sources, data, sample),
        transform_of(sources, caffe_pb2.TRAIN),
        transform_of(sources, caffe_pb2.TEST),
    )
    net = caffe_pb2.NetParameter()
    net.CopyFrom(message)
    del net.layer[:]
    add_inputs(net, sources[0].name, [(data, (batch,) + inputs.shape), (label, (batch,) + tuple(label_shape))])
    kept = [l for l in layers if not any(l is s for s in sources)]
    for layer in kept:
        net.layer.add().CopyFrom(layer)

    types = set(_crema._loss_types())
    losses = [l for l in kept if (l.type in types or any(l.loss_weight)) and label in l.bottom]
    softmax = next((l for l in reversed(kept) if l.type == "Softmax"), None)
    if losses:
        scores, loss = losses[-1].bottom[0], losses[-1].type
    else:
        if not kept:
            raise ValueError("the net has no layers after its data")
        scores = softmax.bottom[0] if softmax is not None and loss == "SoftmaxWithLoss" else kept[-1].top[0]
        add_layer(net, "loss", loss, [scores, label], ["loss"])
    probabilities = None
    if loss == "SoftmaxWithLoss":
        if not any(l.type == "Accuracy" and in_phase(l, caffe_pb2.TRAIN) for l in kept):
            tested = next((l for l in kept if l.type == "Accuracy"), None)
            if tested is None:
                add_layer(net, "acc", "Accuracy", [scores, label], ["acc"])
            else:
                add_layer(net, tested.name + "_train", "Accuracy", [scores, label], [tested.top[0]], caffe_pb2.TRAIN)
        probabilities = add_layer(
            net, "class_probabilities", "Softmax", [scores], ["class_probabilities"], caffe_pb2.TEST
        )
    # A separate output, whatever else reads the scores: a planned net keeps inputs and outputs only.
    answers = add_layer(net, "answers", "Power", [scores], ["answers"], caffe_pb2.TEST)
    return LearnNet(net, data, label, answers, probabilities, inputs)
