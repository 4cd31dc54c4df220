"""Runs the files that caffe_rows wrote in OpenCV's dnn, and compares what they compute with Crema.

caffe_rows.py FOLDER [-v]: prints a line for each row that disagrees, and how many agree; exit code 1 if one
disagrees. Needs OpenCV 4: OpenCV 5 does not read Caffe's files.
"""
import collections
import pathlib
import sys

import cv2
import numpy

from row_files import blobs

# Rows that OpenCV computes in another way, and why. Detections of a DetectionOutput are ordered by score there, and it needs
# keep_top_k and room for it: without, it writes outside of its memory.
KNOWN = {
    "pooling_ave_empty_window": "a window outside of the image",
    "pooling_max_empty_window": "a window outside of the image",
    "pooling_max_kernel_wider_than_image": "a window larger than the image",
    "reshape_scalar": "a blob without axes",
    "slice_single": "a Slice into one part",
    "slice_unread_part": "a part that no layer reads",
}


def differences(folder, name, fields, tolerance):
    values = numpy.fromfile(folder / f"{name}.values", numpy.float32)
    inputs, values = blobs(fields["inputs"], values)
    expected, _ = blobs(fields["values"], values)
    net = cv2.dnn.readNetFromCaffe(str(folder / f"{name}.prototxt"), str(folder / f"{name}.caffemodel"))
    text = (folder / f"{name}.prototxt").read_text()
    for blob, data in inputs.items():
        if f'top: "{blob}"' in text:
            net.setInput(data, blob)
    for top, reference in expected.items():
        layer, blob, index = top.split("|")
        if index != "0":  # Python gets the first top only
            continue
        # Some layers are called by their top there.
        result = net.forward(layer if layer in net.getLayerNames() else blob)
        scale = max(numpy.abs(reference).max(initial=0), 1e-3)
        if result.size != reference.size:
            yield f"{top} has shape {result.shape}, not {reference.shape}"
        elif not numpy.abs(result.ravel() - reference.ravel()).max(initial=0) / scale <= tolerance:
            yield f"{top} differs by {numpy.abs(result.ravel() - reference.ravel()).max() / scale:.2g} of its largest value"


def main():
    folder = pathlib.Path(sys.argv[1])
    outcomes = collections.Counter()
    for line in (folder / "rows.tsv").read_text().splitlines():
        name, kind, tolerance, *rest = line.split("\t")
        fields = dict(field.split("=", 1) for field in rest)
        if "refused" in fields:
            outcomes["refused"] += 1
            if "-v" in sys.argv:
                print("refused", name, fields["refused"])
            continue
        if name in KNOWN or kind == "DetectionOutput":
            outcomes["known to differ"] += 1
            continue
        try:
            found = list(differences(folder, name, fields, max(1e-5, float(tolerance))))
        except cv2.error as error:
            found = [" ".join(str(error).split())[-200:]]
        outcomes["differ" if found else "agree"] += 1
        for text in found:
            print(f"{name} ({kind}): {text}")
    print(dict(outcomes))
    return 1 if outcomes["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
