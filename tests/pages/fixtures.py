"""Small data for the commands of pages: what scripts would download or render at length, and a reader's own files."""
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
from PIL import Image

MNIST = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_cache(cache, scripts):
    """What every page may take copies of."""
    run(sys.executable, f"{scripts}/make_digits.py", f"{cache}/digits", "--train", "320", "--test", "100")
    random = np.random.default_rng(1)
    os.makedirs(f"{cache}/cifar10")
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        records = random.integers(0, 256, (20, 3073), np.uint8)
        records[:, 0] = np.arange(20) % 10
        records.tofile(f"{cache}/cifar10/{name}")


def digits_databases(cache, top):
    shutil.copytree(f"{cache}/digits", f"{top}/data/digits")
    run("bash", f"{top}/data_scripts/create_mnist.sh", f"{top}/data/digits", f"{top}/data/digits", "--name", "digits")


def lenet_of_mnist(cache, top):
    """As the page of LeNet trains it."""
    borrowed = not os.path.exists(f"{top}/data/digits")
    if borrowed:
        digits_databases(cache, top)
    subprocess.run([f"{top}/build/tools/train", "-solver", "models/lenet/digits_solver.prototxt"], cwd=top, check=True,
                   stderr=subprocess.DEVNULL)
    os.rename(f"{top}/models/lenet/lenet_digits_iter_1500.caffemodel", f"{top}/models/lenet/lenet_iter_10000.caffemodel")
    if borrowed:
        shutil.rmtree(f"{top}/data/digits")


def images_of(cache):
    values = np.fromfile(f"{cache}/digits/{MNIST[0]}", np.uint8)[16:].reshape(-1, 28, 28)
    labels = np.fromfile(f"{cache}/digits/{MNIST[1]}", np.uint8)[8:]
    return values, labels


def digit(cache, top):
    image = Image.fromarray(images_of(cache)[0][0])
    for name in ["digit.png", "picture.png", "new.png"]:
        image.save(f"{top}/{name}")


def pictures(cache, top):
    """Three classes, a folder each, and a picture that is in none."""
    values, labels = images_of(cache)
    for label, name in enumerate(["cat", "dog", "hen"]):
        os.makedirs(f"{top}/pictures/{name}")
        for i, value in enumerate(values[labels == label][:10]):
            Image.fromarray(value).save(f"{top}/pictures/{name}/{i}.png")
    digit(cache, top)


def listed(top, folder, name):
    classes = sorted(os.listdir(f"{top}/{folder}"))
    with open(f"{top}/{name}", "w") as out:
        for label, each in enumerate(classes):
            out.writelines(f"{each}/{image} {label}\n" for image in sorted(os.listdir(f"{top}/{folder}/{each}")))


def list(cache, top):  # noqa: A001
    listed(top, "pictures", "list.txt")


def table(cache, top):
    """Measures of flowers, as text."""
    with open(f"{top}/flowers.csv", "w") as out:
        out.write("length,width,species\n")
        out.writelines(f"{1 + i % 7 / 10},{2 + i % 5 / 10},{i % 3}\n" for i in range(30))


def ilsvrc12(cache, top):
    pictures(cache, f"{top}/data/ilsvrc12")
    for part in ["train", "val"]:
        shutil.copytree(f"{top}/data/ilsvrc12/pictures", f"{top}/data/ilsvrc12/{part}")
        listed(f"{top}/data/ilsvrc12", part, f"{part}.txt")


def cifar_of_python(cache, top):
    os.makedirs(f"{top}/cifar-10-batches-py")
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        records = np.fromfile(f"{cache}/cifar10/{name}.bin", np.uint8).reshape(-1, 3073)
        with open(f"{top}/cifar-10-batches-py/{name}", "wb") as out:
            pickle.dump({b"data": np.ascontiguousarray(records[:, 1:]), b"labels": [int(x) for x in records[:, 0]]}, out, 2)
