#!/usr/bin/env python3
"""Small archives in the form of the public data sets, for tests/data_scripts/data_scripts.sh.

    small_sets.py SHAPES SERVED     SHAPES: what make_shapes.py draws (6 and 3 pictures); the archives go to SERVED
"""
import glob
import gzip
import io
import json
import os
import struct
import sys
import tarfile
import xml.etree.ElementTree as tree
import zipfile

import numpy as np

shapes, served = sys.argv[1:]
random = np.random.default_rng(1)
NAMES = {"circle": "cat", "square": "dog", "triangle": "person"}


def tar(name, files, mode="w"):
    with tarfile.open(os.path.join(served, name), mode) as out:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            out.addfile(entry, io.BytesIO(data))


def packed(files):
    """A tar within a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as inner:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            inner.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def read(path):
    with open(os.path.join(shapes, path), "rb") as file:
        return file.read()


def write(path, text):
    with open(os.path.join(shapes, path), "w") as out:
        out.write(text)


# MNIST and Fashion-MNIST.
for part, count in [("train", 20), ("t10k", 10)]:
    images, labels = random.integers(0, 256, (count, 28, 28), np.uint8), np.arange(count, dtype=np.uint8) % 10
    for name, data in [(f"{part}-images-idx3-ubyte", struct.pack(">4I", 2051, count, 28, 28) + images.tobytes()),
                       (f"{part}-labels-idx1-ubyte", struct.pack(">2I", 2049, count) + labels.tobytes())]:
        with gzip.GzipFile(os.path.join(served, name + ".gz"), "wb", mtime=0) as out:
            out.write(data)

# CIFAR.
files = {}
os.makedirs(os.path.join(shapes, "cifar-10-batches-bin"))
for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
    records = random.integers(0, 256, (4, 3073), np.uint8)
    records[:, 0] %= 10
    files[f"cifar-10-batches-bin/{name}"] = records.tobytes()
    records.tofile(os.path.join(shapes, "cifar-10-batches-bin", name))
tar("cifar-10-binary.tar.gz", files, "w:gz")
files = {f"cifar-100-binary/{kind}_label_names.txt": b"".join(b"class %d\n" % i for i in range(count))
         for kind, count in [("fine", 100), ("coarse", 20)]}
for name in ["train.bin", "test.bin"]:
    records = random.integers(0, 256, (6, 3074), np.uint8)
    records[:, 0] %= 20
    records[:, 1] %= 100
    files[f"cifar-100-binary/{name}"] = records.tobytes()
tar("cifar-100-binary.tar.gz", files, "w:gz")


# Pascal VOC: the shapes under other names.
def pictures(part):
    return sorted(os.path.basename(path)[:-4] for path in glob.glob(f"{shapes}/images/{part}_*.jpg"))


def voc(archive, year, part, names):
    files = {f"VOCdevkit/VOC{year}/ImageSets/Main/{part}.txt": "".join(f"{name}\r\n" for name in names).encode()}
    for name in names:
        annotation = read(f"annotations/{name}.xml").decode()
        for shape, other in NAMES.items():
            annotation = annotation.replace(f">{shape}<", f">{other}<")
        files[f"VOCdevkit/VOC{year}/Annotations/{name}.xml"] = annotation.encode()
        files[f"VOCdevkit/VOC{year}/JPEGImages/{name}.jpg"] = read(f"images/{name}.jpg")
    tar(archive, files)


train, test = pictures("train"), pictures("test")
voc("VOCtrainval_06-Nov-2007.tar", 2007, "trainval", train[:4])
voc("VOCtrainval_11-May-2012.tar", 2012, "trainval", train[4:])
voc("VOCtest_06-Nov-2007.tar", 2007, "test", test)


# COCO.
def coco(part, names):
    images, annotations = [], []
    for number, name in enumerate(names):
        annotation = tree.fromstring(read(f"annotations/{name}.xml"))
        width, height = (int(annotation.find("size").find(side).text) for side in ["width", "height"])
        images.append({"id": number, "file_name": f"{name}.jpg", "width": width, "height": height})
        for item in annotation.findall("object"):
            left, top, right, bottom = (int(item.find("bndbox").find(side).text) for side in ["xmin", "ymin", "xmax", "ymax"])
            annotations.append({"id": len(annotations), "image_id": number, "bbox": [left, top, right - left, bottom - top],
                                "category_id": 5 * list(NAMES).index(item.find("name").text), "iscrowd": 0,
                                "segmentation": [[left, top, right, top, right, bottom]]})
    with zipfile.ZipFile(os.path.join(served, f"{part}2017.zip"), "w") as out:
        for name in names:
            out.writestr(f"{part}2017/{name}.jpg", read(f"images/{name}.jpg"))
    return json.dumps({"images": images, "annotations": annotations,
                       "categories": [{"id": 5 * i, "name": name} for i, name in enumerate(NAMES)]})


with zipfile.ZipFile(os.path.join(served, "annotations_trainval2017.zip"), "w") as out:
    for part, names in [("train", train), ("val", test)]:
        out.writestr(f"annotations/instances_{part}2017.json", coco(part, names))

# ImageNet.
synsets = ["n01000001", "n02000002"]
tar("ILSVRC2012_img_train.tar", {f"{synset}.tar": packed({f"{synset}_{i}.JPEG": read(f"images/{name}.jpg")
                                                          for i, name in enumerate(train[3 * number:3 * number + 3])})
                                 for number, synset in enumerate(synsets)})
names = [f"ILSVRC2012_val_0000000{i + 1}" for i in range(3)]
tar("ILSVRC2012_img_val.tar", {f"{name}.JPEG": read(f"images/{picture}.jpg") for name, picture in zip(names, test)})
listed = "".join(f"{name}.JPEG {i % 2}\n" for i, name in enumerate(names))
write("val.txt", listed)
write("synsets.txt", "".join(f"{synset}\n" for synset in synsets))
write("LOC_val_solution.csv", "ImageId,PredictionString\r\n" +
      "".join(f"{name},{synsets[i % 2]} 1 2 3 4 {synsets[i % 2]} 5 6 7 8 \r\n" for i, name in reversed([*enumerate(names)])))
served = shapes
tar("caffe_ilsvrc12.tar.gz", {"./val.txt": listed.encode(), "./synset_words.txt": b"n01000001 a thing\n"}, "w:gz")
