"""crema.Classifier, and the script classify, against NumPy."""
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import crema

DEPLOY = '''
name: "deploy"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 3 dim: 4 dim: 6 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "gaussian" std: 0.01 }
    bias_filler { type: "uniform" min: -1 max: 1 } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
'''
MEAN = np.array([104.0, 117.0, 123.0])


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """The net's file and its weights."""
    folder = tmp_path_factory.mktemp('classifier')
    crema.set_random_seed(1)
    (folder / 'deploy.prototxt').write_text(DEPLOY)
    crema.Net(str(folder / 'deploy.prototxt'), crema.TEST).save(str(folder / 'net.caffemodel'))
    return str(folder / 'deploy.prototxt'), str(folder / 'net.caffemodel')


def images(count, height=8, width=10):
    return [np.random.default_rng(number).random((height, width, 3)).astype(np.float32) for number in range(count)]


def probabilities(net, crops):
    """The net's output for crops of (height, width, channels) of 0 to 1, computed by NumPy."""
    weights, bias = (np.array(blob.data, dtype=float) for blob in net.params['ip'])
    data = np.array([(crop[:, :, ::-1].astype(float) * 255 - MEAN).transpose(2, 0, 1).ravel() for crop in crops])
    scores = np.exp(data @ weights.T + bias)
    return scores / scores.sum(1, keepdims=True)


@pytest.fixture
def classifier(files):
    return crema.Classifier(*files, image_dims=(8, 10), mean=MEAN, raw_scale=255, channel_swap=(2, 1, 0))


def test_is_a_net(classifier, files):
    assert isinstance(classifier, crema.Net) and isinstance(classifier, crema.Classifier)
    assert classifier.inputs == ['data'] and classifier.outputs == ['prob']
    by_name = crema.Classifier(model_file=files[0], pretrained_file=files[1], raw_scale=255)
    assert tuple(by_name.image_dims) == (4, 6)


def test_takes_what_the_deploy_file_says(files, classifier, tmp_path):
    lines = ['input {', '  name: "data" channels: BGR resize_height: 8 resize_width: 10',
             '  transform_param { mean_value: 104 mean_value: 117 mean_value: 123 }', '}']
    (tmp_path / 'deploy.prototxt').write_text(''.join(f'# crema: {line}\n' for line in lines) + DEPLOY)
    stated = crema.Classifier(str(tmp_path / 'deploy.prototxt'), files[1])
    assert tuple(stated.image_dims) == (8, 10)
    expected = classifier.predict(images(3), oversample=False)
    assert np.array_equal(stated.predict(images(3), oversample=False), expected)
    scaled = crema.Classifier(str(tmp_path / 'deploy.prototxt'), files[1], raw_scale=1)  # what is given wins
    assert not np.allclose(scaled.predict(images(3), oversample=False), expected)
    with pytest.warns(UserWarning, match='does not say how images become the input'):
        crema.Classifier(*files)


# 1 and 3 crops do not fill a batch of 4, 7 need two.
@pytest.mark.parametrize('count', [1, 3, 7])
def test_crop_in_the_middle(classifier, count):
    inputs = images(count)
    found = classifier.predict(inputs, oversample=False)
    assert found.shape == (count, 5)
    np.testing.assert_allclose(found,
                               probabilities(classifier, [image[2:6, 2:8] for image in inputs]),
                               rtol=1e-3,
                               atol=1e-5)


def test_ten_crops(classifier):
    inputs = images(2)
    found = classifier.predict(inputs)
    for number, image in enumerate(inputs):
        corners = [image[y:y + 4, x:x + 6] for y in (0, 4) for x in (0, 4)] + [image[2:6, 2:8]]
        crops = corners + [crop[:, ::-1] for crop in corners]
        np.testing.assert_allclose(found[number], probabilities(classifier, crops).mean(0), rtol=1e-3, atol=1e-5)


def test_images_are_resized(classifier):
    image = images(1, 5, 17)[0]
    expected = classifier.predict([crema.io.resize_image(image, (8, 10))])
    np.testing.assert_allclose(classifier.predict([image]), expected, rtol=1e-3, atol=1e-5)


def test_subclasses(files):
    class Mine(crema.Classifier):
        def __init__(self, folder_of_files):
            super().__init__(*folder_of_files)

    assert Mine(files).predict(images(1), oversample=False).shape == (1, 5)


