"""crema.proto.caffe_pb2: Caffe's messages."""
import copy
import pickle

import numpy as np
import pytest
from google.protobuf import text_format

import crema
from crema.proto import caffe_pb2

# Names that Caffe scripts use from the module.
MESSAGES = [
    'BlobProto', 'BlobProtoVector', 'BlobShape', 'ConvolutionParameter', 'DataParameter', 'Datum', 'EltwiseParameter',
    'FillerParameter', 'InnerProductParameter', 'LayerParameter', 'LRNParameter', 'NetParameter', 'NetState',
    'NetStateRule', 'ParamSpec', 'PoolingParameter', 'PReLUParameter', 'PythonParameter', 'ReLUParameter',
    'ScaleParameter', 'SolverParameter', 'SolverState', 'TransformationParameter', 'V0LayerParameter',
    'V1LayerParameter', 'LabelMap', 'AnnotatedDatum', 'NormalizedBBox'
]

NET = '''
name: "small"
layer {
  name: "conv"
  type: "Convolution"
  bottom: "data"
  top: "conv"
  param { lr_mult: 1 decay_mult: 0.5 }
  convolution_param { num_output: 4 kernel_size: 3 kernel_size: 5
    weight_filler { type: "xavier" variance_norm: FAN_OUT } }
  include { phase: TEST stage: "late" }
}
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { pool: AVE global_pooling: true } }
'''


@pytest.mark.parametrize('name', MESSAGES)
def test_message_is_there(name):
    message = getattr(caffe_pb2, name)()
    assert message.DESCRIPTOR.name == name
    assert type(message).FromString(message.SerializeToString()) == message


def test_text_round_trip():
    net = caffe_pb2.NetParameter()
    text_format.Merge(NET, net)
    assert [layer.type for layer in net.layer] == ['Convolution', 'Pooling']
    assert list(net.layer[0].convolution_param.kernel_size) == [3, 5]
    assert net.layer[0].include[0].phase == caffe_pb2.TEST
    again = text_format.Parse(text_format.MessageToString(net), caffe_pb2.NetParameter())
    assert again == net
    assert text_format.Parse(str(net), caffe_pb2.NetParameter()) == net


def test_text_errors_have_a_position():
    with pytest.raises(text_format.ParseError, match='2:.*nothing'):
        text_format.Merge('name: "a"\nnothing: 1', caffe_pb2.NetParameter())


def test_wire_format_is_caffes():
    datum = caffe_pb2.Datum(channels=1, height=1, width=2, data=b'ab', label=3)
    assert datum.SerializeToString() == b'\x08\x01\x10\x01\x18\x02\x22\x02ab\x28\x03'
    blob = caffe_pb2.BlobProto(shape=caffe_pb2.BlobShape(dim=[2]), data=[1.0, 2.0])
    assert blob.SerializeToString() == b'\x2a\x08\x00\x00\x80\x3f\x00\x00\x00\x40\x3a\x03\x0a\x01\x02'


def test_constants():
    assert (caffe_pb2.TRAIN, caffe_pb2.TEST) == (0, 1) == (crema.TRAIN, crema.TEST)
    assert caffe_pb2.Phase.Name(1) == 'TEST'
    assert caffe_pb2.PoolingParameter.AVE == caffe_pb2.PoolingParameter.PoolMethod.Value('AVE') == 1
    assert caffe_pb2.SolverParameter.GPU == 1
    assert caffe_pb2.V1LayerParameter.LayerType.Name(4) == 'CONVOLUTION'
    assert caffe_pb2._V1LAYERPARAMETER_LAYERTYPE.values_by_name['DATA'].number == caffe_pb2.V1LayerParameter.DATA
    assert caffe_pb2._NETPARAMETER is caffe_pb2.NetParameter.DESCRIPTOR


def test_defaults_and_presence():
    layer = caffe_pb2.LayerParameter(type='Pooling')
    assert not layer.HasField('pooling_param')
    assert layer.pooling_param.stride == 1
    assert caffe_pb2.SolverParameter().momentum2 == pytest.approx(0.999)
    with pytest.raises(AttributeError):
        layer.bottoms
    with pytest.raises(TypeError):
        layer.name = 3


def test_copies():
    net = text_format.Parse(NET, caffe_pb2.NetParameter())
    assert pickle.loads(pickle.dumps(net)) == net
    twin = copy.deepcopy(net)
    twin.layer[0].name = 'other'
    assert net.layer[0].name == 'conv'
    assert type(net.layer[0]) is caffe_pb2.LayerParameter


def test_old_layers():
    net = text_format.Parse('layers { name: "c" type: CONVOLUTION blobs_lr: 1 convolution_param { num_output: 2 } }',
                            caffe_pb2.NetParameter())
    assert net.layers[0].type == caffe_pb2.V1LayerParameter.CONVOLUTION
    assert isinstance(net.layers[0], caffe_pb2.V1LayerParameter)


def test_without_schema(monkeypatch, tmp_path):
    monkeypatch.setattr(caffe_pb2, '_FOLDER', str(tmp_path))
    with pytest.raises(ImportError, match='schema.bin'):
        caffe_pb2._read_schema()


def test_weights_with_numpy():
    blob = caffe_pb2.BlobProto()
    blob.data.extend(np.arange(6, dtype=np.float32).tolist())
    blob.shape.dim.extend([2, 3])
    assert np.array(blob.data, dtype=np.float32).reshape(blob.shape.dim)[1, 2] == 5
