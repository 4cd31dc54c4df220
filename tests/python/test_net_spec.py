"""crema.net_spec: nets written in Python."""
import copy

import numpy as np
import pytest
from google.protobuf import text_format

import crema
from crema import layers as L
from crema import net_spec
from crema import params as P
from crema.net_spec import Function, Top, assign_proto, param_name_dict, to_proto
from crema.proto import caffe_pb2


def layers_of(text):
    return text_format.Parse(text, caffe_pb2.NetParameter())


# A layer -> the message that it makes.
ROWS = [
    (lambda d: L.Convolution(d, num_output=2, kernel_size=3, weight_filler=dict(type='xavier')),
     'type: "Convolution" convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: "xavier" } }'),
    (lambda d: L.Convolution(d, kernel_size=[3, 5], num_output=np.int64(4)),
     'type: "Convolution" convolution_param { num_output: 4 kernel_size: 3 kernel_size: 5 }'),
    (lambda d: L.Pooling(d, pool=P.Pooling.AVE, kernel_size=2),
     'type: "Pooling" pooling_param { pool: AVE kernel_size: 2 }'),
    (lambda d: L.Pooling(d, pool='STOCHASTIC'), 'type: "Pooling" pooling_param { pool: STOCHASTIC }'),
    (lambda d: L.InnerProduct(d, num_output=3, param=[dict(lr_mult=1), dict(lr_mult=2, decay_mult=0)]),
     'type: "InnerProduct" inner_product_param { num_output: 3 } param { lr_mult: 1 } '
     'param { lr_mult: 2 decay_mult: 0 }'),
    (lambda d: L.InnerProduct(d, num_output=3, param=dict(name='w')),
     'type: "InnerProduct" inner_product_param { num_output: 3 } param { name: "w" }'),
    (lambda d: L.Deconvolution(d, convolution_param=dict(num_output=2, kernel_size=4, stride=2)),
     'type: "Deconvolution" convolution_param { num_output: 2 kernel_size: 4 stride: 2 }'),
    (lambda d: L.Deconvolution(d, num_output=2), 'type: "Deconvolution" convolution_param { num_output: 2 }'),
    (lambda d: L.Reshape(d, shape=dict(dim=[0, -1])), 'type: "Reshape" reshape_param { shape { dim: 0 dim: -1 } }'),
    (lambda d: L.Python(d, module='m', layer='C', param_str='{}'),
     'type: "Python" python_param { module: "m" layer: "C" param_str: "{}" }'),
    (lambda d: L.ReLU(d, include=dict(phase=caffe_pb2.TEST)), 'type: "ReLU" include { phase: TEST }'),
    (lambda d: L.SoftmaxWithLoss(
        d, d, loss_weight=0.5, propagate_down=[True, False], loss_param=dict(ignore_label=255)),
     'type: "SoftmaxWithLoss" bottom: "data" loss_weight: 0.5 propagate_down: true propagate_down: false '
     'loss_param { ignore_label: 255 }'),
    (lambda d: L.Dropout(d, dropout_ratio=np.float32(0.5)), 'type: "Dropout" dropout_param { dropout_ratio: 0.5 }'),
    (lambda d: L.Scale(d, filler=caffe_pb2.FillerParameter(type='constant', value=2)),
     'type: "Scale" scale_param { filler { type: "constant" value: 2 } }'),
    (lambda d: L.Slice(d, slice_point=np.array([1, 2])), 'type: "Slice" slice_param { slice_point: 1 slice_point: 2 }'),
    (lambda d: L.Slice(d, slice_point=[]), 'type: "Slice"'),
    (lambda d: L.LSTM(d, num_output=5), 'type: "LSTM" recurrent_param { num_output: 5 }'),
    (lambda d: L.Lstm(d, num_output=5), 'type: "Lstm" lstm_param { num_output: 5 }'),
    (lambda d: L.SoftmaxWithLoss(d, ignore_label=255, axis=2),
     'type: "SoftmaxWithLoss" loss_param { ignore_label: 255 } softmax_param { axis: 2 }'),
    (lambda d: L.Eltwise(d, d, operation=P.Eltwise.SUM, coeff=(1, -1)),
     'type: "Eltwise" bottom: "data" eltwise_param { operation: SUM coeff: 1 coeff: -1 }'),
    (lambda d: L.AnyNewType(d), 'type: "AnyNewType"'),
    (lambda d: L.ReLU(d, relu_param=dict()), 'type: "ReLU" relu_param {}'),
]


@pytest.mark.parametrize('make, text', ROWS)
def test_layer(make, text):
    n = crema.NetSpec()
    n.data = L.Input(shape=dict(dim=[1, 3]))
    n.top = make(n.data)
    found = n.to_proto().layer[1]
    expected = text_format.Parse(text, caffe_pb2.LayerParameter(name='top', bottom=['data'], top=['top']))
    assert found == expected


