"""net_spec.layers as a package, so that modules can be imported from it, such as those of NVIDIA's Caffe:
caffe.layers.detectnet.clustering.
"""
import sys

from .. import net_spec

net_spec.layers.__path__ = __path__
net_spec.layers.__spec__ = __spec__
sys.modules[__name__] = net_spec.layers
