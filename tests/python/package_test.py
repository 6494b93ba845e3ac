"""Does the Python package say what the program says, in values, in files and in messages?

Run by ctest with PYTHONPATH (the package), SHARDSCAPE_PROGRAM (the program) and SHARDSCAPE_STUDIES (the ready studies).
"""
import contextlib
import json
import math
import os
import pickle
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import warnings

import matplotlib

matplotlib.use("Agg")
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import shardscape as ss  # noqa: E402
from shardscape import _shardscape, plots  # noqa: E402

PROGRAM, STUDIES = os.environ["SHARDSCAPE_PROGRAM"], os.environ["SHARDSCAPE_STUDIES"]
TRAINING = os.path.join(STUDIES, "llama3.1-70b-64xa100.yaml")
FAULTS = os.path.join(STUDIES, "llama3.1-70b-64xa100-faults.yaml")
RATE = os.path.join(STUDIES, "llama3.1-70b-rate-h100.yaml")
SERVING = os.path.join(STUDIES, "llama3.1-70b-serving-16xa100.yaml")
POINT = {"tp": 4, "pp": 4, "dp": 4, "zero": 1, "recompute": "selective"}
POINT_TEXT = "tp=4,pp=4,dp=4,zero=1,recompute=selective"
SMALL = {
    "model": "llama3.1-70b", "cluster": "a100-torus2d-ring-64", "stack": "megatron-core",
    "workload": {"phase": "training", "sequence_length": 4096, "global_batch": 128, "precision": "bf16"},
    "space": {"tensor_parallel": [4, 8], "pipeline_parallel": [2, 4], "data_parallel": "fill", "recompute": ["none", "full"]},
    "objectives": ["step_time_s", "memory_peak_bytes"],
}


def figures(study):
    """What a study predicts of the plan of these tests; None where there is no value, which equals no other NaN."""
    return {name: None if value != value else value for name, value in study.simulate(**POINT).row().items()}


