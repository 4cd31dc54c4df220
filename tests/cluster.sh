#!/usr/bin/env bash
# The files of tools/cluster/ without a cluster: slurm.sh with fakes of Slurm's programs, Crema's flags in the manifests, and the
# Containerfiles, also that of src/infer/.
#
#   cluster.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
crema=$(cd "${1:-build}/tools" && pwd)/crema
die() { echo "cluster.sh: $*" >&2; exit 1; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
export OMP_NUM_THREADS=1 CREMA_FLAGS=

# --- Containerfiles: sources exist, a shell understands the lines, and they begin alike ---
# Containers have no include, and one file for both images would need a --target in each command.
for file in tools/cluster/Containerfile src/infer/Containerfile; do
  sed -e '/^ *#/d' -e ':more; /\\$/ { N; s/\\\n *//; b more }' $file >"$tree/lines"
  while read -r word rest; do
    case $word in
      RUN) sh -n -c "$rest" || die "$file: no shell understands: $rest" ;;
      COPY)
        [[ $rest != --from=* ]] || continue
        for source in ${rest% *}; do [ -e "$source" ] || die "$file: there is no $source"; done ;;
    esac
  done <"$tree/lines"
  sed '/^COPY tools tools$/q' "$tree/lines" >"$tree/begin of ${file%%/*}"
done
diff "$tree"/begin\ of\ * || die "the Containerfiles prepare their builds differently: change both"

# --- manifests: flags that train has, files that are there ---
"$crema" help train | sed -n 's/^  -\([a-z_]*\) (.*/\1/p' >"$tree/flags"
for manifest in tools/cluster/*.yaml; do
  words=$(tr '\n' ' ' <"$manifest" | grep -o 'train,[^]]*' | tr ',' ' ')
  [ -n "$words" ] || die "$manifest trains nothing"
  for word in $words; do
    if [[ $word == -* ]]; then
      grep -qx -e "${word#-}" "$tree/flags" || die "$manifest: train has no flag $word"
    elif [[ $word == *.prototxt ]]; then
      [ -e "$word" ] || die "$manifest: there is no $word"
    fi
  done
done

# --- slurm.sh ---
cd "$tree"
mkdir -p bin build
ln -s "${crema%/*}" build/tools
cat >bin/srun <<'END'
#!/usr/bin/env bash
trap 'kill -KILL "$rank"' TERM  # so does Slurm's
"$@" &
rank=$!
echo $rank >rank
wait $rank
END
cat >bin/scancel <<'END'
#!/usr/bin/env bash
[ "$*" = "--signal=TERM 17.0" ] && kill -TERM "$(cat rank)"
END
cat >bin/scontrol <<'END'
#!/usr/bin/env bash
echo "$*" >>requeued
END
chmod +x bin/*
cat >net.prototxt <<'END'
layer { name: "data" type: "DummyData" top: "x" top: "y"
  dummy_data_param { shape { dim: 4 dim: 50 } shape { dim: 4 dim: 3 } data_filler { type: "gaussian" } data_filler { type: "uniform" } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "z" inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "z" bottom: "y" top: "loss" }
END
echo 'net: "net.prototxt" base_lr: 0.001 lr_policy: "fixed" max_iter: 100000000 snapshot_prefix: "a"' >solver.prototxt
: >log
job() { PATH=$PWD/bin:$PATH SLURM_JOB_ID=17 exec bash "$top/tools/cluster/slurm.sh" "$@" >log 2>&1; }

# Near its end: a snapshot, and back into the queue.
job -solver solver.prototxt -run run &
pid=$!
for ((i = 0; ; ++i)); do
  ! grep -q 'Starting Optimization' log || break
  if [ $i -eq 300 ] || ! kill -0 $pid 2>/dev/null; then die "the training does not begin: $(tail -n 3 log)"; fi
  sleep 0.1
done
kill -TERM $pid
wait $pid || die "exit code $? after SIGTERM: $(tail -n 3 log)"
[ "$(cat requeued)" = "requeue 17" ] || die "the job is not put back into the queue"
state=$(find run/snapshots -name '*.solverstate')
iteration=${state##*_iter_}
iteration=${iteration%.solverstate}
[ -n "$iteration" ] || die "SIGTERM leaves no snapshot: $(ls run/snapshots)"

# Started again: resumes from there and ends; then it stays out of the queue.
rm requeued
(job -solver solver.prototxt -run run -set max_iter=$((iteration + 5))) || die "exit code $? of the second start: $(tail -n 3 log)"
[ -e "${state%_iter_*}_iter_$((iteration + 5)).caffemodel" ] || die "it does not go on: $(ls run/snapshots)"
[ ! -e requeued ] || die "a finished job is put back into the queue"

# An error of the training is the job's.
if (job -solver nothing.prototxt -run run2); then die "a training that fails counts as done"; fi
[ ! -e requeued ] || die "a job that failed is put back into the queue"
