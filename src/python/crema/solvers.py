"""Solvers: train a net with a solver's prototxt, in one go or step by step."""
import os

from . import _crema

__all__ = ["Solver", "SGDSolver", "NesterovSolver", "AdaGradSolver", "RMSPropSolver", "AdaDeltaSolver", "AdamSolver",
           "AdamWSolver", "LAMBSolver", "LionSolver", "MuonSolver", "get_solver"]


class SolverParam:
    """The fields of the solver's file, as in SolverParameter: solver.param.max_iter, .momentum, ...

    base_lr, max_iter and display can be set, for the iterations to come.
    """

    def __init__(self, solver):
        object.__setattr__(self, "_solver", solver)

    def _message(self):
        solver = self._solver
        if solver._message is None:
            from .proto import caffe_pb2
            solver._message = caffe_pb2.SolverParameter.FromString(solver._parameter())
        return solver._message

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._message(), name)

    def __setattr__(self, name, value):
        setters = {"base_lr": self._solver._set_base_lr, "max_iter": self._solver._set_max_iter,
                   "display": self._solver._set_display}
        if name not in setters:
            raise AttributeError(f"solver.param.{name} cannot be set: only {', '.join(setters)} can")
        setters[name](value)
        self._solver._message = None

    def __dir__(self):
        return [field.name for field in self._message().DESCRIPTOR.fields]

    def __repr__(self):
        return str(self._message())


class Solver(_crema.Solver):
    """A training run: net, test nets, update rule and iteration count.

    solver_file: a solver.prototxt, or a SolverParameter of crema.proto.caffe_pb2.
    text: a solver's text in place of a file.
    weights: files to start from, .caffemodel or .h5: a name or a list.
    snapshot: a .solverstate to resume from.
    level, stages: added to the solver's train_state.
    precision: "fp32", or on a GPU "tf32", "bf16", "fp16"; default: the file's, else tf32 on a GPU.
    log: False keeps this solver's lines out of the log.

    It computes on the device that set_mode_cpu(), set_mode_gpu() and set_device() have chosen. Nets run planned: the
    first access to a blob between inputs and outputs of solver.net makes that net keep its blobs from then on. Fill
    Input layers through solver.net.blobs["data"].data[...]. Ctrl-C ends step() or solve() after the current iteration
    with KeyboardInterrupt; the solver can continue afterwards. Two threads take turns. Mistakes in files are
    crema.Error.
    """

    _type = ""  # of the class; "": the file's
    _readers, _callbacks, _message = (), (), None

    def __init__(self, solver_file=None, *, text=None, weights=(), snapshot="", level=None, stages=(), precision="",
                 log=True):
        source, is_text = _source(solver_file, text)
        weights = [weights] if isinstance(weights, (str, os.PathLike)) else (weights or [])
        super().__init__(source, is_text, self._type, [os.fspath(file) for file in weights],
                         os.fspath(snapshot or ""), level, list(stages or ()), precision or "", log)
        self._nets = [self.net, *self.test_nets]  # so that solver.net is the same object each time

    @property
    def param(self):
        """The fields of the solver's file; base_lr, max_iter and display can be set."""
        return SolverParam(self)

    @property
    def type(self):
        """The update rule: "SGD", "Adam", ..."""
        return self.param.type

    def solve(self, resume_file=None):
        """Trains up to max_iter, with the tests and snapshots that the solver asks for.

        resume_file: a .solverstate to resume from.
        """
        super().solve(os.fspath(resume_file or ""))

    def step(self, iterations):
        """Trains that many iterations, with the tests, displays and snapshots that are due."""
        super().step(iterations)

    def restore(self, file):
        """Restores a snapshot, a .solverstate: weights, history, iteration and position in the data."""
        super().restore(os.fspath(file))

    def snapshot(self):
        """Writes weights and state now. Returns the names of the two files."""
        return super().snapshot()

    def test(self, net=0):
        """Runs a test net for its test_iter batches.

        Returns a dict from each output to its mean: a number, or a list if it has several elements; with
        test_compute_loss also "loss". It counts as a test of the run, for example for keep_best. None if stop() ended
        it.
        """
        return super().test(net)

    def test_all(self):
        """Runs all test nets. Returns a list of dicts, see test()."""
        return super().test_all()

    def share_weights(self, net):
        """Shares the parameters of solver.net with another net, matched by layer name; both then use the same
        memory."""
        net.share_with(self.net)

    def apply_update(self):
        """One update from the current gradients of solver.net. The iteration count does not change."""
        super().apply_update()

    def stop(self):
        """Ends the running step() or solve() after its iteration, without an exception. Any thread may call it."""
        super().stop()

    def add_callback(self, on_start, on_gradients_ready=None):
        """Calls functions without arguments in each iteration: on_start before its forward pass, on_gradients_ready
        before its update. Either may be None. An exception that they raise ends the step.

        Accepts an NCCL, as Caffe's scripts pass it: with one rank it does nothing.
        """
        if isinstance(on_start, _crema.NCCL):
            return
        for function in (on_start, on_gradients_ready):
            if function is not None and not callable(function):
                raise TypeError(f"add_callback: {function!r} cannot be called")
        if on_start is not None:
            self._call_on_start()
        if on_gradients_ready is not None:
            self._call_on_gradients_ready()
        self._callbacks = (*self._callbacks, (on_start, on_gradients_ready))

    def add_reader(self, reader, events=None):
        """Calls reader(event) for events of the run, with a dict: the name as "event", and its fields.

        events: the names to report; None: all but "test_batch". They are
        "start", "end" (iteration, early),
        "step" (after each iteration: iteration, max_iter, loss; makes a GPU compute one iteration at a time),
        "display" (iteration, loss, iterations_per_second, outputs), "learning_rate" (at displays: iteration, rate),
        "test" (iteration, net, outputs, with test_compute_loss loss), "test_begin", "test_batch" (net, done, batches),
        "epoch" (with epoch_log: epoch, epochs, iteration, seconds, train, test), "snapshot" (iteration, weights,
        state),
        "snapshot_failed", "restored", "final_loss" (iteration, loss), "early_stopped", "learning_rate_step",
        "gradients_clipped", "non_finite_loss", "update_skipped", "rolled_back", "confusion", "warning" (text).
        Readers are called between iterations and should be quick. An exception from a reader ends the run after the
        current iteration. remove_reader() ends the calls.
        """
        if not callable(reader):
            raise TypeError(f"add_reader: {reader!r} cannot be called")
        names = None if events is None else frozenset([events] if isinstance(events, str) else events)
        self._set_readers((*self._readers, (reader, names)))

    def remove_reader(self, reader):
        """Stops calling a reader. Raises ValueError if it is not registered."""
        kept = tuple(entry for entry in self._readers if entry[0] != reader)
        if len(kept) == len(self._readers):
            raise ValueError(f"remove_reader: {reader!r} is not a reader of this solver")
        self._set_readers(kept)

    def _set_readers(self, readers):
        often = {"step", "test_batch"}
        self._set_wanted(bool(readers), any(names is None or names & often for _, names in readers))
        self._readers = readers

    # Called by the running solver.

    def _on_event(self, event):
        name = event["event"]
        for reader, names in self._readers:
            if name in names if names is not None else name != "test_batch":
                reader(event)

    def _on_start(self):
        for function, _ in self._callbacks:
            if function is not None:
                function()

    def _on_gradients_ready(self):
        for _, function in self._callbacks:
            if function is not None:
                function()

    def _repr_html_(self):
        from .display import solver_html
        return solver_html(self)

    def __repr__(self):
        return f"<crema.{type(self).__name__} iter={self.iter} net={self.net!r}>"


