"""Bodies and heads of detection nets for a NetSpec, under the names of SSD's caffe.model_libs.

    from caffe.model_libs import *

    net = caffe.NetSpec()
    net.data, net.label = CreateAnnotatedDataLayer('train_lmdb', batch_size=8)
    VGGNetBody(net, from_layer='data', fully_conv=True, reduced=True, dilated=True, dropout=False)
    mbox = CreateMultiBoxHead(net, data_layer='data', from_layers=['conv4_3', 'fc7'], num_classes=21,
                              min_sizes=[30, 60], use_batchnorm=False)

Each function adds layers to `net` and names them as SSD does, so that its weights fit.
"""
import os

import crema as caffe

from .net_spec import layers as L
from .net_spec import params as P
from .proto import caffe_pb2

__all__ = [
    'CreateAnnotatedDataLayer', 'CreateMultiBoxHead', 'ConvBNLayer', 'InceptionTower', 'InceptionV3Body', 'L', 'P',
    'ResBody', 'ResNet101Body', 'ResNet152Body', 'UnpackVariable', 'VGGNetBody', 'ZFNetBody', 'caffe', 'caffe_pb2',
    'check_if_exist', 'make_if_not_exist', 'os'
]

_FIXED = dict(lr_mult=0, decay_mult=0)


def check_if_exist(path):
    """Whether there is such a file or folder."""
    return os.path.exists(path)


def make_if_not_exist(path):
    """Makes a folder and its parents, unless it exists."""
    os.makedirs(path, exist_ok=True)


def UnpackVariable(var, num):
    """A list of `num` values: `var` itself, or its only value repeated."""
    if not isinstance(var, list):
        return [var] * num
    if len(var) not in (1, num):
        raise ValueError(f'{var}: expected one value or {num}')
    return var if len(var) == num else var * num


# --- layers of bodies ---

def _learned(lr_mult=1):
    """Weights and bias as SSD's bodies have them."""
    return dict(param=[dict(lr_mult=lr_mult, decay_mult=1), dict(lr_mult=2 * lr_mult, decay_mult=0)],
                weight_filler=dict(type='xavier'), bias_filler=dict(type='constant', value=0))


def _conv(net, name, bottom, **fields):
    net[name] = L.Convolution(net[bottom], **fields)
    return name


def _relu(net, name, bottom):
    net[name] = L.ReLU(net[bottom], in_place=True)
    return name


def _conv_relu(net, number, bottom, num_output, **fields):
    """The layers conv<number> and relu<number> of VGG and ZF."""
    _conv(net, f'conv{number}', bottom, num_output=num_output, **fields, **_learned())
    return _relu(net, f'relu{number}', f'conv{number}')


def ConvBNLayer(net, from_layer, out_layer, use_bn, use_relu, num_output, kernel_size, pad, stride, dilation=1,
                use_scale=True, lr_mult=1, conv_prefix='', conv_postfix='', bn_prefix='', bn_postfix='_bn',
                scale_prefix='', scale_postfix='_scale', bias_prefix='', bias_postfix='_bias', **bn_params):
    """Adds a convolution; with use_bn its BatchNorm and a Scale (or, without use_scale, a Bias); with use_relu a ReLU.

    kernel_size, pad and stride are numbers or lists of height and width. bn_params: eps, moving_average_fraction and
    use_global_stats, which also freezes scale and bias.
    """
    conv = f'{conv_prefix}{out_layer}{conv_postfix}'
    sizes = {name: UnpackVariable(value, 2)
             for name, value in (('kernel', kernel_size), ('pad', pad), ('stride', stride))}
    if sizes['kernel'][0] == sizes['kernel'][1]:
        window = dict(kernel_size=sizes['kernel'][0], pad=sizes['pad'][0], stride=sizes['stride'][0])
    else:
        window = {f'{name}_{axis}': value for name, pair in sizes.items() for axis, value in zip('hw', pair)}
    if use_bn:
        fields = dict(param=[dict(lr_mult=lr_mult, decay_mult=1)], weight_filler=dict(type='gaussian', std=0.01),
                      bias_term=False)
    else:
        fields = _learned(lr_mult)
    _conv(net, conv, from_layer, num_output=num_output, **window, **fields)
    if dilation > 1:
        net.update(conv, dict(dilation=dilation))
    if use_bn:
        frozen = bn_params.get('use_global_stats', False)
        statistics = (dict(use_global_stats=frozen) if frozen else
                      dict(moving_average_fraction=bn_params.get('moving_average_fraction', 0.999)))
        norm, learned = f'{bn_prefix}{out_layer}{bn_postfix}', dict(lr_mult=0 if frozen else lr_mult, decay_mult=0)
        net[norm] = L.BatchNorm(net[conv], in_place=True, param=[_FIXED] * 3, eps=bn_params.get('eps', 0.001),
                                **statistics)
        if use_scale:
            net[f'{scale_prefix}{out_layer}{scale_postfix}'] = L.Scale(
                net[norm], in_place=True, bias_term=True, param=[learned] * 2, filler=dict(type='constant', value=1.0),
                bias_filler=dict(type='constant', value=0.0))
        else:
            net[f'{bias_prefix}{out_layer}{bias_postfix}'] = L.Bias(
                net[norm], in_place=True, param=[learned], filler=dict(type='constant', value=0.0))
    if use_relu:
        _relu(net, f'{conv}_relu', conv)


