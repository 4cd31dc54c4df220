"""Common code of classify and detect."""
import sys

import crema

from .. import io


def add_net_flags(parser):
    parser.add_argument('--model_def', required=True, help='The net: a prototxt file with one input.')
    parser.add_argument('--pretrained_model', required=True, help='Its trained weights.')
    parser.add_argument('--gpu', action='store_true', help='Compute on the GPU.')
    parser.add_argument('--mean_file',
                        default='',
                        help='The mean to subtract, .npy or .binaryproto; of an image only its mean per '
                        'channel is subtracted. Empty: none.')
    parser.add_argument('--input_scale', type=float, help='The factor after the mean.')
    parser.add_argument('--raw_scale', type=float, default=255.0, help='The factor before the mean.')
    parser.add_argument('--channel_swap',
                        default='2,1,0',
                        help='The order of channels; 2,1,0 makes B, G, R of R, G, B.')


def numbers(text):
    return [int(number) for number in text.split(',')] if text else None


def preprocessing(args):
    """The keywords of Classifier and Detector from the flags."""
    mean = io.load_mean(args.mean_file) if args.mean_file else None
    if mean is not None and mean.ndim == 3:
        mean = mean.mean((1, 2))
    return dict(mean=mean,
                input_scale=args.input_scale,
                raw_scale=args.raw_scale,
                channel_swap=numbers(args.channel_swap))


def set_mode(gpu):
    if gpu:
        crema.set_mode_gpu()
    else:
        crema.set_mode_cpu()
    print('GPU mode' if gpu else 'CPU mode')


def run(main):
    """Runs a script; an error that the user can fix prints one line and exits with status 1."""
    try:
        return main()
    except (crema.Error, OSError, ValueError, ImportError) as error:
        sys.exit(f'{error}')
