"""Solvers: training from Python, callbacks, readers, Ctrl-C, and what scripts of Caffe call."""
import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest

import crema

NET = """
  layer { name: "data" type: "Input" top: "data" top: "label"
          input_param { shape { dim: 16 dim: 6 } shape { dim: 16 } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
          inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
  layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
  layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
          inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
"""
SOLVER = """
net_param { %s }
test_iter: 2 test_interval: 1000 test_initialization: false
base_lr: 0.1 lr_policy: "step" gamma: 0.5 stepsize: 100 momentum: 0.9
max_iter: 30 random_seed: 3 snapshot_after_train: false
""" % NET
CONVOLUTION = """
net_param {
  layer { name: "data" type: "DummyData" top: "data" top: "label"
          dummy_data_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } shape { dim: 2 }
                             data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" } } }
  layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
          convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
          inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
}
base_lr: 0.1 lr_policy: "fixed" random_seed: 1
"""


def make(extra="", solver_class=None, prefix="unused", text_of=SOLVER, **options):
    text = text_of + f'snapshot_prefix: "{prefix}"\n' + extra
    make_solver = solver_class or crema.get_solver
    return fill(make_solver(text=text, log=False, **options))


def fill(solver):
    random = np.random.RandomState(1)
    for net in [solver.net, *solver.test_nets]:
        net.blobs["data"].data[...] = random.randn(16, 6)
        net.blobs["label"].data[...] = net.blobs["data"].data[:, :3].argmax(axis=1)
    return solver


def weights(solver):
    return [blob.data.copy() for blobs in solver.net.params.values() for blob in blobs]


def equal(some, others):
    return all(np.array_equal(a, b) for a, b in zip(some, others))


def test_step_trains():
    solver = make()
    assert solver.iter == 0 and np.isnan(solver.loss) and solver.lr == pytest.approx(0.1)
    solver.step(1)
    first = solver.loss
    solver.step(24)
    assert solver.iter == 25 and solver.loss < first / 2


def test_solve_ends_at_max_iter():
    solver = make()
    solver.solve()
    assert solver.iter == 30
    solver.solve(None)
    assert solver.iter == 30


def test_single_steps_equal_one_call():
    one, many = make(), make()
    one.step(10)
    for _ in range(10):
        many.step(1)
    assert equal(weights(one), weights(many))


