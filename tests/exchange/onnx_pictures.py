"""Models that prepare pictures themselves (`crema export -preprocess`): for preparations of all kinds, ONNX Runtime gets a picture
as bytes, and must find the classes that `crema classify` finds in the same file.

    onnx_pictures.py BUILD
"""
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

# What the net's file says of its input; its channels; settings of the export. The picture has 97x61 pixels.
ROWS = [
    ("channels: GRAY resize_height: 32 resize_width: 32 transform_param { scale: 0.00390625 }", 1, "inside 17"),
    ("channels: BGR resize_height: 36 resize_width: 44 transform_param { crop_size: 32 mean_value: [104, 117, 123] scale: 0.02 }",
     3, "inside 11"),
    ("channels: RGB resize_height: 33 resize_width: 40 transform_param { mean_value: 120 }", 3, "inside 18"),
    ("channels: BGR short_side: 40 transform_param { crop_size: 32 mean_value: [104, 117, 123] scale: 0.02 }", 3, "inside 13"),
    ("channels: RGB short_side: 40 transform_param { crop_size: 32 scale: 0.01 }", 3, "inside 21"),
    ("channels: BGR transform_param { resize_param { prob: 1 resize_mode: WARP height: 32 width: 32 interp_mode: LINEAR } "
     "mean_value: [104, 117, 123] }", 3, "inside 17"),
    ("channels: BGR resize_height: 61 resize_width: 97 transform_param { crop_size: 32 mean_file: \"mean.binaryproto\" }", 3,
     "resized 17"),
    ("channels: RGB resize_height: 32 resize_width: 32 transform_param { gray: RGB mean_value: 100 }", 1, "inside 17"),
]

LAYERS = """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 8 kernel_size: 5 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip" inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layer { name: "row" type: "Reshape" bottom: "ip" top: "row" reshape_param { shape { dim: 0 dim: -1 dim: 1 dim: 1 } } }
layer { name: "norm" type: "MVN" bottom: "row" top: "scores" mvn_param { across_channels: true } }
layer { name: "prob" type: "Softmax" bottom: "scores" top: "prob" }
"""
DUMMY = """
layer { name: "data" type: "DummyData" top: "data" top: "label"
        dummy_data_param { shape { dim: 1 dim: %d dim: 32 dim: 32 } shape { dim: 1 } } }
%s
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "label" top: "loss" }
"""


def picture():
    """Smooth colours: neighbouring pixels differ little, so that the rounding of a resized pixel changes little, too."""
    rows, columns = numpy.mgrid[0:61, 0:97]
    planes = [128 + 100 * numpy.sin(rows / (7 + i) + i) * numpy.cos(columns / (11 - i)) for i in range(3)]
    return numpy.stack(planes, 2).round().astype(numpy.uint8)


def mean_image():
    """A BlobProto of 3x61x97."""
    values = (picture()[:, :, ::-1].transpose(2, 0, 1).astype(numpy.float32) / 2).tobytes()
    length, data = len(values), b"\x08\x01\x10\x03\x18\x3d\x20\x61\x2a"
    while length > 127:
        data, length = data + bytes([length & 127 | 128]), length >> 7
    return data + bytes([length]) + values


def found_by_classify(text):
    """{class: probability} of a line such as "photo.ppm  0.5 3  0.5 1"."""
    words = text.split()[1:]
    return {int(number): float(share) for share, number in zip(words[::2], words[1::2])}


def difference(build, folder, preparation, channels, setting):
    def call(*words):
        return subprocess.run([f"{build}/tools/crema", *words], cwd=folder, check=True, capture_output=True, text=True).stdout

    (folder / "train.prototxt").write_text(DUMMY % (channels, LAYERS))
    (folder / "solver.prototxt").write_text(
        'net: "train.prototxt" base_lr: 0 lr_policy: "fixed" max_iter: 1 random_seed: 1 snapshot_prefix: "a"')
    call("train", "-solver", "solver.prototxt")
    (folder / "net.prototxt").write_text(
        f'# crema: input {{ name: "data" {preparation} }}\n'
        f'layer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ dim: 1 dim: {channels} dim: 32 dim: 32 }} }} }}\n'
        + LAYERS)
    net = ["-model", "net.prototxt", "-weights", "a_iter_1.caffemodel"]
    preprocess, opset = setting.split()
    # Verification compares data/prepared and all other blobs for pictures that need no resizing.
    call("export", *net, "-output", "net.onnx", "-preprocess", preprocess, "-opset", opset, "-python", sys.executable)
    model = onnx.load(folder / "net.onnx")
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    session = onnxruntime.InferenceSession(str(folder / "net.onnx"))
    pixels = picture()
    given = session.get_inputs()[0].shape[3]
    if given == 1:  # as the decoder makes them grey
        pixels = (pixels @ numpy.array([0.299, 0.587, 0.114])).round().astype(numpy.uint8)[:, :, None]
    probabilities = session.run(["prob"], {"data": pixels[None]})[0].reshape(-1)
    expected = found_by_classify(call("classify", *net, "-top", "6", "photo.ppm"))
    return max(abs(probabilities[number] - share) for number, share in expected.items())


def main():
    worst = 0
    for preparation, channels, setting in ROWS:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            pixels = picture()
            (folder / "photo.ppm").write_bytes(b"P6 97 61 255\n" + pixels.tobytes())
            (folder / "mean.binaryproto").write_bytes(mean_image())
            found = difference(pathlib.Path(sys.argv[1]).resolve(), folder, preparation, channels, setting)
        worst = max(worst, found)
        print(f"{found:.1e} {setting}: {preparation}")
    print(f"{len(ROWS)} preparations; probabilities differ by at most {worst:.1e}")
    return 0 if worst < 5e-3 else 1


sys.exit(main())
