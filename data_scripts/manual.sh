#!/usr/bin/env bash
# Builds the manual: a site with search that needs no server and no network once it is built, and man pages.
#
#   manual.sh [FOLDER]        default: build/manual, where `cmake --install` takes it from
#
# The pages come from `crema docs`. MkDocs Material makes the site; it comes from PyPI into build/manual_venv (12 MB).
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/manual}
program=build/tools/crema
[ -x "$program" ] || program=$(command -v crema) || { echo "manual.sh: build the program first: data_scripts/build.md" >&2; exit 1; }
venv=build/manual_venv
if [ ! -x $venv/bin/mkdocs ]; then
  python3 -m venv $venv
  $venv/bin/pip install --quiet --disable-pip-version-check "mkdocs==1.6.*" "mkdocs-material==9.*"
fi
"$program" docs -output "$folder"
# Fails for a link that leads nowhere; with --quiet it would count no warnings.
NO_MKDOCS_2_WARNING=1 $venv/bin/python -m mkdocs build --strict --config-file "$folder/mkdocs.yml"
echo "Open $folder/site/index.html"
