"""Stands in for the programs while pages are tested: runs the one that is meant, with less to do.

  tool.py REAL_TOOLS FLAGS.json PROGRAM ARGUMENT ...

A training takes two iterations, which are those that replay opens, and its snapshot also gets the name that it would have had at the end. Without a card -gpu goes. A file
from elsewhere (rules.py) must be what a verb says is missing.
"""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import rules  # noqa: E402


def flag_of(word):
    match = re.match(r"--?([a-z0-9_]+)(?:=(.*))?$", word, re.S)
    return (match[1], match[2]) if match else (None, None)


class Call:
    """Flags with their values, and arguments, in their order."""

    def __init__(self, verb, words, kinds):
        self.verb, self.words, i = verb, [], 0
        while i < len(words):
            name, value = flag_of(words[i])
            if name is None:
                self.words.append((None, words[i]))
            else:
                if name not in kinds:
                    sys.exit(f"crema {verb} has no flag -{name}")
                if value is None and kinds[name] == "bool":
                    value = "true"
                elif value is None:
                    i += 1
                    value = words[i] if i < len(words) else sys.exit(f"-{name} has no value")
                self.words.append((name, value))
            i += 1

    def value(self, name):
        return next((value for flag, value in self.words if flag == name), None)

    def settings(self):
        return dict(value.split("=", 1) for flag, value in self.words if flag == "set")

    def drop(self, name):
        self.words = [word for word in self.words if word[0] != name]

    def add(self, *words):
        self.words += words

    def list(self):
        return [value if flag is None else f"-{flag}={value}" for flag, value in self.words]


def kinds_of_verbs(real):
    """For each verb its flags, each with its type."""
    def told(*words):
        return subprocess.run([f"{real}/crema", *words], capture_output=True, text=True).stdout

    verbs = re.findall(r"^  ([a-z_]+) {2,}", told(), re.M)
    return {verb: dict(re.findall(r"^  -(\w+) \((\w+)", told("help", verb), re.M)) | {"flagfile": "string", "v": "int32"}
            for verb in verbs}


def shapes_of(solver):
    """Of the solver's own row, else of one of its folder."""
    with open(f"{HERE}/../models/models.rows") as rows:
        shapes = {}
        for row in rows:
            cells = [cell.strip() for cell in row.split("|")]
            if not row.startswith("#") and len(cells) == 9:
                for key in [f"models/{cells[1]}", os.path.dirname(f"models/{cells[1]}")]:
                    shapes.setdefault(key, cells[7])
    return shapes.get(os.path.normpath(solver), shapes.get(os.path.dirname(os.path.normpath(solver))))


def shorten_training(call):
    """Adds what makes it short; returns (iterations, those that it would have had), or None where nothing is saved."""
    solver = call.value("solver")
    if call.value("fork"):  # of a run that was short
        run = call.value("fork").split("@")[0]
        solver = run + "/solver.prototxt"
        call.drop("fork")
        call.add(("fork", run + "@1"))
    with open(solver) as text:
        last = re.findall(r"^max_iter: *(\d+)", text.read(), re.M)
    meant = call.settings().get("max_iter", last[-1] if last else "0")
    folder = solver.split("/")[1] if solver.startswith("models/") else ""
    shapes = shapes_of(solver)
    random = shapes is not None and folder not in rules.WITH_DATA
    iterations = 4 if call.value("snapshot") or call.value("fork") else 0 if random else 2
    for setting in [f"max_iter={iterations}", "test_interval=1000000", "test_initialization=false", "snapshot=0", "display=1"]:
        call.add(("set", setting))
    for setting in rules.SMALLER.get(folder, []):
        call.add(("set", setting))
    if random:
        call.drop("assume")
        call.add(("assume", shapes), ("tune", "off"), ("set", "snapshot_after_train=false"), ("set", "test_iter=1"),
                 ("set", "lr_policy=fixed"), ("set", "warmup_iter=0"))
    return None if random else (iterations, meant)


def name_as_meant(log, iterations, meant):
    for path in re.findall(rf"(\S+_iter_{iterations}\.(?:caffemodel|solverstate)(?:\.h5)?)$", log, re.M):
        other = path.replace(f"_iter_{iterations}.", f"_iter_{meant}.")
        if other != path:
            shutil.copyfile(path, other)


def main():
    real, flags, program, *words = sys.argv[1:]
    verb = program
    if program in ("crema", "caffe"):
        verb, *words = words
    if verb == "help" or (verb == "layers" and not any(flag_of(word)[0] for word in words)):
        sys.exit(subprocess.run([f"{real}/crema", verb, *words]).returncode)
    with open(flags) as text:
        kinds = json.load(text)
    if verb not in kinds:
        sys.exit(f"crema has no verb {verb}")
    call = Call(verb, words, kinds[verb])
    if not os.path.exists("/dev/nvidia0"):
        call.drop("gpu")
        call.drop("gpu_memory")
        if call.value("precision") != "fp32":
            call.drop("precision")
    for name, last in (("iteration", "0"), ("until", "1")):  # of a run that was short
        if verb == "replay" and call.value(name):
            call.drop(name)
            call.add((name, last))
    missing = [value for _, value in call.words
               if value and rules.from_elsewhere(value) and not os.path.exists(value)]
    named = None
    if verb == "train":
        for value in missing:
            call.words = [word for word in call.words if word[1] != value]
        missing = []
        named = shorten_training(call)
    elif verb == "new":
        if not call.value("iterations"):
            call.add(("iterations", "20"))
    elif any(flag == "epoch" for flag, _ in call.words):
        pass  # it counts itself
    elif verb in ("time", "test") and (verb == "time" or int(call.value("iterations") or 50) > 2):
        call.drop("iterations")
        call.add(("iterations", "1"))
    elif call.value("split") and "." not in call.value("split"):
        call.drop("split")
        call.add(("split", "80"))
    elif verb == "extract_features":
        # The batches, the last but one argument.
        places = [i for i, word in enumerate(call.words) if word[0] is None]
        call.words[places[4]] = (None, "1")
    done = subprocess.run([f"{real}/{program}" if program != verb else f"{real}/crema", verb, *call.list()],
                          stderr=subprocess.PIPE, text=True)
    sys.stderr.write(done.stderr)
    if missing:
        said = re.findall(r"^[EF]\d.*$", done.stderr, re.M)
        right = done.returncode == 1 and len(said) == 1 and rules.names_from_elsewhere(said[0])
        sys.exit(0 if right else f"expected one error that names {' or '.join(missing)}")
    if done.returncode == 0 and named:
        name_as_meant(done.stderr, *named)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
