"""The extension module; crema presents it. Written by src/python/stubs.py."""
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union, overload

import numpy

TEST: int
TRAIN: int
__version__: str

def get_threads() -> int:
    """The number of threads that compute on the CPU."""
    ...

def has_nccl() -> bool:
    """Whether several GPUs can train together through NCCL."""
    ...

def init_log(level: int = 0, stderr: bool = True) -> None:
    """Chooses which lines of the log are written to stderr: 0 all of them (that is so from the start,
    unless the environment variable GLOG_minloglevel says another number when crema is imported),
    1 warnings and errors, 2 errors, 3 nothing. With stderr=False only errors."""
    ...

def layer_type_list() -> List[str]:
    """The names of all layer types."""
    ...

def log(message: str) -> None:
    """Writes a line to the log, with the file and line of the caller."""
    ...

def net_text(network_file: object, phase: int, level: int = 0, stages: object = None) -> str:
    """The net of a file as it is made for a phase, as text: includes, variables and repeats are
    written out, old fields in today's form, and layers of other phases are left out. Nothing is computed."""
    ...

def set_device(number: int) -> None:
    """Chooses the GPU for set_mode_gpu(), counted from 0. Error when there is no such GPU."""
    ...

def set_mode_cpu() -> None:
    """Nets and solvers made from now on compute on the CPU."""
    ...

def set_mode_gpu() -> None:
    """Nets and solvers made from now on compute on the GPU that set_device() chose, or the first. Error when there is none."""
    ...

def set_multiprocess(multiprocess: bool) -> None:
    """As Caffe's: scripts of one rank may call it."""
    ...

def set_random_seed(seed: int) -> None:
    """Seeds what is made from now on: the next net or solver (unless its file has a random_seed) takes
    this seed, as random_seed in a solver, and later ones take numbers that follow from it."""
    ...

def set_solver_count(count: int) -> None:
    """As Caffe's; a count above 1 is an Error that explains how to start several ranks."""
    ...

def set_solver_rank(rank: int) -> None:
    """As Caffe's; a rank must be 0."""
    ...

def set_threads(threads: int) -> None:
    """Sets the number of CPU threads for all later calls; 0: one per processor."""
    ...

def solver_count() -> int:
    """The number of solvers that train together: 1."""
    ...

def solver_rank() -> int:
    """The number of this solver: 0."""
    ...

def solver_type(file: str, is_text: bool = False) -> str:
    """The type of a solver's file: "SGD", ..."""
    ...

class Blob:
    """An array of a net, or one of its own: values (data) and their gradient (diff)."""
    def __array__(self, dtype: object = None, copy: object = None) -> object: ...
    def __dlpack__(self, stream: object = None) -> object:
        """The values for another library, without a copy: torch.from_dlpack(blob)."""
        ...
    def __dlpack_device__(self) -> tuple: ...
    def __init__(self, shape: object) -> None:
        """A blob of this shape, filled with zeros."""
        ...
    def __repr__(self) -> str: ...
    @property
    def channels(self) -> int:
        """The second of four extents."""
        ...
    @property
    def count(self) -> int:
        """The number of values."""
        ...
    @property
    def data(self) -> numpy.ndarray:
        """The values, a float32 array. On a CPU it is the net's own memory; otherwise a copy, which is written back before the next pass if it was changed."""
        ...
    @data.setter
    def data(self, value: numpy.ndarray) -> None: ...
    @property
    def diff(self) -> numpy.ndarray:
        """The gradient, an array like data; zeros where the net computes none."""
        ...
    @diff.setter
    def diff(self, value: numpy.ndarray) -> None: ...
    @property
    def height(self) -> int:
        """The third of four extents."""
        ...
    @property
    def name(self) -> str:
        """Its name in the net, or ""."""
        ...
    @property
    def num(self) -> int:
        """The first of four extents."""
        ...
    def reshape(self, *args: Any) -> None:
        """Gives the blob other extents: reshape(n, c, h, w). Of a net only inputs can be reshaped; the other blobs follow with Net.reshape() or the next forward(). Values stay in place, in row-major order."""
        ...
    @property
    def shape(self) -> tuple:
        """The extents, a tuple; the slowest axis first."""
        ...
    @property
    def width(self) -> int:
        """The last of four extents."""
        ...
    ...

