"""Sends a run folder of `crema train -run` to MLflow or Weights & Biases, while the run is going on or later:

    python3 -m crema.track RUN -to mlflow,wandb

A process of its own, so that it can neither stop nor slow down the run. `crema train -track` starts it. Uses the standard
library only, and the package `wandb` for Weights & Biases.
"""
