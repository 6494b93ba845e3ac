"""Does astra_sim.py skip, refuse, configure and compare as it says? A stub stands in place of the simulator.

Run by ctest with SHARDSCAPE_PROGRAM (the program).
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("astra_sim.py")
LINES = """bool HardwareResource::is_available(const shared_ptr<Chakra::ETFeederNode> node) const {
    if (num_in_flight_gpu_comp_ops == 0) return true;
    if (num_in_flight_gpu_comm_ops == 0) return true;
    return false;
}
void HardwareResource::release() {
    assert(num_in_flight_gpu_comm_ops == 1);
}
"""
# What it was called with goes into a file; it ends each rank after as many cycles as FACTOR times a step of replay.
STUB = """#!/usr/bin/env python3
import json, os, subprocess, sys
given = dict(word[2:].split("=", 1) for word in sys.argv[1:])
chunks = json.load(open(given["system-configuration"]))["active-chunks-per-dimension"]
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps({**given, "chunks": chunks, "network": open(given["network-configuration"]).read(),
                            "groups": len(json.load(open(given["comm-group-configuration"]))),
                            "ranks": len([name for name in os.listdir(os.path.dirname(given["workload-configuration"])) if name.endswith(".et")])}) + "\\n")
traces = os.path.dirname(given["workload-configuration"])
replay = [os.environ["SHARDSCAPE_PROGRAM"], "replay", traces, "--cluster", "cluster.yaml", "--json"]
step = json.loads(subprocess.run(replay, capture_output=True, text=True, check=True).stdout)["step_time_s"]
factor = json.loads(os.environ["FACTOR"])[str(chunks)]
for rank in range(int(os.environ.get("RANKS", "8"))):
    print(f"[workload] sys[{rank}] finished, {round(1e9 * factor * step) - rank} cycles, exposed communication 0 cycles.")
"""


class AstraSimTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        self.calls = self.folder / "calls"

    def tearDown(self):
        self.temporary.cleanup()

    def script(self, *words, **environment):
        full = {**os.environ, "CALLS": str(self.calls), **environment}
        full.pop("ASTRA_SIM", None)
        return subprocess.run([sys.executable, SCRIPT, "--work", str(self.folder / "work"), *words], env=full, capture_output=True,
                              text=True, check=False)

    def checkout(self, lines=LINES):
        checkout = self.folder / "checkout"
        (checkout / "astra-sim/workload").mkdir(parents=True)
        (checkout / "build/astra_analytical").mkdir(parents=True)
        (checkout / "astra-sim/workload/HardwareResource.cc").write_text(lines)
        (checkout / "stub").write_text(STUB)
        # As the real one, it builds into build/astra_analytical/build/bin.
        (checkout / "build/astra_analytical/build.sh").write_text(
            "set -e\nbin=build/astra_analytical/build/bin\nmkdir -p $bin\ncp stub $bin/AstraSim_Analytical_Congestion_Aware\n"
            "chmod +x $bin/AstraSim_Analytical_Congestion_Aware\n")
        return checkout

    def test_without_a_checkout_it_is_skipped(self):
        done = self.script()
        self.assertEqual(done.returncode, 77)
        self.assertIn("no checkout of ASTRA-sim is given", done.stdout)

    def test_what_is_no_checkout_is_refused(self):
        other = self.folder / "other"
        other.mkdir()
        cases = [("is no checkout of ASTRA-sim 2: it has no astra-sim/workload/HardwareResource.cc", other),
                 ("is no checkout", self.folder / "none"), ("another version", self.checkout("int main() {}\n"))]
        for number, (message, folder) in enumerate(cases):
            with self.subTest(message):
                done = self.script("--checkout", str(folder), "--work", str(self.folder / f"work{number}"))
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(message, done.stderr)
        done = self.script("--checkout", str(other), "--work", str(other))
        self.assertIn("exists; give a new folder", done.stderr)
        done = self.script("--checkout", str(other), "--program", str(other / "shardscape"))
        self.assertIn("is no program", done.stderr)

    def test_figures_as_expected(self):
        checkout = self.checkout()
        done = self.script("--checkout", str(checkout), FACTOR='{"1": 1.04, "8": 1.021}')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("as expected"), 4)
        self.assertIn("+4.0%", done.stdout)
        self.assertIn("+2.1%", done.stdout)
        # The copy has the changes, the checkout has none.
        changed = (self.folder / "work/astra-sim/astra-sim/workload/HardwareResource.cc").read_text()
        self.assertEqual(changed, LINES.replace("comm_ops == 0", "comm_ops < 8").replace("comm_ops == 1", "comm_ops > 0"))
        self.assertEqual((checkout / "astra-sim/workload/HardwareResource.cc").read_text(), LINES)
        calls = [json.loads(line) for line in self.calls.read_text().splitlines()]
        self.assertEqual([call["chunks"] for call in calls], [1, 8, 1, 8])
        for call in calls:
            self.assertEqual(call["ranks"], 8)
            self.assertGreater(call["groups"], 0)
            self.assertIn("bandwidth: [ 279.39", call["network"])

    def test_other_figures_fail(self):
        done = self.script("--checkout", str(self.checkout()), FACTOR='{"1": 1.2, "8": 1.021}')
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("+20.0%  expected +3.5% to +4.6%", done.stdout)

    def test_ranks_that_do_not_end_are_said(self):
        done = self.script("--checkout", str(self.checkout()), FACTOR='{"1": 1.04, "8": 1.021}', RANKS="3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("ASTRA-sim ended 3 of 8 ranks", done.stderr)


if __name__ == "__main__":
    unittest.main()
