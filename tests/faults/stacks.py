"""Whose fault a crash is, judged by its stack (which faults.c writes)."""
import os
import re
import subprocess

# Libraries that end the process when they get no memory: first frame, apart from those of the C and C++ libraries, in the stack
# of the crash -> why we cannot prevent it.
KNOWN = {
    "libdnnl.so": "oneDNN 2.6 does not look whether mmap() or malloc() gave memory for its generated code",
    "libgomp.so": "OpenMP ends the process if it gets no memory",
    "libglog.so": "glog allocates in functions that may not throw",
    "libgflags.so": "gflags allocates in functions that may not throw",
    "libopen-pal.so": "Open MPI 4.1 uses memory that it did not get",
    "libopen-rte.so": "Open MPI 4.1 uses memory that it did not get",
    "libmpi.so": "Open MPI 4.1 uses memory that it did not get",
    "libpmix.so": "Open MPI 4.1 uses memory that it did not get",
    "mca_": "Open MPI 4.1 uses memory that it did not get",
    "libhdf5": "HDF5 1.10 uses memory that it did not get for a thread's error stack and context",
    "libprotobuf.so": "protobuf allocates in functions that may not throw",
}
# The same of libraries anywhere in the stack.
KNOWN_BELOW = {
    "libgflags": "gflags allocates where its locks may not throw",
    "libgdcm": "constructors of global objects, which run as OpenCV is loaded, allocate",
    "libproj": "constructors of global objects, which run as OpenCV is loaded, allocate",
    "libgdal": "constructors of global objects, which run as OpenCV is loaded, allocate",
}
# Functions of the C library that end the process when they get no memory.
FATAL = {"__cxa_thread_atexit_impl": "glibc has no other answer where a variable of a thread cannot be registered for its end"}
RUNTIME = re.compile(r"^(faults\.so|libc\.so|libstdc\+\+\.so|libgcc_s\.so|libpthread\.so|libm\.so|ld-linux|linux-vdso)")


def read(path):
    """The stacks by heading, "fault" and "crash: SIGSEGV", each a list of (library, function)."""
    stacks = {}
    if not os.path.exists(path):
        return stacks
    with open(path, errors="replace") as file:
        lines = file.read().splitlines()
    frames = None
    for line in lines:
        found = re.match(r"(.*)\(([^+)]*)(\+0x[0-9a-f]+)?\)\[", line)
        if not found:
            frames = stacks.setdefault(line, [])
        elif frames is not None:
            frames.append((os.path.basename(found.group(1)), found.group(2)))
    return stacks


def blame(stacks):
    """The library that crashed and the known reason, else None; the functions on top of the stack."""
    crash = next((frames for heading, frames in stacks.items() if heading.startswith("crash")), [])
    others = [frame for frame in crash if not RUNTIME.match(frame[0])]
    shown = []
    for library, function in others[:6]:
        name = subprocess.run(["c++filt", function], capture_output=True, text=True).stdout.strip() if function else "?"
        shown.append(f"{library}: {name[:80]}")
    reason = None
    if others:
        library, function = others[0]
        # Its templates are also in programs and libraries that use them.
        library = "libprotobuf.so" if re.match("_ZNK?6google8protobuf", function) else library
        reason = next((why for name, why in KNOWN.items() if library.startswith(name)), None)
        for name, why in KNOWN_BELOW.items():
            if any(frame[0].startswith(name) for frame in others):
                reason = reason or why
    for library, function in crash:
        reason = reason or FATAL.get(function)
        if library.startswith("ld-linux") and others and others[0][0].startswith(("libopencv", "libcrema")) and any(
                frame[0].startswith("libopencv") for frame in others[:3]):
            reason = reason or "constructors of global objects, which run as OpenCV is loaded, allocate"
    return reason, " < ".join(shown)