def test_seen_blobs_change_nothing():
    planned, seen = make(), make()
    planned.step(5)
    seen.step(2)
    assert seen.net.blobs["ip1"].data.min() >= 0  # after the ReLU
    seen.step(3)
    for a, b in zip(weights(planned), weights(seen)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_test_returns_means():
    solver = make()
    solver.step(30)
    net, ends = solver.test_nets[0], solver.test(0)
    assert set(ends) == {"accuracy", "loss"} and solver.test_all() == [ends]
    scores = solver.net.params["ip2"][0].data.shape
    assert scores == (3, 8)
    out = net.forward()
    assert ends["accuracy"] == pytest.approx(float(out["accuracy"])) and ends["accuracy"] > 0.5
    assert ends["loss"] == pytest.approx(float(out["loss"]), rel=1e-5)


@pytest.mark.parametrize("number", [1, -1])
def test_no_such_test_net(number):
    with pytest.raises(crema.Error, match="numbered from 0"):
        make().test(number)


@pytest.mark.parametrize("kind", ["SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam", "AdamW", "LAMB", "Lion",
                                  "Muon"])
def test_types(kind):
    text = SOLVER.replace("momentum: 0.9", "") if kind in ("AdaGrad", "RMSProp") else SOLVER
    text = text.replace("base_lr: 0.1", "base_lr: 0.01")
    cls = getattr(crema, kind + "Solver")
    by_file = fill(crema.get_solver(text=text + f'type: "{kind}"', log=False))
    by_class = fill(cls(text=text, log=False))
    assert type(by_file) is cls and by_file.type == by_class.type == kind
    before = weights(by_file)
    by_file.step(3)
    by_class.step(3)
    assert not equal(before, weights(by_file)) and equal(weights(by_file), weights(by_class))


def test_the_class_decides_the_type():
    solver = make('type: "Adam"', crema.SGDSolver)
    assert solver.type == "SGD"
    reference = make(solver_class=crema.SGDSolver)
    solver.step(2)
    reference.step(2)
    assert equal(weights(solver), weights(reference))


def test_unknown_type():
    with pytest.raises(crema.Error, match="Adam"):
        make('type: "Adma"')


def test_files(tmp_path):
    (tmp_path / "net.prototxt").write_text(NET)
    path = tmp_path / "solver.prototxt"
    path.write_text('net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" max_iter: 3 test_iter: 1 test_interval: 100\n')
    solver = crema.get_solver(path, log=False)
    assert isinstance(solver, crema.SGDSolver) and solver.param.max_iter == 3
    from crema.proto import caffe_pb2
    message = caffe_pb2.SolverParameter(base_lr=0.25, lr_policy="fixed", net=str(tmp_path / "net.prototxt"),
                                        test_iter=[1], test_interval=5)
    assert crema.SGDSolver(message, log=False).lr == pytest.approx(0.25)
    with pytest.raises(crema.Error, match="nowhere.prototxt"):
        crema.SGDSolver(str(tmp_path / "nowhere.prototxt"))
    path.write_text("base_lr: fast")
    with pytest.raises(crema.Error, match=r"solver.prototxt:1:10"):
        crema.SGDSolver(str(path))
    for arguments in [{}, {"solver_file": "a", "text": "b"}]:
        with pytest.raises(TypeError, match="one of them"):
            crema.Solver(**arguments)


def test_param():
    solver = make("display: 7")
    param = solver.param
    assert (param.max_iter, param.display, param.layer_wise_reduce) == (30, 7, True)
    assert param.momentum == pytest.approx(0.9) and list(param.test_iter) == [2]
    param.base_lr, param.max_iter, param.display = 0.5, 12, 3
    assert (param.base_lr, param.max_iter, param.display) == (0.5, 12, 3) and solver.lr == 0.5
    solver.solve()
    assert solver.iter == 12
    with pytest.raises(AttributeError, match="cannot be set"):
        param.momentum = 0.1
    with pytest.raises(AttributeError):
        param.no_such_field
    for name, value in [("base_lr", -1), ("max_iter", -1), ("display", -1), ("max_iter", 1 << 40)]:
        with pytest.raises(crema.Error, match=name):
            setattr(param, name, value)


def test_base_lr_counts():
    slow, fast = make(), make()
    slow.param.base_lr = 0
    before = weights(slow)
    slow.step(3)
    fast.step(3)
    assert equal(before, weights(slow)) and not equal(before, weights(fast))


def test_apply_update():
    solver = make()
    blob, other = solver.net.params["ip2"]
    blob.data[...] = 0
    kept = other.data.copy()
    for blobs in solver.net.params.values():
        for each in blobs:
            each.diff[...] = 0
    blob.diff[...] = 1
    solver.apply_update()
    np.testing.assert_allclose(blob.data, -0.1, rtol=1e-6)
    assert np.array_equal(other.data, kept) and solver.iter == 0


def test_snapshot_and_restore(tmp_path):
    solver = make(prefix=tmp_path / "s")
    solver.step(10)
    files = solver.snapshot()
    assert files == (f"{tmp_path}/s_iter_10.caffemodel", f"{tmp_path}/s_iter_10.solverstate")
    assert all(os.path.isfile(file) for file in files)
    solver.step(5)
    after = weights(solver)
    other = make(prefix=tmp_path / "s")
    other.restore(files[1])
    assert other.iter == 10
    other.step(5)
    assert equal(after, weights(other))
    third = make(prefix=tmp_path / "s")
    third.solve(files[1])
    assert third.iter == 30
    fourth = make(prefix=tmp_path / "s", snapshot=files[1])
    assert fourth.iter == 10
    fifth = make(weights=files[0])
    assert fifth.iter == 0 and not equal(weights(fifth), weights(make()))


def test_snapshot_errors(tmp_path):
    solver = make(prefix=tmp_path / "s")
    with pytest.raises(crema.Error, match="nothing.solverstate"):
        solver.restore(str(tmp_path / "nothing.solverstate"))
    (tmp_path / "bad.solverstate").write_bytes(b"no state")
    with pytest.raises(crema.Error, match="bad.solverstate"):
        solver.restore(str(tmp_path / "bad.solverstate"))
    before = weights(solver)
    solver.step(1)
    assert solver.iter == 1 and not equal(before, weights(solver))


def test_callbacks_in_order():
    solver, calls = make(), []
    solver.add_callback(lambda: calls.append(("start", solver.iter)), lambda: calls.append(("ready", solver.iter)))
    solver.add_callback(None, lambda: calls.append(("second", solver.iter)))
    solver.step(2)
    assert calls == [("start", 0), ("ready", 0), ("second", 0), ("start", 1), ("ready", 1), ("second", 1)]
    with pytest.raises(TypeError):
        solver.add_callback(3)


def test_callback_changes_gradients():
    solver = make()
    before = weights(solver)

    def clear():
        for blobs in solver.net.params.values():
            for blob in blobs:
                assert np.abs(blob.diff).sum() > 0
                blob.diff[...] = 0

    solver.add_callback(None, clear)
    solver.step(3)
    assert equal(before, weights(solver))


@pytest.fixture(params=["cpu", "gpu"])
def device(request):
    """What nets and solvers made in the test compute on."""
    if request.param == "gpu":
        try:
            crema.set_mode_gpu()
        except crema.Error as error:
            pytest.skip(str(error))
    yield request.param
    crema.set_mode_cpu()


@pytest.mark.usefixtures("device")
def test_callback_fills_inputs():
    """Batches that a callback gives are those of single steps with the same data."""
    batches = np.random.RandomState(5).randn(4, 16, 6)
    by_hand, by_callback = make(), make()
    for batch in batches:
        by_hand.net.blobs["data"].data[...] = batch
        by_hand.step(1)

    def give():
        by_callback.net.blobs["data"].data[...] = batches[by_callback.iter]

    by_callback.add_callback(give)
    by_callback.step(4)
    assert equal(weights(by_hand), weights(by_callback))


@pytest.mark.parametrize("moment", [0, 1])
def test_callback_raises(moment):
    solver = make()
    due = [True]

    def fail():
        if solver.iter == 2 and due.pop():
            raise KeyError("from the callback")

    functions = [None, None]
    functions[moment] = fail
    solver.add_callback(*functions)
    with pytest.raises(KeyError, match="from the callback"):
        solver.step(5)
    assert solver.iter == 2
    due.append(False)
    solver.step(3)
    assert solver.iter == 5


@pytest.mark.parametrize("call", [lambda solver: solver.step(1), lambda solver: solver.solve(),
                                  lambda solver: solver.test(), lambda solver: solver.snapshot(),
                                  lambda solver: solver.apply_update(), lambda solver: solver.restore("state"),
                                  lambda solver: solver.add_callback(None, lambda: None)])
def test_callbacks_must_not_run_the_solver(call):
    solver = make()
    solver.add_callback(lambda: call(solver))
    with pytest.raises(crema.Error, match="while (it|the solver) runs"):
        solver.step(1)
    assert solver.iter == 0


def test_readers():
    solver, seen = make("display: 2 test_interval: 4 test_compute_loss: true".replace("test_interval: 4", "")), []
    solver.add_reader(seen.append)
    solver.step(5)
    solver.test()
    kinds = [event["event"] for event in seen]
    assert kinds.count("step") == 5 and kinds.count("display") == 3 and kinds.count("test") == 1
    steps = [event for event in seen if event["event"] == "step"]
    assert [event["iteration"] for event in steps] == [1, 2, 3, 4, 5]
    assert steps[-1]["loss"] == solver.loss and steps[-1]["max_iter"] == 30
    test = seen[kinds.index("test")]
    assert test["iteration"] == 5 and set(test["outputs"]) == {"accuracy", "loss"}
    assert test["loss"] == pytest.approx(test["outputs"]["loss"], rel=1e-5)
    assert seen[kinds.index("display")]["outputs"].keys() == {"loss"}
    assert seen[kinds.index("learning_rate")]["rate"] == pytest.approx(0.1)
    solver.remove_reader(seen.append)
    count = len(seen)
    solver.step(1)
    assert len(seen) == count
    with pytest.raises(ValueError):
        solver.remove_reader(seen.append)
    with pytest.raises(TypeError):
        solver.add_reader("no function")


def test_readers_choose_events(tmp_path):
    solver, batches, saved = make(prefix=tmp_path / "s"), [], []
    solver.add_reader(batches.append, events="test_batch")
    solver.add_reader(saved.append, events=["snapshot"])
    solver.step(1)
    solver.test()
    files = solver.snapshot()
    assert [event["done"] for event in batches] == [1, 2]
    assert [(event["weights"], event["state"]) for event in saved] == [files]


def test_reader_raises():
    solver = make()

    def fail(event):
        if event["iteration"] == 2:
            raise ValueError("from the reader")

    solver.add_reader(fail, events="step")
    with pytest.raises(ValueError, match="from the reader"):
        solver.step(10)
    assert solver.iter == 2
    solver.step(1)
    assert solver.iter == 3


def test_stop():
    solver = make()
    solver.add_reader(lambda event: solver.stop() if event["iteration"] == 4 else None, events="step")
    solver.solve()
    assert solver.iter == 4
    solver.step(2)
    assert solver.iter == 6


def test_interrupt():
    """Ctrl-C ends a long step, and another one goes on."""
    solver = make()
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        solver.step(100_000_000)
    assert time.monotonic() - began < 5
    timer.join()
    done = solver.iter
    assert done > 0
    solver.step(2)
    assert solver.iter == done + 2


def test_interrupted_solve_keeps_its_work(tmp_path):
    """As the tools do: with snapshot_after_train, Ctrl-C leaves a snapshot of the last iteration."""
    solver = make(prefix=tmp_path / "s", text_of=SOLVER.replace("snapshot_after_train: false", ""))
    solver.param.max_iter = 100_000_000
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solver.solve()
    timer.join()
    assert solver.iter > 0 and os.path.isfile(tmp_path / f"s_iter_{solver.iter}.solverstate")


def test_other_threads_run_meanwhile():
    """The interpreter's lock is released while a solver computes, and two threads take turns."""
    solver, counted, running = make(), 0, True

    def train():
        nonlocal running
        solver.step(3000)
        running = False

    thread = threading.Thread(target=train)
    thread.start()
    while running:
        counted += 1
        time.sleep(0.0005)
    thread.join()
    assert counted > 2 and solver.iter == 3000
    threads = [threading.Thread(target=solver.step, args=(50,)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert solver.iter == 3200


def test_nets_outlive_the_solver():
    solver = make()
    solver.step(1)
    net, test_net, blob = solver.net, solver.test_nets[0], solver.net.params["ip1"][0]
    array = blob.data
    del solver
    gc.collect()
    assert np.isfinite(net.forward()["loss"]).all() and np.isfinite(test_net.blobs["ip2"].data).all()
    del net, test_net, blob
    gc.collect()
    assert np.isfinite(array.sum())


def test_readers_do_not_keep_a_solver():
    solver = make()
    solver.add_reader(lambda event: solver.loss)
    solver.add_callback(lambda: solver.iter)
    solver.step(1)
    gone = weakref.ref(solver)
    del solver
    gc.collect()
    assert gone() is None


def test_nets_are_the_same_objects():
    solver = make()
    assert solver.net is solver.net and solver.test_nets[0] is solver.test_nets[0]


def test_share_weights(tmp_path):
    solver = make()
    net = solver.test_nets[0]
    net.share_with(solver.net)  # as it does anyway
    (tmp_path / "net.prototxt").write_text(NET)
    other = crema.Net(str(tmp_path / "net.prototxt"), crema.TEST)
    solver.share_weights(other)
    solver.step(2)
    assert np.array_equal(other.params["ip1"][0].data, solver.net.params["ip1"][0].data)
    assert np.array_equal(net.params["ip1"][0].data, solver.net.params["ip1"][0].data)


def test_label_out_of_range():
    solver = make()
    solver.net.blobs["label"].data[3] = 7
    with pytest.raises(crema.Error, match="label"):
        solver.step(1)
    solver.net.blobs["label"].data[3] = 1
    solver.step(1)
    assert solver.iter >= 1


def test_divergence_is_an_error():
    solver = make()
    solver.net.blobs["data"].data[...] = np.nan
    with pytest.raises(crema.Diverged, match="nan"):
        solver.step(200)
    assert issubclass(crema.Diverged, crema.Error) and issubclass(crema.DeviceLost, crema.Error)


def test_held_arrays_show_new_weights():
    """An array that was taken before a step shows the weights after it, however the net keeps them."""
    solver = crema.get_solver(text=CONVOLUTION, log=False)
    held = solver.net.params["conv"][0].data
    before = held.copy()
    solver.step(2)
    assert not np.array_equal(before, held)
    assert np.array_equal(held, solver.net.params["conv"][0].data)
    held[...] = 0  # and what is written into it counts
    solver.param.base_lr = 0
    solver.step(1)
    assert not solver.net.params["conv"][0].data.any()


def test_what_is_written_into_weights_counts_in_all_nets_that_share_them():
    """Arrays that are copies, as of a planned net's weights on a CPU, and of all on a GPU."""
    net = CONVOLUTION[CONVOLUTION.index('layer { name: "conv"'):CONVOLUTION.rindex("}")]
    inputs = 'layer { name: "in" type: "Input" top: "data" top: "label" input_param { %s shape { dim: 2 } } }'
    text = CONVOLUTION.replace(CONVOLUTION[CONVOLUTION.index('layer { name: "data"'):CONVOLUTION.index('layer { name: "conv"')],
                               inputs % "shape { dim: 2 dim: 3 dim: 8 dim: 8 }")
    assert net in text
    solver = crema.get_solver(text=text + "test_iter: 1 test_interval: 100 test_initialization: false", log=False)
    test_net = solver.test_nets[0]
    test_net.blobs["data"].data[...] = 1
    before = test_net.forward()["loss"].copy()
    filters = solver.net.params["conv"][0].data
    filters[...] *= 3
    assert np.array_equal(test_net.params["conv"][0].data, filters)
    assert test_net.forward()["loss"] != before
    test_net.params["conv"][0].data[...] = 0
    assert not solver.net.params["conv"][0].data.any()


def test_share_with_a_solver(tmp_path):
    """Its weights are in the order that its kernels like, those of a net that is looked into row-major."""
    solver = crema.get_solver(text=CONVOLUTION, log=False)
    text = CONVOLUTION[CONVOLUTION.index('layer { name: "conv"'):CONVOLUTION.index('layer { name: "loss"')]
    path = tmp_path / "net.prototxt"
    path.write_text('layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }' + text)
    net, by_hand = crema.Net(str(path), crema.TEST), crema.Net(str(path), crema.TEST)
    image = np.random.RandomState(2).randn(2, 3, 8, 8)
    net.blobs["data"].data[...] = image
    net.share_with(solver.net)
    for _ in range(2):
        solver.step(2)
        for name, blobs in solver.net.params.items():
            for mine, theirs in zip(by_hand.params[name], blobs):
                mine.data[...] = theirs.data
        by_hand.forward(data=image)
        net.forward()
        for blob in ("data", "conv", "ip"):
            np.testing.assert_allclose(net.blobs[blob].data, by_hand.blobs[blob].data, rtol=1e-4, atol=1e-5)
    with pytest.raises(crema.Error, match="the solver updates"):
        solver.net.share_with(by_hand)
    net.params["conv"][0].data[...] = 0  # and what is written into them is the solver's, too
    net.forward()
    assert not solver.net.params["conv"][0].data.any()


@pytest.mark.parametrize("call", [lambda solver: solver.step(-1), lambda solver: solver.solve(3),
                                  lambda solver: solver.step("many"), lambda solver: solver.test("first")])
def test_wrong_arguments(call):
    with pytest.raises((crema.Error, TypeError)):
        call(make())


def test_as_train_py_of_caffe():
    """What Caffe's train.py does with one GPU, here on the CPU."""
    uid = crema.NCCL.new_uid()
    assert isinstance(uid, bytes)
    crema.set_solver_count(1)
    crema.set_solver_rank(0)
    crema.set_multiprocess(True)
    solver = make()
    nccl = crema.NCCL(solver, uid)
    nccl.bcast()
    solver.add_callback(nccl)
    if solver.param.layer_wise_reduce:
        solver.net.after_backward(nccl)
    solver.step(3)
    assert solver.iter == 3
    for call in [lambda: crema.set_solver_count(2), lambda: crema.set_solver_rank(1)]:
        with pytest.raises(crema.Error, match="crema train"):
            call()