def test_names_and_order():
    n = crema.NetSpec()
    n.data, n.label = L.Data(batch_size=4, ntop=2)
    hidden = L.InnerProduct(n.data, num_output=3)
    n.relu = L.ReLU(hidden, in_place=True)
    n['ip2'] = L.InnerProduct(n.relu, num_output=2)
    n.silent = L.Silence(n.label, ntop=0)
    n.loss = L.SoftmaxWithLoss(n.ip2, n.label)
    assert n.to_proto() == layers_of('''
        layer { name: "data" type: "Data" top: "data" top: "label" data_param { batch_size: 4 } }
        layer { name: "InnerProduct1" type: "InnerProduct" bottom: "data" top: "InnerProduct1"
          inner_product_param { num_output: 3 } }
        layer { name: "relu" type: "ReLU" bottom: "InnerProduct1" top: "InnerProduct1" }
        layer { name: "ip2" type: "InnerProduct" bottom: "InnerProduct1" top: "ip2"
          inner_product_param { num_output: 2 } }
        layer { name: "silent" type: "Silence" bottom: "label" }
        layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }''')
    assert n.keys() == list(n) == ['data', 'label', 'relu', 'ip2', 'silent', 'loss']
    assert n.vals()[0] is n.data and 'relu' in n and len(n) == 6
    assert isinstance(n.silent, Function) and isinstance(n.data, Top)


def test_automatic_names():
    data, label = L.DummyData(ntop=2)
    a, b = L.ReLU(data), L.ReLU(label)
    net = to_proto(a, b)
    assert [layer.name for layer in net.layer] == ['DummyData1', 'ReLU1', 'ReLU2']
    assert list(net.layer[0].top) == ['DummyData1', 'DummyData2']
    assert len(a.to_proto().layer) == 2
    n = crema.NetSpec()
    n.ReLU1 = L.ReLU(data)
    n.other = L.ReLU(L.ReLU(n.ReLU1))
    assert [layer.name for layer in n.to_proto().layer] == ['DummyData1', 'ReLU1', 'ReLU2', 'other']


def test_changes():
    n = crema.NetSpec()
    n.data = L.Input()
    n.ip = L.InnerProduct(n.data, num_output=3)
    n.update('ip', {'num_output': 5, 'name': 'renamed'})
    layer = n.to_proto().layer[1]
    assert layer.inner_product_param.num_output == 5 and layer.name == 'renamed'
    assert copy.copy(n).ip is n.ip
    del n.ip
    assert n.keys() == ['data'] and len(n.to_proto().layer) == 1
    with pytest.raises(AttributeError, match='ip'):
        n.ip
    with pytest.raises(KeyError):
        n['ip']


def test_deep_nets():
    top = L.Input()
    for _ in range(3000):
        top = L.ReLU(top)
    net = top.to_proto()
    assert len(net.layer) == 3001 and net.layer[-1].bottom == [net.layer[-2].name]


def test_diamond_is_written_once():
    data = L.Input()
    left, right = L.ReLU(data), L.TanH(data)
    net = L.Concat(left, right, left).to_proto()
    assert [layer.type for layer in net.layer] == ['Input', 'ReLU', 'TanH', 'Concat']
    assert list(net.layer[3].bottom) == ['ReLU1', 'TanH1', 'ReLU1']


@pytest.mark.parametrize('make, error, reason', [
    (lambda d: L.Convolution(d, num_outputs=2), AttributeError, 'did you mean num_output'),
    (lambda d: L.ReLU(d, convolution_params=dict()), AttributeError, 'convolution_params'),
    (lambda d: L.Pooling(d, pool='MEDIAN'), ValueError, 'MAX, AVE, STOCHASTIC'),
    (lambda d: L.Convolution(d, num_output='two'), TypeError, 'num_output'),
    (lambda d: L.Convolution(d, num_output=-1), ValueError, 'num_output'),
    (lambda d: L.Convolution(d, weight_filler='xavier'), TypeError, 'FillerParameter'),
    (lambda d: L.Python(d, param_str=b'\xff'), ValueError, 'param_str'),
    (lambda d: L.ReLU(d, negative_slope=np.zeros(2)), ValueError, 'negative_slope'),
])
def test_errors_name_the_layer(make, error, reason):
    n = crema.NetSpec()
    n.data = L.Input()
    n.bad = make(n.data)
    with pytest.raises(error, match=f'layer "bad".*{reason}'):
        n.to_proto()


def test_wrong_bottoms_and_tops():
    with pytest.raises(TypeError, match=r"^ReLU input 1 is not a Top \(type is <class 'str'>\)$"):
        L.ReLU(L.Input(), 'data')
    n = crema.NetSpec()
    n.pair = L.Data(ntop=2)
    with pytest.raises(TypeError, match='"pair" of a NetSpec'):
        n.to_proto()
    n.pair, n.label = n.pair  # as scripts do that name the tops later
    assert list(n.to_proto().layer[0].top) == ['pair', 'label']


