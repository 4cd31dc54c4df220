#!/usr/bin/env python3
"""Runs the commands that the project's pages show, as a reader would, in copies of the tree: with small data and short trainings.

  pages_test.py BUILD_FOLDER [PAGE ...]

Each page gets a copy of its own and its commands run in their order. tool.py stands in for the programs and makes trainings short,
small scripts stand in for scripts that download. rules.py lists what is not run, with a reason each; a command that neither runs nor is listed
there fails. Commands in backquotes within the text are checked only: verb and flags exist. Links lead somewhere.
"""
import concurrent.futures
import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import extract
import rules
import tool
import wrong_pages

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
try:
    import fixtures
except ImportError as missing:
    print(f"skipped: {missing} (apt-get install python3-numpy python3-pil)")
    sys.exit(77)

# Replacements for scripts that download, or that render for long. $cache: fixtures.make_cache's
# folder.
STUBS = {
    "get_mnist.sh": 'mkdir -p "${1:-$top/data/mnist}" && cp "$cache"/digits/* "${1:-$top/data/mnist}"',
    "get_cifar10.sh": 'mkdir -p "${1:-$top/data/cifar10}" && cp "$cache"/cifar10/* "${1:-$top/data/cifar10}"',
    "get_weights.sh": '[ "$1" = --list ] || grep -qP "^$1\\t" "$real/weights.tsv" || { echo "no weights are called $1"; exit 1; }',
    "make_digits.py": 'mkdir -p "$1" && cp "$cache"/digits/* "$1"',
    "make_shapes.py": '"$python" "$real/make_shapes.py" "$@" --train 6 --test 3',
    "make_triplets.py": '"$python" "$real/make_triplets.py" "$@" --train 32 --test 16',
}
# Their data are HDF5, which Python may not know here; the nets that read them train on random data.
NEEDS_H5PY = ["make_text.py", "create_hdf5_classification.py"]


def has_h5py():
    return subprocess.run([sys.executable, "-c", "import h5py"], stderr=subprocess.DEVNULL).returncode == 0


def write_program(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "w") as out:
        out.write("#!/bin/bash\n" + text + "\n")
    os.chmod(path, 0o755)


def copy_tree(to, build, cache, with_h5py):
    """Sources are links; what commands write lies beside them."""
    for folder in ["models", "data_scripts", "tools", "proto"]:
        shutil.copytree(f"{TOP}/{folder}", f"{to}/{folder}", copy_function=os.symlink,
                        ignore=shutil.ignore_patterns("*.caffemodel*", "*.solverstate*", "metrics.jsonl", "*.cpp", "*.h",
                                                      "__pycache__"))
    os.makedirs(f"{to}/data")
    python = shlex.quote(sys.executable)
    words = [sys.executable, "-BES", f"{HERE}/tool.py", f"{build}/tools", f"{cache}/flags.json"]
    write_program(f"{to}/build/tools/.any", f'exec {shlex.join(words)} "${{0##*/}}" "$@"')
    for program in os.listdir(f"{build}/tools"):
        if os.access(f"{build}/tools/{program}", os.X_OK) and not os.path.isdir(f"{build}/tools/{program}"):
            os.symlink(".any", f"{to}/build/tools/{program}")
    places = f"top={shlex.quote(to)} cache={shlex.quote(cache)} real={shlex.quote(TOP)}/data_scripts python={python}\n"
    for script, text in STUBS.items():
        options = (f'for word in "$@"; do [[ $word != --* ]] || "$real/{script}" -h | grep -q -- "$word" ||\n'
                   f'  {{ echo "{script} has no option $word"; exit 1; }}; done')
        write_program(f"{to}/data_scripts/{script}", f"set -eu\n{places}{options}\n{text}")
    for script in [] if with_h5py else NEEDS_H5PY:
        write_program(f"{to}/data_scripts/{script}", f"echo '{script}: not run, python has no h5py'")


