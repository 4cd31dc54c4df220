"""Drawings of nets: layers as boxes, blobs as octagons, from a NetParameter.

`crema draw NET.prototxt` draws the same with the shapes of blobs, parameters and memory.
"""
import os
import shutil
import subprocess
import tempfile

from .proto import caffe_pb2

__all__ = [
    'choose_color_by_layertype', 'draw_net', 'draw_net_to_file', 'get_edge_label', 'get_layer_label',
    'get_layer_lr_mult', 'get_pooling_types_dict', 'get_pydot_graph', 'net_svg'
]

LAYER_STYLE_DEFAULT = {'shape': 'record', 'fillcolor': '#6495ED', 'style': 'filled'}
NEURON_LAYER_STYLE = {'shape': 'record', 'fillcolor': '#90EE90', 'style': 'filled'}
BLOB_STYLE = {'shape': 'octagon', 'fillcolor': '#E0E0E0', 'style': 'filled'}

_COLORS = {'Convolution': '#FF5050', 'Deconvolution': '#FF5050', 'Pooling': '#FF9900', 'InnerProduct': '#CC33FF'}


def get_pooling_types_dict():
    """Returns {number: name} of the pooling methods."""
    return {value.number: value.name for value in caffe_pb2.PoolingParameter.PoolMethod.DESCRIPTOR.values}


def get_layer_lr_mult(layer):
    """Returns the multipliers of the learning rate of a layer's parameters: a list, 1.0 by default."""
    multipliers = [param.lr_mult for param in layer.param]
    return multipliers or ([1.0] if layer.type in ('Convolution', 'Deconvolution', 'InnerProduct') else [])


def get_edge_label(layer):
    """Returns the label of the arrows from a layer to its tops: its number of outputs, or its batch."""
    if layer.type == 'Data':
        return f'Batch {layer.data_param.batch_size}'
    if layer.type in ('Convolution', 'Deconvolution'):
        return str(layer.convolution_param.num_output)
    if layer.type == 'InnerProduct':
        return str(layer.inner_product_param.num_output)
    return ''


def _first(values, default):
    return values[0] if len(values) else default


def get_layer_label(layer, rankdir, display_lrm=False):
    """Returns the text in a layer's box: name, type, and the window of a window layer. The lines are next to each
    other in a vertical graph (rankdir TB, BT). display_lrm adds the
    multipliers of the learning rate.
    """
    lines = [layer.name, f'({layer.type})']
    if layer.type in ('Convolution', 'Deconvolution'):
        window = layer.convolution_param
        lines += [f'kernel size: {window.kernel_h if window.HasField("kernel_h") else _first(window.kernel_size, 1)}',
                  f'stride: {window.stride_h if window.HasField("stride_h") else _first(window.stride, 1)}',
                  f'pad: {window.pad_h if window.HasField("pad_h") else _first(window.pad, 0)}']
    elif layer.type == 'Pooling':
        window = layer.pooling_param
        kernel = window.kernel_h if window.HasField('kernel_h') else window.kernel_size
        if window.global_pooling:
            kernel = 'global'
        lines[1] = f'({get_pooling_types_dict()[window.pool]} {layer.type})'
        lines += [f'kernel size: {kernel}', f'stride: {window.stride}', f'pad: {window.pad}']
    if display_lrm:
        multipliers = get_layer_lr_mult(layer)
        if multipliers:
            lines.append(f'lr mult: {", ".join(f"{value:g}" for value in multipliers)}')
    return (' ' if rankdir in ('TB', 'BT') else '\n').join(lines)


def choose_color_by_layertype(layertype):
    """Returns the colour of the boxes of a layer type."""
    return _COLORS.get(layertype, LAYER_STYLE_DEFAULT['fillcolor'])


