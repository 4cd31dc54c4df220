#!/usr/bin/python3
"""How long `crema lsp` takes from a keystroke to what it says, and the memory that it uses.

  editor.py CREMA_TOOLS [--model NET.prototxt] [--set NAME=VALUE] [--rounds N]
  editor.py CREMA_TOOLS --check PATH ...

CREMA_TOOLS: the folder of the program, such as build/tools. The net is written out first (crema expand), and a blank is typed
in its middle. Prints medians and the largest times in milliseconds: to the mistakes of the words, to those of the meaning, which
wait for the next keystroke a quarter as long as they took before, and of the meaning alone. --check opens files, and all prototxt files in folders, as an
editor does, changes a digit in the middle of each, and prints their mistakes and the times instead.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def times_to_both(editor, act):
    """Milliseconds from act() to what is said of the words, and to what is said of the meaning."""
    begin = time.perf_counter()
    act()
    times = []
    for count in (1, 2):
        while len(editor.published.get((editor.uri, editor.version), [])) < count:
            editor.receive()
        times.append(1000 * (time.perf_counter() - begin))
    return times


def most_memory(editor):
    status = pathlib.Path(f"/proc/{editor.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) // 1024


def shown(times):
    return f"{statistics.median(times):.1f} (at most {max(times):.1f}) ms"


def check(editor, paths):
    opened, changed = [], []
    for path in paths:
        for file in sorted(path.rglob("*.prototxt")) if path.is_dir() else [path]:
            text = file.read_text(errors="replace").encode("ascii", "replace").decode()
            opened.append(times_to_both(editor, lambda: editor.open(text, file.absolute().as_uri())))  # pylint: disable=cell-var-from-loop
            for place, mistake in editor.look():
                print(f"{file}:{place}: {mistake}")
            digits = [i for i, letter in enumerate(text) if letter.isdigit()]
            if digits:
                at = digits[len(digits) // 2]
                new = str((int(text[at]) + 1) % 10)
                changed.append(times_to_both(editor, lambda: editor.change(at, at + 1, new)))  # pylint: disable=cell-var-from-loop
            editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri}})
    for what, times in (("opened", opened), ("changed", changed)):
        words, meaning = zip(*times)
        print(f"{what}: words {shown(words)}, meaning {shown(meaning)}")
    print(f"{len(opened)} files; {most_memory(editor)} MiB")


def typing(editor, text, rounds):
    editor.open(text)
    editor.mistakes()
    words, still, meaning = [], [], []
    for _ in range(rounds):
        at = text.index("name:", len(text) // 2)
        begin = time.perf_counter()
        editor.change(at, at, " ")
        while not editor.published.get((editor.uri, editor.version)):
            editor.receive()
        words.append(1000 * (time.perf_counter() - begin))
        editor.mistakes()
        still.append(1000 * (time.perf_counter() - begin))
        editor.change(at, at, " ")
        begin = time.perf_counter()
        editor.look()
        meaning.append(1000 * (time.perf_counter() - begin))
    print(f"{text.count(chr(10))} lines; words {shown(words)}, meaning {shown(still)}, {shown(meaning)} at once; {most_memory(editor)} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--model", default=ROOT / "models/resnet/train_val.prototxt")
    parser.add_argument("--set", default="depth=152")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--check", type=pathlib.Path, nargs="+")
    args = parser.parse_args()
    os.environ["CREMA_TOOLS"] = str(args.tools.absolute())
    sys.path.insert(0, str(ROOT / "tests/python"))
    from lsp_editor import Editor  # pylint: disable=import-outside-toplevel
    editor = Editor()
    if args.check:
        check(editor, args.check)
    else:
        typing(editor, subprocess.run([args.tools / "crema", "expand", args.model, "-set", args.set], capture_output=True, text=True,
                                      check=True).stdout, args.rounds)
    editor.close()


main()
