"""A layer without a net, for layer tests, as in Caffe branches with an extended Python interface.

    layer = caffe.create_layer(caffe_pb2.LayerParameter(type='Sigmoid'))
    bottom, top = [caffe.Blob((2, 3))], [caffe.Blob([])]
    layer.SetUp(bottom, top)
    bottom[0].data[...] = 1
    layer.Forward(bottom, top)
"""
import tempfile

from ._crema import TEST, TRAIN, Net
from .proto import caffe_pb2

__all__ = ['LoneLayer', 'create_layer']


class LoneLayer:
    """Made by create_layer(). Bottoms and tops are lists of Blob."""

    def __init__(self, message):
        self.layer_param = caffe_pb2.LayerParameter()
        self.layer_param.CopyFrom(message)
        self._net = None

    @property
    def type(self):
        """The layer's type, such as "Convolution"."""
        return self.layer_param.type

    @property
    def blobs(self):
        """The parameters, after SetUp()."""
        return self._made().layer_dict['layer'].blobs

    def SetUp(self, bottom, top):
        """Makes the layer for bottoms of these shapes, and gives the tops theirs."""
        net = caffe_pb2.NetParameter(force_backward=True)
        for i, blob in enumerate(bottom):
            source = net.layer.add(type='Input', name=f'bottom{i}', top=[f'bottom{i}'])
            source.input_param.shape.add(dim=blob.shape)
        layer = net.layer.add()
        layer.CopyFrom(self.layer_param)
        layer.name = 'layer'
        layer.bottom[:] = [f'bottom{i}' for i in range(len(bottom))]
        layer.top[:] = [f'top{i}' for i in range(len(top))]
        phase = self.layer_param.phase if self.layer_param.HasField('phase') else TRAIN
        with tempfile.NamedTemporaryFile('w', suffix='.prototxt') as file:
            file.write(str(net))
            file.flush()
            self._net = Net(file.name, TEST if phase == caffe_pb2.TEST else TRAIN)
        self._shape_tops(top)

    def Reshape(self, bottom, top):
        """Gives the tops the shapes that follow from the bottoms'."""
        net = self._made()
        for i, blob in enumerate(bottom):
            net.blobs[f'bottom{i}'].reshape(*blob.shape)
        net.reshape()
        self._shape_tops(top)

    def Forward(self, bottom, top):
        """Computes the tops. Returns the sum of the losses."""
        self.Reshape(bottom, top)
        net = self._net
        for i, blob in enumerate(bottom):
            net.blobs[f'bottom{i}'].data[...] = blob.data
        loss = net._forward(0, len(net.layers) - 1)
        self._shape_tops(top)  # they may depend on the values
        for i, blob in enumerate(top):
            blob.data[...] = net.blobs[f'top{i}'].data
        return loss

    def Backward(self, top, propagate_down, bottom):
        """Computes the gradients of the bottoms from those of the tops; those of parameters are added up."""
        net = self._made()
        for i, blob in enumerate(top):
            net.blobs[f'top{i}'].diff[...] = blob.diff
        net._backward(len(net.layers) - 1, 0)
        for i, (blob, wanted) in enumerate(zip(bottom, propagate_down)):
            if wanted:
                blob.diff[...] = net.blobs[f'bottom{i}'].diff

    def _made(self):
        if self._net is None:
            raise RuntimeError('the layer is not made yet: call SetUp(bottom, top) first')
        return self._net

    def _shape_tops(self, top):
        for i, blob in enumerate(top):
            blob.reshape(*self._net.blobs[f'top{i}'].shape)


def create_layer(layer_param):
    """A layer of its own from a LayerParameter: SetUp(), Reshape(), Forward() and Backward() take lists of Blob."""
    if not isinstance(layer_param, caffe_pb2.LayerParameter):
        raise TypeError(f'create_layer() takes a LayerParameter, not {type(layer_param).__name__}')
    return LoneLayer(layer_param)
