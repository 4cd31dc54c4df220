#!/usr/bin/python3
"""Draws images of circles, squares and triangles with boxes and masks, for detectors and segmentation without a download.

  make_shapes.py OUT_DIR [--train N] [--test N] [--size PIXELS] [--seed S] [--preview FILE.png]

Writes, for the sets train and test,
  images/*.jpg, annotations/*.xml   the images and their boxes, as Pascal VOC has them
  masks/*.png                       the class of each pixel: 0 background, 1 circle, 2 square, 3 triangle
  SET.txt                           "image annotation" lines, which convert_annoset reads
  segmentation_SET.txt              "image mask" lines
  yolo_SET.txt                      an image and 10 times class (0 circle ...), x, y, width and height as shares, zeros behind
                                    the last object
and labelmap.prototxt. Every image is a pure function of (seed, set, index), whatever the number of processes.

create_shapes.sh makes databases of that. Needs python3-numpy and python3-pil.
"""
import argparse
import multiprocessing
import os
import sys

try:
    import numpy as np
    from PIL import Image, ImageDraw, ImageFilter
except ImportError as missing:
    sys.exit(f"make_shapes.py: {missing}: apt-get install python3-numpy python3-pil")

CLASSES = ["circle", "square", "triangle"]
ROWS = 10   # objects that a line of yolo_SET.txt has room for
FINER = 3   # shapes are drawn so many times larger, then made smaller: smooth edges


def background(rng, size):
    """Coarse noise in a colour of its own, with fine noise on it."""
    cells = int(rng.integers(2, 9))
    coarse = rng.uniform(0, 255, 3) + rng.normal(0, rng.uniform(5, 35), (cells, cells, 3))
    image = Image.fromarray(np.clip(coarse, 0, 255).astype(np.uint8)).resize((size, size), Image.BICUBIC)
    return np.asarray(image, np.float32) + rng.normal(0, rng.uniform(0, 12), (size, size, 1))


def outline(rng, kind, side):
    """Corners of a shape around (0, 0): a square turned by any angle, a triangle with any corners not too flat."""
    turn = rng.uniform(0, 2 * np.pi)
    if kind == 1:
        angles, radii = turn + np.arange(4) * np.pi / 2, np.full(4, side / np.sqrt(2))
    else:
        angles = turn + np.arange(3) * 2 * np.pi / 3 + rng.uniform(-0.35, 0.35, 3)
        radii = side * rng.uniform(0.5, 0.65, 3)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1)


def shape_mask(rng, kind, size):
    """A shape at a random place, inside the image: its coverage of each pixel from 0 to 1."""
    side = size * np.exp(rng.uniform(np.log(0.1), np.log(0.45)))
    picture = Image.new("L", (size * FINER, size * FINER))
    draw = ImageDraw.Draw(picture)
    if kind == 0:
        x, y = rng.uniform(side / 2, size - side / 2, 2)
        draw.ellipse([(x - side / 2) * FINER, (y - side / 2) * FINER, (x + side / 2) * FINER, (y + side / 2) * FINER], fill=255)
    else:
        corners = outline(rng, kind, side)
        low, high = -corners.min(0), size - corners.max(0)
        corners = (corners + rng.uniform(low, high)) * FINER
        draw.polygon([tuple(c) for c in corners], fill=255)
    return np.asarray(picture.resize((size, size), Image.BOX), np.float32) / 255


def far_colour(rng, around):
    """A colour that differs from `around` by 80 or more."""
    while True:
        colour = rng.uniform(0, 255, 3)
        if np.linalg.norm(colour - around) > 80:
            return colour


def draw(seed, part, index, size):
    """An image, its mask and its objects: class and box (left, top, right, bottom in pixels)."""
    rng = np.random.default_rng([seed, part, index])
    image, mask, objects = background(rng, size), np.zeros((size, size), np.uint8), []
    taken = np.zeros((size, size), bool)
    wanted = int(rng.integers(1, 6))
    for _ in range(50):
        if len(objects) == wanted:
            break
        kind = int(rng.integers(3))
        cover = shape_mask(rng, kind, size)
        inside = cover >= 0.5
        if (inside & taken).any():  # nothing is hidden
            continue
        rows, columns = np.where(inside.any(1))[0], np.where(inside.any(0))[0]
        taken |= inside
        around = image[inside].mean(0)
        shade = rng.normal(0, rng.uniform(0, 10), (size, size, 1)) + \
            np.linspace(-1, 1, size)[:, None, None] * rng.uniform(-25, 25)
        image = image * (1 - cover[..., None]) + (far_colour(rng, around) + shade) * cover[..., None]
        mask[inside] = kind + 1
        objects.append((kind, int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1))
    picture = Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))
    if rng.random() < 0.3:
        picture = picture.filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 1.2)))
    return picture, mask, objects


