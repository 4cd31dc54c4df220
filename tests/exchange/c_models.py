"""Compiles nets of models/ to C for several processors and compares their results: c_models.py TOOLS [NAME ...]

TOOLS is the folder of the programs. Each net trains two iterations on random data, as in models_onnx.py. Then `crema export
-to c` writes it and verifies it with each compiler that is here, GCC and Clang for this machine and GCC for 32-bit and 64-bit
ARM, whose programs run in qemu. The compilers get -Wall -Wextra -pedantic -Werror. Prints a line for each; exit code 1 if one
fails. The packages: clang gcc-arm-linux-gnueabihf gcc-aarch64-linux-gnu qemu-user
"""
import os
import pathlib
import shutil
import subprocess
import sys

from models_onnx import ROOT, for_each_net

NETS = ["lenet_digits", "cifar10_full", "squeezenet", "mobilenet_v2", "yolo_tiny"]

# Deep nets that have hardly trained amplify rounding.
TOLERANCE = "1e-3"

# A name, the compiler, and what runs its programs.
COMPILERS = [
    ("gcc", "gcc", ""),
    ("gcc -march=native", "gcc -march=native", ""),
    ("clang", "clang", ""),
    ("clang -march=native", "clang -march=native", ""),
    ("gcc -fopenmp", "gcc -fopenmp", ""),
    ("32-bit ARM", "arm-linux-gnueabihf-gcc -static", "qemu-arm"),
    ("64-bit ARM", "aarch64-linux-gnu-gcc -static", "qemu-aarch64"),
]

# Compiles with strict flags; the program becomes a script that runs it in an emulator.
WRAPPER = """#!/bin/sh
[ "$1" = --version ] && exec {compiler} --version
program=
for word; do
  [ "$last" = -o ] && program=$word
  last=$word
done
{compiler} -Wall -Wextra -pedantic -Werror "$@" -O3 || exit 1
[ -z "{runner}" ] && exit 0
mv "$program" "$program.elf"
printf '#!/bin/sh\\nexec {runner} "$0.elf" "$@"\\n' >"$program"
chmod +x "$program"
"""


def exported(tools, flags, path):
    results = []
    folder = pathlib.Path(path).parent
    failed = ""
    cut = ["-cut", "before_nms"] if path.endswith("yolo_tiny") else []
    for name, compiler, runner in COMPILERS:
        if not shutil.which(compiler.split()[0]) or (runner and not shutil.which(runner)):
            results.append(f"{name}: not here")
            continue
        wrapper = folder / "cc"
        wrapper.write_text(WRAPPER.format(compiler=compiler, runner=runner))
        wrapper.chmod(0o755)
        done = subprocess.run([f"{tools}/crema", "export", "-to", "c", *flags, *cut, "-output", f"{path}.c",
                               "-output_weights", f"{path}.bin", "-tolerance", TOLERANCE],
                              cwd=ROOT, capture_output=True, text=True, env={**os.environ, "CC": str(wrapper)})
        found = [line.split("largest difference is ")[1].split()[0] for line in done.stdout.splitlines() if " random inputs; " in line]
        if done.returncode or not found:
            failed = f" exit code {done.returncode}"
            results.append(f"{name}: {done.stderr.splitlines()[-1] if done.stderr else 'not verified'}")
        else:
            results.append(f"{name} {found[0]}")
    return "; ".join(results) + failed


def main():
    tools, *names = sys.argv[1:]
    tools = pathlib.Path(tools).resolve()
    return for_each_net(tools, names or NETS, lambda flags, path: exported(tools, flags, path), {})


if __name__ == "__main__":
    sys.exit(main())