def _source(solver_file, text):
    if (solver_file is None) == (text is None):
        raise TypeError("a solver is made from a file or from text=: give one of them")
    if text is not None:
        return text, True
    if hasattr(solver_file, "SerializeToString"):
        return str(solver_file), True
    return os.fspath(solver_file), False


class SGDSolver(Solver):
    """A Solver with stochastic gradient descent and momentum, whatever type the file names."""
    _type = "SGD"


class NesterovSolver(Solver):
    """A Solver with Nesterov's accelerated gradient, whatever type the file names."""
    _type = "Nesterov"


class AdaGradSolver(Solver):
    """A Solver with AdaGrad, whatever type the file names."""
    _type = "AdaGrad"


class RMSPropSolver(Solver):
    """A Solver with RMSProp, whatever type the file names."""
    _type = "RMSProp"


class AdaDeltaSolver(Solver):
    """A Solver with AdaDelta, whatever type the file names."""
    _type = "AdaDelta"


class AdamSolver(Solver):
    """A Solver with Adam, whatever type the file names."""
    _type = "Adam"


class AdamWSolver(Solver):
    """A Solver with AdamW, whatever type the file names."""
    _type = "AdamW"


class LAMBSolver(Solver):
    """A Solver with LAMB, whatever type the file names."""
    _type = "LAMB"


class LionSolver(Solver):
    """A Solver with Lion, whatever type the file names."""
    _type = "Lion"


class MuonSolver(Solver):
    """A Solver with Muon, whatever type the file names."""
    _type = "Muon"


_CLASSES = {cls._type.lower(): cls for cls in Solver.__subclasses__()}


def get_solver(solver_file=None, *, text=None, **options) -> Solver:
    """Opens a solver of the type that the file names: an SGDSolver, AdamSolver, ... Arguments are those of Solver."""
    kind = _crema.solver_type(*_source(solver_file, text))
    return _CLASSES[kind.lower()](solver_file, text=text, **options)
