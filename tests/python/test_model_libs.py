"""caffe.model_libs: the nets that it makes are SSD's. SSD300 is held against the hand-written one in models/."""
import os
import pathlib
import subprocess

import pytest
from google.protobuf import text_format

import crema
from crema.model_libs import (ConvBNLayer, CreateAnnotatedDataLayer, CreateMultiBoxHead, InceptionV3Body, L, P,
                              ResNet101Body, ResNet152Body, UnpackVariable, VGGNetBody, ZFNetBody, caffe_pb2)

TOP = pathlib.Path(__file__).resolve().parents[2]
TOOLS = os.environ.get('CREMA_TOOLS', str(TOP / 'build/tools'))


def spec_with_data(size):
    net = crema.NetSpec()
    net.data = L.Input(shape=dict(dim=[1, 3, size, size]))
    return net


def layers_of(net):
    return {layer.name: layer for layer in net.layer if layer.type != 'ReLU'}


def set_fields(message):
    """Those that change something: not fillers, and no defaults."""
    found = {field.name: list(value) if hasattr(value, '__len__') else value for field, value in message.ListFields()
             if field.message_type is None and value != field.default_value}
    usual = dict(dilation=[1], stride=[1], pad=[0])
    return {name: value for name, value in found.items() if usual.get(name) != value}


def shapes_of(net, tmp_path):
    path = tmp_path / 'net.prototxt'
    path.write_text(str(net.to_proto()))
    made = crema.Net(str(path), crema.TEST)
    return {name: blob.shape for name, blob in made.blobs.items()}


def test_ssd300(tmp_path):
    """As examples/ssd/ssd_pascal.py of SSD makes it."""
    net = spec_with_data(300)
    VGGNetBody(net, from_layer='data', fully_conv=True, reduced=True, dilated=True, dropout=False)
    bottom = 'fc7'
    for name, outputs, kernel, pad, stride in (('6_1', 256, 1, 0, 1), ('6_2', 512, 3, 1, 2), ('7_1', 128, 1, 0, 1),
                                               ('7_2', 256, 3, 1, 2), ('8_1', 128, 1, 0, 1), ('8_2', 256, 3, 0, 1),
                                               ('9_1', 128, 1, 0, 1), ('9_2', 256, 3, 0, 1)):
        ConvBNLayer(net, bottom, f'conv{name}', False, True, outputs, kernel, pad, stride)
        bottom = f'conv{name}'
    tops = CreateMultiBoxHead(
        net, from_layers=['conv4_3', 'fc7', 'conv6_2', 'conv7_2', 'conv8_2', 'conv9_2'], use_batchnorm=False,
        num_classes=4, min_sizes=[30, 60, 111, 162, 213, 264], max_sizes=[60, 111, 162, 213, 264, 315],
        aspect_ratios=[[2], [2, 3], [2, 3], [2, 3], [2], [2]], steps=[8, 16, 32, 64, 100, 300],
        normalizations=[20, -1, -1, -1, -1, -1], prior_variance=[0.1, 0.1, 0.2, 0.2], kernel_size=3, pad=1, clip=False)
    assert len(tops) == 3
    ours = layers_of(net.to_proto())
    expanded = subprocess.run([f'{TOOLS}/crema', 'expand', 'models/ssd/train_val.prototxt'], cwd=TOP,
                              capture_output=True, text=True, check=True).stdout
    theirs = layers_of(text_format.Parse(expanded, caffe_pb2.NetParameter()))
    assert set(ours) - {'data'} <= set(theirs)
    assert {layer.type for name, layer in theirs.items() if name not in ours} <= {
        'AnnotatedData', 'MultiBoxLoss', 'Softmax', 'Reshape', 'Flatten', 'DetectionOutput', 'DetectionEvaluate'}
    for name, layer in ours.items():
        other = theirs.get(name)
        if name == 'data':
            continue
        assert (layer.type, list(layer.bottom), list(layer.top)) == (other.type, list(other.bottom), list(other.top))
        for field in ('convolution_param', 'pooling_param', 'prior_box_param', 'concat_param', 'permute_param',
                      'norm_param'):
            assert set_fields(getattr(layer, field)) == set_fields(getattr(other, field)), name



