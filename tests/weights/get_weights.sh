#!/usr/bin/env bash
# data_scripts/get_weights.sh with a local table, model and server: downloads that are interrupted, resumed, wrong and refused;
# and the rows of data_scripts/weights.tsv.
#
#   get_weights.sh [BUILD_FOLDER]        exit code 77: curl is missing
set -euo pipefail
cd "$(dirname "$0")/../.."
tools=$(cd "${1:-build}/tools" && pwd)
top=$PWD
die() { echo "get_weights.sh: $*" >&2; exit 1; }
command -v curl >/dev/null || { echo "skipped: needs curl"; exit 77; }

tree=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tree"' EXIT
mkdir -p "$tree"/{data_scripts,build,models/tiny,served,out}
cp data_scripts/{get_weights,common}.sh "$tree/data_scripts/"
ln -s "$tools" "$tree/build/tools"
cat >"$tree/models/tiny/train_val.prototxt" <<'END'
$outputs ?= 5
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 8 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: $outputs } }
END
# Weights of "ip" as safetensors, and a file that is taken as it is.
python3 - "$tree/served" <<'END'
import hashlib, json, os, struct, sys
values = struct.pack("<45f", *range(45))
header = json.dumps({"ip.weight": {"dtype": "F32", "shape": [5, 8], "data_offsets": [0, 160]},
                     "ip.bias": {"dtype": "F32", "shape": [5], "data_offsets": [160, 180]}}).encode()
