"""Common parts of crema.Classifier and crema.Regressor."""

import inspect
import sys
import time
from typing import TypeVar

import numpy as np

from . import learn_nets
from .learner import Learner
from .proto import caffe_pb2

_Self = TypeVar('_Self')

# Base rates and other settings of each solver type, used if neither the keywords nor `solver` set
# them.
BASE_RATES = {"SGD": 0.01, "Nesterov": 0.01, "AdaGrad": 0.01, "AdaDelta": 1.0}
TYPE_FIELDS = {
    "AdaDelta": {"momentum": 0.95, "delta": 1e-6},
    "AdaGrad": {"momentum": 0.0},
    "RMSProp": {"momentum": 0.0, "rms_decay": 0.98},
    "Adam": {"momentum": 0.9, "momentum2": 0.999},
}


def seed_of(random_state):
    """A seed from None (different each time), an integer, or a NumPy generator."""
    if random_state is None:
        return int(np.random.default_rng().integers(1, 2**31))
    if hasattr(random_state, "integers"):
        return int(random_state.integers(1, 2**31))
    if hasattr(random_state, "randint"):
        return int(random_state.randint(1, 2**31 - 1))
    return int(random_state)


class Estimator:
    """Base of Classifier and Regressor; see Classifier for the arguments."""

    _loss = None

    def __init__(
        self,
        net=None,
        solver=None,
        *,
        hidden=(100,),
        type=None,
        base_lr=None,
        momentum=None,
        weight_decay=None,
        lr_policy=None,
        epochs=20,
        batch_size=32,
        validation_split=0.0,
        shuffle=True,
        random_state=None,
        verbose=1,
    ):
        self.net = net
        self.solver = solver
        self.hidden = hidden
        self.type = type
        self.base_lr = base_lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.lr_policy = lr_policy
        self.epochs = epochs
        self.batch_size = batch_size
        self.validation_split = validation_split
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def _parameter_names(cls):
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep=True):
        """The arguments of the constructor as a dict."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params):
        """Sets arguments of the constructor, for the next fit. Raises ValueError for an unknown name. Returns self."""
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(
                    "%s has no parameter %r; it has %s" % (self.__class__.__name__, name, ", ".join(names))
                )
            setattr(self, name, value)
        return self

    def __repr__(self):
        defaults = inspect.signature(self.__class__.__init__).parameters
        given = (
            "%s=%r" % (name, value) for name, value in self.get_params().items() if value is not defaults[name].default
        )
        return "%s(%s)" % (self.__class__.__name__, ", ".join(given))

    def fit(self: _Self, X, y, validation_data=None) -> _Self:
        """Trains from scratch.

        X: samples, (N, features) or images (N, H, W), (N, C, H, W), or (N, H, W, C) where C is 1, 3 or 4. y: a label
        for each. validation_data: a pair (X, y) to test after each epoch; otherwise validation_split of the samples is
        held out for it. Returns self. Raises ValueError for arrays that do not match, Error for errors of net and
        solver.
        """
        X, y = self._checked(X, y)
        self._prepare(y)
        self._generator = generator = np.random.default_rng(
            None if self.random_state is None else seed_of(self.random_state)
        )
        if validation_data is not None:
            validation_data = self._checked(*validation_data)
        elif self.validation_split > 0:
            order = generator.permutation(len(X))
            held = int(round(len(X) * float(self.validation_split)))
            if not 0 < held < len(X):
                raise ValueError(
                    "validation_split=%s of %d samples leaves nothing to learn from or to test"
                    % (self.validation_split, len(X))
                )
            validation_data = X[order[:held]], y[order[:held]]
            X, y = X[order[held:]], y[order[held:]]
        self._make(X, y)
        for epoch in range(1, int(self.epochs) + 1):
            self._epoch(X, y, generator, validation_data, int(self.epochs))
        return self

    def _learn_again(self, X, y):
        if not hasattr(self, "_learner"):
            self._generator = np.random.default_rng(None if self.random_state is None else seed_of(self.random_state))
            self._make(X, y)
        self._epoch(X, y, self._generator, None, len(self.history_) + 1)
        return self

    def _checked(self, X, y=None):
        if hasattr(X, "toarray"):
            raise TypeError("X is a sparse matrix, which is not supported: pass X.toarray()")
        X = np.asarray(X)
        if X.ndim < 2:
            raise ValueError(
                "X has shape %s, but needs a row for each sample, (N, features), or images, (N, C, H, W). Reshape your "
                "data: X.reshape(-1, 1) if it has one feature, X.reshape(1, -1) if it is one sample" % (X.shape,)
            )
        if len(X) == 0:
            raise ValueError("X has no samples")
        if X.size == 0:
            raise ValueError("X has 0 feature(s) (shape=%s) while a minimum of 1 is required." % (X.shape,))
        if np.iscomplexobj(X):
            raise ValueError("Complex data not supported: X has type %s" % X.dtype)
        if not np.issubdtype(X.dtype, np.number) and X.dtype != bool:
            X = X.astype(np.float32)
        if not np.isfinite(X).all():
            raise ValueError("X has values that are NaN or infinity")
        if y is None:
            return X
        y = np.asarray(y)
        if y.ndim == 0 or len(y) != len(X):
            raise ValueError("X has %d samples, y has %d labels" % (len(X), y.size))
        return X, y

    @staticmethod
    def _sample_shape(X):
        """That of a sample as a net sees it."""
        shape = X.shape[1:]
        if len(shape) == 2:
            return (1,) + shape
        if len(shape) == 3 and shape[2] in (1, 3, 4) and shape[0] not in (1, 3, 4):
            return (shape[2],) + shape[:2]
        return shape

    def _make(self, X, y):
        sample = self._sample_shape(X)
        batch = max(1, min(int(self.batch_size), len(X)))
        net = (
            learn_nets.read_message(self.net)
            if self.net is not None
            else learn_nets.default_net(sample, self._outputs(y), self.hidden)
        )
        learn_net = learn_nets.for_arrays(net, sample, batch, self._label_shape(y), self._loss)
        # Our own nets scale byte pictures to numbers from 0 to 1; your net gets them unchanged.
        if self.net is None and X.dtype == np.uint8:
            learn_net.inputs.set_scale(1 / 255)
        updates = int(self.epochs) * -(-len(X) // batch)
        self.n_features_in_ = int(np.prod(X.shape[1:]))
        self.history_ = []
        learner = Learner(learn_net, self._solver_message(updates), self.shuffle)
        self._check_scores(learner.test_net.blobs[learn_net.scores].shape)
        self._learner = learner

    def _solver_message(self, updates):
        message = (
            learn_nets.read_message(self._solver_text(), "solver")
            if self.solver is not None
            else caffe_pb2.SolverParameter()
        )
        for field in (
            "net",
            "net_param",
            "train_net",
            "train_net_param",
            "test_net",
            "test_net_param",
            "test_iter",
            "test_state",
            "test_interval",
            "snapshot",
            "epoch_log",
            "max_epoch",
            "test_interval_epoch",
            "test_epoch",
            "snapshot_epoch",
        ):
            if field in message.DESCRIPTOR.fields_by_name:
                message.ClearField(field)
        if self.type is not None or not message.HasField("type"):
            message.type = self.type or ("SGD" if self.solver is not None else "Adam")
        fields = {"base_lr": BASE_RATES.get(message.type, 0.001), "momentum": 0.9, "lr_policy": "fixed"}
        fields.update(TYPE_FIELDS.get(message.type, {}))
        for field, value in fields.items():
            if not message.HasField(field):
                setattr(message, field, value)
        for field in ("base_lr", "momentum", "weight_decay", "lr_policy"):
            if getattr(self, field) is not None:
                setattr(message, field, getattr(self, field))
        message.max_iter = updates
        message.display = 0
        message.random_seed = seed_of(self.random_state)
        message.snapshot_after_train = False
        return message

    def _solver_text(self):
        if not isinstance(self.solver, dict):
            return self.solver
        message = caffe_pb2.SolverParameter()
        for field, value in self.solver.items():
            if field not in message.DESCRIPTOR.fields_by_name:
                raise ValueError("a solver has no field %r" % field)
            if isinstance(value, (list, tuple)):
                getattr(message, field).extend(value)
            else:
                setattr(message, field, value)
        return message

    def _epoch(self, X, y, generator, validation_data, epochs):
        begun = time.perf_counter()
        results = self._learner.epoch(X, self._targets(y), generator)
        if validation_data is not None:
            tested = self._learner.test(validation_data[0], self._targets(validation_data[1]))
            results.update(("val_" + name, value) for name, value in tested.items())
        seconds = time.perf_counter() - begun
        self.history_.append(dict(epoch=len(self.history_) + 1, seconds=seconds, **results))
        if self.verbose:
            print(
                "Epoch %d/%d: %.*fs%s"
                % (
                    len(self.history_),
                    epochs,
                    2 if seconds < 10 else 0,
                    seconds,
                    "".join(" - %s: %.4f" % item for item in results.items()),
                ),
                flush=True,
            )

    @property
    def net_(self):
        """The crema.Net that predicts, with the current weights."""
        return self._fitted().current_net()

    def _fitted(self):
        if not hasattr(self, "_learner"):
            # scikit-learn's own exception, an AttributeError, for programs that have it.
            kind = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", AttributeError)
            raise kind("this %s is not fitted: call fit(X, y) first" % self.__class__.__name__)
        return self._learner

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_learner")

    def _answers(self, X, probabilities=False):
        learner, X = self._fitted(), self._checked(X)
        if int(np.prod(X.shape[1:])) != self.n_features_in_:
            raise ValueError(
                "X has %d values a sample, but this %s was fitted with %d"
                % (np.prod(X.shape[1:]), self.__class__.__name__, self.n_features_in_)
            )
        return learner.answers(X, probabilities)
