"""Trains for crema.learn: a solver and a net for tests, both fed from arrays."""

import contextlib
import os
import re
import tempfile

import numpy as np

from . import _crema
from .proto import caffe_pb2


@contextlib.contextmanager
def quiet_log():
    """Warnings and errors only: the log of a net and a solver is long."""
    level = _crema._exchange_log_level(1)
    _crema._exchange_log_level(max(level, 1))
    try:
        yield
    finally:
        _crema._exchange_log_level(level)


class Learner:
    """A solver and a net for tests, both fed from arrays.

    test_net has the weights of the solver's net from its last use; `changed`: they are outdated.
    """

    def __init__(self, net, solver_message, shuffle):
        self.net, self.shuffle = net, shuffle
        self.solver_message = solver_message
        self.solver = self.test_net = None
        self.start()

    def start(self):
        import crema  # which imports this file

        with tempfile.TemporaryDirectory(prefix="crema-") as folder, quiet_log():
            net = os.path.join(folder, "net.prototxt")
            with open(net, "w", encoding="utf-8") as file:
                file.write(self.net.text)
            self.solver_message.net = net
            try:
                self.solver = crema.get_solver(text=str(self.solver_message), log=False)
                self.test_net = crema.Net(net, crema.TEST, planned=True)
            except crema.Error as error:
                # The file is temporary; the layer's name tells the user where to look.
                raise crema.Error(re.sub(re.escape(net) + r"(:\d+)*:? ?", "", str(error))) from None
        self.changed = True

    def epoch(self, X, targets, generator):
        """Shows each sample to the solver once, the last batch filled up with the epoch's first.

        Returns the means of the outputs.
        """
        order = generator.permutation(len(X)) if self.shuffle else np.arange(len(X))
        net = self.solver.net
        data, label = net.blobs[self.net.data], net.blobs[self.net.label]
        batch = data.shape[0]
        sums, batches = {}, 0
        self.changed = True  # also where an epoch is interrupted
        for begin in range(0, len(order), batch):
            chosen = np.take(order, range(begin, begin + batch), mode="wrap")
            data.data[...] = self.net.inputs.arrays(X[chosen], generator)
            label.data[...] = targets[chosen]
            self.solver.step(1)
            batches += 1
            self._add(sums, net, 1)
        return self._ordered(sums, batches)

    def test(self, X, targets):
        """The means of the test net's outputs over these samples."""
        sums, net = {}, self.current_net()
        for begin, end in self._batches(len(X)):
            self._feed(net, X[begin:end])
            net.blobs[self.net.label].data[...] = targets[begin:end]
            net.forward()
            self._add(sums, net, end - begin)
        return self._ordered(sums, len(X))

    def answers(self, X, probabilities=False):
        """The scores of these samples, or their probabilities."""
        net = self.current_net()
        blob = self.net.probabilities if probabilities else self.net.scores
        found = []
        for begin, end in self._batches(len(X)):
            self._feed(net, X[begin:end])
            net.blobs[self.net.label].data[...] = 0
            net.forward()
            found.append(np.array(net.blobs[blob].data))
        return np.concatenate(found)

    def current_net(self):
        """The test net with the weights of the last update."""
        if self.changed:
            learned = self.solver.net.params
            for name, blobs in self.test_net.params.items():
                for blob, source in zip(blobs, learned[name]):
                    blob.data[...] = source.data
            self.changed = False
        return self.test_net

    def _batches(self, count):
        batch = max(self.solver.net.blobs[self.net.data].shape[0], 1)
        return [(begin, min(begin + batch, count)) for begin in range(0, count, batch)]

    def _feed(self, net, X):
        blob = net.blobs[self.net.data]
        if blob.shape[0] != len(X):
            label = net.blobs[self.net.label]
            blob.reshape(len(X), *list(blob.shape)[1:])
            label.reshape(len(X), *list(label.shape)[1:])
            net.reshape()
        blob.data[...] = self.net.inputs.arrays(X)

    def _add(self, sums, net, weight):
        """Adds up scalar outputs; a loss is its layer's value, without its weight."""
        for name in net.outputs:
            value = net.blobs[name].data
            if name not in (self.net.scores, self.net.probabilities) and value.size == 1:
                sums[name] = sums.get(name, 0.0) + weight * float(value.reshape(-1)[0])

    def _ordered(self, sums, count):
        """Means, losses first."""
        names = sorted(sums, key=lambda name: "loss" not in name)
        return {name: sums[name] / count for name in names}

    def __getstate__(self):
        """Stores the weights instead of solver and net: after pickling, training continues with a new solver."""
        state = dict(self.__dict__)
        state["weights"] = {
            name: [np.array(blob.data) for blob in blobs] for name, blobs in self.current_net().params.items()
        }
        state["solver_message"] = self.solver_message.SerializeToString()
        state["solver"] = state["test_net"] = None
        return state

    def __setstate__(self, state):
        weights = state.pop("weights")
        self.__dict__.update(state)
        self.solver_message = caffe_pb2.SolverParameter.FromString(self.solver_message)
        self.start()
        for name, blobs in self.solver.net.params.items():
            for blob, values in zip(blobs, weights[name]):
                blob.data[...] = values
        self.changed = True
