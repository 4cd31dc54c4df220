"""The functions of the module: device, seed, log, threads."""
import os
import subprocess
import sys

import pytest

import crema

NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 4 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
        inner_product_param { num_output: 2 weight_filler { type: "gaussian" } } }
"""


@pytest.fixture(scope="module")
def net_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("mode") / "net.prototxt"
    path.write_text(NET)
    return str(path)


def weights_of(path):
    return crema.Net(path, crema.TEST).params["ip"][0].data.tolist()


def run(code, **environment):
    """What another interpreter says on stderr."""
    clean = {name: value for name, value in os.environ.items() if name != "GLOG_minloglevel"}
    done = subprocess.run([sys.executable, "-c", "import crema\n" + code], env={**clean, **environment}, text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_seed(net_file):
    crema.set_random_seed(7)
    first, second = weights_of(net_file), weights_of(net_file)
    assert first != second
    crema.set_random_seed(7)
    assert [weights_of(net_file), weights_of(net_file)] == [first, second]
    crema.set_random_seed(8)
    assert weights_of(net_file) != first


def test_seed_of_solvers(net_file):
    text = f'net: "{net_file}" base_lr: 0.1 lr_policy: "fixed" max_iter: 1 '
    crema.set_random_seed(7)
    assert crema.SGDSolver(text=text, log=False).seed == 7
    assert crema.SGDSolver(text=text, log=False).seed != 7
    assert crema.SGDSolver(text=text + "random_seed: 5", log=False).seed == 5


def test_seeds_differ_from_run_to_run(net_file):
    code = f"import sys; sys.stderr.write(repr(crema.Net({net_file!r}, 1).params['ip'][0].data.tolist()))"
    assert run(code, GLOG_minloglevel="3") != run(code, GLOG_minloglevel="3")


def test_devices():
    crema.set_mode_cpu()
    with pytest.raises(crema.Error, match="numbered from 0"):
        crema.set_device(-1)
    with pytest.raises(crema.Error):
        crema.set_device(4096)
    with pytest.raises(TypeError):
        crema.set_device("first")


@pytest.mark.parametrize("environment, before, cases", [
    ({}, 1, [("init_log()", 1), ("init_log(1)", 0), ("init_log(0, True)", 1), ("init_log(2)", 0), ("init_log()", 1),
             ("init_log(0, stderr=False)", 0), ("init_log(0)", 1), ("init_log(3)", 0)]),
    ({"GLOG_minloglevel": "2"}, 0, [("init_log(0)", 1)])])
def test_log(environment, before, cases):
    code = "".join(f"crema.{call}\ncrema.log('line {number}\\nbroken')\n" for number, (call, _) in enumerate(cases, 1))
    text = run("crema.log('line 0')\n" + code, **environment)
    expected = [before] + [lines for _, lines in cases]
    assert [text.count(f"line {number}") for number in range(len(expected))] == expected
    assert text.count("\n") == sum(expected)


def test_log_looks_as_that_of_the_tools(net_file):
    text = run(f"crema.Net({net_file!r}, crema.TEST)")
    assert "Initializing net" in text
    assert all(line[:1] in "IWE" and line[5:6] == " " for line in text.splitlines() if "] " in line)


def test_log_levels():
    for level in (-1, 4):
        with pytest.raises(crema.Error, match="init_log"):
            crema.init_log(level)


def test_threads():
    before = crema.get_threads()
    crema.set_threads(1)
    assert crema.get_threads() == 1
    crema.set_threads(0)
    assert crema.get_threads() == before
    for number in (-1, 1025, 2**31 - 1):
        with pytest.raises(crema.Error, match="threads up to 1024"):
            crema.set_threads(number)


def test_layer_types():
    types = crema.layer_type_list()
    assert len(types) > 60 and {"Data", "Convolution", "Python", "SoftmaxWithLoss"} <= set(types)
    assert not [type for type in types if "+" in type]  # the planner's


def test_constants():
    assert (crema.TRAIN, crema.TEST) == (0, 1)
    assert crema.__version__.count(".") == 2 and crema.__version__.replace(".", "").isdigit()
    assert crema.solver_count() == 1 and crema.solver_rank() == 0 and crema.has_nccl() in (True, False)


def test_timer():
    timer = crema.Timer()
    for call in (timer.stop, lambda: timer.ms):
        with pytest.raises(crema.Error, match="start"):
            call()
    timer.start()
    timer.stop()
    stopped = timer.ms
    assert 0 <= stopped < 1000 and timer.ms == stopped