def ResBody(net, from_layer, block_name, out2a, out2b, out2c, stride, use_branch1, dilation=1, **bn_param):
    """Adds a bottleneck block of ResNet, res<block_name>: 1x1, 3x3 and 1x1 convolutions, and a shortcut that is a
    convolution with use_branch1.
    """
    def branch(bottom, name, num_output, **fields):
        fields = dict(dict(kernel_size=1, pad=0, stride=1, use_relu=True), **fields, **bn_param)
        ConvBNLayer(net, bottom, name, use_bn=True, num_output=num_output, conv_prefix=f'res{block_name}_',
                    bn_prefix=f'bn{block_name}_', bn_postfix='', scale_prefix=f'scale{block_name}_', scale_postfix='',
                    **fields)
        return f'res{block_name}_{name}'

    shortcut = branch(from_layer, 'branch1', out2c, stride=stride, use_relu=False) if use_branch1 else from_layer
    top = branch(from_layer, 'branch2a', out2a, stride=stride)
    top = branch(top, 'branch2b', out2b, kernel_size=3, pad=dilation, dilation=dilation)
    top = branch(top, 'branch2c', out2c, use_relu=False)
    net[f'res{block_name}'] = L.Eltwise(net[shortcut], net[top])
    _relu(net, f'res{block_name}_relu', f'res{block_name}')


def InceptionTower(net, from_layer, tower_name, layer_params, **bn_param):
    """Adds layers one after the other, <tower_name>/<name>: poolings if the name has "pool", otherwise convolutions.
    Returns the last top.
    """
    for param in layer_params:
        fields = dict(param)
        name = f'{tower_name}/{fields.pop("name")}'
        if 'pool' in name:
            net[name] = L.Pooling(net[from_layer], **fields)
        else:
            ConvBNLayer(net, from_layer, name, use_bn=True, use_relu=True, use_scale=False, **{**fields, **bn_param})
        from_layer = name
    return net[from_layer]


def CreateAnnotatedDataLayer(source, batch_size=32, backend=P.Data.LMDB, output_label=True, train=True,
                             label_map_file='', anno_type=None, transform_param={}, batch_sampler=[{}]):
    """A layer AnnotatedData named "data". Returns its tops, data and, with output_label, label."""
    annotated = dict(label_map_file=label_map_file, batch_sampler=batch_sampler)
    if anno_type is not None:
        annotated['anno_type'] = anno_type
    return L.AnnotatedData(name='data', annotated_data_param=annotated,
                           data_param=dict(batch_size=batch_size, backend=backend, source=source),
                           include=dict(phase=caffe_pb2.Phase.Value('TRAIN' if train else 'TEST')),
                           transform_param=transform_param, ntop=2 if output_label else 1)


# --- bodies ---

def _check_bottom(net, from_layer):
    if from_layer not in net.keys():
        raise ValueError(f'the net has no layer {from_layer!r}')


