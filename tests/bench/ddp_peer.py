#!/usr/bin/env python3
"""Speed of training steps in PyTorch with DistributedDataParallel: what several ranks are measured against.

  ddp_peer.py --peer torch_peer.py --ranks 1,2,4                     on GPUs, through NCCL
  ddp_peer.py --peer torch_peer.py --cpu --ranks 1,2 --total         on CPUs, through gloo
  torchrun --nproc-per-node 2 ddp_peer.py --peer torch_peer.py       the ranks that torchrun starts, also on several machines

torch_peer.py builds a net of nets/ in PyTorch; it is imported by its path, and nothing is downloaded. Each line is the median time
of a step on rank 0, the images per second of all ranks together, and how many times as fast that is as the first number of
ranks. One rank trains without DDP. Data lie on the device already; SGD with momentum 0.9 and weight decay 5e-4, as in torch_peer.py.
After each measurement the weights of the ranks are compared: they must be the same bits.

Modes (--modes): eager and compile; on GPUs both are channels-last in --half with float32 weights, without CUDA graphs; on CPUs they are
channels-last in float32. --wire fp16 or bf16 sends gradients in 16 bits (DDP's communication hooks).
"""
import argparse
import datetime
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

# Batches are those of one rank; with --total those of all.
ROWS = {"resnet50": (256, (3, 224, 224), 1000), "vgg16": (64, (3, 224, 224), 1000), "alexnet": (256, (3, 227, 227), 1000),
        "googlenet": (128, (3, 224, 224), 1000), "seed_cifar_cnn": (512, (3, 32, 32), 10)}
CPU_ROWS = {"cifar10_full": (100, (3, 32, 32), 10), "googlenet": (8, (3, 224, 224), 1000), "seed_cifar_cnn": (32, (3, 32, 32), 10),
            "lenet": (64, (1, 28, 28), 10), "alexnet": (16, (3, 227, 227), 1000), "resnet50": (4, (3, 224, 224), 1000)}
HERE = os.path.dirname(os.path.abspath(__file__))


def import_by_path(path):
    if not os.path.isfile(path):
        raise SystemExit(f"ddp_peer: {path} is missing: --peer takes the path of torch_peer.py")
    spec = importlib.util.spec_from_file_location("torch_peer", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def step_of(net, mode, ranks, local_rank, args):
    """The training step of this rank, and the parameters that it trains."""
    batch, shape, classes = args.row
    if args.total:
        if batch % ranks:
            raise SystemExit(f"ddp_peer: a batch of {batch} cannot be divided among {ranks} ranks")
        batch //= ranks
    device = "cpu" if args.cpu else f"cuda:{local_rank}"
    net = net.to(device).to(memory_format=torch.channels_last).train()
    data = torch.randn((batch,) + shape, device=device).to(memory_format=torch.channels_last)
    label = torch.randint(0, classes, (batch,), device=device)
    parameters = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, weight_decay=5e-4, **({} if args.cpu else {"fused": True}))
    model = net
    if ranks > 1:
        model = torch.nn.parallel.DistributedDataParallel(net, device_ids=None if args.cpu else [local_rank],
                                                          broadcast_buffers=False, gradient_as_bucket_view=True)
        if args.wire != "fp32":
            model.register_comm_hook(None, default_hooks.fp16_compress_hook if args.wire == "fp16" else default_hooks.bf16_compress_hook)
    if mode == "compile":
        model = torch.compile(model)  # around DDP: it then divides the graph where a bucket is full
    half = {"fp16": torch.float16, "bf16": torch.bfloat16}[args.half]

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu" if args.cpu else "cuda", half, enabled=not args.cpu):
            loss = model(data, label)
        loss.backward()
        optimizer.step()
    return step, parameters, batch * ranks


def milliseconds(step, rank, ranks, args):
    """Median over rounds of as many steps on every rank."""
    synchronize = (lambda: None) if args.cpu else torch.cuda.synchronize

    def timed(steps):
        synchronize()
        if ranks > 1:
            dist.barrier()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        synchronize()
        return 1000 * (time.perf_counter() - begin) / steps

    timed(5)
    one = min(timed(1) for _ in range(3))
    plan = torch.tensor([max(1, int(100 / one)), 0])
    plan[1] = max(5, int(1000 * args.seconds / (one * plan[0])))
    if ranks > 1:  # rank 0 decides
        plan = plan.to("cpu" if args.cpu else torch.cuda.current_device())
        dist.broadcast(plan, 0)
    steps, rounds = plan.tolist()
    return statistics.median(timed(steps) for _ in range(rounds))


def check_same_weights(parameters, ranks, name):
    """As integers, since a nan is not equal to itself."""
    sums = torch.stack([p.detach().contiguous().view(torch.int32).sum(dtype=torch.int64) for p in parameters])
    least, most = sums.clone(), sums.clone()
    dist.all_reduce(least, dist.ReduceOp.MIN)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    if not torch.equal(least, most):
        raise SystemExit(f"ddp_peer: {name}: the weights of the {ranks} ranks differ after the training")


