"""Draws a net: layers as boxes, blobs as octagons. `crema draw` draws it with shapes, parameters and memory."""
import argparse

from .. import _crema, draw
from ..proto import caffe_pb2
from . import flags


def parse_args(argv):
    parser = argparse.ArgumentParser(prog='draw_net', description=__doc__)
    parser.add_argument('input_net_proto_file', help='The net.')
    parser.add_argument('output_image_file', help='The picture to write; its ending says the format.')
    parser.add_argument('--rankdir',
                        default='LR',
                        choices=['LR', 'RL', 'TB', 'BT'],
                        help='The direction of the drawing.')
    parser.add_argument('--phase', default='ALL', choices=['TRAIN', 'TEST', 'ALL'], help='Which layers are drawn.')
    parser.add_argument('--display_lrm', action='store_true', help='Write the multipliers of learning rates.')
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    with open(args.input_net_proto_file) as file:
        net = caffe_pb2.NetParameter.FromString(_crema._net_message(file.read(), args.input_net_proto_file))
    print(f'Drawing net to {args.output_image_file}')
    phase = None if args.phase == 'ALL' else caffe_pb2.Phase.Value(args.phase)
    draw.draw_net_to_file(net, args.output_image_file, args.rankdir, phase, args.display_lrm)


if __name__ == '__main__':
    flags.run(main)
