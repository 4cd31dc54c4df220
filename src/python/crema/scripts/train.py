"""Trains a net on one or more GPUs: `crema train` with Caffe's flags of train.py."""
import argparse
import sys

from .. import _crema
from ..programs import run_verb
from ..proto import caffe_pb2
from . import flags


def parse_args(argv):
    parser = argparse.ArgumentParser(prog='train', description=__doc__)
    parser.add_argument('--solver', required=True, help='The solver: a prototxt file.')
    parser.add_argument('--snapshot', help='The .solverstate from which to go on.')
    parser.add_argument('--gpus', type=int, nargs='*', default=[0], help='The numbers of the GPUs; none: the CPU.')
    parser.add_argument('--timing', action='store_true', help='Measure the steps (`crema time`) before the training.')
    return parser.parse_args(argv)


def time_net(solver_file, device):
    with open(solver_file) as file:
        solver = caffe_pb2.SolverParameter.FromString(_crema._solver_message(file.read(), solver_file))
    net = solver.net or solver.train_net
    if not net:
        raise ValueError(f'{solver_file}: --timing needs a solver that names a file for its net')
    if run_verb('time', '-model', net, '-train_step', '-phase', 'TRAIN', *device).returncode != 0:
        raise ValueError(f'{net}: the net could not be timed')


def main(argv=None):
    args = parse_args(argv)
    device = ['-gpu', ','.join(map(str, args.gpus))] if args.gpus else []
    if args.timing:
        time_net(args.solver, ['-gpu', str(args.gpus[0])] if args.gpus else [])
    arguments = ['-solver', args.solver, *device]
    if args.snapshot:
        arguments += ['-snapshot', args.snapshot]
    return run_verb('train', *arguments).returncode


if __name__ == '__main__':
    sys.exit(flags.run(main))
