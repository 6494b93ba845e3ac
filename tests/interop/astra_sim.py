#!/usr/bin/env python3
"""Runs exports of `shardscape simulate --chakra` in ASTRA-sim 2 and compares its step times with those of `replay`.

    tests/interop/astra_sim.py --checkout ASTRA_SIM --program build/release/shardscape

Needs a checkout of https://github.com/astra-sim/astra-sim with its submodules, and what its build needs (protobuf,
cmake, a C++ compiler); without one (--checkout or the variable ASTRA_SIM) it is skipped, with exit code 77. The
checkout is copied and the copy is changed, so that it stays as it is.

Which version: the script was written for the `main` branch of ASTRA-sim 2 whose workload layer is
astra-sim/workload/HardwareResource.cc. The commit at which the figures below were measured was not written down: the
commit of the checkout is printed with every figure, and a checkout without the lines that have to be changed is refused.

Which lines: HardwareResource.cc lets one communication of a rank be under way at a time
(`num_in_flight_gpu_comm_ops == 0`). A plan has up to three collectives and four messages at once; with one, what runs
side by side waits, and a send can hold up the collective that its receiver waits for. CHANGES raises the limit to 8.

What to expect: ASTRA-sim's step time was 3.5 and 4.6 % above that of `replay` for two plans with one chunk of a
collective in flight (active-chunks-per-dimension: 1), and 2.1 % above with eight.

No test of this project has a checkout: interop_test.py runs the script against a stub in place of the simulator, which
shows that it builds, configures, reads and compares as described, not what ASTRA-sim says.
"""
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
LIMIT = 8
RESOURCE = "astra-sim/workload/HardwareResource.cc"
BUILD = ["bash", "build/astra_analytical/build.sh"]
BINARY = "build/astra_analytical/build/bin/AstraSim_Analytical_Congestion_Aware"
# (pattern, what takes its place) in RESOURCE: a limit in place of "none under way", and counts above one.
CHANGES = [
    (r"\b(num_in_flight_gpu_comm_\w+)\s*==\s*0", rf"\1 < {LIMIT}"),
    (r"\b(num_in_flight_gpu_comm_\w+)\s*==\s*1", r"\1 > 0"),
]
# Chunks in flight, and by how much of replay's step time ASTRA-sim's was above it.
EXPECTED = {1: (0.035, 0.046), 8: (0.021, 0.021)}
ROOM = 0.015  # beyond the measured ones: another commit, another plan

BANDWIDTH, LATENCY_NS, GPUS = 300e9, 700, 8
CLUSTER = f"""name: ring-of-eight
device: a100-sxm-80gb
dimensions:
  - {{name: ring, kind: ring, size: {GPUS}, bandwidth: {BANDWIDTH / 1e9:g} GB/s, latency: {LATENCY_NS / 1e3:g} us}}
"""
STUDY = f"""study: interop
model: llama3.1-8b
cluster: cluster.yaml
gpus: {GPUS}
stack: megatron-lm
workload: {{phase: training, sequence_length: 4096, global_batch: 16, precision: bf16}}
space: {{tensor_parallel: [1, 2, 4, 8], pipeline_parallel: [1, 2], data_parallel: fill, zero_stage: [0, 1]}}
objectives: [step_time_s]
"""
PLANS = ["tp=4,pp=1,dp=2", "tp=2,pp=2,dp=2"]
# The analytical networks multiply by 2^30; the endpoint delay is paid once per message.
NETWORK = f"topology: [ Ring ]\nnpus_count: [ {GPUS} ]\nbandwidth: [ {BANDWIDTH / 2**30:.6f} ]\nlatency: [ {LATENCY_NS} ]\n"
MEMORY = {"memory-type": "NO_MEMORY_EXPANSION"}


def system(chunks: int) -> dict[str, object]:
    """The settings under which both mean the same; engine/README.md says why each."""
    return {
        "scheduling-policy": "FIFO", "endpoint-delay": 1, "active-chunks-per-dimension": chunks,
        "preferred-dataset-splits": chunks, "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
        "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["direct"],
        "collective-optimization": "baseline", "local-mem-bw": 1631, "peak-perf": 250, "roofline-enabled": 0,
    }


class Refused(Exception):
    """The input is not what the script was written for."""