class BlobVec(list):
    """The parameters of a layer: a list of Blob."""
    ...

class DeviceLost(Error):
    """The GPU is lost to this process; the message names the snapshot to resume from."""
    ...

class Diverged(Error):
    """Loss or weights have become NaN or infinite: the message names the iteration, the layer and the blob."""
    ...

class Error(RuntimeError):
    """An error in crema: files, shapes, devices. Mistakes in files come with file:line:column."""
    ...

class Layer:
    """Base class of layers written in Python; a net uses it with

        layer { name: "loss" type: "Python" bottom: "x" bottom: "y" top: "loss"
                python_param { module: "my_layers" layer: "MyLoss" param_str: "0.5" } }

    where my_layers.py is in PYTHONPATH, the working directory or the folder of the prototxt. Its methods
    get lists of Blob, whose data and diff are NumPy arrays (write into them: top[0].data[...] = x):

        setup(bottom, top)       once: reads self.param_str, adds parameters (self.blobs.add_blob(3, 4))
        reshape(bottom, top)     gives the tops their shapes: top[0].reshape(*bottom[0].shape)
        forward(bottom, top)     writes top[i].data, and may reshape the tops before
        backward(top, propagate_down, bottom)
                                 writes bottom[i].diff from top[i].diff where propagate_down[i] is true, and
                                 adds to self.blobs[i].diff

    Attributes: param_str, phase (crema.TRAIN or crema.TEST), name, blobs, type; pass_number, how many passes the
    net ran before this one: data that depend on it alone are the same after a resume; rank and ranks of a training by
    several, each of which makes its own part of a batch. A class may use these names for values of its own.
    loss_parts = 'mean' or 'sum' of a class says how the losses of several ranks become that of a batch they share.
    An exception in a method ends the pass with a crema.Error, whose __cause__ is that exception."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    blobs: Any
    name: Any
    param_str: Any
    param_str_: Any
    pass_number: Any
    phase: Any
    rank: Any
    ranks: Any
    def setup(self, bottom: object, top: object) -> None:
        """Called once. Does nothing."""
        ...
    type: Any
    ...

class LayerBlobs:
    """The parameters of a layer: a sequence of Blob."""
    def __getitem__(self, index: int) -> Blob: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __len__(self) -> int: ...
    def add_blob(self, *args: Any) -> Blob:
        """Adds a parameter of this shape, at first zero, and returns its Blob: add_blob(10, 3). For a Layer's setup()."""
        ...
    ...

class NCCL:
    """What Caffe's train.py makes for each rank. One rank has nobody to exchange gradients with:
    it can be given to Solver.add_callback() and Net.after_backward(), and does nothing."""
    def __call__(self, *args: Any) -> None: ...
    def __init__(self, solver: object, uid: bytes) -> None: ...
    def bcast(self) -> None:
        """The weights of rank 0 to all ranks: there is one."""
        ...
    @staticmethod
    def new_uid() -> bytes:
        """Bytes that identify the group of ranks."""
        ...
    @property
    def solver(self) -> object: ...
    ...