def _takes_part(layer, phase):
    if phase is None:
        return True
    if layer.include and layer.exclude:
        raise ValueError(f'layer "{layer.name}": a layer has include rules or exclude rules, not both')
    if layer.include:
        return any(not rule.HasField('phase') or rule.phase == phase for rule in layer.include)
    return not any(rule.phase == phase for rule in layer.exclude if rule.HasField('phase'))


def _layers_of(caffe_net):
    """A net's layers; types from old files that differ only in case get their current names."""
    yield from caffe_net.layer
    for old in caffe_net.layers:
        layer = caffe_pb2.LayerParameter(name=old.name, bottom=old.bottom, top=old.top)
        layer.type = _type_of_old(old.type)
        for field in ('convolution_param', 'pooling_param', 'inner_product_param', 'data_param'):
            if old.HasField(field):
                getattr(layer, field).CopyFrom(getattr(old, field))
        yield layer


def _type_of_old(number):
    name = caffe_pb2.V1LayerParameter.LayerType.Name(number)
    known = {
        'SOFTMAX_LOSS': 'SoftmaxWithLoss', 'RELU': 'ReLU', 'LRN': 'LRN', 'TANH': 'TanH', 'BNLL': 'BNLL',
        'HDF5_DATA': 'HDF5Data'
    }
    return known.get(name) or ''.join(word.capitalize() for word in name.split('_'))


class _Graph:
    """Nodes {name: attributes} and arrows (from, to, label) of a drawing."""

    def __init__(self, net, rankdir, label_edges, phase, display_lrm):
        self.name = net.name or 'Net'
        self.rankdir = rankdir
        self.nodes = {}
        self.edges = []
        for layer in _layers_of(net):
            if not _takes_part(layer, phase):
                continue
            node = f'{layer.name}_{layer.type}'
            if len(layer.bottom) == 1 and list(layer.bottom) == list(layer.top):
                style = NEURON_LAYER_STYLE
            else:
                style = dict(LAYER_STYLE_DEFAULT, fillcolor=choose_color_by_layertype(layer.type))
            self.nodes[node] = dict(style, label=get_layer_label(layer, rankdir, display_lrm))
            for bottom in layer.bottom:
                self.edges.append((self.blob(bottom), node, ''))
            for top in layer.top:
                self.edges.append((node, self.blob(top), get_edge_label(layer) if label_edges else ''))

    def blob(self, name):
        node = f'{name}_blob'
        self.nodes[node] = dict(BLOB_STYLE, label=name)
        return node

    def dot(self):
        """The graph in Graphviz's language."""
        lines = [f'digraph {_quoted(self.name)} {{', f'rankdir={self.rankdir};']
        for node, attributes in self.nodes.items():
            lines.append(
                f'{_quoted(node)} [{", ".join(f"{key}={_label(value)}" for key, value in attributes.items())}];')
        for source, target, label in self.edges:
            lines.append(f'{_quoted(source)} -> {_quoted(target)} [label={_quoted(label)}];')
        return '\n'.join(lines + ['}', ''])


def _quoted(text):
    escaped = text.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n')
    return f'"{escaped}"'


def _label(text):
    """A quoted attribute; escapes brackets and bars, which are special in a record's label."""
    quoted = _quoted(text)
    for sign in '{}|<>':
        quoted = quoted.replace(sign, '\\' + sign)
    return quoted


def get_pydot_graph(caffe_net, rankdir, label_edges=True, phase=None, display_lrm=False):
    """Returns the drawing as a pydot.Dot; arguments as draw_net's. Raises ImportError without pydot."""
    try:
        import pydot
    except ImportError as error:
        raise ImportError('get_pydot_graph needs pydot: pip install pydot; draw_net does without') from error
    graph = _Graph(caffe_net, rankdir, label_edges, phase, display_lrm)
    result = pydot.Dot(_quoted(graph.name), graph_type='digraph', rankdir=rankdir)
    nodes = {}
    for name, attributes in graph.nodes.items():
        nodes[name] = pydot.Node(_quoted(name), **{key: _label(value) for key, value in attributes.items()})
        result.add_node(nodes[name])
    for source, target, label in graph.edges:
        result.add_edge(pydot.Edge(nodes[source], nodes[target], label=_quoted(label)))
    return result


