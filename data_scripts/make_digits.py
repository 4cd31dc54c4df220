#!/usr/bin/python3
"""Renders a sample set of handwriting-like digits in MNIST's file format, for a first training without a download.

  make_digits.py OUT_DIR [--train N] [--test N] [--seed S] [--preview FILE.png]

Writes {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte:
28 x 28 grey pixels, white ink on black, ten classes. The digits are rendered, nobody wrote them. Two thirds come from
pen strokes defined below, a third from those of the fonts below that are installed (if none: strokes only).

Every image is a pure function of (seed, train or test, index), so no random draw is shared between the two sets, and
the result does not depend on the number of processes. Both sets use the same fonts and strokes: the test accuracy
shows how well a net copes with new distortions, not with new writers. Images depend on the installed fonts.

Needs python3-numpy, and python3-pil for the fonts and the preview; the packages of the fonts are named below.
"""
import argparse
import glob
import multiprocessing
import os
import sys

try:
    import numpy as np
except ImportError:
    sys.exit("make_digits.py: needs numpy: apt-get install python3-numpy")
try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError:
    Image = None

# The fonts' packages in Debian and Ubuntu; setup.sh reads this one line.
# apt packages: fonts-breip fonts-bwht fonts-comic-neue fonts-dancingscript fonts-dkg-handwriting fonts-humor-sans fonts-rufscript fonts-tomsontalks
# Other fonts are not used: a machine may have symbol fonts without digits.
FONTS = """BecauseWeBuild-Regular BecauseWeConnect-Regular BecauseWeCreate-Regular BecauseWeMentor-Regular
    BecauseWeOrganize-Regular Breip ComicNeue-Regular ComicNeue-Italic DancingScript-Regular dkg Humor-Sans
    Rufscript010 TomsonTalks""".split()

# Ways to write each digit. Points x,y in percent of the box, y down; a stroke is a smooth curve through its points,
# "|" starts the next stroke (at the same point: a corner).
STROKES = {
    0: ["50,0 22,12 10,50 22,88 50,100 78,88 90,50 78,12 50,0",
        "62,6 34,6 12,42 22,88 52,100 84,78 88,36 68,6 38,0",
        "50,0 28,14 22,50 28,86 50,100 72,86 78,50 72,14 50,0"],
    1: ["50,0 50,100",
        "28,24 54,0|54,0 54,100",
        "30,20 52,0|52,0 52,100|26,100 78,100"],
    2: ["15,25 30,4 62,0 82,22 70,50 40,78 12,100|12,100 90,98",
        "14,22 40,0 76,10 78,38 48,74 20,96 16,84 34,80 62,98 94,88",
        "18,14 55,0 80,24 58,62 10,98|10,98 50,94 92,100"],
    3: ["15,12 45,0 78,14 72,40 42,48|42,48 78,58 84,82 50,100 12,88",
        "15,2 82,2|82,2 44,42|44,42 80,52 84,84 48,100 10,86",
        "18,8 60,0 80,20 60,42 38,47 66,52 86,76 60,98 12,92"],
    4: ["30,0 14,56|14,56 90,56|68,18 64,100",
        "66,0 10,68|10,68 94,68|66,0 66,100",
        "18,0 14,34 36,50 74,42|82,0 76,46 68,100"],
    5: ["82,2 28,2|28,2 22,45|22,45 55,36 84,60 70,92 40,100 12,88",
        "26,2 22,46|22,46 60,40 84,66 62,96 14,94|26,2 86,0",
        "86,0 44,2 24,24 36,42 66,50 82,74 58,98 12,92"],
    6: ["70,0 35,22 15,62 28,94 58,100 82,80 72,56 45,50 20,68",
        "60,0 30,38 14,76|14,76 34,100 70,96 82,72 56,52 26,60 14,76",
        "80,8 52,0 22,30 14,72 44,100 80,84 70,56 40,54 20,74"],
    7: ["12,3 86,3|86,3 58,46 40,100",
        "12,3 84,3|84,3 56,46 42,100|26,50 76,48",
        "14,20 16,4|16,4 50,8 86,2|86,2 62,40 50,100"],
    8: ["76,14 46,0 20,18 40,42 70,60 82,82 50,100 18,84 32,58 66,40 80,18 74,10",
        "50,0 24,12 28,38 50,46 72,38 76,12 50,0|50,46 18,62 20,92 50,100 80,92 82,62 50,46",
        "24,16 50,0 78,16 62,40 34,60 18,84 50,100 82,84 66,60 36,40 24,16"],
    9: ["80,20 52,0 20,18 25,44 55,50 80,20|80,20 76,62 62,100",
        "78,20 50,0 18,22 30,48 62,44 80,15 82,54 62,90 22,98",
        "76,10 45,0 18,20 28,46 58,46 76,10|76,10 74,100"],
}
SIZE, GRID = 28, 64  # pixels of an image; cells of a font glyph's distance field (its height is half of that)
PIXELS = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE)), -1).reshape(-1, 2).astype(np.float32)
# Rows of weights that stretch 6 random values over 28 pixels smoothly: the base of elastic fields.
SMOOTH = np.exp(-0.5 * ((np.arange(SIZE)[:, None] / 27 * 5 - np.arange(6)) / 0.75) ** 2).astype(np.float32)
SMOOTH /= np.sqrt((SMOOTH ** 2).sum(1, keepdims=True))
GLYPHS = []  # GLYPHS[font][digit] = (distance field, largest inner radius), filled before the workers fork


