"""Faults in one of two ranks under mpirun: a call of it fails, or it is killed. The other rank ends within the timeout, one of them
says why, no snapshot is damaged, and the same command then goes on."""
import errno
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

TIMEOUT, MARGIN = 3, 12  # seconds: of the ranks, and what the start and the end take
TRAIN = "train -solver solver.prototxt -snapshot auto -batch_mode total -set display=1 -set snapshot=3"
RESULTS = ["s_iter_12.caffemodel", "s_iter_12.solverstate"]


def run(lab, folder, fault=None, rank=None):
    """mpirun's exit code, which is 124 after the time limit, its output and how long it took."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", CREMA_FLAGS="", XDG_CONFIG_HOME="/nonexistent", HOME=folder,
                       OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1",
                       OMPI_MCA_hwloc_base_binding_policy="none")
    words = ["mpirun", "-n", "2"]
    if fault is not None:
        fault = dict(fault, CREMA_FAULT_PATH=folder, CREMA_FAULT_RANK=str(rank), LD_PRELOAD=lab.library)
        for name, value in fault.items():
            words += ["-x", f"{name}={value}"]
    words += [os.path.join(lab.tools, "crema"), *TRAIN.split(), "-rank_timeout", str(TIMEOUT)]
    begin = time.monotonic()
    child = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        output = child.communicate(timeout=60)[0]
        code = child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, code = child.communicate()[0], 124
    return code, output, time.monotonic() - begin


def errors_in(output):
    """What ranks say at their end, not mpirun, and not that a snapshot could not be written."""
    return [line for line in output.splitlines() if re.match(r"E\d{4} .* (main|world_flags)\.cpp:", line)]


def check(lab, base, clean, usual, fault):
    """What is wrong after this fault, as a text; empty: nothing."""
    rank, call, nth, error = fault
    folder = tempfile.mkdtemp(dir=lab.folder)
    shutil.rmtree(folder)
    shutil.copytree(base, folder)
    number = 0 if error == "KILL" else getattr(errno, error)
    stack = os.path.join(folder, "stack")
    code, output, seconds = run(lab, folder, {"CREMA_FAULT_CALL": call, "CREMA_FAULT_NTH": str(nth), "CREMA_FAULT_STACK": stack,
                                              "CREMA_FAULT_ERRNO": str(number)}, rank)
    wrong, said = [], errors_in(output)
    if seconds > usual + TIMEOUT + MARGIN:
        wrong.append(f"it took {seconds:.1f} s")
    if code == 0 and said:
        wrong.append(f"exit code 0, but: {said}")
    # A rank that ends before the ranks have met is known to mpirun alone, which ends the other.
    trained = re.search(r"Iteration \d", output) is not None
    if code != 0 and len(said) != 1 and (trained or len(said) > 1):
        wrong.append(f"exit code {code}, expected one message of a rank, found {len(said)}: {said or output[-400:]}")
    if code != 0 and error == "KILL" and trained and said and f"rank {rank} on {socket.gethostname()} has ended" not in said[0]:
        wrong.append(f"another message: {said[0]}")
    crash = lab.crash_in(f"{stack}.{rank}")
    if crash and not crash.startswith("known: "):
        wrong.append(crash)
    # oneDNN and the plain kernels that replace it do not give the same bits.
    other_kernels = call in ("mapping", "mprotect")
    for name in os.listdir(folder):
        if other_kernels:
            break
        if name.startswith("s_iter_") and re.search(r"_iter_(\d+)\.", name) and ".tmp." not in name:
            if lab.digest(folder, name) != clean.get(name):
                wrong.append(f"{name} is not that of an undisturbed run")
    again, output, _ = run(lab, folder)
    if again != 0 or "passes over" in output:
        wrong.append(f"the same command afterwards: exit code {again}: {errors_in(output) or output[-300:]}")
    else:
        wrong += [f"the same command afterwards gives another {name}" for name in RESULTS
                  if not other_kernels and lab.digest(folder, name) != clean[name]]
        wrong += [f"{name} is left" for name in os.listdir(folder) if ".tmp." in name]
    shutil.rmtree(folder, ignore_errors=True)
    return "; ".join(wrong), "known" if crash else f"exit code {min(code, 2)}"


def scenario(lab, chosen, tries, pick):
    """Rows of the table: who, how many calls, tries, wrong, outcomes."""
    base, clean_folder = os.path.join(lab.folder, "base"), os.path.join(lab.folder, "clean")
    lab.prepare_texts(base)
    rows = []
    calls, usual = {}, 0
    for rank in (0, 1):
        shutil.rmtree(clean_folder, ignore_errors=True)
        shutil.copytree(base, clean_folder)
        count = os.path.join(lab.folder, "count")
        code, output, usual = run(lab, clean_folder, {"CREMA_FAULT_COUNT": count, "CREMA_FAULT_NTH": "0"}, rank)
        if code != 0:
            raise SystemExit(f"ranks: {output}")
        calls[rank] = lab.read_counts(f"{count}.{rank}")
    clean = {name: lab.digest(clean_folder, name) for name in os.listdir(clean_folder) if name.startswith("s_iter_")}
    for rank in (0, 1):
        outcomes, wrong, done = {}, 0, 0
        for call, nth, error in pick(chosen, calls[rank], tries // 2):
            problem, outcome = check(lab, base, clean, usual, (rank, call, nth, error))
            done += 1
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if problem:
                wrong += 1
                lab.report(f"rank {rank}: {call} #{nth} {error}: {problem}")
        rows.append((f"rank {rank} of 2", sum(calls[rank].values()), done, wrong, outcomes))
    for path in (base, clean_folder):
        shutil.rmtree(path)
    return rows