def _run_dot(text, ext):
    found = subprocess.run(['dot', f'-T{ext}'], input=text.encode(), capture_output=True)
    if found.returncode != 0:
        raise ValueError(f'dot does not draw "{ext}": {found.stderr.decode(errors="replace").strip()}')
    return found.stdout


def _message_of(net):
    """The NetParameter of a Net, a NetSpec or of itself, and what -assume says of its inputs: the shapes of a Net."""
    if hasattr(net, 'to_proto'):
        net = net.to_proto()
    if not hasattr(net, '_message'):
        return net, 'default'
    message = caffe_pb2.NetParameter.FromString(net._message)
    tops = [top for layer in message.layer if not layer.bottom for top in layer.top]
    shapes = [f'{top}={"x".join(map(str, net.blobs[top].shape))}' for top in tops if len(net.blobs[top].shape)]
    return message, ','.join(shapes) or 'default'


def net_svg(net, phase=None):
    """The SVG text that `crema draw` makes of a Net, a NetSpec or a NetParameter: layers with the shapes of their blobs,
    parameters and operations; the pointer shows each in full. Raises ValueError for a wrong net, FileNotFoundError without
    the program crema.
    """
    from google.protobuf import text_format

    from .programs import run_verb
    given, assumed = _message_of(net)
    message = caffe_pb2.NetParameter()
    message.CopyFrom(given)
    message.name = message.name or 'net'  # else the drawing has the name of the temporary file
    if phase is None:
        phase = getattr(net, 'phase', caffe_pb2.TRAIN)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'net.prototxt')
        with open(path, 'w') as file:
            file.write(text_format.MessageToString(message))
        name = 'TEST' if phase == caffe_pb2.TEST else 'TRAIN'
        found = run_verb('draw', path, '-assume', assumed, '-phase', name, capture_output=True)
    if found.returncode != 0:
        raise ValueError(f'crema draw failed: {found.stderr.decode(errors="replace").strip()}')
    return found.stdout.decode()


def draw_net(caffe_net, rankdir, ext='png', phase=None, display_lrm=False):
    """Returns the bytes of a picture of a NetParameter.

    rankdir is the direction, LR, RL, TB or BT; ext the format: png, svg, pdf ..., which Graphviz's `dot` draws, or
    raw, the graph in its language. Without Graphviz, `crema draw` draws svg, and the others raise FileNotFoundError.
    phase leaves out the other phase's layers; display_lrm writes the multipliers of learning
    rates.
    """
    if rankdir not in ('LR', 'RL', 'TB', 'BT'):
        raise ValueError(f'rankdir is LR, RL, TB or BT, not {rankdir!r}')
    text = _Graph(caffe_net, rankdir, True, phase, display_lrm).dot()
    if ext == 'raw':
        return text.encode()
    if shutil.which('dot'):
        return _run_dot(text, ext)
    if ext == 'svg':
        return net_svg(caffe_net, phase).encode()
    raise FileNotFoundError(f'Drawing as {ext} needs Graphviz (its program dot): install graphviz, or draw as svg')


def draw_net_to_file(caffe_net, filename, rankdir='LR', phase=None, display_lrm=False):
    """Writes a picture of a NetParameter; the file's suffix is the format. Arguments as draw_net's."""
    filename = os.fspath(filename)
    ext = os.path.splitext(filename)[1][1:]
    if not ext:
        raise ValueError(f'{filename}: the ending of its name says the format, such as .png or .svg')
    picture = draw_net(caffe_net, rankdir, ext, phase, display_lrm)
    with open(os.fspath(filename), 'wb') as file:
        file.write(picture)
