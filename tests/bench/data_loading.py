#!/usr/bin/env python3
"""Pictures for a training, in images a second: JPEGs of 500 x 375 decoded, a random part of 224 x 224 of each, mirrored or not, minus a
mean. Crema, PyTorch's DataLoader with two workers, and the decoder alone on two threads, in turn.
Needs Python's torch, torchvision and Pillow; a C++ compiler and libjpeg-turbo's header for the decoder alone.

  data_loading.py [--images 2000] [--rounds 3] [--batches 48] [--only NAME] [--folder FOLDER] [--tools build/tools]

Makes the pictures in FOLDER (a temporary one by default) and prints a line for each: the median, the least and the most of the rounds,
and its ratio to the DataLoader with Pillow and to the decoder alone, as medians of the ratios within a round."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT, CROP, BATCH, WORKERS = 500, 375, 224, 128, 2
WARM_UP = 8  # batches that do not count: those made ahead, and the start


def make_pictures(folder, count):
    import numpy as np
    from PIL import Image, ImageDraw, ImageFilter
    random = np.random.default_rng(1)
    os.makedirs(f"{folder}/jpg")
    bases = []
    for _ in range(40):
        picture = Image.new("RGB", (WIDTH, HEIGHT), tuple(int(x) for x in random.integers(0, 256, 3)))
        draw = ImageDraw.Draw(picture)
        for _ in range(120):
            x, y, radius = (int(random.integers(0, most)) for most in (WIDTH, HEIGHT, 90))
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), tuple(int(c) for c in random.integers(0, 256, 3)))
        smooth = np.asarray(picture.filter(ImageFilter.GaussianBlur(1.5)), float)
        # Grain: more in light and dark than in colour, as cameras have it.
        grain = random.normal(0, 7, smooth.shape[:2] + (1,)) + random.normal(0, 2, smooth.shape)
        bases.append(np.clip(smooth + grain, 0, 255).astype(np.uint8))
    with open(f"{folder}/list.txt", "w") as out:
        for i in range(count):
            Image.fromarray(np.roll(bases[i % 40], i, 1)).save(f"{folder}/jpg/{i}.jpg", quality=90)
            out.write(f"{i}.jpg {i % 10}\n")


def write_nets(folder):
    transform = (f"transform_param {{ crop_size: {CROP} mirror: true mean_value: 104 mean_value: 117 mean_value: 123 }}")
    sources = {"list": f'type: "ImageData" image_data_param {{ source: "{folder}/list.txt" root_folder: "{folder}/jpg/" '
                       f'batch_size: {BATCH} shuffle: true }}',
               "lmdb": f'type: "Data" data_param {{ source: "{folder}/lmdb" backend: LMDB batch_size: {BATCH} shuffle: true }}'}
    for name, source in sources.items():
        with open(f"{folder}/{name}.prototxt", "w") as out:
            out.write(f'layer {{ name: "data" top: "data" top: "label" {source} {transform} }}\n'
                      'layer { name: "silence" type: "Silence" bottom: "data" bottom: "label" }\n')


def crema(folder, options, net):
    """From the times of the log's lines."""
    text = subprocess.run([f"{options.tools}/crema", "time", "-model", f"{folder}/{net}.prototxt", "-iterations", str(options.batches)],
                          capture_output=True, text=True, check=True).stderr
    times = [3600 * int(h) + 60 * int(m) + float(s)
             for h, m, s in re.findall(r"(\d\d):(\d\d):(\d\d\.\d+) .*\] Iteration: \d+ forward", text)]
    return BATCH * (len(times) - 1 - WARM_UP) / ((times[-1] - times[WARM_UP]) % 86400)


def data_loader(folder, options, tensors):
    """In a process of its own, as torch's threads would stay."""
    text = subprocess.run([sys.executable, __file__, "--images", str(options.images), "--batches", str(options.batches), "--folder", folder,
                           "--peer", "tensors" if tensors else "pillow"], capture_output=True, text=True, check=True).stdout
    return float(text)


def peer(folder, options):
    import torch
    from PIL import Image
    from torchvision import io, transforms
    from torchvision.transforms import v2
    mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    if options.peer == "pillow":
        change = transforms.Compose([transforms.RandomCrop(CROP), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                     transforms.Normalize(mean, deviation)])
    else:
        change = v2.Compose([v2.RandomCrop(CROP), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
                             v2.Normalize(mean, deviation)])

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return BATCH * options.batches

        def __getitem__(self, i):
            path = f"{folder}/jpg/{i % options.images}.jpg"
            if options.peer == "pillow":
                with open(path, "rb") as file:
                    return change(Image.open(file).convert("RGB")), i % 10
            return change(io.decode_jpeg(io.read_file(path), mode=io.ImageReadMode.RGB)), i % 10

    times = []
    for _ in torch.utils.data.DataLoader(Pictures(), BATCH, shuffle=True, num_workers=WORKERS):
        times.append(time.perf_counter())
    print(BATCH * (len(times) - 1 - WARM_UP) / (times[-1] - times[WARM_UP]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=48)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder")
    parser.add_argument("--tools", default=os.path.join(HERE, "../../build/tools"))
    parser.add_argument("--peer", choices=["pillow", "tensors"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return peer(options.folder, options)
    folder = tempfile.mkdtemp(dir=options.folder)
    try:
        make_pictures(folder, options.images)
        sizes = [os.path.getsize(f"{folder}/jpg/{i}.jpg") for i in range(options.images)]
        print(f"{options.images} pictures of {WIDTH} x {HEIGHT}, {statistics.mean(sizes) / 1024:.0f} KiB each", flush=True)
        subprocess.run([f"{options.tools}/convert_imageset", "-encoded", f"{folder}/jpg/", f"{folder}/list.txt", f"{folder}/lmdb"],
                       check=True, capture_output=True)
        write_nets(folder)
        subprocess.run(["c++", "-O3", "-march=native", "-std=c++20", "-pthread", f"{HERE}/peers/decode_alone.cpp", "-o", f"{folder}/decode_alone",
                        "-ljpeg"], check=True)
        rows = {"ImageData": lambda: crema(folder, options, "list"),
                "Data, LMDB": lambda: crema(folder, options, "lmdb"),
                "DataLoader, Pillow": lambda: data_loader(folder, options, False),
                "DataLoader, tensors": lambda: data_loader(folder, options, True),
                "decoder alone": lambda: float(subprocess.run(
                    [f"{folder}/decode_alone", f"{folder}/jpg", str(options.images), str(BATCH * options.batches), str(WORKERS)],
                    capture_output=True, text=True, check=True).stdout)}
        rates = {name: [] for name in rows if options.only in name}
        for _ in range(options.rounds):
            for name in rates:
                rates[name].append(rows[name]())
        for name, row in rates.items():
            line = f"{name}: {statistics.median(row):.0f} images/s ({min(row):.0f} to {max(row):.0f})"
            for other in ("DataLoader, Pillow", "decoder alone"):
                if other in rates and other != name:
                    line += f", {statistics.median(a / b for a, b in zip(row, rates[other])):.2f} of {other}"
            print(line, flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
