"""Exports the nets of models/ and tests/corpus and verifies them: models_onnx.py TOOLS PYTHON [NAME ...]

TOOLS is the folder of the programs, PYTHON one that has ONNX Runtime, and whichever of OpenVINO, OpenCV 5 and ncnn should
run them. Each net of tests/models/models.rows trains two iterations on random data at the row's small size, so that its
statistics are not those of a new net, and so does each of the corpus, whose names begin with corpus/; then `crema export`
writes it and compares every blob. Prints a line for each; exit code 1 if one fails.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Deep nets that have hardly trained amplify rounding: two implementations of Crema differ as much.
TOLERANCE = "3e-3"
# Nets that differ or are refused for a reason that is no defect of ours.
KNOWN = {
    "rfcn": "after two iterations its scores are equal up to 3e-8, and OpenVINO's keep_top_k keeps another one",
    "corpus/chosen_items": "random numbers",
    "corpus/clips_segments": "a Reshape has the batch; -batch 6",
    "corpus/paired_digits": "Decode",
    "corpus/random_field": "MultiStageMeanfield",
    "corpus/rcnn_finetune": "a STOCHASTIC pooling divides by sums of both signs",
    "corpus/ssd_focal": "RegionPooling",
    "corpus/ssd_small": "pnnx 20261020 drops the axis of a sum over channels",
    "corpus/yolo2_small": "pnnx 20261020 reads SpaceToDepth as PixelUnshuffle, which orders channels otherwise",
}
ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def net_of(solver):
    """The net that a solver, or a file that it includes, names."""
    text = solver.read_text()
    found = re.search(r'^\s*(?:net|train_net):\s*"([^"]+)"', text, re.M)
    if found:
        return found.group(1)
    return net_of(solver.parent / re.search(r'include:\s*"([^"]+)"', text).group(1))


SETTINGS = {"max_iter": 2, "snapshot": 0, "test_interval": 1000000, "test_initialization": "false", "base_lr": 1e-6,
            "random_seed": 1}


def trained_corpus(tools, name, folder):
    """As trained(), for a net of tests/corpus; its first lines may say what -assume gets."""
    net = ROOT / f"tests/{name}.prototxt"
    text = net.read_text()
    found = re.search(r"# assume: *(\S+)", text)
    assume = ["-assume", found[1] if found else "default"]
    # Some read other data in tests.
    phase = ["-phase", "TRAIN"] if "phase: TRAIN" in text else []
    solver = pathlib.Path(folder) / "solver.prototxt"
    solver.write_text(f'net: "{net}" lr_policy: "fixed" snapshot_prefix: "{folder}/net" ' +
                      " ".join(f"{key}: {value}" for key, value in SETTINGS.items()))
    code, _, err = run([f"{tools}/train", "-solver", str(solver), "-tune", "off", *assume])
    if code:
        return [], f"train: {err.splitlines()[-1]}"
    return ["-model", str(net), "-weights", f"{folder}/net_iter_2.caffemodel", "-weights_mode", "match", *assume,
            *phase], ""


def trained(tools, row, folder):
    """Trains a net of models.rows: what `crema export` needs of it as flags, or why it cannot be trained."""
    name, solver, settings, of_one, _, _, _, shapes, *_ = [part.strip() for part in row.split("|")]
    words = settings.split()
    flags = [word for word in words if word.startswith("-")]
    for word in words:
        if not word.startswith("-"):
            flags += ["-set", word]
    shapes = shapes.split(";")[-1].strip()
    # Some tops are of the training phase only.
    in_test = {shape.split("=")[0] for shape in of_one.split(";")[-1].strip().split(",")}
    in_use = ",".join(shape for shape in shapes.split(",") if shape.split("=")[0] in in_test)
    sets = [*(f"{key}={value}" for key, value in SETTINGS.items()), "test_epoch=false", "epoch_log=false",
            f"snapshot_prefix={folder}/{name}"]
    train = [f"{tools}/train", "-solver", f"models/{solver}", "-assume", shapes, *flags]
    for setting in sets:
        train += ["-set", setting]
    code, _, err = run(train)
    if code:
        return [], f"train: {err.splitlines()[-1]}"
    weights = next(pathlib.Path(folder).glob(f"{name}_iter_*.caffemodel"))
    return ["-model", net_of(ROOT / "models" / solver), "-weights", str(weights), "-weights_mode", "match", "-assume", in_use,
            *flags], ""


def exported(tools, flags, *more):
    """The lines of `crema export` on results, its warnings and its exit code."""
    code, out, err = run([f"{tools}/crema", "export", *flags, *more])
    lines = [line for line in out.splitlines() if " random inputs; " in line]
    warnings = [line for line in err.splitlines() if line.startswith(("E", "W", "error", "warning"))]
    return "; ".join(lines + warnings) + ("" if code == 0 else f" exit code {code}")


def for_each_net(tools, names, export, known):
    """Prints what `export`, called with the flags and a folder, says of each net; returns the program's exit code."""
    failed = 0
    nets = {row.split("|")[0].strip(): lambda folder, row=row: trained(tools, row, folder)
            for row in (ROOT / "tests/models/models.rows").read_text().splitlines() if not row.startswith("#")}
    for file in sorted((ROOT / "tests/corpus").glob("*.prototxt")):
        name = f"corpus/{file.stem}"
        nets[name] = lambda folder, name=name: trained_corpus(tools, name, folder)
    for name, train in nets.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            flags, result = train(folder)
            if not result:
                result = export(flags, f"{folder}/{pathlib.Path(name).name}")
        reason = known.get(name, "") if "exit code" in result else ""
        print(f"{name}: {result}" + (f" (known: {reason})" if reason else ""), flush=True)
        failed += not reason and ("exit code" in result or "train:" in result)
    return 1 if failed else 0


def main():
    tools, python, *names = sys.argv[1:]
    tools, python = pathlib.Path(tools).resolve(), str(pathlib.Path(python).absolute())
    return for_each_net(tools, names, lambda flags, path: exported(
        tools, flags, "-output", f"{path}.onnx", "-python", python, "-tolerance", TOLERANCE), KNOWN)


if __name__ == "__main__":
    sys.exit(main())