def _classifier(net, bottom, fully_conv, reduced, dropout, window):
    """fc6 and fc7, with ReLU and Dropout."""
    for number, fields in ((6, window), (7, dict(kernel_size=1))):
        name = f'fc{number}'
        if fully_conv:
            _conv(net, name, bottom, num_output=1024 if reduced else 4096, **fields, **_learned())
        else:
            net[name] = L.InnerProduct(net[bottom], num_output=4096)
        bottom = _relu(net, f'relu{number}', name)
        if dropout:
            net[f'drop{number}'] = L.Dropout(net[bottom], dropout_ratio=0.5, in_place=True)


def _freeze(net, names):
    fields = dict(_learned(), param=[_FIXED] * 2)
    for name in set(names) & set(net.keys()):
        net.update(name, fields)


def ZFNetBody(net, from_layer, need_fc=True, fully_conv=False, reduced=False, dilated=False, dropout=True,
              need_fc8=False, freeze_layers=[]):
    """Adds the net of Zeiler and Fergus, conv1 to fc7; with need_fc8 its classes and their probabilities."""
    _check_bottom(net, from_layer)
    bottom = from_layer
    for number, num_output, fields in ((1, 96, dict(kernel_size=7, pad=3)), (2, 256, dict(kernel_size=5, pad=2))):
        bottom = _conv_relu(net, number, bottom, num_output, stride=2, **fields)
        net[f'norm{number}'] = L.LRN(net[bottom], local_size=3, alpha=0.00005, beta=0.75,
                                     norm_region=P.LRN.WITHIN_CHANNEL, engine=P.LRN.CAFFE)
        bottom = f'pool{number}'
        net[bottom] = L.Pooling(net[f'norm{number}'], pool=P.Pooling.MAX, pad=1, kernel_size=3, stride=2)
    for number, num_output in ((3, 384), (4, 384), (5, 256)):
        bottom = _conv_relu(net, number, bottom, num_output, pad=1, kernel_size=3)
    if need_fc:
        net.pool5 = L.Pooling(net[bottom], pool=P.Pooling.MAX, pad=1, kernel_size=3, stride=1 if dilated else 2)
        window = (dict(pad=5, kernel_size=3, dilation=5) if dilated and reduced else
                  dict(pad=5, kernel_size=6, dilation=2) if dilated else
                  dict(pad=2, kernel_size=3, dilation=2) if reduced else dict(pad=2, kernel_size=6))
        _classifier(net, 'pool5', fully_conv, reduced, dropout, window)
    if need_fc8:
        bottom = net.keys()[-1]
        net.fc8 = (L.Convolution(net[bottom], num_output=1000, kernel_size=1, **_learned()) if fully_conv else
                   L.InnerProduct(net[bottom], num_output=1000))
        net.prob = L.Softmax(net.fc8)
    _freeze(net, freeze_layers)
    return net


