"""Classifies an image, a folder of images or an array of them, and saves the probabilities as .npy."""
import argparse
import glob
import os
import time

import numpy as np

from .. import io
from ..classifier import Classifier
from . import flags


def parse_args(argv):
    parser = argparse.ArgumentParser(prog='classify', description=__doc__)
    parser.add_argument('input_file', help='An image, a folder, or a .npy file of (images, height, width, channels).')
    parser.add_argument('output_file', help='The .npy file to write: (images, classes).')
    flags.add_net_flags(parser)
    parser.add_argument('--center_only',
                        action='store_true',
                        help='The crop in the middle only, not the mean of ten crops.')
    parser.add_argument('--images_dim',
                        default='256,256',
                        help='height,width to which images are resized before they are cropped.')
    parser.add_argument('--ext', default='jpg', help='The ending of the images in a folder.')
    return parser.parse_args(argv)


def load_inputs(path, ext):
    path = os.path.expanduser(path)
    if path.endswith('npy'):
        print(f'Loading file: {path}')
        return np.load(path)
    if os.path.isdir(path):
        print(f'Loading folder: {path}')
        files = sorted(glob.glob(os.path.join(glob.escape(path), f'*.{ext}')))
        if not files:
            raise ValueError(f'{path} has no file that ends in .{ext}')
        return [io.load_image(file) for file in files]
    print(f'Loading file: {path}')
    return [io.load_image(path)]


def main(argv=None):
    args = parse_args(argv)
    flags.set_mode(args.gpu)
    classifier = Classifier(args.model_def, args.pretrained_model, image_dims=flags.numbers(args.images_dim),
                            **flags.preprocessing(args))
    inputs = load_inputs(args.input_file, args.ext)
    print(f'Classifying {len(inputs)} inputs.')
    start = time.time()
    predictions = classifier.predict(inputs, not args.center_only)
    print(f'Done in {time.time() - start:.2f} s.')
    print(f'Saving results into {args.output_file}')
    np.save(args.output_file, predictions)


if __name__ == '__main__':
    flags.run(main)