def program(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warnings.simplefilter("ignore", ss.ShardscapeWarning)
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        cls.study = ss.Study.load(TRAINING)
        cls.small = ss.Study.from_dict(SMALL)
        cls.points = cls.small.sweep(progress=False)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def path(self, name):
        return os.path.join(self.folder, name)


class SimulateTest(PackageTest):
    def test_documents_are_those_of_the_program(self):
        result = self.study.simulate(**POINT)
        for words, document in ((["--json"], result.to_dict()), (["--json", "--explain"], result.explain())):
            expected = program("simulate", TRAINING, "--point", POINT_TEXT, *words)
            self.assertEqual(document, json.loads(expected.stdout))
        self.assertEqual(result.report(), program("simulate", TRAINING, "--point", POINT_TEXT).stdout)
        self.assertEqual(result.step_time_s, result.to_dict()["step_time_s"])
        self.assertGreater(len(result.explain()["operators"]), 10)
        listed = json.loads(program("simulate", TRAINING, "--point", POINT_TEXT, "--json", "--worth").stdout)["worth"]
        worth = result.worth()
        self.assertEqual(list(worth.columns), ["key", "unit_text", "per_unit_s", "more_s", "less_s"])
        self.assertEqual(list(worth.key), [number["key"] for number in listed])
        times = [math.nan if number["more_s"] is None else number["more_s"] for number in listed]
        self.assertTrue(np.array_equal(worth.more_s, times, equal_nan=True))

    def test_documents_are_computed_once(self):
        result = self.study.simulate(**POINT)
        first, explained = result.to_dict(), result.explain()
        step = first["step_time_s"]
        first["step_time_s"] = 0  # of the caller alone
        with unittest.mock.patch("shardscape.result.run", side_effect=AssertionError("runs again")):
            self.assertEqual(result.to_dict()["step_time_s"], step)
            self.assertEqual(result.explain(), explained)

    def test_settings_modes_and_faults(self):
        study = ss.Study.load(TRAINING, set={"workload.global_batch": 64})
        self.assertIs(study.set("workload.sequence_length", 2048), study)
        result = study.simulate(mode="flattened", faults=["0-1=0.5"], **POINT)
        expected = program("simulate", TRAINING, "--set", "workload.global_batch=64", "--set", "workload.sequence_length=2048",
                           "--mode", "flattened", "--fault", "0-1=0.5", "--point", POINT_TEXT, "--json")
        self.assertEqual(result.to_dict(), json.loads(expected.stdout))
        self.assertEqual(result.step_time_s, result.to_dict()["step_time_s"])
        self.assertEqual((result.sequence_length, result.global_batch), (2048, 64))

    def test_results_keep_their_study(self):
        study = ss.Study.load(TRAINING)
        before = study.simulate(**POINT)
        whole = before.to_dict()
        study.set("workload.global_batch", 64)
        again = before.explain()  # runs anew
        self.assertEqual({name: again[name] for name in whole}, whole)
        self.assertLess(study.simulate(**POINT).step_time_s, before.step_time_s)

    def test_every_column_is_that_of_the_sweep(self):
        axes = {"tp": "tensor_parallel", "pp": "pipeline_parallel", "recompute": "recompute"}
        for _, row in self.points.iterrows():
            result = self.small.simulate(**{key: row[column] for key, column in axes.items()})
            for name, value in result.row().items():
                stored = row[name]
                if value is None or isinstance(value, float) and math.isnan(value):
                    self.assertTrue(pd.isna(stored), f"{result.plan}: {name}")
                else:
                    self.assertEqual(value, stored, f"{result.plan}: {name}")
        self.assertEqual(self.points.attrs["units"], {"point_id": "1", **result.units})

    def test_loads_keep_their_rates_apart(self):
        study = ss.Study.load(RATE).set("workload.client", {"requests": 200, "statistic": "steady"})
        slow, fast, again = (study.simulate(tp=4, pp=1, request_rate=rate) for rate in (0.5, 4, 0.5))
        self.assertLess(slow.ttft_p95_s, fast.ttft_p95_s)
        np.testing.assert_equal(again.row(), slow.row())
        self.assertEqual(fast.request_rate_per_s, 4)
        serving = ss.Study.load(SERVING)
        one, many, again = (serving.simulate(tp=4, pp=1, concurrency=n) for n in (8, 32, 8))
        self.assertLess(one.e2e_s, many.e2e_s)
        np.testing.assert_equal(again.row(), one.row())
        self.assertEqual(many.to_dict()["e2e_s"], many.e2e_s)

    def test_timeline(self):
        path = self.path("step.json")
        trace = self.study.simulate(**POINT).timeline(path)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(trace, json.load(file))
        self.assertGreater(len(trace["traceEvents"]), 100)
        with self.assertRaisesRegex(ss.InputError, "step.json"):  # it exists
            self.study.simulate(**POINT).timeline(path)

    def test_threads_share_a_study(self):
        results, expected = {}, {}
        plans = [dict(tp=tp, pp=pp, zero=zero) for tp in (2, 4, 8) for pp in (2, 4) for zero in (0, 1)]
        for i, plan in enumerate(plans):
            expected[i] = repr(ss.Study.load(TRAINING).simulate(**plan).row())

        def work(share):
            for i in range(share, len(plans) * 3, 3):
                results[i] = repr(self.study.simulate(**plans[i % len(plans)]).row())
        threads = [threading.Thread(target=work, args=(share,)) for share in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, row in results.items():
            np.testing.assert_equal(row, expected[i % len(plans)])

    def test_a_thousand_calls(self):
        """Prints CPU time of the calls against the engine's own; the best of some rounds, as others may use the machine."""
        plans = [dict(tp=tp, cp=cp, pp=pp, zero=zero, recompute=recompute, mbs=mbs)
                 for tp in (1, 2, 4, 8, 16) for cp in (1, 2) for pp in (1, 2, 4) for zero in (0, 1, 2, 3)
                 for recompute in ("none", "selective", "full") for mbs in (1, 2, 4)][:1000]
        texts = [",".join(f"{key}={value}" for key, value in plan.items()) for plan in plans]
        calls, engine = [], []
        for _ in range(5):
            study = ss.Study.load(TRAINING)
            start = time.process_time()
            for plan in plans:
                study.simulate(**plan)
            calls.append(time.process_time() - start)
            engine.append(study._inputs.engine_seconds(texts))
        print(f"\n1,000 calls of simulate: {1e3 * min(calls):.1f} ms of CPU, the engine alone {1e3 * min(engine):.1f} ms: "
              f"{min(calls) / min(engine):.2f} times", file=sys.stderr)
        # Twice is what it should cost; a study that made its simulator anew for each call would cost ten times as much.
        self.assertLess(min(calls) / min(engine), 2.5)

    def test_texts_hold_no_colours_on_a_terminal(self):
        script = (f"import shardscape as ss\nstudy = ss.Study.load({TRAINING!r})\n"
                  f"text = study.check()['text'] + study.simulate(**{POINT!r}).report()\n"
                  "print('escapes:', text.count(chr(27)), 'lines:', text.count(chr(10)) > 50)")
        file, name = os.path.join(self.folder, "on_terminal.py"), []
        with open(file, "w", encoding="utf-8") as out:
            out.write(script)

        def read(descriptor):
            name.append(os.read(descriptor, 4096))
            return name[-1]

        environment = dict(os.environ)
        os.environ.update(TERM="xterm", NO_COLOR="")
        try:
            with open(os.devnull, "rb") as nothing, contextlib.ExitStack() as stack:
                standard = os.dup(0)
                stack.callback(lambda: (os.dup2(standard, 0), os.close(standard)))
                os.dup2(nothing.fileno(), 0)
                status = pty.spawn([sys.executable, file], read)
        finally:
            os.environ.clear()
            os.environ.update(environment)
        self.assertEqual(status, 0)
        self.assertIn(b"escapes: 0 lines: True", b"".join(name))


class MessagesTest(PackageTest):
    def test_messages_are_located(self):
        bad = self.path("bad.yaml")
        with open(TRAINING, encoding="utf-8") as file:
            text = file.read()
        with open(bad, "w", encoding="utf-8") as file:
            file.write(text.replace("megatron-core", "megatron-cor") + "\nwhat: 1\n")
        with self.assertRaises(ss.InputError) as caught:
            ss.Study.load(bad)
        said = [line for line in program("check", bad).stderr.splitlines() if line.startswith(bad)]
        self.assertEqual(caught.exception.problems, said)
        self.assertEqual(len(said), 2)
        self.assertIsInstance(caught.exception, ValueError)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.problems), (str(caught.exception), said))

    def test_missing_and_unreadable_files(self):
        for path in (self.path("none.yaml"), self.folder, ""):
            with self.assertRaises(ss.InputError):
                ss.Study.load(path)

    def test_arguments(self):
        study = ss.Study.load(TRAINING)
        for call, message in (
            (lambda: study.simulate(tp=3), "simulate: tp,cp,pp,dp|simulate: tp"),
            (lambda: study.simulate(tpp=4), r"simulate: tpp: unknown key \(did you mean"),
            (lambda: study.simulate(recompute="ful"), "simulate: recompute: 'ful' is not one of"),
            (lambda: study.simulate(recompute="full,tp=4"), "not one value"),
            (lambda: study.simulate(mode="fast"), "simulate: mode"),
            (lambda: study.simulate(faults="7000-1=0.5"), "7000"),
            (lambda: study.set("workload.global_batches", 3), "--set workload.global_batches=3"),
            (lambda: study.set("workload.global_batch", object()), "type object"),
            (lambda: study.sweep(self.path("x.h5"), limit=0), "--limit"),
            (lambda: study.sweep(self.path("x.h5"), shard="5/3"), "--shard: '5/3'"),
            (lambda: study.search(within="many"), "--within"),
            (lambda: study.search(pareto=["speed"]), "--pareto: 'speed'"),
            (lambda: study.capacity(2), "workload"),
            (lambda: ss.top(self.points, by="mf"), "no column 'mf' .did you mean 'mfu'"),
            (lambda: ss.top(self.points, by="memory_peek"), "did you mean 'memory_peak_bytes'"),
            (lambda: ss.top(self.points, where="tpp == 8"), "unknown name 'tpp' .did you mean 'tp'"),
            (lambda: ss.top(self.points, where="memory_peek < 3"), "unknown name 'memory_peek' .did you mean"),
            (lambda: ss.top(self.points, by="nothing"), "no column 'nothing'; columns: point_id"),
            (lambda: ss.top(self.points, by="tensor_parallel"), "no better direction"),
            (lambda: ss.Study.from_dict({"model": "none"}), "study:"),
            (lambda: ss.Study.from_dict([]), "dict"),
        ):
            with self.assertRaisesRegex(ss.InputError, message):
                call()
        self.assertEqual(figures(study), figures(self.study))  # nothing has changed
        with self.assertRaisesRegex(AttributeError, "step_time"):
            study.simulate(**POINT).step_time
        self.assertFalse(os.path.exists(self.path("x.h5")))

    def test_assumptions_are_warnings(self):
        device = ss.Preset.device("bare", base="a100-sxm-80gb")
        self.assertEqual(device.check()["name"], "bare")
        self.assertEqual(device.check()["hbm"], ss.presets["a100-sxm-80gb"]["hbm"])
        with self.assertRaises(ss.InputError) as caught:
            device.changed("bare", {"hbm.bandwidth": "fast"}).check()
        self.assertIn("bare.yaml", str(caught.exception))

    def test_failed_checks_are_exceptions(self):
        with self.assertRaisesRegex(ss.InternalError, "module.cc:[0-9]+: check failed: value < 0 7"):
            _shardscape.fail_check(7)

    def test_studies_are_copied(self):
        study = ss.Study.load(TRAINING, set={"workload.global_batch": 64})
        again = pickle.loads(pickle.dumps(study))
        self.assertEqual(figures(again), figures(study))

    def test_environment(self):
        with self.assertRaises((ss.RunError, ss.InputError)):
            self.small.sweep("/proc/none/x.h5", progress=False)


