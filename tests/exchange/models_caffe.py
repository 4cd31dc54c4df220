"""Writes the nets of models/ for a reader of Caffe's files and verifies them: models_caffe.py TOOLS PYTHON DIALECT [NAME ...]

As models_onnx.py; PYTHON is one that has OpenCV 4 (pip install opencv-python-headless==4.12.0.88), or ncnn with caffe2ncnn in PATH.
"""
import pathlib
import sys

from models_onnx import TOLERANCE, exported, for_each_net


def main():
    tools, python, dialect, *names = sys.argv[1:]
    tools, python = pathlib.Path(tools).resolve(), str(pathlib.Path(python).absolute())
    return for_each_net(tools, names, lambda flags, path: exported(
        tools, flags, "-to", "caffe", "-dialect", dialect, "-output", f"{path}.prototxt", "-output_weights",
        f"{path}_out.caffemodel", "-python", python, "-tolerance", TOLERANCE), {})


if __name__ == "__main__":
    sys.exit(main())