def parse(text):
    return [np.array([p.split(",") for p in s.split()], np.float32) / 100 for s in text.split("|")]


def distance_to(mask):
    """Euclidean distance of each cell to the nearest set cell of mask."""
    i = np.arange(GRID)
    apart = np.abs(i[:, None] - i)
    in_row = np.where(mask[:, None, :], apart, 10 * GRID).min(2) ** 2
    return np.sqrt((in_row[None] + apart[:, :, None] ** 2).min(1))


def load_glyphs():
    """Signed distance fields (negative inside, unit: the glyph's height) of the digits of each installed font."""
    files = glob.glob("/usr/share/fonts/**/*.[to]tf", recursive=True)
    found = {os.path.splitext(os.path.basename(f))[0]: f for f in sorted(files)}
    for name in FONTS if Image else []:
        if name not in found:
            continue
        font, fields = ImageFont.truetype(found[name], 96), []
        for digit in "0123456789":
            x0, y0, x1, y1 = font.getbbox(digit)
            picture = Image.new("L", (x1 - x0, y1 - y0))
            ImageDraw.Draw(picture).text((-x0, -y0), digit, font=font, fill=255)
            picture = picture.crop(picture.getbbox())
            width = min(GRID - 4, max(2, round(GRID / 2 * picture.width / picture.height)))
            picture = np.asarray(picture.resize((width, GRID // 2), Image.BOX)) > 110
            mask = np.zeros((GRID, GRID), bool)
            top, left = GRID // 4, (GRID - width) // 2
            mask[top:top + GRID // 2, left:left + width] = picture
            inside = distance_to(~mask)
            field = np.where(mask, 0.5 - inside, distance_to(mask) - 0.5) / (GRID / 2)
            fields.append((field.astype(np.float32), inside.max() / (GRID / 2)))
        GLYPHS.append(fields)


def curve(points, steps=6):
    """A Catmull-Rom spline through the points."""
    if len(points) == 2:
        return points
    p = np.concatenate([points[:1], points, points[-1:]])
    t = np.linspace(0, 1, steps, endpoint=False, dtype=np.float32)[:, None, None]
    a, b, c, d = p[:-3], p[1:-2], p[2:-1], p[3:]
    spline = b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
    return np.concatenate([spline.transpose(1, 0, 2).reshape(-1, 2), points[-1:]])


def segments_distance(at, start, end):
    """Distance of each point of `at` to each segment."""
    along = end - start
    x, y = at[:, :1] - start[:, 0], at[:, 1:] - start[:, 1]
    t = np.clip((x * along[:, 0] + y * along[:, 1]) / ((along ** 2).sum(1) + 1e-9), 0, 1)
    return np.hypot(x - t * along[:, 0], y - t * along[:, 1])


def pen_ink(rng, digit, at, height, width):
    """Signed distance in pixels (negative inside) to the ink of a digit written with a pen, for each point of `at`."""
    strokes = parse(STROKES[digit][rng.integers(len(STROKES[digit]))])
    corners, index = np.unique(np.concatenate(strokes), axis=0, return_inverse=True)
    corners += rng.normal(0, 0.04, corners.shape)  # a corner shared by two strokes stays shared
    x, y = (corners - 0.5).T
    x = x * rng.uniform(0.45, 0.9) * (1 + rng.uniform(-0.5, 0.5) * y)  # narrow or wide, tapered up or down
    y = y + rng.uniform(-0.5, 0.5) * (0.25 - y * y)  # upper or lower half larger
    corners = np.stack([x, y], 1)
    points = np.split(corners[index.ravel()].astype(np.float32), np.cumsum([len(s) for s in strokes])[:-1])
    lines = [curve(p) for p in points]
    start, end = np.concatenate([l[:-1] for l in lines]), np.concatenate([l[1:] for l in lines])
    pressure = width * np.linspace(rng.uniform(0.75, 1.25), rng.uniform(0.75, 1.25), len(start), dtype=np.float32)
    return (segments_distance(at, start, end) * height - pressure).min(1)


def font_ink(rng, digit, at, height, width):
    """The same for a digit of a font, thinned or thickened towards the wanted pen width."""
    field, radius = GLYPHS[rng.integers(len(GLYPHS))][digit]
    x, y = np.clip((at * [rng.uniform(0.8, 1.15), 1] + 1) * GRID / 2 - 0.5, 0, GRID - 1.001).T
    i, j = y.astype(int), x.astype(int)
    v, u = y - i, x - j
    top = field[i, j] * (1 - u) + field[i, j + 1] * u
    bottom = field[i + 1, j] * (1 - u) + field[i + 1, j + 1] * u
    return (top * (1 - v) + bottom * v) * height - np.clip(width - radius * height, -0.4, 0.9)


def smooth_field(rng):
    return (SMOOTH @ rng.normal(size=(6, 6)).astype(np.float32) @ SMOOTH.T).ravel()


def render(seed, part, index):
    """One image (784 bytes) and its label."""
    rng = np.random.default_rng([seed, part, index])
    digit = int(rng.integers(10))
    height = rng.uniform(17, 20.5)
    angle, shear = np.radians(rng.normal(0, 4)), rng.normal(0.08, 0.06)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    matrix = np.linalg.inv(height * turn @ np.array([[rng.uniform(0.9, 1.15), -shear], [0, 1]]))
    slack = (SIZE - height) / 2 - 1.5
    shift = np.clip(rng.normal(0, 0.85, 2), -slack, slack)
    wobble = rng.uniform(0.3, 0.8) * np.stack([smooth_field(rng), smooth_field(rng)], 1)
    at = ((PIXELS - (SIZE - 1) / 2 - shift + wobble) @ matrix.T).astype(np.float32)

    ink = pen_ink if not GLYPHS or rng.random() < 0.67 else font_ink
    distance = ink(rng, digit, at, height, rng.uniform(0.9, 1.9))
    image = np.clip(0.5 - distance / rng.uniform(1.0, 2.2), 0, 1)  # a wider ramp is a blurrier pen
    image *= np.clip(1 + rng.uniform(0, 0.2) * smooth_field(rng), 0.4, 1)  # ink that runs dry
    if rng.random() < 0.1:  # a scratch through the ink
        ends = rng.uniform(0, SIZE, (2, 1, 2)).astype(np.float32)
        image *= np.clip(segments_distance(PIXELS, *ends)[:, 0] - rng.uniform(0, 0.5), 0.15, 1)
    if rng.random() < 0.1:  # a stray stroke
        start = rng.uniform(0, SIZE, (1, 2)).astype(np.float32)
        stray = segments_distance(PIXELS, start, start + rng.normal(0, 3.5, (1, 2)).astype(np.float32))[:, 0]
        image = np.maximum(image, np.clip(1.1 - stray, 0, rng.uniform(0.4, 1)))
    image = rng.uniform(0.75, 1) * image + rng.normal(0, rng.uniform(0, 0.04), image.shape)
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8), digit


def render_range(job):
    seed, part, begin, end = job
    images, labels = zip(*(render(seed, part, i) for i in range(begin, end)))
    return np.stack(images), np.array(labels, np.uint8)


def write_idx(folder, arrays):
    """Writes IDX files of bytes; they get their final names once all are complete on disk."""
    for name, array in arrays.items():
        with open(os.path.join(folder, name + ".part"), "wb") as f:
            f.write(bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes())
            f.flush()
            os.fsync(f.fileno())
    for name in arrays:
        os.replace(os.path.join(folder, name + ".part"), os.path.join(folder, name))


def write_preview(path, images, labels, columns=24):
    """One row for each class, at twice the size."""
    sheet = np.full((10 * 30, columns * 30), 60, np.uint8)
    for digit in range(10):
        for column, image in enumerate(images[labels == digit][:columns]):
            sheet[digit * 30 + 1:digit * 30 + 29, column * 30 + 1:column * 30 + 29] = image
    Image.fromarray(sheet.repeat(2, 0).repeat(2, 1)).save(path + ".part", format="PNG")
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description="Renders handwriting-like digits as IDX files (MNIST's format).")
    parser.add_argument("out_dir")
    parser.add_argument("--train", type=int, default=12000, metavar="N", help="training images (12000)")
    parser.add_argument("--test", type=int, default=2000, metavar="N", help="test images (2000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="another seed gives another set (1)")
    parser.add_argument("--preview", metavar="FILE.png", help="also draw the first training images of each class")
    arguments = parser.parse_args()
    if arguments.train < 1 or arguments.test < 1 or arguments.seed < 0:
        parser.error("--train and --test must be at least 1, --seed at least 0")
    if arguments.preview and not Image:
        parser.error("--preview needs Pillow: apt-get install python3-pil")
    load_glyphs()
    os.makedirs(arguments.out_dir, exist_ok=True)
    files = {}
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        for part, (name, count) in enumerate([("train", arguments.train), ("t10k", arguments.test)]):
            jobs = [(arguments.seed, part, i, min(i + 250, count)) for i in range(0, count, 250)]
            images, labels = map(np.concatenate, zip(*pool.imap(render_range, jobs)))
            files[name + "-images-idx3-ubyte"] = images.reshape(-1, SIZE, SIZE)
            files[name + "-labels-idx1-ubyte"] = labels
    write_idx(arguments.out_dir, files)
    if arguments.preview:
        write_preview(arguments.preview, *list(files.values())[:2])
    print(f"{arguments.out_dir}: {arguments.train} training and {arguments.test} test images "
          f"from pen strokes and {len(GLYPHS)} of {len(FONTS)} known fonts")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"make_digits.py: {error}")
