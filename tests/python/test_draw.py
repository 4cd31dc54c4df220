"""crema.draw: drawings of nets."""
import os
import shutil
import subprocess
import sys

import pytest
from google.protobuf import text_format

import crema
from crema import draw
from crema.proto import caffe_pb2

NET = '''
name: "small \\"net\\""
layer { name: "data" type: "Data" top: "data" top: "label" data_param { batch_size: 64 } include { phase: TRAIN } }
layer { name: "input" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } include { phase: TEST } }
layer { name: "conv<1>|a" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 2 } param { lr_mult: 0 }
  convolution_param { num_output: 20 kernel_size: 5 stride: 2 pad: 1 } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip" inner_product_param { num_output: 10 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" exclude { phase: TEST } }
'''

has_dot = pytest.mark.skipif(shutil.which('dot') is None, reason='Graphviz is not installed')


@pytest.fixture
def net():
    return text_format.Parse(NET, caffe_pb2.NetParameter())


def raw(net, **options):
    return draw.draw_net(net, options.pop('rankdir', 'LR'), 'raw', **options).decode()


def test_graph(net):
    text = raw(net)
    assert text.startswith('digraph "small \\"net\\"" {\nrankdir=LR;')
    assert text.count(' -> ') == 14
    assert '"data_blob" -> "conv<1>|a_Convolution" [label=""];' in text
    assert '"conv<1>|a_Convolution" -> "conv_blob" [label="20"];' in text
    assert '"data_Data" -> "label_blob" [label="Batch 64"];' in text
    assert '"ip_InnerProduct" -> "ip_blob" [label="10"];' in text
    # Signs that a record's label would take for its own.
    assert 'label="conv\\<1\\>\\|a\\n(Convolution)\\nkernel size: 5\\nstride: 2\\npad: 1"' in text
    assert '(AVE Pooling)' in text and text.count('octagon') == 6


def test_styles(net):
    lines = {line.split(' [')[0]: line for line in raw(net).splitlines() if 'fillcolor' in line}
    assert '#90EE90' in lines['"relu_ReLU"'] and '#FF9900' in lines['"pool_Pooling"']
    assert '#FF5050' in lines['"conv<1>|a_Convolution"'] and '#6495ED' in lines['"loss_SoftmaxWithLoss"']


def test_phases_and_multipliers(net):
    assert 'input_Input' in raw(net) and 'data_Data' in raw(net)
    train, test = raw(net, phase=caffe_pb2.TRAIN), raw(net, phase=caffe_pb2.TEST)
    assert 'data_Data' in train and 'input_Input' not in train and 'loss_SoftmaxWithLoss' in train
    assert 'data_Data' not in test and 'input_Input' in test and 'loss_SoftmaxWithLoss' not in test
    assert 'lr mult: 2, 0' in raw(net, display_lrm=True) and 'lr mult' not in raw(net)
    assert draw.get_layer_lr_mult(net.layer[2]) == [2, 0]
    assert draw.get_pooling_types_dict()[1] == 'AVE'
    assert '\\n(Conv' not in raw(net, rankdir='TB')


def test_old_layers():
    old = text_format.Parse(
        'layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" '
        'convolution_param { num_output: 7 kernel_size: 3 } }'
        'layers { name: "l" type: SOFTMAX_LOSS bottom: "c" bottom: "label" }', caffe_pb2.NetParameter())
    text = raw(old)
    assert '"c_Convolution" -> "c_blob" [label="7"]' in text and 'l_SoftmaxWithLoss' in text


@has_dot
@pytest.mark.parametrize('ending, start', [('png', b'\x89PNG'), ('svg', b'<?xml'), ('pdf', b'%PDF')])
def test_files(net, tmp_path, ending, start):
    path = tmp_path / f'net.{ending}'
    draw.draw_net_to_file(net, path)
    content = path.read_bytes()
    assert content.startswith(start) and len(content) > 1000
    if ending == 'svg':
        assert b'conv&lt;1&gt;|a' in content


def test_pydot(net):
    pydot = pytest.importorskip('pydot')
    graph = draw.get_pydot_graph(net, 'BT', label_edges=False)
    assert isinstance(graph, pydot.Dot)
    assert len(graph.get_edges()) == 14 and len(graph.get_nodes()) == 13
    assert 'Batch' not in graph.to_string()


def test_without_pydot(net, monkeypatch):
    monkeypatch.setitem(sys.modules, 'pydot', None)
    with pytest.raises(ImportError, match='pip install pydot'):
        draw.get_pydot_graph(net, 'LR')


def test_without_graphviz(net, monkeypatch):
    monkeypatch.setattr(shutil, 'which', lambda name: None)
    deploy = text_format.Parse(
        'layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 } } }'
        'layer { name: "relu" type: "ReLU" bottom: "data" top: "out" }', caffe_pb2.NetParameter())
    svg = draw.draw_net(deploy, 'LR', 'svg', phase=caffe_pb2.TEST)
    assert svg.startswith(b'<svg') or svg.startswith(b'<?xml')
    assert b'relu' in svg
    with pytest.raises(FileNotFoundError, match='Graphviz'):
        draw.draw_net(net, 'LR', 'png')