def VGGNetBody(net, from_layer, need_fc=True, fully_conv=False, reduced=False, dilated=False, nopool=False,
               dropout=True, freeze_layers=[], dilate_pool4=False):
    """Adds VGG-16, conv1_1 to fc7.

    fully_conv: fc6 and fc7 are convolutions; reduced: of 1024 channels, as in DeepLab; dilated: pool5 has stride 1.
    nopool: convolutions of stride 2 replace poolings. freeze_layers: names of frozen layers.
    """
    _check_bottom(net, from_layer)
    bottom, dilation = from_layer, 1
    for stage, (count, num_output) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
        dilations = dict(pad=dilation, dilation=dilation) if stage == 5 else dict(pad=1)
        for number in range(1, count + 1):
            bottom = _conv_relu(net, f'{stage}_{number}', bottom, num_output, kernel_size=3, **dilations)
        if stage == 5 and not need_fc:
            break
        keeps_size = dilated if stage == 5 else dilate_pool4 and stage == 4 and not nopool
        if nopool:
            bottom = _conv(net, f'conv{stage}_{count + 1}', bottom, num_output=num_output, pad=1, kernel_size=3,
                           stride=1 if keeps_size else 2, **_learned())
            continue
        window = dict(kernel_size=3, stride=1, pad=1) if keeps_size else dict(kernel_size=2, stride=2)
        net[f'pool{stage}'] = L.Pooling(net[bottom], pool=P.Pooling.MAX, **window)
        bottom = f'pool{stage}'
        if stage == 4 and keeps_size:
            dilation = 2
    if need_fc:
        size = 3 if reduced else 7
        dilation *= (6 if reduced else 2) if dilated else (3 if reduced else 1)
        _classifier(net, bottom, fully_conv, reduced, dropout,
                    dict(pad=dilation * (size - 1) // 2, kernel_size=size, dilation=dilation))
    _freeze(net, freeze_layers)
    return net


def _resnet(net, from_layer, blocks, use_pool5, use_dilation_conv5, bn_param):
    """blocks: the names of each stage's blocks."""
    ConvBNLayer(net, from_layer, 'conv1', use_bn=True, use_relu=True, num_output=64, kernel_size=7, pad=3, stride=2,
                bn_prefix='bn_', bn_postfix='', scale_prefix='scale_', scale_postfix='', **bn_param)
    net.pool1 = L.Pooling(net.conv1, pool=P.Pooling.MAX, kernel_size=3, stride=2)
    bottom = 'pool1'
    for stage, names in enumerate(blocks, 2):
        channels, dilated = 64 * 2**(stage - 2), stage == 5 and use_dilation_conv5
        for name in names:
            first = name == names[0]
            stride = 2 if first and stage > 2 and not dilated else 1
            ResBody(net, bottom, f'{stage}{name}', out2a=channels, out2b=channels, out2c=4 * channels, stride=stride,
                    use_branch1=first, dilation=2 if dilated else 1, **bn_param)
            bottom = f'res{stage}{name}'
    if use_pool5:
        net.pool5 = L.Pooling(net[bottom], pool=P.Pooling.AVE, global_pooling=True)
    return net


def _blocks(conv3, conv4):
    return ['abc', ['a', *(f'b{i}' for i in range(1, conv3))], ['a', *(f'b{i}' for i in range(1, conv4))], 'abc']


def ResNet101Body(net, from_layer, use_pool5=True, use_dilation_conv5=False, **bn_param):
    """Adds ResNet-101, conv1 to res5c; with use_pool5 also the global pooling."""
    return _resnet(net, from_layer, _blocks(4, 23), use_pool5, use_dilation_conv5, bn_param)


def ResNet152Body(net, from_layer, use_pool5=True, use_dilation_conv5=False, **bn_param):
    """Adds ResNet-152, conv1 to res5c; with use_pool5 also the global pooling."""
    return _resnet(net, from_layer, _blocks(8, 36), use_pool5, use_dilation_conv5, bn_param)


def _layer(name, num_output, kernel, stride=1, pad=None):
    """One layer of a tower: a convolution that keeps the size unless it has a stride."""
    if isinstance(kernel, tuple):
        return dict(name=name, num_output=num_output, kernel_size=list(kernel), pad=[k // 2 for k in kernel],
                    stride=[stride, stride])
    pad = pad if pad is not None else kernel // 2 if stride == 1 else 0
    return dict(name=name, num_output=num_output, kernel_size=kernel, pad=pad, stride=stride)


def _numbered(*convolutions):
    """(num_output, kernel[, stride]) each, named conv, conv_1, conv_2, ..."""
    return [_layer(f'conv_{i}' if i else 'conv', *fields) for i, fields in enumerate(convolutions)]


def _pool(kind, stride=1):
    return dict(name='pool', pool=kind, kernel_size=3, pad=1 if stride == 1 else 0, stride=stride)


def _mixed(net, bottom, name, towers, bn_param):
    """Parallel towers: (suffix of the name, layers) each, or a function that makes one. Returns the join's name."""
    tops = [
        tower(name) if callable(tower) else InceptionTower(net, bottom, f'{name}{tower[0]}', tower[1], **bn_param)
        for tower in towers
    ]
    net[f'{name}/join'] = L.Concat(*tops, axis=1)
    return f'{name}/join'


def InceptionV3Body(net, from_layer, output_pred=False, **bn_param):
    """Adds Inception v3, conv to mixed_10; with output_pred its 1008 classes."""
    bottom = from_layer
    for name, num_output, kernel, pad, stride in (
            ('conv', 32, 3, 0, 2), ('conv_1', 32, 3, 0, 1), ('conv_2', 64, 3, 1, 1), ('pool', 0, 3, 0, 2),
            ('conv_3', 80, 1, 0, 1), ('conv_4', 192, 3, 0, 1), ('pool_1', 0, 3, 0, 2)):
        if num_output:
            ConvBNLayer(net, bottom, name, use_bn=True, use_relu=True, num_output=num_output, kernel_size=kernel,
                        pad=pad, stride=stride, use_scale=False, **bn_param)
        else:
            net[name] = L.Pooling(net[bottom], pool=P.Pooling.MAX, kernel_size=kernel, stride=stride, pad=pad)
        bottom = name
    average, maximum = P.Pooling.AVE, P.Pooling.MAX
    for name, pooled in (('mixed', 32), ('mixed_1', 64), ('mixed_2', 64)):
        bottom = _mixed(net, bottom, name, [
            ('', _numbered((64, 1))), ('/tower', _numbered((48, 1), (64, 5))),
            ('/tower_1', _numbered((64, 1), (96, 3), (96, 3))), ('/tower_2', [_pool(average), *_numbered((pooled, 1))])
        ], bn_param)
    bottom = _mixed(net, bottom, 'mixed_3', [
        ('', _numbered((384, 3, 2))), ('/tower', _numbered((64, 1), (96, 3), (96, 3, 2))), ('', [_pool(maximum, 2)])
    ], bn_param)
    for number, n in ((4, 128), (5, 160), (6, 160), (7, 192)):
        bottom = _mixed(net, bottom, f'mixed_{number}', [
            ('', _numbered((192, 1))), ('/tower', _numbered((n, 1), (n, (1, 7)), (192, (7, 1)))),
            ('/tower_1', _numbered((n, 1), (n, (7, 1)), (n, (1, 7)), (n, (7, 1)), (192, (1, 7)))),
            ('/tower_2', [_pool(average), *_numbered((192, 1))])
        ], bn_param)
    bottom = _mixed(net, bottom, 'mixed_8', [
        ('/tower', _numbered((192, 1), (320, 3, 2))),
        ('/tower_1', _numbered((192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2))), ('', [_pool(maximum, 2)])
    ], bn_param)
    for number, kind in ((9, average), (10, maximum)):
        source = bottom

        def forked(tower, layers):
            """Two convolutions, 1x3 and 3x1, of one top."""
            def make(name):
                InceptionTower(net, source, f'{name}{tower}', layers, **bn_param)
                top, mixed = f'{name}{tower}/{layers[-1]["name"]}', f'{name}{tower}/mixed'
                tops = [InceptionTower(net, top, mixed, [one], **bn_param)
                        for one in _numbered((384, (1, 3)), (384, (3, 1)))]
                net[mixed] = L.Concat(*tops, axis=1)
                return net[mixed]

            return make

        bottom = _mixed(net, bottom, f'mixed_{number}', [
            ('', _numbered((320, 1))), forked('/tower', _numbered((384, 1))),
            forked('/tower_1', _numbered((448, 1), (384, 3))), ('/tower_2', [_pool(kind), *_numbered((192, 1))])
        ], bn_param)
    if output_pred:
        net.pool_3 = L.Pooling(net[bottom], pool=average, kernel_size=8, pad=0, stride=1)
        net.softmax = L.InnerProduct(net.pool_3, num_output=1008)
        net.softmax_prob = L.Softmax(net.softmax)
    return net


# --- heads ---

def _as_list(value):
    return value if isinstance(value, list) else [value]


def CreateMultiBoxHead(net, data_layer='data', num_classes=[], from_layers=[], use_objectness=False, normalizations=[],
                       use_batchnorm=True, lr_mult=1, use_scale=True, min_sizes=[], max_sizes=[], prior_variance=[0.1],
                       aspect_ratios=[], steps=[], img_height=0, img_width=0, share_location=True, flip=True,
                       clip=True, offset=0.5, inter_layer_depth=[], kernel_size=1, pad=0, conf_postfix='',
                       loc_postfix='', **bn_param):
    """Adds SSD's predictions to each of from_layers and joins them.

    Per layer: normalizations (-1: none), inter_layer_depth (channels of a 3x3 convolution before; 0: none), min_sizes,
    max_sizes, aspect_ratios (a number or a list) and steps of the prior boxes.
    Returns the tops mbox_loc, mbox_conf, mbox_priorbox and, with use_objectness, mbox_objectness.
    """
    if not num_classes or num_classes < 1:
        raise ValueError('num_classes must be given, and at least 1')
    _check_bottom(net, data_layer)
    if len(min_sizes) != len(from_layers):
        raise ValueError(f'from_layers has {len(from_layers)} entries, but min_sizes {len(min_sizes)}')
    for name, values in (('normalizations', normalizations), ('max_sizes', max_sizes), ('steps', steps),
                         ('aspect_ratios', aspect_ratios), ('inter_layer_depth', inter_layer_depth)):
        if values and len(values) != len(from_layers):
            raise ValueError(f'from_layers has {len(from_layers)} entries, but {name} {len(values)}')
    parts = dict(loc=[], conf=[], priorbox=[], objectness=[])

    def predict(bottom, kind, postfix, num_output):
        name = f'{bottom}_mbox_{kind}{postfix}'
        ConvBNLayer(net, bottom, name, use_bn=use_batchnorm, use_relu=False, lr_mult=lr_mult, num_output=num_output,
                    kernel_size=kernel_size, pad=pad, stride=1, **bn_param)
        net[f'{name}_perm'] = L.Permute(net[name], order=[0, 2, 3, 1])
        net[f'{name}_flat'] = L.Flatten(net[f'{name}_perm'], axis=1)
        parts[kind].append(net[f'{name}_flat'])

    for i, bottom in enumerate(from_layers):
        if normalizations and normalizations[i] != -1:
            net[f'{bottom}_norm'] = L.Normalize(net[bottom], across_spatial=False, channel_shared=False,
                                                scale_filler=dict(type='constant', value=normalizations[i]))
            bottom = f'{bottom}_norm'
        if inter_layer_depth and inter_layer_depth[i] > 0:
            ConvBNLayer(net, bottom, f'{bottom}_inter', use_bn=use_batchnorm, use_relu=True, lr_mult=lr_mult,
                        num_output=inter_layer_depth[i], kernel_size=3, pad=1, stride=1, **bn_param)
            bottom = f'{bottom}_inter'
        smallest, largest = _as_list(min_sizes[i]), _as_list(max_sizes[i]) if max_sizes else []
        ratios = _as_list(aspect_ratios[i]) if aspect_ratios else []
        if largest and len(largest) != len(smallest):
            raise ValueError(f'{bottom}: min_sizes has {len(smallest)} values, but max_sizes {len(largest)}')
        priors = (1 + bool(largest) + len(ratios) * (2 if flip else 1)) * len(smallest)
        predict(bottom, 'loc', loc_postfix, priors * 4 * (1 if share_location else num_classes))
        predict(bottom, 'conf', conf_postfix, priors * num_classes)
        fields = dict(min_size=smallest, clip=clip, variance=prior_variance, offset=offset)
        if largest:
            fields['max_size'] = largest
        if ratios:
            fields.update(aspect_ratio=ratios, flip=flip)
        if steps and steps[i]:
            fields['step'] = steps[i]
        if img_height and img_width:
            fields.update(dict(img_size=img_height) if img_height == img_width else
                          dict(img_h=img_height, img_w=img_width))
        net[f'{bottom}_mbox_priorbox'] = L.PriorBox(net[bottom], net[data_layer], **fields)
        parts['priorbox'].append(net[f'{bottom}_mbox_priorbox'])
        if use_objectness:
            predict(bottom, 'objectness', '', priors * 2)
    for kind, tops in parts.items():
        if tops:
            net[f'mbox_{kind}'] = L.Concat(*tops, axis=2 if kind == 'priorbox' else 1)
    return [net[f'mbox_{kind}'] for kind, tops in parts.items() if tops]