class Net:
    """A net that computes.

    network_file: a prototxt. phase: crema.TRAIN or crema.TEST, which with level and stages chooses among its layers. weights: a .caffemodel or .h5 file, or a list of them, to load.
    planned: layers are fused and memory is used again, which is faster and smaller; only inputs and outputs can then be seen. precision: "fp32", or on a GPU "tf32", "bf16", "fp16".
    Error with file:line:column for a mistake in the file.

    A net is used by one thread at a time: another one waits."""
    @overload
    def __init__(self, network_file: object, phase: int, level: int = 0, stages: object = None, weights: object = None, planned: bool = False, precision: str = '') -> None: ...
    @overload
    def __init__(self, network_file: object, weights: object, phase: int, planned: bool = False, precision: str = '') -> None: ...
    @overload
    def __init__(self, network_file: object, weights: str) -> None: ...
    def __repr__(self) -> str: ...
    def after_backward(self, callback: Callable[..., Any]) -> None:
        """Calls callback(layer index) after each layer's backward."""
        ...
    def after_forward(self, callback: Callable[..., Any]) -> None:
        """Calls callback(layer index) after each layer's forward."""
        ...
    def backward(self, diffs=None, start=None, end=None, **kwargs: Any) -> Dict[str, numpy.ndarray]:
        """One backward pass. It adds to the gradients of parameters (clear_param_diffs() sets them to zero).

        diffs: names of blobs whose gradients to return besides the inputs'. start, end: the names of the first (upper) and
        the last layer to run; None: the net's last and first. Other keywords are gradients of the net's outputs: either all
        of them or none.
        Returns a dict of arrays by name: the gradients of the inputs, or with `end` of the bottoms of that layer."""
        ...
    def backward_from_layer(self, start_name, start_diff, diffs=None, zero_higher=False) -> Any:
        """One backward pass from the middle of the net, of the deep visualization toolbox.

        start_name: the layer to begin with. start_diff: the gradient of its top. diffs: names of blobs whose gradients to
        return besides the inputs'. zero_higher: set the gradients of the blobs above to zero, which they truly are.
        Returns a dict of arrays by name: the gradients of the inputs and of `diffs`."""
        ...
    def before_backward(self, callback: Callable[..., Any]) -> None:
        """Calls callback(layer index) before each layer's backward."""
        ...
    def before_forward(self, callback: Callable[..., Any]) -> None:
        """Calls callback(layer index) before each layer's forward."""
        ...
    @property
    def blob_loss_weights(self) -> Dict[str, float]:
        """The loss weight of each blob: an OrderedDict of numbers."""
        ...
    @property
    def blobs(self) -> Dict[str, Blob]:
        """The blobs by name, in the order in which layers make them: an OrderedDict of Blob."""
        ...
    @property
    def bottom_names(self) -> Dict[str, List[str]]:
        """The names of each layer's bottoms, by layer: an OrderedDict of lists."""
        ...
    def clear_param_diffs(self) -> None:
        """Sets the gradients of all parameters to zero; backward() adds to them."""
        ...
    def copy_from(self, path: object) -> None:
        """Loads weights from a .caffemodel or .h5 file, matched by the layers' names."""
        ...
    def deconv_from_layer(self, start_name, start_diff, diffs=None, zero_higher=False, deconv_type='Zeiler & Fergus') -> Any:
        """The same with ReLUs that let only positive gradients through: with deconv_type 'Zeiler & Fergus' all of these,
        with 'Guided Backprop' those of values that were positive."""
        ...
    def forward(self, blobs=None, start=None, end=None, **kwargs: Any) -> Dict[str, numpy.ndarray]:
        """One forward pass.

        blobs: names of blobs to return besides the outputs. start, end: the names of the first and the last layer to run;
        None: the net's. Other keywords are the net's inputs: either all of them or none, in which case they keep their
        values.
        Returns a dict of arrays by name: the outputs, or with `end` the tops of that layer. They are views of the blobs, so
        they change with the next pass."""
        ...
    def forward_all(self, blobs=None, **kwargs: Any) -> Dict[str, numpy.ndarray]:
        """Runs forward() on arrays of any length, batch by batch; the last batch is filled up with zeros.

        blobs, keywords: as in forward(). Returns a dict of arrays by name, as long as what was given."""
        ...
    def forward_backward_all(self, blobs=None, diffs=None, **kwargs: Any) -> Any:
        """Runs forward() and backward() on arrays of any length, batch by batch; the last batch is filled up with zeros.

        blobs, diffs, keywords: as in forward() and backward(). Returns two dicts of arrays by name: blobs and gradients."""
        ...
    @property
    def inputs(self) -> List[str]:
        """The names of the blobs that a program fills: tops of Input layers."""
        ...
    @property
    def layer_dict(self) -> Dict[str, NetLayer]:
        """The layers by name: an OrderedDict."""
        ...
    @property
    def layers(self) -> List[NetLayer]:
        """The layers in order, with those of type Split that hand a blob on to several readers. A layer written in Python is
        the object of its class."""
        ...
    def load_hdf5(self, path: object) -> None:
        """Loads weights from an .h5 file."""
        ...
    @property
    def name(self) -> str:
        """The name that the file gives the net."""
        ...
    @property
    def outputs(self) -> List[str]:
        """The names of the blobs that no layer reads: the net's results."""
        ...
    @property
    def params(self) -> Dict[str, List[Blob]]:
        """The parameters by layer: an OrderedDict of lists of Blob, weights first, then the bias."""
        ...
    @property
    def phase(self) -> int:
        """crema.TRAIN or crema.TEST."""
        ...
    @property
    def planned(self) -> bool:
        """Opened with planned=True."""
        ...
    def reshape(self) -> None:
        """Gives all blobs the shapes that follow from those of the inputs. Error when a layer cannot take them; then all inputs keep the shapes that they had."""
        ...
    def save(self, path: object) -> None:
        """Writes the weights as a .caffemodel; the file is complete or absent."""
        ...
    def save_hdf5(self, path: object) -> None:
        """Writes the weights as an .h5 file; the file is complete or absent."""
        ...
    def set_input_arrays(self, data, labels, layer='') -> Any:
        """Gives a MemoryData layer its images (N x C x H x W) and labels (N); N must be a multiple of its batch size. The
        next pass begins with the first of them. layer: its name; by default the net's first layer."""
        ...
    def share_with(self, other: Net) -> None:
        """Uses the other net's parameters for layers of the same name, from now on."""
        ...
    @property
    def top_names(self) -> Dict[str, List[str]]:
        """The names of each layer's tops, by layer: an OrderedDict of lists."""
        ...
    ...

