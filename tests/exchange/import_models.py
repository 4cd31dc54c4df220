"""Imports models of other programs and compares their results: import_models.py TOOLS PYTHON [NAME ...]

TOOLS is the folder of the programs; PYTHON has onnx, onnxruntime, torch, torchvision and onnxscript. The nets of
torchvision, with random weights, are exported by both of PyTorch's exporters; `crema import` compares the
results in ONNX Runtime, and this script in PyTorch. The onnx package brings the light models. Prints a line for each; exit
code 1 if one differs by more than TOLERANCE of its largest value.
"""
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE = 1e-5

# torchvision's constructor, what it gets, the extent of its pictures.
NETS = """
resnet18                    -                    224
resnet50                    -                    224
vgg16                       -                    224
mobilenet_v2                -                    224
mobilenet_v3_large          -                    224
mobilenet_v3_small          -                    224
efficientnet_b0             -                    224
densenet121                 -                    224
convnext_tiny               -                    224
vit_b_16                    -                    224
swin_t                      -                    224
inception_v3                init_weights=False   299
fcn_resnet50                weights_backbone=None 128
deeplabv3_resnet50          weights_backbone=None 128
deeplabv3_mobilenet_v3_large weights_backbone=None 128
"""

# For a process with torch: writes a model, or compares the results that `crema import` kept with PyTorch's.
WITH_TORCH = '''
import sys, warnings
warnings.simplefilter("ignore")
import onnx, torch, torchvision
from onnx import numpy_helper
name, arguments, size, folder, exporter = sys.argv[1:]
torch.manual_seed(1)
build = getattr(torchvision.models, name, None) or getattr(torchvision.models.segmentation, name)
net = build(weights=None, **eval(f"dict({arguments})"))
for parameter in net.parameters():  # some start as zeros, and with them the results
    if not parameter.any():
        torch.nn.init.normal_(parameter, std=0.02)
net(torch.randn(2, 3, int(size), int(size)))  # gives BatchNorm statistics
net.eval()

class Results(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net
    def forward(self, x):
        results = self.net(x)
        return results["out"] if isinstance(results, dict) else results

if exporter != "compare":
    torch.onnx.export(Results().eval(), (torch.randn(1, 3, int(size), int(size)),), f"{folder}/model.onnx",
                      dynamo=exporter == "dynamo", input_names=["x"], output_names=["y"])
else:
    worst = 0
    for draw in range(3):
        values = []
        for kind in ("input", "output"):
            tensor = onnx.TensorProto()
            with open(f"{folder}/proof/test_data_set_{draw}/{kind}_0.pb", "rb") as file:
                tensor.ParseFromString(file.read())
            values.append(torch.from_numpy(numpy_helper.to_array(tensor).copy()))
        with torch.no_grad():
            expected = Results().eval()(values[0])
        worst = max(worst, ((values[1] - expected).abs().max() / expected.abs().max()).item())
    print(f"PyTorch {torch.__version__}: {worst:.2g}")
'''


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return done.returncode, lines


def imported(tools, python, folder, model, tolerance):
    """What `crema import` says of a model: an error or what it compared."""
    code, lines = run(tools / "crema", "import", model, "-output", folder / "net.prototxt", "-output_weights",
                      folder / "net.caffemodel", "-python", python, "-proof", folder / "proof", "-tolerance", tolerance)
    said = [line for line in lines if " random inputs; " in line or "cannot run" in line]
    return code == 0, "; ".join(said if code == 0 else lines[-1:])


def check_torch(tools, python, line, exporter):
    name, arguments, size = line.split()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        def with_torch(what):
            return run(python, "-c", WITH_TORCH, name, "" if arguments == "-" else arguments, size, folder, what)
        code, lines = with_torch(exporter)
        if code:
            return False, f"the exporter fails: {lines[-1]}"
        passed, said = imported(tools, python, folder, folder / "model.onnx", TOLERANCE)
        if not passed:
            return False, said
        code, lines = with_torch("compare")
        difference = float(lines[-1].split(": ")[1]) if code == 0 else float("nan")
        return difference <= TOLERANCE, f"{said}; {lines[-1]}"


def check_light(tools, python, model):
    with tempfile.TemporaryDirectory() as folder:
        return imported(tools, python, pathlib.Path(folder), model, TOLERANCE)


def main():
    tools, python, *names = sys.argv[1:]
    tools, python = pathlib.Path(tools).resolve(), pathlib.Path(python).absolute()
    _, lines = run(python, "-c", "import onnx; print(onnx.__path__[0])")
    failed = 0
    checks = [(f"{line.split()[0]} {exporter}",
               lambda line=line, exporter=exporter: check_torch(tools, python, line, exporter))
              for line in NETS.strip().splitlines() for exporter in ("script", "dynamo")]
    checks += [(model.stem, lambda model=model: check_light(tools, python, model))
               for model in sorted(pathlib.Path(lines[-1]).glob("backend/test/data/light/*.onnx"))]
    for title, check in checks:
        if names and title.split()[0] not in names:
            continue
        passed, said = check()
        print(f"{title}: {said}{'' if passed else ' FAILED'}", flush=True)
        failed += not passed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
