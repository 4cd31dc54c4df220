#!/usr/bin/python3
"""How long `crema lsp` takes from a keystroke to what it says, and the memory that it uses.

  editor.py CREMA_TOOLS [--model NET.prototxt] [--set NAME=VALUE] [--rounds N]

CREMA_TOOLS: the folder of the program, such as build/tools. The net is written out first (crema expand), and a blank is typed
in its middle. Prints medians and the largest times in milliseconds. Needs python3-pytest, whose test it takes the editor from.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=pathlib.Path)
    parser.add_argument("--model", default=ROOT / "models/resnet/train_val.prototxt")
    parser.add_argument("--set", default="depth=152")
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    os.environ["CREMA_TOOLS"] = str(args.tools.absolute())
    sys.path.insert(0, str(ROOT / "tests/python"))
    from test_lsp import Editor  # pylint: disable=import-outside-toplevel
    text = subprocess.run([args.tools / "crema", "expand", args.model, "-set", args.set], capture_output=True, text=True,
                          check=True).stdout
    editor = Editor()
    editor.open(text)
    editor.mistakes()
    words, meaning = [], []
    for _ in range(args.rounds):
        at = text.index("name:", len(text) // 2)
        begin = time.perf_counter()
        editor.change(at, at, " ")
        while not editor.published.get((editor.uri, editor.version)):
            editor.receive()
        words.append(1000 * (time.perf_counter() - begin))
        editor.mistakes()
        meaning.append(1000 * (time.perf_counter() - begin))
    status = pathlib.Path(f"/proc/{editor.process.pid}/status").read_text()
    most = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    print(f"{text.count(chr(10))} lines; words {statistics.median(words):.1f} (at most {max(words):.1f}) ms, "
          f"meaning {statistics.median(meaning):.0f} ({max(meaning):.0f}) ms, {int(most) // 1024} MiB")
    editor.close()


main()