class SweepTest(PackageTest):
    def test_file_is_that_of_the_program(self):
        here, there = self.path("here.h5"), self.path("there.h5")
        frame = self.study.sweep(here, threads=2, limit=2000, progress=False)
        program("sweep", TRAINING, "-o", there, "--limit", "2000", "--confirm", "0")
        self.assertEqual(program("diff", here, there).returncode, 0)
        pd.testing.assert_frame_equal(frame, ss.load(there))
        self.assertEqual(program("verify", here).returncode, 0)
        self.assertEqual(list(self.study.sweep(limit=100, columns=["mfu"], progress=False).columns), ["mfu"])
        self.assertEqual(frame["zero_stage"].dtype, np.int64)
        with self.assertRaisesRegex(ss.InputError, "exists; force=True replaces it"):
            self.study.sweep(here, progress=False)
        with self.assertRaisesRegex(FileNotFoundError, "none.h5: there is no such file"):
            ss.load(self.path("none.h5"))
        self.assertEqual(len(self.study.sweep(here, limit=2000, resume=True, progress=False)), 2000)

    def test_progress(self):
        events = []
        ss.Study.load(TRAINING).sweep(progress=events.append)
        self.assertEqual(events[-1]["event"], "done")
        self.assertEqual(events[-1]["points"], 5103)

        def fail(event):
            raise LookupError(event["event"])
        with self.assertRaises(LookupError):
            self.small.sweep(progress=fail)
        with self.assertRaisesRegex(ss.RunError, "called again from within"):
            self.small.sweep(progress=lambda event: self.small.sweep())
        self.assertEqual(len(self.small.sweep(progress=True)), len(self.points))

    def test_top(self):
        program("sweep", TRAINING, "-o", self.path("top.h5"), "--confirm", "0")
        points = ss.load(self.path("top.h5"))
        said = json.loads(program("top", self.path("top.h5"), "-n", "7", "--format", "json").stdout)
        for source in (points, self.path("top.h5")):
            self.assertEqual(list(ss.top(source, 7)["point_id"]), [row["point_id"] for row in said])
        best = ss.top(points, 3, by=lambda p: p.step_time_s * p.memory_peak_bytes, where="zero_stage >= 1")
        ok = points[(points.status == "ok") & (points.zero_stage >= 1)]
        product = ok.step_time_s * ok.memory_peak_bytes
        self.assertEqual(list(best["objective"]), sorted(product)[:3])
        self.assertEqual(ss.top(points, 1, by="mfu")["mfu"].iat[0], points["mfu"].max())
        self.assertEqual(ss.top(points, 1, by="mfu", larger=False)["mfu"].iat[0], points["mfu"].min())

    def test_interrupt_keeps_segments(self):
        script = ("import shardscape as ss, sys\n"
                  f"study = ss.Study.load({os.path.join(STUDIES, 'million.yaml')!r})\n"
                  "print('ready', flush=True)\n"
                  "try:\n"
                  f"    study.sweep({self.path('big.h5')!r}, threads=1, progress=lambda e: print('.', flush=True))\n"
                  "except KeyboardInterrupt:\n"
                  "    print('interrupted', flush=True)\n")
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.assertEqual(child.stdout.readline(), ".\n")
        child.send_signal(signal.SIGINT)
        time.sleep(0.05)
        child.send_signal(signal.SIGINT)  # a second one does not hurt
        out, _ = child.communicate(timeout=600)
        self.assertTrue(out.endswith("interrupted\n"), out)
        self.assertEqual(child.returncode, 0)
        rows = ss.load(self.path("big.h5.parts"), ["status"])
        self.assertGreater(len(rows), 0)
        self.assertEqual(program("verify", self.path("big.h5.parts")).returncode, 0)

    def test_interrupt_of_an_execution(self):
        script = ("import shardscape as ss\n"
                  f"study = ss.Study.load({os.path.join(STUDIES, 'deepseek-v3-2048xh800.yaml')!r})\n"
                  "print('ready', flush=True)\n"
                  "try:\n"
                  "    while True: study.simulate(mode='flattened')\n"
                  "except KeyboardInterrupt:\n"
                  "    print('interrupted', flush=True)\n")
        child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "ready\n")
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.communicate(timeout=600)[0], "interrupted\n")


