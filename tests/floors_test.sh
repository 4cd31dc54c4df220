#!/bin/bash
# The house rules that a compiler does not check: includes point to the same floor or to lower ones, files stay short and folders
# small, the file of a layer opens with its documentation.  Usage: floors_test.sh [top of the source tree]
cd "${1:-$(dirname "$0")/..}" || exit 1
failures=0
complain() {
  echo "$*"
  failures=$((failures + 1))
}

# The top level: what these are for is said in README.md. Others are scratch files that a commit took along.
for name in $(git ls-files 2>/dev/null | cut -d/ -f1 | sort -u); do
  case $name in
    .* | CMakeLists.txt | CMakePresets.json | LICENSE | README.md | pyproject.toml | data_scripts | models | proto | src | tests | tools) ;;
    *) complain "$name does not belong at the top level" ;;
  esac
done

# What each folder of src may include besides itself.
declare -A allowed=(
  [base]=""
  [device]="base"
  [comm]="base device"
  [tensor]="base device"
  [kernels]="base device tensor"
  [data]="base device tensor proto"
  [layers]="base device tensor kernels data proto"
  [net]="base device tensor kernels data layers proto"
  [solver]="base device tensor kernels data layers net proto"
  [exchange]="base device tensor kernels data layers net proto"
  [crema]="base device tensor net solver"
  [infer]="base data crema"
  [python]="base device comm tensor kernels data layers net solver proto"
)
# What each family of a floor may include of that floor besides itself and the files at its root. These include no family, unless the
# list has a row for them; the families in such a row do not include them.
declare -A families=(
  [kernels/core]=""
  [kernels/reduce]="core"
  [kernels/labels]="core reduce"
  [kernels/pointwise]="core reduce"
  [kernels/gemm]="core"
  [kernels/move]="core pointwise reduce"
  [kernels/pool]="core pointwise reduce"
  [kernels/roi]="core"
  [kernels/detection]="core pointwise reduce"
  [kernels/crf]="core pointwise"
  [kernels/conv]="core pointwise gemm move"
  [kernels/norm]="core pointwise reduce pool"
  [kernels/softmax]="core labels pointwise reduce"
  [kernels/sequence]="core labels pointwise softmax"
  [kernels/optim]="core reduce gemm move"
  [data/images]=""
  [data/transforms]="images"
  [data/loader]="images transforms"
  [data/databases]="images transforms loader"
  [data/lists]="images transforms loader databases"
  [data/convert]="images transforms loader databases lists"
  [layers/pointwise]=""
  [layers/norm]=""
  [layers/loss]=""
  [layers/shape]=""
  [layers/data]=""
  [layers/vision]="pointwise shape"
  [layers/recurrent]="vision"
  [layers/detection]="loss"
  [layers/python]="data detection"
  [layers/fused]="loss norm pointwise vision"
  [layers/forks]="data detection loss pointwise shape"
  [net/expand]=""
  [net/syntax]="expand"
  [net/sources]=""
  [net/graph]="sources"
  [net/plan]="graph"
  [net/passes]="graph plan"
  [net/the_root]="graph plan sources"
  [net/prototxt]="expand graph"
  [net/weights]="prototxt graph"
  [net/check]="prototxt weights graph sources"
  [net/deploy]="graph sources"
  [net/surgery]="graph weights"
  [solver/events]=""
  [solver/fields]="events"
  [solver/readers]="events"
  [solver/rates]="events fields"
  [solver/ranks]="events"
  [solver/iteration]="events fields rates ranks"
  [solver/test]="events fields rates ranks iteration"
  [solver/snapshot]="events fields rates ranks iteration test"
  [solver/divergence]="events fields rates ranks iteration test snapshot"
  [solver/compression]="events fields rates ranks iteration"
  [solver/check]="fields rates iteration divergence compression"
  [solver/replay]="events readers test"  # on top of Solver
  [solver/the_root]="events fields rates ranks iteration test snapshot divergence compression"  # Solver itself, on top of its parts
)
# Records on disk are the only part of the schema that data/ may use.
data_protos="proto/data.pb.h proto/blob.pb.h"

for folder in src/*/; do
  floor=$(basename "$folder")
  if [[ ! -v allowed[$floor] ]]; then
    complain "src/$floor is not on the list of floors in tests/floors_test.sh"
    continue
  fi
  while IFS=: read -r file line text; do
    included=${text#*\"} included=${included%%\"*}  # no program for each of thousands of lines
    target=${included%%/*}
    [[ $included == */* && ( -d src/$target || $target == proto ) ]] || continue
    if [[ $target != "$floor" && " ${allowed[$floor]} " != *" $target "* ]]; then
      complain "$file:$line: $floor must not include $included (it may include: $floor ${allowed[$floor]})"
    elif [[ $floor == data && $target == proto && " $data_protos " != *" $included "* ]]; then
      complain "$file:$line: of the schema, data may include $data_protos only, not $included"
    fi
    if [[ $target == "$floor" && $included == */*/* ]]; then
      family=${file#src/*/}
      [[ $family == */* ]] && family=$floor/${family%%/*} || family=$floor/the_root
      other=${included#*/} other=${other%%/*}
      if [[ $family != "$floor/$other" && -v families[$floor/$other] && " ${families[$family]:-} " != *" $other "* ]]; then
        complain "$file:$line: $family must not include $included (it may include: ${families[$family]:-})"
      fi
    elif [[ $target == "$floor" && $file == src/*/*/* ]]; then
      family=${file#src/*/} family=${family%%/*}
      if [[ " ${families[$floor/the_root]:-} " == *" $family "* ]]; then
        complain "$file:$line: $floor/$family is below the files at the root of $floor and must not include $included"
      fi
    fi
    if [[ $included == device/parallel.h && $file == *.cpp ]]; then
      complain "$file:$line: device/parallel.h belongs into .cu files"
    fi
  done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$folder" --include=*.h --include=*.cpp --include=*.cu \
             --include=*.cuh)
done

while read -r lines file; do
  [[ $file == total ]] || ((lines <= 400)) || complain "$file has $lines lines; 400 is the limit"
done < <(find src tools tests -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.sh' | xargs wc -l)

# A reader should take in a folder at a glance.
while read -r count folder; do
  ((count <= 40)) || complain "$folder holds $count files; 40 is the limit: divide it"
done < <(find src tools -name __pycache__ -prune -o -type f -printf '%h\n' | sort | uniq -c)

for folder in src/{kernels,data,layers,net,solver}/*/; do
  family=$(cut -d/ -f2,3 <<< "$folder")
  [[ -v families[$family] ]] || complain "$folder is not on the list of families in tests/floors_test.sh"
done

for file in $(grep -rl 'REGISTER_LAYER(' src/layers --include=*.cpp --include=*.cu); do
  [[ $(head -c 3 "$file") == "// " ]] || complain "$file must open with a comment: what the layer is, formula, shapes, gradient"
done

# A reader, and `crema layers`, find them at the beginning of a line.
while IFS= read -r place; do
  complain "$place: Shapes, Parameters and Gradient begin a line"
done < <(grep -rnoE '^// .*[.;:)] (Shapes|Parameters|Gradient)[:,] ' src/layers --include=*.cpp --include=*.cu)

((failures == 0)) && echo "floors, lengths, folders and opening comments are in order"
exit $((failures > 0))
