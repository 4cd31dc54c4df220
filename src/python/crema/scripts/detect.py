"""Classifies windows of images, and saves the windows with their scores as .csv or .h5."""
import argparse
import csv
import time

from ..detector import Detector
from . import flags

COORDINATES = ['ymin', 'xmin', 'ymax', 'xmax']


def parse_args(argv):
    parser = argparse.ArgumentParser(prog='detect', description=__doc__)
    parser.add_argument('input_file',
                        help='A .csv file with the columns filename, xmin, ymin, xmax, ymax, or for selective_search a '
                        '.txt file with a name of an image on each line.')
    parser.add_argument('output_file', help='The file to write, .csv or .h5 (needs pandas and PyTables).')
    flags.add_net_flags(parser)
    parser.add_argument('--crop_mode', default='selective_search', choices=['list', 'selective_search'],
                        help='Where the windows come from: list is the .csv file.')
    parser.add_argument('--context_pad',
                        type=int,
                        default=16,
                        help='Pixels of context around a window, in the net\'s input.')
    return parser.parse_args(argv)


def read_windows(path):
    """{image: its windows}, in the order of the file."""
    windows = {}
    with open(path, newline='') as file:
        rows = csv.DictReader(file, skipinitialspace=True)
        missing = {'filename', *COORDINATES} - set(rows.fieldnames or [])
        if missing:
            raise ValueError(
                f'{path}: the first line names the columns; {", ".join(sorted(missing))} is not among them')
        for row in rows:
            windows.setdefault(row['filename'], []).append([int(float(row[name])) for name in COORDINATES])
    return windows


def write_csv(path, detections):
    classes = detections[0]['prediction'].size if detections else 0
    with open(path, 'w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['filename', *COORDINATES, *(f'class{number}' for number in range(classes))])
        for detection in detections:
            writer.writerow([detection['filename'], *detection['window'], *detection['prediction'].ravel()])


def write_hdf5(path, detections):
    try:
        import pandas
        import tables  # noqa: F401 (what pandas writes such files with)
    except ImportError as error:
        raise ImportError(
            'Writing .h5 needs pandas and PyTables (pip install pandas tables); .csv does without') from error
    frame = pandas.DataFrame(detections).set_index('filename')
    for column, name in enumerate(COORDINATES):
        frame[name] = [window[column] for window in frame['window']]
    frame.drop(columns='window').to_hdf(path, key='df', mode='w')


def main(argv=None):
    args = parse_args(argv)
    flags.set_mode(args.gpu)
    detector = Detector(args.model_def,
                        args.pretrained_model,
                        context_pad=args.context_pad,
                        **flags.preprocessing(args))
    start = time.time()
    print('Loading input...')
    if args.crop_mode == 'list':
        detections = detector.detect_windows(read_windows(args.input_file).items())
    else:
        with open(args.input_file) as file:
            detections = detector.detect_selective_search([line.strip() for line in file if line.strip()])
    print(f'Processed {len(detections)} windows in {time.time() - start:.3f} s.')
    write = write_csv if args.output_file.lower().endswith('csv') else write_hdf5
    write(args.output_file, detections)
    print(f'Saved to {args.output_file}')


if __name__ == '__main__':
    flags.run(main)