BODIES = [
    # body, options, size, layers, top: shape
    (VGGNetBody, {}, 224, 15, 'fc7', (1, 4096)),
    (VGGNetBody, dict(fully_conv=True, reduced=True, dilated=True), 64, 15, 'fc7', (1, 1024, 4, 4)),
    (VGGNetBody, dict(fully_conv=True, dilated=True, dilate_pool4=True), 64, 15, 'fc7', (1, 4096, 8, 8)),
    (VGGNetBody, dict(nopool=True, need_fc=False), 64, 17, 'conv5_3', (1, 512, 4, 4)),
    (ZFNetBody, dict(fully_conv=True, reduced=True, need_fc8=True), 128, 8, 'prob', (1, 1000, 5, 5)),
    (ZFNetBody, dict(fully_conv=True, dilated=True), 128, 7, 'fc7', (1, 4096, 9, 9)),
    (ResNet101Body, {}, 64, 104, 'pool5', (1, 2048, 1, 1)),
    (ResNet101Body, dict(use_pool5=False, use_dilation_conv5=True), 64, 104, 'res5c', (1, 2048, 4, 4)),
    (ResNet152Body, dict(use_global_stats=True), 64, 155, 'pool5', (1, 2048, 1, 1)),
    (InceptionV3Body, dict(output_pred=True), 299, 95, 'softmax_prob', (1, 1008)),
]


@pytest.mark.parametrize('body, options, size, layers, top, shape', BODIES)
def test_bodies(body, options, size, layers, top, shape):
    net = spec_with_data(size)
    assert body(net, 'data', **options) is net
    message = net.to_proto()
    learned = [layer for layer in message.layer if layer.type in ('Convolution', 'InnerProduct')]
    assert len(learned) == layers
    assert top in [name for layer in message.layer for name in layer.top]
    assert shape_of(message, top) == shape


