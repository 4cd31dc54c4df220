"""Trains on arrays, scikit-learn style: Classifier().fit(X, y).predict(X), and Regressor.

crema.Classifier is two classes: with the files of a net and its weights it is pycaffe's (crema.classifier), otherwise
the one here, crema.learn.Classifier.
"""

import numpy as np

from .learn_estimator import Estimator


class Classifier(Estimator):
    """A neural network classifier trained on arrays, scikit-learn style.

    net: a path of a prototxt file, a text or a NetSpec. X and y replace its data layers, whose transform_param (mean,
        scale, crop, mirror, gray) is applied to X. None: a small net for the shape of X, fully
        connected layers for (N, features), convolutions before them for images; it maps bytes (uint8) to numbers from 0
        to 1.
    solver: a path, a text or a dict of a solver's fields. These keywords, if not None, replace its fields:
    type, base_lr, momentum, weight_decay, lr_policy: without a solver "Adam" at a rate of 0.001.
    hidden: units of the fully connected layers of the small net.
    epochs, batch_size: passes over the samples, and samples per step.
    validation_split: the fraction of the samples that fit holds out to test after each epoch.
    shuffle: a new order in each epoch. random_state: a seed; results are reproducible.
    verbose: 0 omits the line for each epoch.

    After fit: classes_, history_ (a dict for each epoch), net_ (a crema.Net), n_features_in_. It computes on the device
    that crema.set_mode_cpu, set_mode_gpu and set_device have chosen.
    """

    _estimator_type = "classifier"
    _loss = "SoftmaxWithLoss"

    def __sklearn_tags__(self):
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(two_d_array=True, three_d_array=True),
        )

    def partial_fit(self, X, y, classes=None) -> 'Classifier':
        """One more epoch with these samples; the first call needs all `classes` of later calls too. Returns self."""
        X, y = self._checked(X, y)
        if not hasattr(self, "_learner"):
            self._prepare(y if classes is None else np.asarray(classes))
        return self._learn_again(X, y)

    def predict(self, X) -> np.ndarray:
        """The class of each sample, one of classes_."""
        scores = self._class_scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def predict_proba(self, X) -> np.ndarray:
        """The probability of each class for each sample, (N, classes).

        Error for a net whose loss has no probabilities.
        """
        if self._fitted().net.probabilities is None:
            raise AttributeError("this net does not learn probabilities: its loss is not SoftmaxWithLoss")
        return self._class_scores(X, True)

    def decision_function(self, X):
        """The scores before the softmax, (N, classes); for two classes the lead of the second, (N,)."""
        scores = self._class_scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def score(self, X, y, sample_weight=None) -> float:
        """The accuracy of predict on these samples."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def _class_scores(self, X, probabilities=False):
        answers = self._answers(X, probabilities)
        return answers.reshape(len(answers), -1)[:, : len(self.classes_)]

    def _check_scores(self, shape):
        if np.prod(shape[1:]) < len(self.classes_):
            raise ValueError("the net gives %d scores, but y has %d classes" % (np.prod(shape[1:]), len(self.classes_)))

    def _prepare(self, y):
        if y.ndim != 1:
            raise ValueError("y has shape %s: a classifier needs one label for each sample" % (y.shape,))
        if np.issubdtype(y.dtype, np.floating):
            if not np.isfinite(y).all():
                raise ValueError("y has labels that are NaN or infinity")
            if (y != np.floor(y)).any():
                raise ValueError(
                    "Unknown label type: y has numbers that are not whole, such as %s; crema.Regressor learns numbers"
                    % y[y != np.floor(y)][0]
                )
        self.classes_ = np.unique(y)
        self.__dict__.pop("_learner", None)

    def _outputs(self, y):
        return len(self.classes_)

    def _label_shape(self, y):
        return ()

    def _targets(self, y):
        places = np.searchsorted(self.classes_, y)
        places[places == len(self.classes_)] = 0
        unknown = self.classes_[places] != y
        if unknown.any():
            raise ValueError("the class %r is not one of those learned" % (y[unknown][:1].tolist()[0],))
        return places


class Regressor(Estimator):
    """A neural network regressor trained on arrays, scikit-learn style.

    The arguments are Classifier's. y is (N,) or (N, outputs); a net without a loss gets EuclideanLoss.
    """

    _estimator_type = "regressor"
    _loss = "EuclideanLoss"

    def __sklearn_tags__(self):
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(two_d_array=True, three_d_array=True),
        )

    def partial_fit(self, X, y) -> 'Regressor':
        """One more epoch with these samples. Returns self."""
        X, y = self._checked(X, y)
        if not hasattr(self, "_learner"):
            self._prepare(y)
        return self._learn_again(X, y)

    def predict(self, X) -> np.ndarray:
        """The net's prediction for each sample, in the shape of y."""
        return self._answers(X).reshape((-1,) + self._target_shape)

    def score(self, X, y, sample_weight=None) -> float:
        """R^2, the fraction of y's variance that predict explains: 1 at best, 0 for a constant mean."""
        y = np.asarray(y, np.float64).reshape(len(y), -1)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        errors = (weights[:, None] * (y - self.predict(X).reshape(y.shape)) ** 2).sum(axis=0)
        spread = (weights[:, None] * (y - np.average(y, axis=0, weights=weights)) ** 2).sum(axis=0)
        return float(np.mean(1 - errors / np.maximum(spread, np.finfo(np.float64).tiny)))

    def _prepare(self, y):
        if not np.isfinite(np.asarray(y, np.float64)).all():
            raise ValueError("y has values that are NaN or infinity")
        self._target_shape = y.shape[1:]
        self.__dict__.pop("_learner", None)

    def _outputs(self, y):
        return int(np.prod(y.shape[1:]))

    def _label_shape(self, y):
        return y.shape[1:] or (1,)

    def _check_scores(self, shape):
        if np.prod(shape[1:]) != np.prod(self._target_shape):
            raise ValueError(
                "the net gives %d numbers a sample, but y has %d" % (np.prod(shape[1:]), np.prod(self._target_shape))
            )

    def _targets(self, y):
        if y.shape[1:] != self._target_shape:
            raise ValueError(
                "y has shape %s, but this Regressor was fitted with (N,%s)"
                % (y.shape, ", ".join(map(str, self._target_shape)))
            )
        return np.asarray(y, np.float32).reshape((len(y),) + self._label_shape(y))
