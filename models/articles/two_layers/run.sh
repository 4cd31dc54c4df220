#!/usr/bin/env bash
# Trains both halves of the article from DummyData, and from HDF5 where Python has h5py, on the CPU and on a GPU if there is one, and
# prints a table. The falling losses are drawn in build/articles/two_layers/*.html.
#   bash models/articles/two_layers/run.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
out=build/articles/two_layers
here=models/articles/two_layers
mkdir -p "$out"
sources=(dummy)
if python3 $here/make_data.py data/two_layers 2>/dev/null; then
  sources+=(hdf5)
else
  echo "without HDF5: python3 has no h5py (apt-get install python3-h5py)" >&2
fi
devices=(CPU)
if has_gpu; then devices+=(GPU); fi

echo "| half | data | device | loss of the first, the 10th and the last step | seconds of all steps |"
echo "|---|---|---|---|---|"
for half in tensorflow pytorch; do
  for source in "${sources[@]}"; do
    for device in "${devices[@]}"; do
      name=${half}_${source}_$device
      rm -rf "${out:?}/$name" && mkdir "$out/$name"
      flags=(-set snapshot_prefix="$out/$name/net")
      if [ "$source" = hdf5 ]; then flags+=(-set hdf5=true); fi
      if [ "$device" = GPU ]; then flags+=(-gpu 0); fi
      "$tools/crema" train -solver $here/${half}_solver.prototxt "${flags[@]}" >"$out/$name.log" 2>&1 ||
        { tail -n 1 "$out/$name.log" >&2; exit 1; }
      "$tools/crema" report "$out/$name/metrics.jsonl" -output "$out/$name.html" 2>>"$out/$name.log"
      losses=$(sed -nE 's/.*\] Iteration [0-9]+ \(.*loss = (.*)/\1/p' "$out/$name.log" | sed -n '1p;10p;$p' | paste -sd, | sed 's/,/, /g')
      seconds=$(grep -oE '"time": ?[0-9.e-]+' "$out/$name/metrics.jsonl" | tail -n 1 | sed 's/.*[: ]//')
      echo "| $half | $source | $device | $losses | $seconds |"
    done
  done
done