def annotation(name, size, objects):
    boxes = "".join(
        f"  <object>\n    <name>{CLASSES[kind]}</name>\n    <difficult>0</difficult>\n    <bndbox><xmin>{left}</xmin>"
        f"<ymin>{top}</ymin><xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox>\n  </object>\n"
        for kind, left, top, right, bottom in objects)
    return (f"<annotation>\n  <filename>{name}.jpg</filename>\n  <size><width>{size}</width><height>{size}</height>"
            f"<depth>3</depth></size>\n{boxes}</annotation>\n")


def yolo_line(name, size, objects):
    numbers = []
    for kind, left, top, right, bottom in objects:
        shares = ((left + right) / 2 / size, (top + bottom) / 2 / size, (right - left) / size, (bottom - top) / size)
        numbers += [str(kind)] + [f"{share:.5f}" for share in shares]
    return " ".join([f"images/{name}.jpg"] + numbers + ["0"] * (5 * ROWS - len(numbers)))


def write_range(job):
    """Writes images `begin` to `end` of a set and returns their lines of yolo_SET.txt."""
    folder, seed, part, name, begin, end, size = job
    lines = []
    for index in range(begin, end):
        picture, mask, objects = draw(seed, part, index, size)
        this = f"{name}_{index:05d}"
        picture.save(os.path.join(folder, "images", this + ".jpg"), quality=92)
        Image.fromarray(mask).save(os.path.join(folder, "masks", this + ".png"))
        with open(os.path.join(folder, "annotations", this + ".xml"), "w") as f:
            f.write(annotation(this, size, objects))
        lines.append(yolo_line(this, size, objects))
    return lines


def write_text(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path + ".part", "w") as f:
        f.write("\n".join(lines) + "\n")
    os.replace(path + ".part", path)


def write_preview(path, seed, size, columns=8, rows=5):
    """Images of the training set next to their masks, with boxes."""
    colours = np.array([[40, 40, 40], [230, 80, 80], [80, 200, 80], [90, 120, 250]], np.uint8)
    sheet = Image.new("RGB", (columns * size, rows * size))
    for i in range(columns * rows // 2):
        picture, mask, objects = draw(seed, 0, i, size)
        pen = ImageDraw.Draw(picture)
        for kind, left, top, right, bottom in objects:
            pen.rectangle([left, top, right - 1, bottom - 1], outline=tuple(int(c) for c in colours[kind + 1]), width=2)
        x, y = 2 * i % columns * size, 2 * i // columns * size
        sheet.paste(picture, (x, y))
        sheet.paste(Image.fromarray(colours[mask]), (x + size, y))
    sheet.resize((sheet.width // 2, sheet.height // 2), Image.BOX).save(path)


def main():
    parser = argparse.ArgumentParser(description="Draws circles, squares and triangles with boxes and masks.")
    parser.add_argument("out_dir")
    parser.add_argument("--train", type=int, default=2000, metavar="N", help="training images (2000)")
    parser.add_argument("--test", type=int, default=400, metavar="N", help="test images (400)")
    parser.add_argument("--size", type=int, default=300, metavar="PIXELS", help="height and width of an image (300)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="another seed gives another set (1)")
    parser.add_argument("--preview", metavar="FILE.png", help="also draw the first images with boxes and masks")
    arguments = parser.parse_args()
    if arguments.train < 1 or arguments.test < 1 or arguments.size < 32 or arguments.seed < 0:
        parser.error("--train and --test must be at least 1, --size at least 32, --seed at least 0")
    for name in ["images", "masks", "annotations"]:
        os.makedirs(os.path.join(arguments.out_dir, name), exist_ok=True)
    # Lists come last: once one exists, all files that it names are complete.
    lists = {}
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        for part, (name, count) in enumerate([("train", arguments.train), ("test", arguments.test)]):
            jobs = [(arguments.out_dir, arguments.seed, part, name, i, min(i + 50, count), arguments.size)
                    for i in range(0, count, 50)]
            names = [f"{name}_{i:05d}" for i in range(count)]
            lists[f"yolo_{name}.txt"] = sum(pool.imap(write_range, jobs), [])
            lists[f"{name}.txt"] = [f"images/{i}.jpg annotations/{i}.xml" for i in names]
            lists[f"segmentation_{name}.txt"] = [f"images/{i}.jpg masks/{i}.png" for i in names]
    items = ["background"] + CLASSES
    lists["labelmap.prototxt"] = [f'item {{ name: "{name}" label: {i} display_name: "{name}" }}' for i, name in enumerate(items)]
    for name, lines in lists.items():
        write_text(arguments.out_dir, name, lines)
    if arguments.preview:
        write_preview(arguments.preview, arguments.seed, arguments.size)
    print(f"{arguments.out_dir}: {arguments.train} training and {arguments.test} test images")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"make_shapes.py: {error}")