def test_without_files_it_learns():
    learner = crema.Classifier(hidden=(4,), epochs=1, verbose=0)
    assert not isinstance(learner, crema.Net) and hasattr(learner, 'fit')


def test_errors(files, classifier, tmp_path):
    with pytest.raises((crema.Error, OSError), match='none.caffemodel'):
        crema.Classifier(files[0], str(tmp_path / 'none.caffemodel'))
    with pytest.raises(ValueError, match='image_dims'):
        crema.Classifier(*files, image_dims=(3, 10))
    with pytest.raises(ValueError, match='Mean channels'):
        crema.Classifier(*files, mean=np.zeros(4))
    with pytest.raises(ValueError, match='one image'):
        classifier.predict([])
    with pytest.raises(ValueError, match='resize_image'):
        classifier.predict([np.zeros((4, 6))])


def run_script(*arguments):
    return subprocess.run([sys.executable, '-m', 'crema.scripts.classify', *map(str, arguments)],
                          capture_output=True,
                          text=True)


def test_script(files, classifier, tmp_path):
    inputs = images(2)
    folder = tmp_path / 'images'
    folder.mkdir()
    for number, image in enumerate(inputs):
        Image.fromarray((image * 255).astype(np.uint8)).save(folder / f'{number}.png')
    np.save(tmp_path / 'inputs.npy', np.array([crema.io.load_image(folder / f'{number}.png') for number in (0, 1)]))
    np.save(tmp_path / 'mean.npy', np.tile(MEAN[:, np.newaxis, np.newaxis], (1, 9, 9)))
    flags = [
        '--model_def', files[0], '--pretrained_model', files[1], '--images_dim', '8,10', '--mean_file',
        tmp_path / 'mean.npy'
    ]
    expected = classifier.predict(np.load(tmp_path / 'inputs.npy'))
    for source, more in ((folder, ['--ext', 'png']), (tmp_path / 'inputs.npy', []), (folder / '0.png', [])):
        found = run_script(source, tmp_path / 'out.npy', *flags, *more)
        assert found.returncode == 0, found.stderr
        assert 'CPU mode' in found.stdout
        result = np.load(tmp_path / 'out.npy')
        np.testing.assert_allclose(result, expected[:len(result)], rtol=1e-5)
    assert run_script(folder, tmp_path / 'centre.npy', *flags, '--ext', 'png', '--center_only').returncode == 0
    np.testing.assert_allclose(np.load(tmp_path / 'centre.npy'),
                               classifier.predict(np.load(tmp_path / 'inputs.npy'), False),
                               rtol=1e-5)
    found = run_script(folder, tmp_path / 'none.npy', *flags)
    assert found.returncode == 1 and '.jpg' in found.stderr and 'Traceback' not in found.stderr


def test_as_notebooks_do_it(files, classifier):
    """What notebooks for Caffe write, line by line."""
    net = crema.Net(files[0], files[1], crema.TEST)
    transformer = crema.io.Transformer({'data': net.blobs['data'].data.shape})
    transformer.set_transpose('data', (2, 0, 1))
    transformer.set_mean('data', MEAN)
    transformer.set_raw_scale('data', 255)
    transformer.set_channel_swap('data', (2, 1, 0))
    image = images(1, 4, 6)[0]
    net.blobs['data'].reshape(1, 3, 4, 6)
    net.blobs['data'].data[...] = transformer.preprocess('data', image)
    output = net.forward()
    np.testing.assert_allclose(output['prob'], probabilities(classifier, [image]), rtol=1e-3, atol=1e-5)
    assert output['prob'][0].argmax() == output['prob'].argmax()
    np.testing.assert_allclose(transformer.deprocess('data', net.blobs['data'].data[0]), image, atol=1e-5)
    mean = crema.io.caffe_pb2.BlobProto()
    mean.ParseFromString(crema.io.array_to_blobproto(np.ones((1, 3, 4, 6))).SerializeToString())
    assert crema.io.blobproto_to_array(mean)[0].mean(1).mean(1).tolist() == [1, 1, 1]
    weights = crema.proto.caffe_pb2.NetParameter()
    with open(files[1], 'rb') as file:
        weights.ParseFromString(file.read())
    layer = next(layer for layer in weights.layer if layer.name == 'ip')
    np.testing.assert_allclose(crema.io.blobproto_to_array(layer.blobs[0]), net.params['ip'][0].data, rtol=1e-6)