def run_rank(local_rank, rank, ranks, mode, store, args):
    warnings.simplefilter("ignore")
    peer = import_by_path(args.peer)
    if args.cpu:
        if args.pin:
            cores = sorted(os.sched_getaffinity(0))
            if ranks > 1:
                os.sched_setaffinity(0, cores[local_rank * args.threads:(local_rank + 1) * args.threads])
        torch.set_num_threads(args.threads * max(1, args.most_ranks // ranks) if args.total else args.threads)
    else:
        torch.cuda.set_device(local_rank)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
    if ranks > 1:
        # One rank may compile for longer than another.
        dist.init_process_group("gloo" if args.cpu else "nccl", init_method=store, rank=rank, world_size=ranks,
                                timeout=datetime.timedelta(seconds=args.limit))
    torch.manual_seed(rank)
    spec = peer.parse_prototxt(open(os.path.join(args.nets, args.net + ".prototxt")).read())
    _, shape, classes = args.row
    step, parameters, images = step_of(peer.Net(spec, shape, classes, "TRAIN"), mode, ranks, local_rank, args)
    ms = milliseconds(step, rank, ranks, args)
    if ranks > 1:
        check_same_weights(parameters, ranks, args.net)
    if rank == 0:
        with open(args.result, "w") as file:
            json.dump({"ms": ms, "images": images}, file)
    if ranks > 1:
        dist.barrier()  # none ends while another still compares


def spawned(local_rank, ranks, mode, store, args):
    run_rank(local_rank, local_rank, ranks, mode, store, args)
    sys.stdout.flush()
    os._exit(0)  # gloo's threads sometimes abort a process that ends in the usual way


def measure(mode, ranks, args):
    """Starts the ranks on this machine and waits for them: milliseconds of a step, images of a step."""
    with tempfile.TemporaryDirectory() as folder:
        args.result = os.path.join(folder, "result")
        context = multiprocessing.spawn(spawned, (ranks, mode, f"file://{folder}/store", args), nprocs=ranks, join=False)
        end = time.monotonic() + args.limit
        try:
            while not context.join(timeout=1):
                if time.monotonic() > end:
                    raise RuntimeError(f"not finished after {args.limit} s")
        finally:
            for process in context.processes:
                if process.is_alive():
                    process.kill()
        with open(args.result) as file:
            result = json.load(file)
        return result["ms"], result["images"]


def print_row(mode, ranks, ms, images, first, args):
    speed = 1000 * images / ms
    kind = mode if args.cpu else f"{args.half}-{mode}"
    print(f"{args.net:16s} {kind:13s} ranks {ranks:3d}  batch {images // ranks:4d} a rank  {ms:9.3f} ms/step  {speed:9.1f} img/s"
          + (f"  {speed / first:5.2f} times" if first else ""), flush=True)
    return speed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=os.path.join(HERE, "torch_peer.py"), help="path of torch_peer.py")
    parser.add_argument("--nets", default=os.path.join(HERE, "nets"), help="folder of the nets")
    parser.add_argument("--rows", help="nets, by commas; each may have its batch, resnet50:64")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks, by commas")
    parser.add_argument("--modes", default="compile", help="eager, compile or both, by a comma")
    parser.add_argument("--half", default="fp16", choices=["fp16", "bf16"])
    parser.add_argument("--wire", default="fp32", choices=["fp32", "fp16", "bf16"])
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--total", action="store_true", help="the batch is that of all ranks; on CPUs, one rank gets all their threads")
    parser.add_argument("--threads", type=int, default=1, help="of each rank, on CPUs")
    parser.add_argument("--pin", action="store_true", help="on CPUs, each of several ranks has its own cores")
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a measurement is given up")
    args = parser.parse_args()
    args.peer, args.nets = os.path.abspath(args.peer), os.path.abspath(args.nets)
    if args.cpu:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    import_by_path(args.peer)
    known = CPU_ROWS if args.cpu else ROWS
    counts = [int(count) for count in args.ranks.split(",")]
    args.most_ranks = max(counts)
    failed = False
    for row in (args.rows or "cifar10_full,googlenet" if args.cpu else args.rows or ",".join(ROWS)).split(","):
        args.net, _, batch = row.partition(":")
        if args.net not in known:
            raise SystemExit(f"ddp_peer: no net {args.net}; there are {', '.join(known)}")
        args.row = (int(batch) if batch else known[args.net][0],) + known[args.net][1:]
        for mode in args.modes.split(","):
            if "RANK" in os.environ:  # under torchrun
                rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
                with tempfile.TemporaryDirectory() as folder:
                    args.result = os.path.join(folder, "result")
                    run_rank(int(os.environ["LOCAL_RANK"]), rank, ranks, mode, "env://", args)
                    if rank == 0:
                        with open(args.result) as file:
                            result = json.load(file)
                        print_row(mode, ranks, result["ms"], result["images"], None, args)
                dist.destroy_process_group()
                continue
            first = None
            for ranks in counts:
                try:
                    ms, images = measure(mode, ranks, args)
                except Exception as error:
                    failed = True
                    print(f"{args.net:16s} {mode:13s} ranks {ranks:3d}  FAILED {str(error).strip().splitlines()[-1][:160]}", flush=True)
                    continue
                speed = print_row(mode, ranks, ms, images, first, args)
                first = first or speed
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
