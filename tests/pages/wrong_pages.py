"""Pages with something wrong, and what the test must say of each: else it could not fail."""

ROWS = [
    ("    curl -O https://example.org/data.zip\n", "no rule in tests/pages/rules.py says how to test: curl"),
    ("    ls models && rm -r data\n", "no rule in tests/pages/rules.py says how to test: ls models && rm -r data"),
    ("    build/tools/train -solver models/lenet/gone.prototxt\n", "models/lenet/gone.prototxt"),
    ("    build/tools/train -solver models/vgg/solver.prototxt -sett depth=16\n", "crema train has no flag -sett"),
    ("    build/tools/train -solver models/nin_cifar/solver.prototxt -set base_lrr=1\n", "-set base_lrr=1"),
    ("    build/tools/train -solver models/nin_cifar/solver.prototxt -weights mine.caffemodel\n", "mine.caffemodel: "),
    ("    build/tools/crema operate -model models/vgg/train_val.prototxt\n", "crema has no verb operate"),
    ("    data_scripts/get_mnist.sh --form here\n", "get_mnist.sh has no option --form"),
    ("    data_scripts/get_weights.sh no_such_net\n", "no weights are called no_such_net"),
    ("    bash models/articles/gone/run.sh\n", "models/articles/gone/run.sh is not there"),
    ("    build/tools/summary -model \\\n      gone.prototxt\n", "gone.prototxt"),
    ("```\nbuild/tools/layers NoSuchLayer\n```\n", "NoSuchLayer"),
    ("Say `build/tools/crema train -solvers s.prototxt`.\n", "crema train has no flag -solvers"),
    ("Say `crema trian -solver s.prototxt`.\n", "crema has no verb trian"),
    ("Run `bash data_scripts/gone.sh`.\n", "there is no data_scripts/gone.sh"),
    ("See [there](gone.md).\n", "a link leads to gone.md"),
]