class NetLayer:
    """A layer of a net."""
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __repr__(self) -> str: ...
    @property
    def blobs(self) -> Dict[str, Blob]:
        """Its parameters, a list of Blob: weights first, then the bias."""
        ...
    @property
    def name(self) -> str:
        """Its name in the file."""
        ...
    @property
    def type(self) -> str:
        """Its type, such as "Convolution"."""
        ...
    ...

class RawBlobVec(list):
    """The bottoms or tops of a layer: a list of Blob."""
    ...

class Solver:
    def __init__(self, file: str, is_text: bool, type: str, weights: List[str], snapshot: str, level: Optional[int], stages: List[str], precision: str, log: bool) -> None: ...
    def apply_update(self) -> None: ...
    @property
    def iter(self) -> int:
        """The number of completed iterations."""
        ...
    @property
    def loss(self) -> float:
        """The training loss: the mean over the last average_loss iterations (1 unless the solver says
        another number); nan before the first."""
        ...
    @property
    def lr(self) -> float:
        """The learning rate of the next iteration."""
        ...
    @property
    def net(self) -> Net:
        """The net in training."""
        ...
    def restore(self, file: str) -> None: ...
    @property
    def seed(self) -> int:
        """The seed of this training."""
        ...
    def snapshot(self) -> tuple: ...
    def solve(self, resume_file: str = '') -> None: ...
    def step(self, iterations: int) -> None: ...
    def stop(self) -> None: ...
    def test(self, net: int = 0) -> object: ...
    def test_all(self) -> list: ...
    @property
    def test_nets(self) -> List[Net]:
        """The nets of the tests, a list."""
        ...
    ...

class Timer:
    """A stopwatch."""
    def __init__(self) -> None: ...
    @property
    def ms(self) -> float:
        """Milliseconds from start() to stop(), or until now."""
        ...
    def start(self) -> None:
        """Starts, or starts again from 0."""
        ...
    def stop(self) -> None:
        """Stops."""
        ...
    ...