def test_params():
    assert (P.Pooling.MAX, P.Pooling.AVE) == (0, 1)
    assert P.Eltwise.PROD == 0 and P.Data.LMDB == 1 and 'LMDB' in dir(P.Data)
    for name in ('Pooling.MEDIAN', 'Nothing.MAX'):
        outer, inner = name.split('.')
        with pytest.raises(AttributeError):
            getattr(getattr(P, outer), inner)


def test_param_name_dict():
    names = param_name_dict()
    for layer_type, name in {
            'Convolution': 'convolution', 'InnerProduct': 'inner_product', 'LRN': 'lrn', 'PReLU': 'prelu', 'MVN': 'mvn',
            'HDF5Data': 'hdf5_data', 'BatchNorm': 'batch_norm', 'Loss': 'loss', 'Pooling': 'pooling'
    }.items():
        assert names[layer_type] == name


def test_assign_proto():
    layer = caffe_pb2.LayerParameter()
    assign_proto(layer, 'bottom', 'a')
    assign_proto(layer, 'top', ('b', 'c'))
    assign_proto(layer, 'convolution_param', {'kernel_size': 3, 'weight_filler': {'type': 'msra'}})
    assert layer == text_format.Parse(
        'bottom: "a" top: "b" top: "c" convolution_param { kernel_size: 3 weight_filler { type: "msra" } }',
        caffe_pb2.LayerParameter())


def test_types_of_other_messages_exist():
    fields = caffe_pb2.LayerParameter.DESCRIPTOR.fields_by_name
    for layer_type, messages in net_spec._MESSAGES_OF_OTHERS.items():
        assert layer_type in crema.layer_type_list()
        assert [name for name in messages if f'{name}_param' not in fields] == []


def test_documentation_of_layers():
    text = L.Pooling.__doc__
    assert 'pool (MAX | AVE | STOCHASTIC, default MAX): ' in text and 'kernel_size (uint32): ' in text
    assert 'batch_size (uint32' in crema.proto.describe(caffe_pb2.DataParameter)
    assert 'Convolution' in dir(L) and repr(L.ReLU) == '<layers.ReLU>'


def test_detection_nets():
    """Nested dicts, lists of dicts and constants, as scripts for SSD have them; changes that make a deploy net."""
    n = crema.NetSpec()
    n.data, n.label = L.AnnotatedData(
        ntop=2, name='data', include=dict(phase=caffe_pb2.Phase.Value('TRAIN')),
        transform_param={
            'mean_value': [104, 117, 123],
            'resize_param': {'resize_mode': P.Resize.WARP, 'interp_mode': [P.Resize.LINEAR, P.Resize.AREA]},
            'emit_constraint': {'emit_type': caffe_pb2.EmitConstraint.CENTER}},
        data_param=dict(batch_size=32, backend=P.Data.LMDB),
        annotated_data_param=dict(
            batch_sampler=[{'max_trials': 1}, {'sampler': {'min_scale': 0.5}, 'max_sample': 1}]))
    n['prior'] = L.PriorBox(n.data, n.data, min_size=30.0, variance=[0.1, 0.2], flip=True)
    n['loss'] = L.MultiBoxLoss(n.prior, n.label, loss_param={'normalization': P.Loss.VALID},
                               multibox_loss_param={'mining_type': P.MultiBoxLoss.MAX_NEGATIVE, 'num_classes': 21})
    net = n.to_proto()
    data = net.layer[0]
    assert [sampler.sampler.min_scale for sampler in data.annotated_data_param.batch_sampler] == [1, 0.5]
    assert list(data.transform_param.resize_param.interp_mode) == [P.Resize.LINEAR, P.Resize.AREA]
    assert list(net.layer[1].prior_box_param.min_size) == [30] and net.layer[1].prior_box_param.flip
    assert net.layer[2].multibox_loss_param.mining_type == P.MultiBoxLoss.MAX_NEGATIVE
    del net.layer[0], net.layer[-1]
    net.input.append('data')
    net.input_shape.add(dim=[1, 3, 300, 300])
    assert text_format.Parse(str(net), caffe_pb2.NetParameter()) == net
    assert caffe_pb2.SolverParameter(solver_mode=P.Solver.GPU, test_iter=[619]).solver_mode == 1


def test_net_runs(tmp_path):
    n = crema.NetSpec()
    n.data = L.Input(shape=dict(dim=[2, 3]))
    n.ip = L.InnerProduct(n.data, num_output=2, weight_filler=dict(type='constant', value=1))
    n.scaled = L.Power(n.ip, scale=2, shift=1)
    (tmp_path / 'net.prototxt').write_text(str(n.to_proto()))
    net = crema.Net(str(tmp_path / 'net.prototxt'), crema.TEST)
    np.testing.assert_allclose(net.forward(data=np.arange(6.0).reshape(2, 3))['scaled'], [[7, 7], [25, 25]])