class Page:
    def __init__(self, path, text=None):
        self.path, self.text = path, text
        if text is None:
            with open(f"{TOP}/{path}") as file:
                self.text = file.read()
        self.run, self.not_run, self.problems = [], [], []
        for block in extract.blocks_of(self.text):
            self.sort(block)

    def sort(self, block):
        if block.language in rules.FENCES:
            return
        if any(block.lines[0].startswith(begin) for begin, _ in rules.NOT_COMMANDS):
            return
        if block.language == "plain" and self.path == "proto/README.md":
            self.run.append([(block.line, expand_command(block))])
            return
        commands = []
        for line, command in block.commands():
            why = rules.reason_not_run(command)
            if why:
                self.not_run.append((line, command, why))
            elif self.known(line, command):
                commands.append((line, command))
        if commands:
            self.run.append(commands)

    def known(self, line, command):
        """Whether each part of the command begins with a program of ours, or with what the shell is used for."""
        for part in re.split(r"&&|\|\||;|\|(?!\|)", re.sub(r"'[^']*'|\"[^\"]*\"", "x", command)):
            words = [word for word in part.split() if word not in ("while", "do", "(", "then")]
            first = words[0].lstrip("(") if words else ""
            ours = re.fullmatch(r"(\.\./)*build/tools/\w+|data_scripts/\w+\.(sh|py)", first)
            if not (ours or first in rules.SHELL or first in ("read", "done", "x") or re.match(r"\w+=", first)):
                self.problems.append(f"{self.path}:{line}: no rule in tests/pages/rules.py says how to test: {command}")
                return False
        return True


def expand_command(block):
    """Of a prototxt: written to a file whose includes are empty, and expanded."""
    text = "\n".join(block.lines)
    files = " ".join(shlex.quote(name) for name in re.findall(r'include: "([^"]+)"', text))
    return (f"mkdir shown && touch -- $(printf 'shown/%s ' {files}) && "
            f"printf '%s' {shlex.quote(text)} >shown/net.prototxt && build/tools/crema expand shown/net.prototxt")


def check_scripts(page):
    for line, command, _ in page.not_run:
        for script in re.findall(r"\S+\.sh", command):
            if subprocess.run(["bash", "-n", script], cwd=TOP, stderr=subprocess.DEVNULL).returncode != 0:
                page.problems.append(f"{page.path}:{line}: {script} is not there, or bash does not understand it")


def check_inline(page, kinds):
    """Verb and flags of commands within the text."""
    for line, command in extract.inline_commands(page.text):
        words = command.split()
        if words[0] == "bash":
            words = words[1:]
        program = words[0].removeprefix("build/tools/")
        if words[0].startswith(("data_scripts/", "models/", "tests/")):
            if not os.path.exists(f"{TOP}/{words[0]}"):
                page.problems.append(f"{page.path}:{line}: there is no {words[0]}")
            continue
        verb = words[1] if program in ("crema", "caffe") and len(words) > 1 else program
        if verb in ("help", "crema", "caffe") or not re.fullmatch(r"\w+", verb) or verb.isupper():
            continue
        if verb not in kinds:
            page.problems.append(f"{page.path}:{line}: crema has no verb {verb}: {command}")
            continue
        for word in words:
            name = tool.flag_of(word)[0]
            if name and name not in kinds[verb]:
                page.problems.append(f"{page.path}:{line}: crema {verb} has no flag -{name}: {command}")


def check_links(page):
    for link in extract.links_of(page.text):
        if not os.path.exists(os.path.join(TOP, os.path.dirname(page.path), link)):
            page.problems.append(f"{page.path}: a link leads to {link}, which is not there")


def script_of(page):
    """Each block in a shell of its own, each command after a line that says which it is."""
    text = "set -euo pipefail\n"
    for block in page.run:
        text += "(\n"
        for line, command in block:
            text += f"echo @@{line} >&3\n{command}\n"
        text += ")\n"
    return text