data = struct.pack("<Q", len(header)) + header + values
name = f"tiny-{hashlib.sha256(data).hexdigest()[:8]}.safetensors"
open(os.path.join(sys.argv[1], name), "wb").write(data)
open(os.path.join(sys.argv[1], "plain.caffemodel"), "wb").write(bytes(i * i % 251 for i in range(100000)))
END
tiny=$(basename "$tree"/served/tiny-*)
sha=${tiny#tiny-} sha=${sha%.safetensors}
coproc SERVER { exec python3 "$top/tests/weights/range_server.py" "$tree/served"; }
server=$SERVER_PID
read -r port <&"${SERVER[0]}"
address=http://127.0.0.1:$port
row() { printf '%s\ttiny\t%s\t%s\t%s\t0.1\t50.0\tnone\tthis test\n' "$@"; }
plain=sha1:$(sha1sum <"$tree/served/plain.caffemodel" | cut -d' ' -f1)
{
  echo "# a comment"
  row tiny outputs=5 "$address/$tiny" "sha256:$sha"
  row tiny_cut - "$address/cut/$tiny" "sha256:$sha"
  row plain_cut - "$address/cut/plain.caffemodel" "$plain"
  row plain_whole - "$address/whole/plain.caffemodel" "$plain"
  row plain_wrong - "$address/wrong/plain.caffemodel" "$plain"
  row plain_absent - "$address/absent/gone.caffemodel" "$plain"
} >"$tree/data_scripts/weights.tsv"

# EXIT_CODE ARGUMENT...: runs the script in an empty environment of proxies and flags; what it says is in $said.
get() {
  local expected=$1 code=0
  shift
  said=$(env -i HOME="$tree" PATH="$PATH" bash "$tree/data_scripts/get_weights.sh" "$@" 2>&1 </dev/null) || code=$?
  [ "$code" -eq "$expected" ] || die "get_weights.sh $*: exit code $code, expected $expected; it said: $said"
}
says() { [[ $said == *"$1"* ]] || die "expected '$1' in: $said"; }
holds() {  # FOLDER NAME...: exactly these
  local found
  found=$(ls -A "$tree/$1" | paste -sd' ')
  shift
  [ "$found" = "$*" ] || die "expected '$*', found '$found'"
}
fresh() { rm -rf "$tree/out" "$tree/data" "$tree/served/requests"; mkdir "$tree/out"; }
requests() { wc -l <"$tree/served/requests"; }

# Into the model's folder, converted; the download is gone then.
fresh
get 0 tiny
says "models/tiny/tiny.caffemodel"
says "Licence: none (this test)"
says "-set outputs=5 -weights"
holds models/tiny tiny.caffemodel train_val.prototxt
holds data/weights ""
mv "$tree/models/tiny/tiny.caffemodel" "$tree/expected"
get 0 tiny "$tree/out" --from "$tree/served/$tiny"
cmp "$tree/expected" "$tree/out/tiny.caffemodel"
[ "$(requests)" -eq 1 ] || die "--from FILE asked the server"
get 0 tiny "$tree/out"
says "is there already"

# Interrupted again and again, it resumes each time.
fresh
get 0 tiny_cut "$tree/out"
says "going on with $address/cut/$tiny at byte"
cmp "$tree/expected" "$tree/out/tiny_cut.caffemodel"
fresh
get 0 plain_cut "$tree/out"
cmp "$tree/served/plain.caffemodel" "$tree/out/plain_cut.caffemodel"
holds out plain_cut.caffemodel
grep -q ' 50000$' "$tree/served/requests" || die "it did not go on at half"

# A later run continues with the files of an earlier one, and requests nothing if they are complete.
fresh
head -c 70000 "$tree/served/plain.caffemodel" >"$tree/out/plain.caffemodel.part"
get 0 plain_cut "$tree/out" --from "$address"
says "at byte 70000"
cmp "$tree/served/plain.caffemodel" "$tree/out/plain_cut.caffemodel"
[ "$(cat "$tree/served/requests")" = "/plain.caffemodel 70000" ] || die "asked for $(cat "$tree/served/requests")"
fresh
cp "$tree/served/plain.caffemodel" "$tree/out/plain.caffemodel.part"
get 0 plain_cut "$tree/out"
[ ! -e "$tree/served/requests" ] || die "asked for $(cat "$tree/served/requests")"

# A part of something else, too short or too long, and a server without ranges: it starts over.
for size in 10 200000; do
  fresh
  head -c $size /dev/zero >"$tree/out/plain.caffemodel.part"
  get 0 plain_cut "$tree/out" --from "$address/"
  cmp "$tree/served/plain.caffemodel" "$tree/out/plain_cut.caffemodel"
done
fresh
get 0 plain_whole "$tree/out"
cmp "$tree/served/plain.caffemodel" "$tree/out/plain_whole.caffemodel"

# Nothing wrong stays.
fresh
get 1 plain_wrong "$tree/out"
says "gave a file with a wrong checksum"
holds out ""
get 1 plain_absent "$tree/out"
says "404"
holds out ""
get 1 tiny "$tree/out" --from "$tree/served/plain.caffemodel"
says "is not $tiny (its sha256 differs)"
get 1 tiny "$tree/out" --from "$tree/nowhere"
says "is not there"
holds out ""
get 0 tiny "$tree/out" --from "$tree/served"
mv "$tree/build/tools" "$tree/build/none"
get 1 tiny "$tree/out" --force
says "is not built yet. Then: "
holds out "$tiny" tiny.caffemodel
mv "$tree/build/none" "$tree/build/tools"
get 0 tiny "$tree/out" --force
holds out tiny.caffemodel

get 1 Tiny-Cut
says 'there are no weights "Tiny-Cut". Did you mean tiny_cut? There are: tiny tiny_cut plain_cut'
get 1 other
says 'there are no weights "other". There are: tiny'
get 0 --list
says "plain_wrong"
get 1
says "which weights?"

# The table itself: nine columns, names once, models and settings that are there, and checksums as torchvision names files by them.
names=()
while IFS=$'\t' read -r -a cells; do
  [ ${#cells[@]} -eq 9 ] || die "weights.tsv: ${cells[0]} has ${#cells[@]} columns, expected 9"
  name=${cells[0]} model=models/${cells[1]} address=${cells[3]} sum=${cells[4]} settings=()
  [[ " ${names[*]} " != *" $name "* ]] || die "weights.tsv: $name is there twice"
  names+=("$name")
  [ "${cells[2]}" = - ] || for setting in ${cells[2]}; do settings+=(-set "$setting"); done
  "$tools/crema" expand "$model/train_val.prototxt" "${settings[@]}" >/dev/null || die "weights.tsv: $name has no net"
  if [[ $address == *.pth ]]; then
    [[ $address == *-"${sum#sha256:}".pth && $sum =~ ^sha256:[0-9a-f]{8,10}$ ]] || die "weights.tsv: $name: $sum is not in $address"
    [ -e "$model/torchvision.names" ] || die "weights.tsv: $model has no torchvision.names"
  else
    [[ $sum =~ ^sha1:[0-9a-f]{40}$ ]] || die "weights.tsv: $name: $sum is no SHA-1"
  fi
done < <(grep -v '^#' data_scripts/weights.tsv)
[ ${#names[@]} -gt 10 ] || die "weights.tsv has ${#names[@]} rows"
echo "get_weights.sh and the ${#names[@]} rows of its table are right"
