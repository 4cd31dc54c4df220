#!/usr/bin/env python3
"""Rewrites an ONNX model of a plain convnet as TensorFlow's operators and converts it to TensorFlow Lite's format:

    python3 tests/bench/to_tflite.py NET.onnx NET.tflite

Images have channels last there. The packages: onnx tensorflow
"""
import sys

import numpy
import onnx
import onnx.numpy_helper
import tensorflow as tf


def padded(x, pads, value=0.0):
    """x with ONNX's padding of an image."""
    if not any(pads):
        return x
    return tf.pad(x, [[0, 0], [pads[0], pads[2]], [pads[1], pads[3]], [0, 0]], constant_values=value)


def window(node):
    settings = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    settings.setdefault("strides", [1, 1])
    settings.setdefault("pads", [0, 0, 0, 0])
    settings.setdefault("dilations", [1, 1])
    return settings


def conv(x, w, bias, s):
    groups = s.get("group", 1)
    kernel = numpy.transpose(w, (2, 3, 1, 0))
    # TensorFlow Lite's own padding is faster than an operator for it.
    same = s["strides"] == [1, 1] and all(
        2 * pad == size - 1 for pad, size in zip(s["pads"], [*w.shape[2:], *w.shape[2:]]))
    x, padding = (x, "SAME") if same else (padded(x, s["pads"]), "VALID")
    if groups > 1 and w.shape[1] == 1:
        y = tf.nn.depthwise_conv2d(x, numpy.transpose(w, (2, 3, 0, 1)), [1, *s["strides"], 1], padding)
    else:
        y = tf.nn.conv2d(x, kernel, s["strides"], padding, dilations=s["dilations"])
    return y if bias is None else tf.nn.bias_add(y, bias)


def pool(x, s, kind):
    extents = [int(n) for n in x.shape[1:3]]
    pads = list(s["pads"])
    if s.get("ceil_mode"):  # as far as the last window reaches
        for i in range(2):
            rest = (extents[i] + pads[i] + pads[i + 2] - s["kernel_shape"][i]) % s["strides"][i]
            pads[i + 2] += (s["strides"][i] - rest) % s["strides"][i]
    if kind == "MAX":
        return tf.nn.max_pool2d(padded(x, pads, -1e30), s["kernel_shape"], s["strides"], "VALID")
    sums = tf.nn.avg_pool2d(padded(x, pads), s["kernel_shape"], s["strides"], "VALID")
    if s.get("count_include_pad") or not any(pads):
        return sums
    with tf.init_scope():  # the part of each window that is inside the image, as a constant
        image = padded(tf.ones([1, *extents, 1]), pads)
        inside = tf.nn.avg_pool2d(image, s["kernel_shape"], s["strides"], "VALID").numpy()
    return sums * (1 / inside)


def computed(node, x, values):
    """The result of an operator on its first input x and the others; images with channels last."""
    s, kind = window(node), node.op_type
    others = [values.get(name) for name in node.input[1:]]
    if kind == "Conv":
        return conv(x, others[0], others[1] if len(others) > 1 else None, s)
    if kind == "Gemm":
        return tf.matmul(x, numpy.ascontiguousarray(others[0].T)) + others[1]
    if kind in ("MaxPool", "AveragePool"):
        return pool(x, s, "MAX" if kind == "MaxPool" else "AVE")
    if kind == "GlobalAveragePool":
        return tf.reduce_mean(x, [1, 2], keepdims=True)
    if kind == "LRN":  # of an odd size
        return tf.nn.local_response_normalization(x, s["size"] // 2, s.get("bias", 1.0), s["alpha"] / s["size"], s["beta"])
    if kind in ("Flatten", "Reshape"):  # in ONNX's order
        return tf.reshape(tf.transpose(x, [0, 3, 1, 2]) if len(x.shape) == 4 else x, [x.shape[0], -1])
    if kind == "Clip":
        return tf.nn.relu6(x)
    if kind == "Concat":
        return tf.concat([x, *others], 3)
    if kind == "Resize":  # to the nearest pixel
        return tf.image.resize(x, [int(n * scale) for n, scale in zip(x.shape[1:3], others[1][2:])], method="nearest")
    if kind == "Slice":
        parts = [slice(None)] * 4
        for first, end, axis in zip(*others[:3]):
            parts[[0, 3, 1, 2][axis]] = slice(int(first), min(int(end), 1 << 30))
        return x[tuple(parts)]
    simple = {"Relu": tf.nn.relu, "Softmax": tf.nn.softmax, "Add": lambda x: x + others[0],
              "Mul": lambda x: x * others[0], "Div": lambda x: x / others[0], "Pow": lambda x: x ** others[0],
              "LeakyRelu": lambda x: tf.nn.leaky_relu(x, s.get("alpha", 0.01))}
    return simple[kind](x)


def main():
    model = onnx.load(sys.argv[1])
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    shape = [one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim]

    @tf.function(input_signature=[tf.TensorSpec([shape[0], *shape[2:], shape[1]])])
    def net(x):
        values = {**constants, model.graph.input[0].name: x}
        for node in model.graph.node:
            values[node.output[0]] = computed(node, values[node.input[0]], values)
        return [values[one.name] for one in model.graph.output]

    converter = tf.lite.TFLiteConverter.from_concrete_functions([net.get_concrete_function()])
    with open(sys.argv[2], "wb") as file:
        file.write(converter.convert())


if __name__ == "__main__":
    main()
