"""crema.Detector, and the script detect, against NumPy."""
import csv
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import crema
from crema.scripts import detect

DEPLOY = '''
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 0.01 } } }
'''
MEAN = np.array([104.0, 117.0, 123.0])


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """The net's file, its weights and two images."""
    folder = tmp_path_factory.mktemp('detector')
    crema.set_random_seed(1)
    (folder / 'deploy.prototxt').write_text(DEPLOY)
    crema.Net(str(folder / 'deploy.prototxt'), crema.TEST).save(str(folder / 'net.caffemodel'))
    names = []
    for number, size in enumerate(((20, 30, 3), (16, 16, 3))):
        pixels = np.random.default_rng(number).integers(0, 256, size).astype(np.uint8)
        names.append(str(folder / f'{number}.png'))
        Image.fromarray(pixels).save(names[-1])
    return [str(folder / 'deploy.prototxt'), str(folder / 'net.caffemodel')], names


def detector_of(files, **options):
    return crema.Detector(*files[0], mean=MEAN, raw_scale=255, channel_swap=(2, 1, 0), **options)


def score(net, crop):
    weights, bias = (np.array(blob.data, dtype=float) for blob in net.params['ip'])
    return (crop[:, :, ::-1].astype(float) * 255 - MEAN).transpose(2, 0, 1).ravel() @ weights.T + bias


def test_windows(files):
    detector = detector_of(files)
    assert isinstance(detector, crema.Net)
    windows = [(files[1][0], [(2, 3, 10, 11), (0, 22, 8, 30)]), (files[1][1], np.array([[8, 8, 16, 16]]))]
    found = detector.detect_windows(windows)
    assert [detection['filename'] for detection in found] == [files[1][0], files[1][0], files[1][1]]
    for detection in found:
        top, left, bottom, right = detection['window']
        crop = crema.io.load_image(detection['filename'])[top:bottom, left:right]
        np.testing.assert_allclose(detection['prediction'], score(detector, crop), rtol=1e-3, atol=1e-4)
    assert detector.detect_windows(iter([])) == []


def test_windows_are_warped_and_clipped(files):
    detector = detector_of(files)
    found = detector.detect_windows([(files[1][0], [(0, 0, 20, 30), (12, 20, 99, 99)])])
    image = crema.io.load_image(files[1][0])
    for detection, part in zip(found, (image, image[12:, 20:])):
        expected = score(detector, crema.io.resize_image(part, (8, 8)))
        np.testing.assert_allclose(detection['prediction'], expected, rtol=1e-3, atol=1e-3)


def test_context(files):
    """A window of 3 x 3 pixels, whose place is (last - first + 1) = 4, with 2 of 8 pixels of context: 4 * 8 / 4 = 8
    pixels around its centre."""
    detector = detector_of(files, context_pad=2)
    image = crema.io.load_image(files[1][0])
    crop = detector.crop(image, (8, 10, 11, 13))
    assert crop.shape == (8, 8, 3)
    np.testing.assert_allclose(detector.crop_mean, np.broadcast_to(MEAN[::-1] / 255, (8, 8, 3)), rtol=1e-6)
    # The box is from centre - 4 to centre + 4: 9 pixels by the same count, which represent 8 x 8 pixels.
    np.testing.assert_allclose(crop, crema.io.resize_image(image[6:14, 8:16], (8, 8)), atol=1e-6)


def test_context_outside_is_the_mean(files):
    detector = detector_of(files, context_pad=2)
    image = crema.io.load_image(files[1][1])
    crop = detector.crop(image, (0, 0, 7, 7))
    colour = MEAN[::-1] / 255
    np.testing.assert_allclose(crop[0], np.broadcast_to(colour, (8, 3)), rtol=1e-6)
    np.testing.assert_allclose(crop[:, 0], np.broadcast_to(colour, (8, 3)), rtol=1e-6)
    assert np.abs(crop[3:, 3:] - colour).max() > 0.1
    assert detector_of(files, context_pad=2).crop_mean.dtype == np.float32
    assert (crema.Detector(*files[0], context_pad=2).crop_mean == 0).all()


def test_errors(files):
    detector = detector_of(files)
    for window in ((5, 5, 5, 9), (0, 0, 3), (0, 0, float('nan'), 3)):
        with pytest.raises(ValueError, match='window'):
            detector.detect_windows([(files[1][0], [window])])
    with pytest.raises(ValueError, match='outside'):
        detector.detect_windows([(files[1][0], [(50, 50, 60, 60)])])
    with pytest.raises(ValueError, match='context_pad'):
        detector_of(files, context_pad=4)
    with pytest.raises(FileNotFoundError):
        detector.detect_windows([('none.png', [(0, 0, 4, 4)])])
    with pytest.raises(ImportError, match='not part of crema'):
        detector.detect_selective_search(files[1])


def test_hdf5_needs_pandas(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, 'tables', None)
    with pytest.raises(ImportError, match='pandas'):
        detect.write_hdf5(str(tmp_path / 'out.h5'), [])
    assert not (tmp_path / 'out.h5').exists()


def run_script(*arguments):
    return subprocess.run([sys.executable, '-m', 'crema.scripts.detect', *map(str, arguments)],
                          capture_output=True,
                          text=True)


def test_script(files, tmp_path):
    rows = [(files[1][0], 3, 2, 11, 10), (files[1][1], 0, 4, 9, 16)]
    with open(tmp_path / 'windows.csv', 'w', newline='') as file:
        csv.writer(file).writerows([('filename', 'xmin', 'ymin', 'xmax', 'ymax'), *rows])
    flags = ['--crop_mode', 'list', '--model_def', files[0][0], '--pretrained_model', files[0][1], '--context_pad', 1]
    found = run_script(tmp_path / 'windows.csv', tmp_path / 'out.csv', *flags)
    assert found.returncode == 0, found.stderr
    assert 'Processed 2 windows' in found.stdout
    detector = crema.Detector(*files[0], raw_scale=255, channel_swap=(2, 1, 0), context_pad=1)
    expected = detector.detect_windows([(name, [(ymin, xmin, ymax, xmax)]) for name, xmin, ymin, xmax, ymax in rows])
    with open(tmp_path / 'out.csv', newline='') as file:
        for row, detection in zip(list(csv.DictReader(file)), expected):
            assert row['filename'] == detection['filename'] and int(row['ymax']) == detection['window'][2]
            np.testing.assert_allclose([float(row[f'class{number}']) for number in range(4)],
                                       detection['prediction'],
                                       rtol=1e-4,
                                       atol=1e-5)

    (tmp_path / 'bad.csv').write_text('filename,xmin\n')
    found = run_script(tmp_path / 'bad.csv', tmp_path / 'bad_out.csv', *flags)
    assert found.returncode == 1 and 'ymin' in found.stderr and 'Traceback' not in found.stderr
    (tmp_path / 'list.txt').write_text(files[1][0] + '\n')
    found = run_script(tmp_path / 'list.txt', tmp_path / 'bad_out.csv', '--model_def', files[0][0],
                       '--pretrained_model', files[0][1], '--context_pad', 1)
    assert found.returncode == 1 and 'Selective Search is not part of crema' in found.stderr
    assert not (tmp_path / 'bad_out.csv').exists()