def run(words: list[str], folder: Path) -> str:
    """Standard output and error of a command that has to succeed."""
    try:
        done = subprocess.run(words, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except OSError as error:
        raise Refused(f"{words[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise Refused(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


def changed_copy(checkout: Path, work: Path) -> tuple[Path, str]:
    """A copy of the checkout with CHANGES, and its commit."""
    for needed in (RESOURCE, BUILD[1]):
        if not (checkout / needed).is_file():
            raise Refused(f"{checkout} is no checkout of ASTRA-sim 2: it has no {needed}")
    if work.resolve().is_relative_to(checkout.resolve()):
        raise Refused(f"{work} lies in the checkout, of which it takes a copy")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, text=True, capture_output=True, check=False)
    copy = work / "astra-sim"
    shutil.copytree(checkout, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    source = copy / RESOURCE
    text = source.read_text()
    if not re.search(CHANGES[0][0], text):
        raise Refused(f"{source}: no line limits communications to one (num_in_flight_gpu_comm_... == 0): another version")
    for pattern, instead in CHANGES:
        text, count = re.subn(pattern, instead, text)
        print(f"{RESOURCE}: {count} x  {pattern}  ->  {instead}")
    source.write_text(text)
    return copy, head.stdout.strip() or "unknown (no git)"


def simulated_seconds(output: str) -> float:
    """The step time in ASTRA-sim's output: cycles are nanoseconds, and the slowest rank counts."""
    cycles = [int(number) for number in re.findall(r"sys\[\d+\] finished, (\d+) cycles", output)]
    if len(cycles) < GPUS:
        raise Refused(f"ASTRA-sim ended {len(cycles)} of {GPUS} ranks:\n{output[-2000:]}")
    return max(cycles) / 1e9


def compare(copy: Path, program: Path, work: Path) -> list[tuple[str, int, float, float]]:
    """(plan, chunks in flight, seconds of replay, seconds of ASTRA-sim) for all plans."""
    (work / "cluster.yaml").write_text(CLUSTER)
    (work / "study.yaml").write_text(STUDY)
    (work / "network.yml").write_text(NETWORK)
    (work / "memory.json").write_text(json.dumps(MEMORY))
    rows = []
    for number, plan in enumerate(PLANS):
        traces = work / f"traces{number}"
        run([str(program), "simulate", "study.yaml", "--point", plan, "--mode", "flattened", "--chakra", traces.name], work)
        replayed = json.loads(run([str(program), "replay", traces.name, "--cluster", "cluster.yaml", "--json"], work))
        for chunks in EXPECTED:
            (work / "system.json").write_text(json.dumps(system(chunks)))
            output = run([str(copy / BINARY), f"--workload-configuration={traces}/shardscape",
                          f"--comm-group-configuration={traces}/comm_groups.json", f"--system-configuration={work}/system.json",
                          f"--network-configuration={work}/network.yml", f"--remote-memory-configuration={work}/memory.json"], work)
            rows.append((plan, chunks, float(replayed["step_time_s"]), simulated_seconds(output)))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", default=os.environ.get("ASTRA_SIM"), help="a checkout of ASTRA-sim 2, with submodules")
    parser.add_argument("--program", default=os.environ.get("SHARDSCAPE_PROGRAM", "build/release/shardscape"), help="shardscape")
    parser.add_argument("--work", help="a new folder for the copy, traces and settings (default: one that is removed)")
    arguments = parser.parse_args()
    if not arguments.checkout:
        print("skipped: no checkout of ASTRA-sim is given (--checkout DIR, or the variable ASTRA_SIM)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        work = arguments.work or os.path.join(temporary, "work")
        return compare_all(*(Path(path).resolve() for path in (arguments.checkout, arguments.program, work)))


def compare_all(checkout: Path, program: Path, work: Path) -> int:
    """Prints all figures; the exit code."""
    try:
        if work.exists():
            raise Refused(f"{work}: exists; give a new folder with --work")
        if not os.access(program, os.X_OK):
            raise Refused(f"{program}: is no program; build it, or give it with --program")
        work.mkdir(parents=True)
        copy, commit = changed_copy(checkout, work)
        run(BUILD, copy)
        rows = compare(copy, program, work)
    except Refused as error:
        print(f"astra_sim.py: {error}", file=sys.stderr)
        return 2
    print(f"ASTRA-sim at {commit}")
    worst = 0
    for plan, chunks, replayed, simulated in rows:
        off, (low, high) = simulated / replayed - 1, EXPECTED[chunks]
        inside = low - ROOM <= off <= high + ROOM
        worst += not inside
        print(f"{plan:16} {chunks} in flight  replay {replayed:.6f} s  ASTRA-sim {simulated:.6f} s  {off:+.1%}"
              f"  {'as expected' if inside else f'expected {low:+.1%} to {high:+.1%}'}")
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
