# Common code of the articles' scripts. They run from the top of the repository and print Markdown tables.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
tools=${CREMA_TOOLS:-build/tools}
[ -x "$tools/crema" ] || { echo "$tools/crema is missing: bash data_scripts/quickstart.sh builds it" >&2; exit 1; }
# The user's own flags must not change the measurement.
unset CREMA_FLAGS
export XDG_CONFIG_HOME=/nonexistent

# Whether a GPU can be used.
has_gpu() { "$tools/crema" device_query 2>&1 | grep -q 'Device id'; }

get_cifar10() { [ -f data/cifar10/test_batch.bin ] || bash data_scripts/get_cifar10.sh >&2; }

# cifar10_split COUNT: CIFAR-10 in data/cifar10_COUNT, COUNT of the training images in cifar10_train_lmdb, the others in
# cifar10_val_lmdb, the test images in cifar10_test_lmdb.
cifar10_split() {
  [ -d "data/cifar10_$1/cifar10_test_lmdb" ] && return
  get_cifar10
  mkdir -p "data/cifar10_$1"
  "$tools/crema" convert_cifar_data -split "$1" data/cifar10 "data/cifar10_$1" lmdb >&2
}

# epochs LOG: a line "seconds val_loss val_acc" for each epoch line of a log.
epochs() {
  sed -nE 's|.*\] Epoch [0-9]+/[0-9]+: ([0-9.]+)s .* - val_loss: ([^ ]+) - val_acc: ([^ ]+).*|\1 \2 \3|p' "$1"
}

# The median of the first column.
median() { cut -d' ' -f1 | sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