class AnswersTest(PackageTest):
    def test_check(self):
        counts = self.study.check()
        self.assertEqual((counts["points"], counts["plans"], counts["tuples"], counts["settings"]), (5103, 5103, 64, 1))
        self.assertIn("verdicts on all 5,103 points", counts["text"])
        self.assertEqual(self.study.gpus, [64])
        self.assertEqual(figures(ss.Study.from_dict(self.study.resolved)), figures(self.study))

    def test_search(self):
        found = self.study.search(5, progress=False)
        said = json.loads(program("search", TRAINING, "-n", "5", "--format", "json").stdout)
        self.assertEqual(list(found["point_id"]), [row["point_id"] for row in said])
        self.assertEqual(list(found["step_time_s"]), [row["step_time_s"] for row in said])
        self.assertIn("exact", found.attrs["certificate"])
        front = self.study.search(pareto=["step_time_s", "memory_peak_bytes"], output=self.path("front.h5"), progress=False)
        self.assertTrue(front["step_time_s"].is_monotonic_increasing)
        self.assertLess(len(front), len(ss.load(self.path("front.h5"))))
        nothing = self.study.search(budget="0 points", progress=False)
        self.assertEqual(len(nothing), 0)

    def test_capacity(self):
        study = ss.Study.load(RATE).set("workload.client", {"requests": 200, "statistic": "steady"})
        found = study.capacity([2, 4], progress=False)
        # Commands in the answer name the study as it was changed, letter by letter.
        client = 'workload.client={"requests": 200, "statistic": "steady"}'
        said = program("capacity", RATE, "--set", client, "--rate", "2,4", "--json")
        self.assertEqual(found.attrs["answer"], json.loads(said.stdout))
        self.assertEqual(list(found["request_rate"]), [2, 4])
        self.assertTrue(found["gpus"].is_monotonic_increasing)
        self.assertTrue(found["certificate"].str.contains("exact").all())

    def test_one_name_for_everything(self):
        long = self.study.simulate(tensor_parallel=4, pipeline_parallel=4, data_parallel=4, zero_stage=1, recompute="selective")
        self.assertEqual(long.to_dict(), self.study.simulate(**POINT).to_dict())
        for name, column in (("step_time", "step_time_s"), ("memory", "memory_peak_bytes")):
            self.assertEqual(list(ss.top(self.points, by=name)["point_id"]), list(ss.top(self.points, by=column)["point_id"]))
        self.assertEqual(list(ss.top(self.points, by="tp", larger=True)["point_id"]),
                         list(ss.top(self.points, by="tensor_parallel", larger=True)["point_id"]))
        best = self.points.loc[self.points["status"] == "ok", "step_time_s"].min()
        for where in (f"step_time_s <= {best * 1000!r} ms", f"step time <= {best!r} s and tp >= 1", f"step_time_s <= {best!r}"):
            self.assertEqual(len(ss.top(self.points, where=where)), 1, where)
        with self.assertRaisesRegex(ss.InputError, "did you mean 'step_time"):
            ss.top(self.points, where="step_tme_s < 17 s")
        with self.assertRaisesRegex(ss.InputError, "'memory' is in bytes; write the number with its unit, as 70 GB"):
            ss.top(self.points, where="memory < 70")
        path = self.path("names.h5")
        self.small.sweep(path, progress=False)
        self.assertEqual(list(ss.load(path, columns=["tp", "step_time"]).columns), list(ss.load(path, ["tensor_parallel", "step_time_s"]).columns))
        self.assertEqual(ss.best(path, by="step_time")["point_id"][0], ss.best(path)["point_id"][0])

    def test_validate(self):
        measured = pd.DataFrame({"tensor_parallel": [4, 8], "pipeline_parallel": [4, 4], "measured_step_time_s": [18.0, 20.0]})
        found = self.study.validate(measured)
        self.assertEqual(len(found.rows), 2)
        expected = self.study.simulate(tp=4, pp=4, zero=0, recompute="none", mbs=1, schedule="1f1b", sp=0)
        self.assertEqual(found.rows["predicted_step_time_s"][0], expected.to_dict()["step_time_s"])
        self.assertEqual(found.report["files"][0]["rows"], 2)
        short = measured.rename(columns={"tensor_parallel": "tp", "pipeline_parallel": "pp"})
        self.assertTrue(self.study.validate(short).rows.equals(found.rows))
        with self.assertRaisesRegex(ss.InputError, "^table.csv:3: .*tensor_parallel"):
            self.study.validate(measured.assign(tensor_parallel=[4, -1]))

    def test_blank_cells(self):
        # A blank makes pandas turn a column of 0, 1 and numbers into floats.
        measured = pd.DataFrame({"tensor_parallel": [4, 8], "pipeline_parallel": [4, None], "sequence_parallel": [1, None],
                                 "measured_step_time_s": [18.0, 20.0]})
        rows = self.study.validate(measured).rows
        for row, point in enumerate(({"tp": 4, "pp": 4, "sp": 1}, {"tp": 8, "pp": 1, "sp": 0})):
            expected = self.study.simulate(zero=0, recompute="none", mbs=1, schedule="1f1b", **point)
            self.assertEqual(rows["predicted_step_time_s"][row], expected.to_dict()["step_time_s"])

    def test_calibrate(self):
        slow = ss.presets["nanotron-a"].changed("slow", {"host.forward_layer": "1 ms", "host.backward_layer": "4 ms"})
        slow.save(self.path("slow.yaml"))
        degrees = [(1, 1, 1), (1, 1, 2), (1, 1, 4), (1, 1, 8), (2, 1, 1), (2, 1, 2), (4, 1, 1), (8, 1, 1), (1, 2, 1), (2, 2, 2)]
        plans = pd.DataFrame(degrees, columns=["tensor_parallel", "pipeline_parallel", "data_parallel"]).assign(
            phase="training", model="nanotron-1.3b", cluster="dgx-h100", stack=self.path("slow.yaml"), sequence_parallel=1,
            microbatch_size=1, num_microbatches=8, sequence_length=4096, measured_step_time_s=1.0)
        rows = ss.validate(plans).rows
        measured = plans.assign(stack="nanotron-a", measured_step_time_s=rows["predicted_step_time_s"].to_numpy())
        fit = ss.calibrate(measured, stack="nanotron-a", folds=0)
        self.assertIsNone(fit.device)
        before = ss.validate(measured).rows
        measured["stack"] = self.path("fitted.yaml")
        fit.stack.save(self.path("fitted.yaml"))
        after = ss.validate(measured).rows
        off = [(one["predicted_step_time_s"] / rows["predicted_step_time_s"] - 1).abs().mean() for one in (before, after)]
        self.assertLess(off[1], off[0] / 4)
        with self.assertRaisesRegex(ss.InputError, "--only: 'speed'"):
            ss.calibrate(measured, stack="nanotron-a", only=["speed"])

    def test_presets(self):
        self.assertIn("a100-sxm-80gb", ss.presets)
        self.assertIn("llama3.1-70b", ss.presets.of("model"))
        device = ss.presets["a100-sxm-80gb"]
        self.assertEqual(device.kind, "device")
        with self.assertRaises(KeyError):
            ss.presets["a1000"]
        faster = ss.Preset.device("a100-faster", base="a100-sxm-80gb", hbm={"bandwidth": "4 TB/s"})
        self.assertEqual(faster["hbm.bandwidth"], "4 TB/s")
        cluster = ss.presets["a100-torus2d-ring-64"].changed("mine", {"device": faster})
        study = ss.Study.from_dict({**SMALL, "cluster": cluster})
        self.assertLess(study.simulate(**POINT).compute_s, self.small.simulate(**POINT).compute_s)
        ring = ss.Preset.cluster("ring", device="a100-sxm-80gb",
                                 dimensions=[{"name": "ring", "kind": "ring", "shape": [64], "bandwidth": "100 GB/s",
                                              "latency": "1 us"}])
        self.assertEqual(ss.Study.from_dict({**SMALL, "cluster": ring}).gpus, [64])
        model = ss.presets["llama3.1-70b"].changed("half", {"layers": 40})
        self.assertLess(ss.Study.from_dict({**SMALL, "model": model}).simulate(tp=4, pp=4).to_dict()["step_time_s"],
                        self.small.simulate(tp=4, pp=4).to_dict()["step_time_s"])

    def test_plots_say_what_is_missing(self):
        less = self.points.drop(columns=["status"])
        bare = self.points[["point_id", "status", "memory_peak_bytes"]]
        cases = {
            "there is no column 'status'": lambda: plots.front(less),
            "front: points: there is no column 'step_time_s'": lambda: plots.front(bare, y="step_time_s"),
            "did you mean 'memory_peak_bytes'?": lambda: plots.front(self.points, x="memory_peak"),
            "column 'schedule' has no numbers": lambda: plots.front(self.points, x="schedule"),
            "breakdown: points: there is no column 'compute_s'": lambda: plots.breakdown(bare),
            "ttft_throughput: points: there is no column 'ttft_s'": lambda: plots.ttft_throughput(self.points),
            "cdf: values": lambda: plots.cdf(["fast", "slow"]),
            "store.columns": lambda: plots.front(bare),
        }
        for message, draw in cases.items():
            with self.subTest(message), self.assertRaises(ss.InputError) as raised:
                draw()
            self.assertIn(message, str(raised.exception))

    def test_plots(self):
        study = ss.Study.load(FAULTS)
        study.set("faults.samples", 20).sweep(self.path("faults.h5"), limit=200, progress=False)
        serving = ss.Study.load(SERVING).sweep(progress=False)
        for name, draw in {
            "breakdown": lambda: plots.breakdown(ss.top(self.points, 5)),
            "one": lambda: plots.breakdown([self.study.simulate(**POINT), self.study.simulate(tp=8, pp=4)], labels=["a", "b"]),
            "front": lambda: plots.front(self.points),
            "schedule": lambda: plots.schedule(self.study.simulate(**POINT)),
            "cdf": lambda: plots.cdf(ss.fault_samples(self.path("faults.h5"))["slowdown"], "slowdown"),
            "ttft": lambda: plots.ttft_throughput(serving),
        }.items():
            path = self.path(name + ".png")
            draw().figure.savefig(path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n", name)
            matplotlib.pyplot.close("all")


if __name__ == "__main__":
    unittest.main()
