#!/usr/bin/env python3
"""Holds `crema convert_weights` against PyTorch: random weights and statistics of torchvision's nets, converted, must give the
scores that PyTorch gives for the same pixels, and both forms of torch.save the same file; converted back, they must be the
state_dict that they came from. Not part of the suite: needs torch,
torchvision, safetensors and h5py.

    python tests/weights/compare_torch.py [build/tools/crema] [resnet18 vgg16 ...]      # from the top of the repository
"""
import copy
import filecmp
import os
import subprocess
import sys
import tempfile

import h5py
import numpy
import torch
import torchvision
from safetensors.torch import load_file, save_file

# Name, folder of models/, settings, layer of the scores, allowed difference as a share of how much the scores of two images
# differ.
VGG_MEANS = ["-set", "mean=[103.53, 116.28, 123.675]"]
ROWS = {
    "alexnet": ("alexnet_torchvision", [], "fc8", 1e-4),
    "resnet18": ("resnet", ["-set", "depth=18"], "fc1000", 1e-4),
    "resnet50": ("resnet", ["-set", "depth=50"], "fc1000", 1e-4),
    "resnet101": ("resnet", ["-set", "depth=101"], "fc1000", 1e-4),
    "mobilenet_v2": ("mobilenet_v2", [], "fc7", 1e-4),
    "vgg16": ("vgg", VGG_MEANS, "fc8", 1e-4),
    "vgg11_bn": ("vgg", ["-set", "depth=11", "-set", "bn=true"] + VGG_MEANS, "fc8", 1e-4),
    "squeezenet1_1": ("squeezenet", [], "pool10", 1e-4),
    "densenet121": ("densenet", [], "fc6", 1e-4),
    "shufflenet_v2_x1_0": ("shufflenet_v2", [], "fc6", 1e-4),
    "mobilenet_v3_large": ("mobilenet_v3", [], "fc2", 1e-4),
    "efficientnet_b0": ("efficientnet", [], "fc10", 1e-4),
    "convnext_tiny": ("convnext", [], "head", 1e-4),
    "inception_v3": ("inception_v3", [], "logits", 1e-4),
    # A key's bias changes no attention and is not kept: it is 0.
    "vit_b_16": ("vit", ["-set", "width=768"], "head", 1e-4),
    # With the authors' means the border of the image differs.
    "vgg11": ("vgg", ["-set", "depth=11"], "fc8", 2e-2),
}


def transform_of(expanded):
    """Mean (B, G, R) and scale of the net's data layer, from its text."""
    mean, scale = [], 1.0
    for line in expanded.split("transform_param")[1].split("}")[0].splitlines():
        key, _, value = line.strip().partition(":")
        if key == "mean_value":
            mean = [float(number) for number in value.strip(" []").split(",")]
        elif key == "scale":
            scale = float(value)
    return numpy.broadcast_to(numpy.array(mean).reshape(1, -1, 1, 1), (1, 3, 1, 1)), scale


def randomize(model, images):
    """Weights, and statistics that fit them: those of the images themselves, so that scores depend on what is in an image."""
    torch.manual_seed(1)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.0)
            torch.nn.init.uniform_(module.bias, -0.3, 0.3)
            module.momentum = 1.0
        elif getattr(module, "bias", None) is not None:
            torch.nn.init.uniform_(module.bias, -0.1, 0.1)
        if isinstance(module, torch.nn.Linear) and not module.weight.any():
            torch.nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, torch.nn.MultiheadAttention):
            torch.nn.init.uniform_(module.in_proj_bias, -0.1, 0.1)
    with torch.no_grad():
        model.train()(images)
    model.eval()


def call_back(call, net, weights, settings):
    call("convert_weights", "-model", net, "-weights", weights, *settings, "-output", weights + ".safetensors")
    return weights + ".safetensors"