def test_errors(net, tmp_path):
    with pytest.raises(ValueError, match='rankdir'):
        draw.draw_net(net, 'left')
    with pytest.raises(ValueError, match='ending'):
        draw.draw_net_to_file(net, tmp_path / 'net')
    net.layer[0].exclude.add().phase = caffe_pb2.TEST
    with pytest.raises(ValueError, match='layer "data"'):
        draw.draw_net(net, 'LR', 'raw', phase=caffe_pb2.TRAIN)
    assert not os.listdir(tmp_path)


@has_dot
def test_unknown_format_leaves_no_file(net, tmp_path):
    with pytest.raises(ValueError, match='nothing'):
        draw.draw_net_to_file(net, tmp_path / 'net.nothing')
    assert not os.listdir(tmp_path)


def run_script(*arguments):
    return subprocess.run([sys.executable, '-m', 'crema.scripts.draw_net', *map(str, arguments)],
                          capture_output=True,
                          text=True)


def test_script(tmp_path):
    (tmp_path / 'net.prototxt').write_text(NET)
    found = run_script(tmp_path / 'net.prototxt', tmp_path / 'net.raw', '--rankdir', 'TB', '--phase', 'TEST')
    assert found.returncode == 0 and found.stdout == f'Drawing net to {tmp_path}/net.raw\n', found.stderr
    assert 'data_Data' not in (tmp_path / 'net.raw').read_text()
    (tmp_path / 'bad.prototxt').write_text('layer { nonsense }')
    found = run_script(tmp_path / 'bad.prototxt', tmp_path / 'bad.png')
    assert found.returncode == 1 and 'bad.prototxt:1:' in found.stderr and 'Traceback' not in found.stderr
    found = run_script(tmp_path / 'none.prototxt', tmp_path / 'bad.png')
    assert found.returncode == 1 and 'none.prototxt' in found.stderr and 'Traceback' not in found.stderr


SMALL = '''
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 8 dim: 1 dim: 28 dim: 28 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 4 kernel_size: 5 } }
layer { name: "a" type: "ReLU" bottom: "conv" top: "a" }
layer { name: "b" type: "Sigmoid" bottom: "conv" top: "b" }
'''


def small():
    return text_format.Parse(SMALL, caffe_pb2.NetParameter())


def test_notebooks_show_drawings(tmp_path, monkeypatch):
    """A tooltip has the shapes of a box; a Net is drawn as it was reshaped, with the table of its layers."""
    path = tmp_path / 'net.prototxt'
    path.write_text(SMALL)
    net = crema.Net(str(path), crema.TEST)
    net.blobs['data'].reshape(2, 1, 28, 28)
    net.reshape()
    shown = net._repr_html_()
    assert '<title>net, phase TEST</title>' in shown and str(tmp_path) not in shown
    assert '<title>conv: Convolution (4 outputs, 5x5)\n→ 2x4x24x24\n' in shown
    assert 'plit' not in shown.split('</svg>')[0] and '<details><summary>layers</summary><table>' in shown
    message = small()
    assert '→ 8x4x24x24\n' in message._repr_html_() and message == small()
    spec = crema.NetSpec()
    spec.data = crema.layers.Input(shape=dict(dim=[3, 5]))
    assert '→ 3x5\n' in spec._repr_html_()
    # Without the program a table and a text are left.
    monkeypatch.setattr('crema.programs.find_program', lambda: str(tmp_path / 'none'))
    assert net._repr_html_().startswith('<table>') and '<svg' not in net._repr_html_()
    assert message._repr_html_().startswith('<pre>layer {')


def test_wrong_nets_are_shown_as_text():
    message = small()
    message.layer[1].convolution_param.kernel_size[0] = 99
    assert message._repr_html_().startswith('<pre>')
    with pytest.raises(ValueError, match='kernel does not fit'):
        draw.net_svg(message)


def test_edit():
    message = small()
    edited = crema.edit(message, 'layer[conv].convolution_param.num_output=20', {
        'layer[conv].param[0].lr_mult': 0,
        'layer[conv].convolution_param.bias_term': False,
        'layer[conv].convolution_param.stride': [2, 1]
    })
    layer = edited.layer[1]
    assert (layer.convolution_param.num_output, layer.param[0].lr_mult, layer.convolution_param.bias_term) == (20, 0, False)
    assert list(layer.convolution_param.stride) == [2, 1]
    assert message == small()
    solver = crema.edit(caffe_pb2.SolverParameter(base_lr=0.1), 'base_lr=0.5')
    assert solver.base_lr == 0.5
    spec = crema.NetSpec()
    spec.data = crema.layers.Input(shape=dict(dim=[3, 5]))
    assert crema.edit(spec, 'name=small').name == 'small'
    for wrong, says in [('layer[conv].convolution_param.num_outptu=1', 'did you mean "num_output"'),
                        ('layer[cnov].name=a', 'did you mean "conv"'),
                        ('layer[conv].convolution_param.num_output=x', 'expects a whole number'), ('layer', 'PATH=VALUE')]:
        with pytest.raises(crema.Error, match=says.replace('[', r'\[')):
            crema.edit(message, wrong)
    with pytest.raises(TypeError, match='not str'):
        crema.edit('net.prototxt', 'name=a')
