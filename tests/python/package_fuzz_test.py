"""Does the interpreter survive whatever is given to the package? Every method gets arguments of random types and
values; an exception of Python is as good as a result, and InternalError is not.

Run by ctest with PYTHONPATH and SHARDSCAPE_STUDIES; SHARDSCAPE_FUZZ_SEED and SHARDSCAPE_FUZZ_TIMES make other and longer runs.
"""
import copy
import io
import os
import pickle
import random
import tempfile
import unittest
import warnings

import matplotlib

matplotlib.use("Agg")
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import shardscape as ss  # noqa: E402
from shardscape import _shardscape, plots  # noqa: E402

STUDIES = os.environ["SHARDSCAPE_STUDIES"]
SEED = int(os.environ.get("SHARDSCAPE_FUZZ_SEED", "1"))
TIMES = int(os.environ.get("SHARDSCAPE_FUZZ_TIMES", "1"))
SMALL = {
    "model": "llama3.1-70b", "cluster": "a100-torus2d-ring-64", "stack": "megatron-core",
    "workload": {"phase": "training", "sequence_length": 4096, "global_batch": 128, "precision": "bf16"},
    "space": {"tensor_parallel": [4, 8], "pipeline_parallel": [4], "data_parallel": "fill"},
    "objectives": ["step_time_s"],
}
AXES = ["tp", "sp", "cp", "pp", "dp", "ep", "etp", "zero", "recompute", "mbs", "schedule", "vpp", "order", "concurrency",
        "request_rate", "mode", "faults", "x", "", "a=b", "\u202e", "\ud800"]
KEYS = ["model", "cluster", "gpus", "stack", "workload", "workload.global_batch", "space", "space.tensor_parallel", "hardware",
        "hardware.device.hbm.bandwidth", "objectives", "store", "faults", "constraints", "mode", "", ".", "a..b", "\0", "=", "x=y"]


class Odd:
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


class Fuzzer:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, depth=2):
        r = self.random
        simple = [
            lambda: None, lambda: r.choice([True, False]), lambda: r.randint(-3, 9), lambda: r.choice([2 ** 31, 2 ** 63, 2 ** 200, -2 ** 70]),
            lambda: r.choice([0.0, -1.5, 1e-300, 1e308, float("nan"), float("inf")]), lambda: r.choice(AXES + KEYS),
            lambda: "".join(chr(r.choice([r.randrange(128), r.randrange(0x300), r.randrange(0xD7FF)])) for _ in range(r.randint(0, 9))),
            lambda: "x" * r.choice([1000, 100000]), lambda: r.randbytes(r.randint(0, 9)), lambda: np.float32(1.5), lambda: np.int64(4),
            lambda: np.arange(3), object, Odd, lambda: Odd, lambda: 1j, lambda: io.StringIO("x"), lambda: range(3), lambda: len,
            lambda: pd.DataFrame({"id": [1], "x": ["y"]}), lambda: ss.presets, lambda: "full", lambda: "2 TB/s", lambda: "powers_of_two",
        ]
        if depth > 0:
            simple += [lambda: [self.value(depth - 1) for _ in range(r.randint(0, 3))],
                       lambda: {r.choice(AXES + KEYS): self.value(depth - 1) for _ in range(r.randint(0, 3))},
                       lambda: (self.value(depth - 1),), lambda: {1: self.value(depth - 1)}]
        return r.choice(simple)()

    def values(self, most=2):
        return [self.value() for _ in range(self.random.randint(0, most))]

    def keywords(self, names):
        chosen = self.random.sample(names, self.random.randint(0, min(3, len(names))))
        return {name: self.value() for name in chosen}


class FuzzTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore")
        print(f"seed {SEED}")
        cls.temporary = tempfile.TemporaryDirectory()
        os.chdir(cls.temporary.name)  # names of files that are made up lie here
        cls.fuzzer = Fuzzer(SEED)
        cls.small = ss.Study.from_dict(SMALL)
        cls.points = cls.small.sweep("points.h5", progress=False)
        cls.serving = ss.Study.load(os.path.join(STUDIES, "llama3.1-70b-serving-16xa100.yaml"))

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.temporary.cleanup()

    def attempt(self, call, times):
        """Calls so often, SHARDSCAPE_FUZZ_TIMES times as often; most calls must be refused, or they try nothing."""
        times, refused = times * TIMES, 0
        for _ in range(times):
            try:
                call(self.fuzzer)
            except (KeyboardInterrupt, ss.InternalError, SystemError, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001: any of Python's will do
                self.assertNotIn("check failed", str(error))
                refused += 1
        self.assertGreater(refused, times // 4)

    def test_simulate(self):
        for study in (self.small, self.serving):
            def call(f, study=study):
                result = study.simulate(**f.keywords(AXES))
                result.row(), repr(result)
            self.attempt(call, 250)

    def test_changed_studies(self):
        def mutated(f):
            study = copy.deepcopy(SMALL)
            place = f.random.choice([study, study["workload"], study["space"]])
            place[f.random.choice(list(place) + KEYS)] = f.value()
            ss.Study.from_dict(study, *f.values(1)).simulate()
        self.attempt(mutated, 60)
        self.attempt(lambda f: ss.Study.from_dict(SMALL).set(f.random.choice(KEYS), f.value()).simulate(), 40)
        self.attempt(lambda f: ss.Study.from_dict(*f.values(2)), 40)
        self.attempt(lambda f: ss.Study.load(*f.values(3)), 40)
        self.attempt(lambda f: ss.Study(*f.values(4)), 40)

    def test_texts(self):
        with open(os.path.join(STUDIES, "llama3.1-70b-64xa100-faults.yaml"), "rb") as file:
            good = file.read()

        def cut(f):
            text = bytearray(good)
            for _ in range(f.random.randint(1, 4)):
                at = f.random.randrange(len(text))
                text[at:at + f.random.choice([0, 1, 30])] = f.random.choice([b"", b"\0", b"\xff", b"{", b"]", b"&a", b"*a", b": ", b"\n", b"9" * 30])
            _shardscape.read_study(bytes(text), "x.yaml", [], [])
        self.attempt(cut, 60)
        nested = "[" * 100000
        with self.assertRaises(ss.InputError):
            _shardscape.read_study(nested, "x.yaml", [], [])
        deep = []
        for _ in range(100000):
            deep = [deep]
        with self.assertRaises(Exception):
            ss.Study.from_dict({"model": deep})

    def test_commands(self):
        def no_bar(f, names):
            return {"progress": False, **{k: v for k, v in f.keywords(names).items() if not (k == "threads" and isinstance(v, int) and v > 9)}}
        study = self.small
        self.attempt(lambda f: study.sweep(f.random.choice([None, "a.h5", f.value()]), **no_bar(
            f, ["threads", "columns", "resume", "repair", "force", "limit", "sample", "sample_seed", "shard", "x"])), 20)
        self.attempt(lambda f: study.search(*f.values(1), **no_bar(
            f, ["pareto", "within", "budget", "mode", "output", "force", "threads"])), 20)
        self.attempt(lambda f: study.capacity(*f.values(1), **no_bar(f, ["budget", "report", "force", "threads"])), 20)
        self.attempt(lambda f: study.validate(f.value(), **f.keywords(["hold_out", "by", "device", "stack"])), 20)
        self.attempt(lambda f: study.calibrate(f.value(), **f.keywords(["stack", "device", "only", "keep", "start", "where", "folds"])), 20)

    def test_results(self):
        points = self.points
        self.attempt(lambda f: ss.top(f.random.choice([points, "points.h5", f.value()]), *f.values(1),
                                      **f.keywords(["by", "larger", "where"])), 16)
        self.attempt(lambda f: ss.load(*f.values(2)), 10)
        self.attempt(lambda f: ss.best("points.h5", *f.values(2)), 8)
        self.attempt(lambda f: getattr(self.small.simulate(), f.random.choice(["_x", "y", "mfu", "\ud800", "__len__"])), 50)
        for name in ("breakdown", "front", "schedule", "cdf", "ttft_throughput"):
            def draw(f, name=name):
                try:
                    getattr(plots, name)(f.random.choice([points, f.value()]), *f.values(2))
                finally:
                    matplotlib.pyplot.close("all")
            self.attempt(draw, 8)

    def test_native(self):
        """The module below the package, whose arguments nothing has looked at."""
        inputs = self.small._inputs
        words = ["check", "simulate", "presets", "sweep", "--json", "-o", "--", "-", "x", "top", "points.h5", "verify", "--help", "--version", ""]

        def run(f):
            chosen = [f.random.choice(words) if f.random.random() < 0.8 else f.value(0) for _ in range(f.random.randint(0, 4))]
            _shardscape.run(chosen, f.random.choice([None, inputs]), *f.values(2))
        self.attempt(run, 60)
        for function in (_shardscape.read_study, _shardscape.parse_yaml, _shardscape.read_text, _shardscape.list_presets):
            self.attempt(lambda f, function=function: function(*f.values(4)), 50)
        self.attempt(lambda f: inputs.simulate(*f.values(2), f.random.choice([f.keywords(AXES), f.value()])), 200)
        result = inputs.simulate(None, [], {})
        for made in (_shardscape.Result, _shardscape.Inputs):
            for call in (made, lambda: made.__new__(made), lambda: object.__new__(made)):
                with self.assertRaises(TypeError):
                    call()
        for call in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaises(TypeError):
                call(result)

    def test_presets(self):
        self.attempt(lambda f: ss.presets[f.value()], 40)
        self.attempt(lambda f: ss.Preset(*f.values(3)).check(), 20)
        self.attempt(lambda f: ss.presets.of(f.value()), 40)
        device = ss.presets["a100-sxm-80gb"]
        self.attempt(lambda f: device.changed("x", {f.random.choice(["hbm.bandwidth", "sm.count", "", "name", "hbm"]): f.value()}).check(), 20)


if __name__ == "__main__":
    unittest.main()
