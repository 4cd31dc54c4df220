"""What tests/pages/pages_test.py knows of the commands that pages show. A command that fits no rule here fails the test."""
import re
import shutil

# Pages whose commands are run, in addition to models/*/README.md and models/articles/*/README.md.
PAGES = ["README.md", "tools/*.md", "tools/cluster/*.md", "data_scripts/*.md", "models/README.md", "proto/*.md"]

# Not run here: the whole command, as a pattern, and why. (The scripts among them must exist and be right for bash.)
NOT_RUN = [
    (r"bash data_scripts/quickstart\.sh", "installs packages and builds; trains as tools/train.md does"),
    (r"bash data_scripts/manual\.sh", "downloads MkDocs; tests/tools checks the pages and their links"),
    (r"bash tests/run\.sh", "is what runs this test"),
    (r"cmake --preset release && cmake --build --preset release", "a build takes minutes; tests/run.sh is one"),
    (r"apt install \./build/crema_.*\.deb|crema train -solver /opt/crema/.*", "needs the package; tests/deb.sh installs it and trains"),
    (r"bash models/articles/\w+/run\.sh( .*)?", "minutes; tests/models trains its nets"),
    (r"build/tools/crema serve .*", "runs until it is stopped; tests/tools starts servers"),
    (r"curl [\s\S]*http://localhost:8080/[\s\S]*", "asks a server; tests/tools has these requests"),
    (r"build/tools/device_query .*", "asks a card"),
    (r"build/tools/train .* -gpu 0,1", "asks for two cards"),
    (r"mpirun .* -hostfile hosts .*", "needs several machines"),
    (r"(SLURM_MPI_TYPE=pmix )?sbatch .*tools/cluster/slurm\.sh .*", "needs Slurm; tests/cluster.sh runs the script"),
    (r"torchrun --no-python .*", "needs PyTorch; tests/comm has its variables"),
    (r"build/tools/crema compare .* -gpu 0 .*", "asks a card; tests/tools compares a net with itself on the CPU"),
    (r"build/tools/crema compare \w+\.onnx [\s\S]*", "needs a runtime for ONNX; tests/tools has one that stands in"),
]

if not shutil.which("mpirun"):
    NOT_RUN.append((r"mpirun -n 2 build/tools/train .*", "there is no mpirun here"))

# Indented or fenced text that is not a command: how it begins, and what tests it.
NOT_COMMANDS = [
    ("epoch 3.20/8.00 ", "a status line, which tests/solver holds"),
    ("node1 slots=8", "mpirun's list of machines"),
    ("layers               forward ms", "the table of crema time, which tests/tools holds"),
    ("import numpy, onnxruntime", "needs ONNX Runtime and Pillow; tests/exchange runs models that take pictures"),
    ("float32: accuracy ", "the table of crema quantize, which tests/tools holds"),
    ("layer  channels  left", "the table of crema shrink, which tests/tools holds"),
    ("quantization_param {", "fields that tests/tools reads"),
    ('{"model_name":', "an answer of crema serve, which tests/tools holds"),
    ("models/digits/net.prototxt ", "the files of a folder of models, as tests/tools makes them"),
    ("ONNX Runtime ", "a table of crema export and import, which tests/tools holds"),
]

# Fenced blocks by language: who tests them. "" in proto/README.md is prototxt and is expanded here.
FENCES = {"cpp": "tests/consumer.sh", "cmake": "tests/consumer.sh", "c": "tests/tools/export_c_test.cpp",
          "lua": "tests/python/test_lsp.py, as far as the server goes"}

# What a command may begin with in addition to build/tools/VERB and data_scripts/SCRIPT.
SHELL = {"ls", "awk", "cd", "bash", "mkdir", "export", "sed", "mpirun", "printf", "tail", "head", "cc", "./lenet"}

# Files that no command on the page and no script here makes, and where they come from. A verb that gets one must end with one
# error that names such a file; `train` continues without it.
FROM_ELSEWHERE = [
    (r"(bvlc_|VGG_|VOC0712|squeezenet_v1\.1|SE-ResNet|ResNet-)[\w.-]*\.caffemodel", "their authors' pages"),
    (r"models/\w+/(?!.*_iter_)[\w.-]+\.caffemodel", "get_weights.sh, which downloads"),
    (r"vgg_fully\.caffemodel", "crema surgery of weights that get_weights.sh downloads"),
    (r"[\w/.-]+\.(safetensors|pth)", "torchvision"),
    (r"\w+_trained\.bin", "a program in C that trains; tests/tools has one"),
    (r"build/articles/[\w/]+\.caffemodel", "the page's run.sh, which is not run here"),
    (r"data/cifar10_40000/\w+", "the same"),
    (r"data/ilsvrc13/\w+\.txt", "a program of the authors of R-CNN"),
]

# Solvers, by folder of models/, that train on the small data made here; the others get random data of the shapes in
# tests/models/models.rows.
WITH_DATA = {"lenet", "pictures", "table", "finetune_digits", "siamese", "mnist_autoencoder", "face_center_loss", "face_triplet", "cifar10_quick",
             "cifar10_full", "cifar10_full_sigmoid", "cifar10_full_sigmoid_bn", "faster_rcnn", "rfcn"}

# Further settings when training a folder's net, to save time: most of its weights are in one layer, or tests are long.
SMALLER = {"fcn": ["layer[fc6].convolution_param.num_output=64"], "caffenet": ["layer[fc6].inner_product_param.num_output=64"],
           "alexnet": ["layer[fc6].inner_product_param.num_output=64"], "unet": ["width=8"],
           "faster_rcnn": ["test_iter=3"], "rfcn": ["test_iter=3"],
           "rcnn_ilsvrc13": ["layer[fc6].inner_product_param.num_output=64"]}

# Pages that need files of the reader's own: which of fixtures.py's.
OWN_FILES = {
    "README.md": ["pictures", "digits_databases"],
    "tools/from_caffe.md": ["digits_databases"],
    "models/pictures/README.md": ["pictures"],
    "models/table/README.md": ["table"],
    "tools/new.md": ["pictures"],
    "data_scripts/convert.md": ["pictures", "list", "table", "cifar_of_python"],
    "tools/deploy.md": ["digit"],
    "tools/serve.md": ["digits_databases"],
    "models/caffenet/README.md": ["ilsvrc12"],
    "models/finetune_digits/README.md": ["digits_databases", "lenet_of_mnist"],
    "models/articles/nolearn_cifar10/README.md": ["digit"],
}


def reason_not_run(command):
    return next((why for pattern, why in NOT_RUN if re.fullmatch(pattern, command)), None)


def from_elsewhere(word):
    return any(re.fullmatch(pattern, word) for pattern, _ in FROM_ELSEWHERE)


def names_from_elsewhere(text):
    return any(re.search(pattern, text) for pattern, _ in FROM_ELSEWHERE)
