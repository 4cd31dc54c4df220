#!/usr/bin/env python3
"""What reading data costs a training: the step of each net with its Input layer, whose data never change, against the same net
with a Data layer that reads raw records of an LMDB, in turn.

  data_training.py [--rows lenet,alexnet] [--pairs 5] [--iterations N] [--crema build/tools/crema] [--folder FOLDER]
                   [--batch 256] [--flags "-gpu 0 -precision fp16"]

Records of 256 x 256 are cropped to the net's size, and those of CIFAR's size mirrored, minus a mean file; digits are scaled. Prints for
each net both medians, the median, least and most of the pairs' ratios, and the ratio of the fastest of both."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Net, batch, its channels and size, size of the records, how many of them, iterations of a measurement.
ROWS = [("mlp", 128, 1, 32, 32, 4096, 3000), ("lenet", 64, 1, 28, 28, 4096, 400), ("seed_cifar_cnn", 32, 3, 32, 32, 4096, 120),
        ("cifar10_full", 100, 3, 32, 32, 4096, 80), ("alexnet", 16, 3, 227, 256, 256, 10), ("googlenet", 8, 3, 224, 256, 256, 8),
        ("resnet50", 4, 3, 224, 256, 256, 6), ("vgg16", 2, 3, 224, 256, 256, 4)]


def make_database(folder, crema, channels, size, count):
    """Of noise, as PPM or PGM files."""
    os.makedirs(f"{folder}/files")
    with open(f"{folder}/list.txt", "w") as out:
        for i in range(count):
            with open(f"{folder}/files/{i}.ppm", "wb") as file:
                file.write(f"P{6 if channels == 3 else 5}\n{size} {size}\n255\n".encode() + os.urandom(channels * size * size))
            out.write(f"{i}.ppm {i % 10}\n")
    gray = ["-gray"] if channels == 1 else []
    subprocess.run([crema, "convert_imageset", *gray, f"{folder}/files/", f"{folder}/list.txt", f"{folder}/lmdb"], check=True,
                   capture_output=True)
    subprocess.run([crema, "compute_image_mean", f"{folder}/lmdb", f"{folder}/mean.binaryproto"], check=True, capture_output=True)
    shutil.rmtree(f"{folder}/files")


def with_data(text, folder, batch, channels, size, stored):
    transform = "scale: 0.00390625" if channels == 1 else f'mirror: true mean_file: "{folder}/mean.binaryproto"'
    if stored > size:
        transform += f" crop_size: {size}"
    layer = (f'layer {{ name: "data" type: "Data" top: "data" top: "label" data_param {{ source: "{folder}/lmdb" backend: LMDB '
             f'batch_size: {batch} }} transform_param {{ {transform} }} }}')
    return re.sub(r'layer \{ name: "input" .*', lambda _: layer, text)


def step(crema, model, batch, iterations, flags):
    env = dict(os.environ, CREMA_FLAGS=flags, XDG_CONFIG_HOME=os.devnull)
    text = subprocess.run([crema, "time", "-train_step", "-model", model, "-batch", str(batch), "-iterations", str(iterations)],
                          capture_output=True, text=True, check=True, env=env).stderr
    return float(re.search(r"([\d.]+) ms/step", text).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(row[0] for row in ROWS))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--flags", default="")
    parser.add_argument("--crema", default=os.path.join(HERE, "../../build/tools/crema"))
    parser.add_argument("--folder")
    options = parser.parse_args()
    print("| net, batch | Input ms | LMDB ms | LMDB / Input | of the fastest |\n|---|---|---|---|---|", flush=True)
    for name, batch, channels, size, stored, count, iterations in ROWS:
        if name not in options.rows.split(","):
            continue
        batch = options.batch or batch
        folder = tempfile.mkdtemp(dir=options.folder)
        try:
            make_database(folder, options.crema, channels, stored, count)
            plain = f"{HERE}/nets/{name}.prototxt"
            with open(plain) as text, open(f"{folder}/net.prototxt", "w") as out:
                out.write(with_data(text.read(), folder, batch, channels, size, stored))
            pairs = [[step(options.crema, model, batch, options.iterations or iterations, options.flags) for model in (plain, f"{folder}/net.prototxt")]
                     for _ in range(options.pairs)]
            of_input, of_data = zip(*pairs)
            ratios = [data / other for other, data in pairs]
            print(f"| {name} {batch} | {statistics.median(of_input):.2f} | {statistics.median(of_data):.2f} | "
                  f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}) | {min(of_data) / min(of_input):.3f} |",
                  flush=True)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