def shape_of(message, top):
    """Extents by the rules of convolution and pooling (Caffe rounds the latter up)."""
    shapes = {}
    for layer in message.layer:
        bottoms = [shapes[name] for name in layer.bottom]
        if layer.type == 'Input':
            shape = tuple(layer.input_param.shape[0].dim)
        elif layer.type == 'InnerProduct':
            shape = (1, layer.inner_product_param.num_output)
        elif layer.type == 'Concat':
            shape = (1, sum(each[1] for each in bottoms), *bottoms[0][2:])
        elif layer.type == 'Convolution':
            p = layer.convolution_param
            dilation = p.dilation[0] if p.dilation else 1
            kernels = (p.kernel_h, p.kernel_w) if p.HasField('kernel_h') else (p.kernel_size[0],) * 2
            pads = (p.pad_h, p.pad_w) if p.HasField('kernel_h') else ((p.pad[0] if p.pad else 0),) * 2
            stride = p.stride_h if p.HasField('kernel_h') else p.stride[0] if p.stride else 1
            shape = (1, p.num_output, *((extent + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
                                        for extent, kernel, pad in zip(bottoms[0][2:], kernels, pads)))
        elif layer.type == 'Pooling' and layer.pooling_param.global_pooling:
            shape = (*bottoms[0][:2], 1, 1)
        elif layer.type == 'Pooling':
            p = layer.pooling_param
            shape = (*bottoms[0][:2], *(-(-(extent + 2 * p.pad - p.kernel_size) // p.stride) + 1
                                        for extent in bottoms[0][2:]))
        else:
            shape = bottoms[0]
            assert layer.type != 'Eltwise' or bottoms[0] == bottoms[1]
        for name in layer.top:
            shapes[name] = shape
    return shapes[top]


def test_batch_norms(tmp_path):
    for options, types, mult in (({}, ['Scale'], 2), (dict(use_scale=False), ['Bias'], 2),
                                 (dict(use_global_stats=True), ['Scale'], 0)):
        net = spec_with_data(9)
        ConvBNLayer(net, 'data', 'c', True, True, 4, [3, 1], [1, 0], 1, lr_mult=2, conv_prefix='p_', **options)
        layers = net.to_proto().layer
        assert [layer.type for layer in layers[1:]] == ['Convolution', 'BatchNorm', *types, 'ReLU']
        assert [layer.name for layer in layers[1:3]] == ['p_c', 'c_bn'] and layers[-1].name == 'p_c_relu'
        assert [spec.lr_mult for spec in layers[2].param] == [0, 0, 0] and layers[3].param[0].lr_mult == mult
        assert layers[1].convolution_param.kernel_h == 3 and not layers[1].convolution_param.bias_term
        assert abs(layers[2].batch_norm_param.eps - 0.001) < 1e-9
        assert shapes_of(net, tmp_path)['p_c'] == (1, 4, 9, 9)


def test_frozen_layers_and_heads(tmp_path):
    net = spec_with_data(32)
    VGGNetBody(net, 'data', need_fc=False, freeze_layers=['conv1_1'])
    tops = CreateMultiBoxHead(net, num_classes=3, from_layers=['conv2_2', 'conv3_3'], min_sizes=[[4, 8], 16],
                              max_sizes=[[6, 12], []], aspect_ratios=[[2], []], inter_layer_depth=[8, 0],
                              use_objectness=True, img_width=32, img_height=16, flip=False, share_location=False)
    assert len(tops) == 4
    layers = layers_of(net.to_proto())
    assert [spec.lr_mult for spec in layers['conv1_1'].param] == [0, 0]
    assert [spec.lr_mult for spec in layers['conv1_2'].param] == [1, 2]
    assert layers['conv2_2_inter_mbox_priorbox'].prior_box_param.img_h == 16
    shapes = shapes_of(net, tmp_path)
    boxes = 16 * 16 * 6 + 8 * 8 * 1
    assert shapes['mbox_priorbox'] == (1, 2, boxes * 4) and shapes['mbox_conf'] == (1, boxes * 3)
    assert shapes['mbox_loc'] == (1, boxes * 4 * 3) and shapes['mbox_objectness'] == (1, boxes * 2)


def test_data_layer():
    net = crema.NetSpec()
    net.data, net.label = CreateAnnotatedDataLayer('some_lmdb', 4, train=False, anno_type=None,
                                                   transform_param=dict(mean_value=[104, 117, 123]))
    layer = net.to_proto().layer[0]
    assert (layer.type, layer.name, list(layer.top)) == ('AnnotatedData', 'data', ['data', 'label'])
    assert layer.include[0].phase == crema.TEST and layer.data_param.backend == P.Data.LMDB
    assert len(layer.annotated_data_param.batch_sampler) == 1
    assert len(CreateAnnotatedDataLayer('some_lmdb', output_label=False).fn.tops) == 1


@pytest.mark.parametrize('options, message', [
    (dict(num_classes=[]), 'num_classes'), (dict(min_sizes=[1, 2]), 'min_sizes 2'), (dict(steps=[1, 2]), 'steps 2'),
    (dict(max_sizes=[[1, 2]]), 'max_sizes 2'), (dict(data_layer='other'), "no layer 'other'")])
def test_mistakes(options, message):
    net = spec_with_data(32)
    with pytest.raises(ValueError, match=message):
        CreateMultiBoxHead(net, **{**dict(num_classes=2, from_layers=['data'], min_sizes=[4]), **options})
    with pytest.raises(ValueError):
        UnpackVariable([1, 2, 3], 2)
    assert UnpackVariable([1], 2) == UnpackVariable(1, 2) == [1, 1]