def is_same(model, name, back):
    """Whether these tensors are those of the model, but for its counters and the rounding of the units of images."""
    model = copy.deepcopy(model)
    if hasattr(model, "AuxLogits"):  # as inception_v3(aux_logits=False)
        model.AuxLogits = None
    state = {key: value.clone() for key, value in model.state_dict().items() if not key.endswith("num_batches_tracked")}
    model.load_state_dict(back, strict=True)
    worst = 0
    for key, value in state.items():
        if key.endswith("in_proj_bias"):  # the keys' bias, which changes nothing
            value[len(value) // 3:2 * len(value) // 3] = 0
        worst = max(worst, ((back[key] - value).abs().max() / value.abs().max()).item())
    print(f"{name:14s} {len(state)} tensors come back within {worst:.1e} of their largest value"
          f"{'' if worst < 1e-6 else '  FAILED'}", flush=True)
    return worst < 1e-6


def compare(crema, name):
    folder, settings, scores, allowed = ROWS[name]
    net = f"models/{folder}/train_val.prototxt"
    inception = name == "inception_v3"
    model = getattr(torchvision.models, name)(weights=None, **({"init_weights": False} if inception else {}))
    side = 299 if inception else 224
    with tempfile.TemporaryDirectory() as out:
        at = lambda file: os.path.join(out, file)
        call = lambda *words: subprocess.run([crema, *words], check=True, capture_output=True, text=True).stdout
        pixels = numpy.random.default_rng(2).integers(0, 256, (2, 3, side, side)).astype(numpy.float64)  # R, G, B
        deviation = torch.tensor([0.5] * 3 if inception else [0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)
        mean = torch.tensor([0.5] * 3 if inception else [0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)
        images = (torch.from_numpy(pixels).float() / 255 - mean) / deviation
        randomize(model, images)
        with torch.no_grad():
            single = model(images).numpy()
            expected = model.double()(images.double()).numpy()
            model.float()
        save_file(model.state_dict(), at("w.safetensors"))
        call("convert_weights", "-model", net, "-from", at("w.safetensors"), *settings)
        for form in ("zip", "legacy"):
            torch.save(model.state_dict(), at("w.pth"), _use_new_zipfile_serialization=form == "zip")
            call("convert_weights", "-model", net, "-from", at("w.pth"), "-output", at("pth.caffemodel"), *settings)
            if not filecmp.cmp(at("w.caffemodel"), at("pth.caffemodel"), shallow=False):
                print(f"{name}: the {form} .pth gives other weights than safetensors  FAILED", flush=True)
                return False
        if not is_same(model, name, load_file(call_back(call, net, at("w.caffemodel"), settings))):
            return False
        own_mean, scale = transform_of(call("expand", net, *settings))
        with h5py.File(at("in.h5"), "w") as file:
            file["data"] = ((pixels[:, ::-1] - own_mean) * scale).astype(numpy.float32)
        with open(at("list.txt"), "w") as file:
            file.write(at("in.h5") + "\n")
        call("deploy", "-model", net, *settings, "-output", at("deploy.prototxt"))
        # The images from HDF5 instead of the Input layer; the scores go to HDF5.
        text = open(at("deploy.prototxt")).read()
        start = text.index("layer {")
        end = text.index("layer {", start + 1)
        source = f'layer {{ name: "data" type: "HDF5Data" top: "data" hdf5_data_param {{ source: "{at("list.txt")}" batch_size: 2 }} }}\n'
        sink = (f'layer {{ name: "sink" type: "HDF5Output" bottom: "{scores}" bottom: "{scores}" '
                f'hdf5_output_param {{ file_name: "{at("out.h5")}" }} }}\n')
        with open(at("net.prototxt"), "w") as file:
            file.write(text[:start] + source + text[end:] + sink)
        call("test", "-model", at("net.prototxt"), "-weights", at("w.caffemodel"), "-iterations", "1")
        with h5py.File(at("out.h5")) as file:
            found = file["data"][:].reshape(expected.shape)
    spread = abs(expected[0] - expected[1]).max()
    difference = abs(found - expected).max() / spread
    # The error of float32 in PyTorch itself: deep nets with untrained weights amplify it.
    rounding = abs(single - expected).max() / spread
    ok = difference <= max(allowed, 4 * rounding)
    print(f"{name:14s} difference from float64: {difference:.1e}, PyTorch's float32: {rounding:.1e}, allowed: {allowed:.0e} or 4 times "
          f"that; all as shares of what two images differ by, {spread:.1e}"
          f"{'' if ok else '  FAILED'}", flush=True)
    return ok


if __name__ == "__main__":
    arguments = sys.argv[1:]
    program = arguments.pop(0) if arguments and arguments[0] not in ROWS else "build/tools/crema"
    sys.exit(0 if all([compare(program, name) for name in arguments or ROWS]) else 1)