def run_page(page, build, cache, with_h5py):
    if not page.run:
        return
    with tempfile.TemporaryDirectory(prefix="crema_pages_") as folder:
        top = f"{folder}/crema"
        copy_tree(top, build, cache, with_h5py)
        os.makedirs(f"{folder}/log")
        environment = {name: value for name, value in os.environ.items() if name not in ("CREMA_FLAGS", "OMP_NUM_THREADS")}
        environment |= {"XDG_CONFIG_HOME": folder, "GLOG_log_dir": f"{folder}/log", "OMP_NUM_THREADS": "1"}
        # Open MPI refuses root, and more ranks than cores.
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        os.environ.update(environment)
        for name in rules.OWN_FILES.get(page.path, []):
            getattr(fixtures, name)(cache, top)
        with open(f"{folder}/at", "w+") as at, open(f"{folder}/output", "w+") as output:
            done = subprocess.run(["bash", "-c", f"exec 3>'{folder}/at'; " + script_of(page)], cwd=top, env=environment,
                                  stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=300)
            if done.returncode != 0:
                at.seek(0)
                output.seek(0)
                line = int(re.findall(r"@@(\d+)", at.read() or "@@0")[-1])
                command = next((c for block in page.run for n, c in block if n == line), "")
                last = "\n    ".join(output.read().splitlines()[-4:])
                page.problems.append(f"{page.path}:{line}: exit code {done.returncode}: {command}\n    {last}")


def find_pages(chosen):
    patterns = chosen or rules.PAGES + ["models/*/README.md", "models/articles/*/README.md"]
    return sorted({os.path.relpath(path, TOP) for pattern in patterns for path in glob.glob(f"{TOP}/{pattern}")})


def check_rules(pages):
    """A rule that nothing uses any more goes."""
    problems = []
    commands = [command for page in pages for _, command, _ in page.not_run]
    for pattern, _ in rules.NOT_RUN:
        if not any(re.fullmatch(pattern, command) for command in commands):
            problems.append(f"tests/pages/rules.py: no page has a command {pattern}")
    for path in rules.OWN_FILES:
        if path not in [page.path for page in pages]:
            problems.append(f"tests/pages/rules.py: there is no page {path}")
    return problems


def check_wrong_pages(wrong):
    return [f"tests/pages/wrong_pages.py: the test says {page.problems} of a page in which is wrong: {said}"
            for page, (_, said) in zip(wrong, wrong_pages.ROWS) if len(page.problems) != 1 or said not in page.problems[0]]


def main():
    build, chosen = os.path.abspath(sys.argv[1]), sys.argv[2:]
    pages = [Page(path) for path in find_pages(chosen)]
    wrong = [] if chosen else [Page(f"wrong_{i}.md", text) for i, (text, _) in enumerate(wrong_pages.ROWS, 1)]
    if not pages:
        sys.exit("there are no pages")
    with tempfile.TemporaryDirectory(prefix="crema_pages_") as cache, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        fixtures.make_cache(cache, f"{TOP}/data_scripts")
        kinds = tool.kinds_of_verbs(f"{build}/tools")
        with open(f"{cache}/flags.json", "w") as out:
            json.dump(kinds, out)
        with_h5py = has_h5py()
        # The longest first.
        order = sorted(pages + wrong, key=lambda page: -sum(len(block) for block in page.run))
        jobs = [pool.submit(run_page, page, build, cache, with_h5py) for page in order]
        for page in pages + wrong:
            check_scripts(page)
            check_inline(page, kinds)
            check_links(page)
        for job in jobs:
            job.result()
    problems = [problem for page in pages for problem in page.problems]
    if not chosen:
        problems += check_rules(pages) + check_wrong_pages(wrong)
    for page in pages:
        for line, command, why in page.not_run:
            print(f"not run: {page.path}:{line}: {command} ({why})")
    run = sum(len(block) for page in pages for block in page.run)
    print(f"{len(pages)} pages: {run} commands run, {sum(len(page.not_run) for page in pages)} not run")
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
