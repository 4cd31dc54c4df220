"""Live curves of a training run."""

import time


def pyplot():
    """matplotlib's pyplot, or an ImportError that says what to install."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError("crema.plot needs matplotlib: pip install matplotlib") from error
    return plt


def in_notebook():
    """Whether IPython with a rich display is running."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


class LivePlot:
    """Loss, test results and learning rate of a solver, plotted live in a notebook.

        with crema.plot.LivePlot(solver, "curves.png"):
            solver.solve()

    Outside of notebooks nothing is drawn until the end, when the plot is written to `path` (None: nowhere).
    `every`: seconds between two drawings. Without `display` in the solver the loss is also read that often.
    losses, rates: lists of (iteration, value); tests: such a list for each output of the first test net, by name.
    """

    def __init__(self, solver, path=None, every=0.5, size=(9, 4), log=False):
        self.solver, self.path, self.every, self.size, self.log = solver, path, every, size, log
        self.losses, self.rates, self.tests = [], [], {}
        self._drawn = 0.0
        self._handle = self._display = None
        if in_notebook():
            from IPython import display

            self._display = display
        self._open = True
        events = {"display", "final_loss", "learning_rate", "test"}
        if not solver.param.display:
            events.add("step")
        solver.add_reader(self.read, events)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def read(self, event):
        """Takes an event of the solver, a dict."""
        kind = event["event"]
        if kind in ("display", "final_loss"):
            self._add_loss(event["iteration"], event["loss"])
        elif kind == "learning_rate":
            self.rates.append((event["iteration"], event["rate"]))
        elif kind == "test" and event.get("net", 0) == 0:
            for name, value in event["outputs"].items():
                if isinstance(value, list):  # an output of several values has no curve
                    continue
                self.tests.setdefault(name, []).append((event["iteration"], value))
        elif kind == "step" and self._due():
            self._add_loss(event["iteration"], event["loss"])
            self.rates.append((event["iteration"], self.solver.lr))
            self._drawn = time.monotonic()
        else:
            return
        if self._display is not None and self._due():
            self.show()

    def _due(self):
        return time.monotonic() - self._drawn >= self.every

    def _add_loss(self, iteration, loss):
        if loss == loss:
            self.losses.append((iteration, loss))

    def figure(self):
        """A matplotlib figure of the data so far; close it with pyplot.close(figure)."""
        plt = pyplot()
        scores = {name: points for name, points in self.tests.items() if "loss" not in name}
        test_losses = {name: points for name, points in self.tests.items() if "loss" in name}
        figure, axes = plt.subplots(1, 2, figsize=self.size, constrained_layout=True)
        draw_lines(
            axes[0], {"training loss": self.losses, **{"test " + name: points for name, points in test_losses.items()}}
        )
        axes[0].set(title="Loss", xlabel="iteration", ylabel="loss")
        if self.log:
            axes[0].set_yscale("log")
        draw_lines(axes[1], {"test " + name: points for name, points in scores.items()}, "center right", marker="o")
        rates = axes[1].twinx() if scores else axes[1]
        if self.rates:
            rates.plot(*zip(*self.rates), color="tab:gray", linewidth=1, linestyle="--")
        rates.set_ylabel("learning rate", color="tab:gray")
        rates.tick_params(axis="y", colors="tab:gray")
        rates.set_ylim(bottom=0)
        rates.spines["top"].set_visible(False)
        axes[1].set(title="Tests and learning rate" if scores else "Learning rate", xlabel="iteration")
        return figure

    def show(self):
        """Redraws the notebook's cell."""
        figure = self.figure()
        pyplot().close(figure)
        if self._handle is None:
            self._handle = self._display.display(figure, display_id=True)
        else:
            self._handle.update(figure)
        self._drawn = time.monotonic()

    def save(self, path):
        """Writes the plot; its suffix is the format."""
        figure = self.figure()
        figure.savefig(path, dpi=120)
        pyplot().close(figure)

    def close(self):
        """Draws one last time, writes the file, and stops following the solver."""
        if not self._open:
            return
        self._open = False
        self.solver.remove_reader(self.read)
        if self._display is not None:
            self.show()
        if self.path is not None:
            self.save(self.path)


def draw_lines(axes, lines, place="best", **style):
    """Draws lists of (x, y) with a legend of their names."""
    for name, points in lines.items():
        if points:
            axes.plot(*zip(*points), label=name, markersize=3, **style)
    if any(lines.values()):
        axes.legend(frameon=False, loc=place)
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
