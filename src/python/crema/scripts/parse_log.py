"""Converts a training log to CSV: LOG.train and LOG.test in the given folder, as `crema parse_log`
does."""
import argparse
import csv
import os
import sys

from ..programs import run_verb
from . import flags


def parse_args(argv):
    parser = argparse.ArgumentParser(prog='parse_log', description=__doc__)
    parser.add_argument('logfile_path', help='The log.')
    parser.add_argument('output_dir', help='The folder of the tables.')
    parser.add_argument('--verbose', action='store_true', help='Name the files that were written.')
    parser.add_argument('--delimiter', default=',', help='What separates columns.')
    return parser.parse_args(argv)


def change_delimiter(path, delimiter):
    with open(path, newline='') as file:
        rows = list(csv.reader(file))
    with open(path, 'w', newline='') as file:
        csv.writer(file, delimiter=delimiter, lineterminator='\n').writerows(rows)


def main(argv=None):
    args = parse_args(argv)
    found = run_verb('parse_log', args.logfile_path, args.output_dir, capture_output=True, text=True)
    if found.returncode != 0:
        sys.exit(found.stderr.strip())
    for table in ('train', 'test'):
        path = os.path.join(args.output_dir, f'{os.path.basename(args.logfile_path)}.{table}')
        if args.delimiter != ',' and os.path.exists(path):
            change_delimiter(path, args.delimiter)
        if args.verbose:
            print(f'Wrote {path}')


if __name__ == '__main__':
    flags.run(main)
