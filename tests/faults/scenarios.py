"""What faults.py disturbs: commands on a prepared folder, and which files they must give."""

NET = """name: "small"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { scale: 0.00390625 } data_param { source: "train_lmdb" backend: LMDB batch_size: 4 } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { scale: 0.00390625 } data_param { source: "train_lmdb" backend: LMDB batch_size: 4 } }
CONVOLUTION
layer { name: "ip" type: "InnerProduct" bottom: "FEATURES" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
"""
CONVOLUTION = """layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
"""
SOLVER = """net: "net.prototxt" base_lr: 0.1 momentum: 0.9 lr_policy: "fixed" max_iter: 12 display: 4 test_iter: 2 test_interval: 6
snapshot: 4 snapshot_prefix: "s" random_seed: 7 solver_mode: CPU
"""
TEXTS = {
    "net.prototxt": NET.replace("CONVOLUTION\n", "").replace("FEATURES", "data"),
    "conv.prototxt": NET.replace("CONVOLUTION\n", CONVOLUTION).replace("FEATURES", "pool"),
    "solver.prototxt": SOLVER,
}


class Scenario:
    def __init__(self, name, command, results, prepare=(), precious=()):
        """`results`: files, or databases, that an undisturbed run leaves and every recovery must give. `prepare`: commands that
        make what is there before. `precious`: patterns of files of that which nothing may change."""
        self.name, self.command, self.results, self.prepare, self.precious = name, command, results, prepare, precious


TRAIN = "train -solver solver.prototxt"
FINAL = ["s_iter_12.caffemodel", "s_iter_12.solverstate"]
FOUR = f"{TRAIN} -set max_iter=4"
SCENARIOS = [
    Scenario("train", TRAIN, FINAL),
    # oneDNN and the plain kernels that replace it do not give the same bits.
    Scenario("train conv", f"{TRAIN} -set net=conv.prototxt", ["s_iter_12.caffemodel?", "s_iter_12.solverstate?"]),
    Scenario("train hdf5", f"{TRAIN} -set snapshot_format=HDF5", ["s_iter_12.caffemodel.h5"]),
    Scenario("train run", f"{TRAIN} -run run -snapshot auto -tensorboard run/board", ["run/snapshots/s_iter_12.caffemodel"]),
    # The state says which snapshots there are: other ones after one could not be written.
    Scenario("train auto", f"{TRAIN} -snapshot auto -set keep_last=1", ["s_iter_12.caffemodel", "s_iter_12.solverstate?"], [FOUR]),
    Scenario("resume", f"{TRAIN} -snapshot s_iter_4.solverstate", FINAL, [FOUR], ["s_iter_4."]),
    Scenario("resume run", f"{TRAIN} -run run -snapshot auto", ["run/snapshots/s_iter_12.caffemodel"],
             [f"{TRAIN} -run run -set max_iter=4"], ["run/snapshots/s_iter_4."]),
    Scenario("weights", f"{TRAIN} -weights w.caffemodel", FINAL,
             [f"{TRAIN} -set max_iter=1 -set snapshot_prefix=w", "!mv w_iter_1.caffemodel w.caffemodel; rm w_iter_1.solverstate"],
             ["w.caffemodel"]),
    Scenario("lmdb", "convert_imageset -overwrite pictures/ list.txt made", ["made/"]),
    Scenario("lmdb again", "convert_imageset -overwrite pictures/ list.txt made", ["made/"],
             ["convert_imageset pictures/ short.txt made"]),
    Scenario("leveldb", "convert_imageset -overwrite -backend leveldb pictures/ list.txt made", ["made/"],
             ["convert_imageset -backend leveldb pictures/ short.txt made"]),
    Scenario("hdf5", "convert_imageset -overwrite -backend hdf5 pictures/ list.txt made", ["made.txt"],
             ["convert_imageset -backend hdf5 pictures/ short.txt made"]),
    Scenario("db copy", "crema db copy -overwrite train_lmdb made", ["made/"], ["crema db copy train_lmdb made"]),
    Scenario("db split", "crema db split -overwrite -split 0.5 train_lmdb part", ["part_train/", "part_val/"], [], ["train_lmdb/"]),
    Scenario("db shuffle", "crema db shuffle -overwrite train_lmdb made", ["made/"], [], ["train_lmdb/"]),
    Scenario("mean", "compute_image_mean train_lmdb mean.binaryproto", ["mean.binaryproto"]),
    Scenario("deploy", "deploy -model net.prototxt -output deploy.prototxt", ["deploy.prototxt"]),
    Scenario("draw", "crema draw conv.prototxt -output net.svg", ["net.svg?"], ["crema draw net.prototxt -output net.svg"]),
    Scenario("compare", "crema compare s_iter_4.caffemodel s_iter_8.caffemodel", [], [f"{TRAIN} -set max_iter=8"],
             ["s_iter_4.", "s_iter_8."]),
    Scenario("test", "crema test -model net.prototxt -weights s_iter_4.caffemodel -iterations 2", [], [FOUR], ["s_iter_4."]),
    Scenario("surgery", "crema surgery -model net.prototxt -weights s_iter_4.caffemodel -output f.prototxt -output_weights f.caffemodel",
             ["f.prototxt", "f.caffemodel"], [FOUR], ["s_iter_4.caffemodel"]),
    Scenario("report", "crema report metrics.jsonl -output report.html", ["report.html?"], [FOUR], ["metrics.jsonl"]),
]
