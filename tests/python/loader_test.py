"""Does the loader give pandas what the writer stored, from a finished file and from a running sweep alike?

Run by ctest with SHARDSCAPE_WRITE_RESULTS (the program that writes the results) and SHARDSCAPE_LOADER (the loader's file).
"""
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np
import pandas as pd

LOADER = os.environ["SHARDSCAPE_LOADER"]
spec = importlib.util.spec_from_file_location("shardscape_results", LOADER)
sr = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sr)


class LoaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        subprocess.run([os.environ["SHARDSCAPE_WRITE_RESULTS"], cls.folder], check=True)
        cls.done = os.path.join(cls.folder, "done.h5")
        cls.running = os.path.join(cls.folder, "running.h5")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_every_row_and_column(self):
        frame = sr.load(self.done)
        self.assertEqual(len(frame), 1001)
        self.assertTrue((frame["point_id"] == np.arange(1001)).all())
        with h5py.File(self.done) as file:
            self.assertEqual(list(frame.columns), list(file["points"]))
            np.testing.assert_array_equal(frame["mfu"], file["points/mfu"][:])
            np.testing.assert_array_equal(frame["status"].cat.codes, file["points/status"][:])

    def test_codes_are_categoricals(self):
        frame = sr.load(self.done, columns=["status", "step_time_s", "rank_order", "fabric_algorithm"])
        self.assertEqual(list(frame.columns), ["status", "step_time_s", "rank_order", "fabric_algorithm"])
        self.assertEqual(list(frame["status"].cat.categories[:2]), ["ok", "indivisible"])
        self.assertEqual(set(frame["rank_order"]), {"pp-tp-dp-cp"})
        self.assertEqual(list(frame["fabric_algorithm"].cat.categories), ["ring", "tree", "in_network"])
        self.assertTrue(frame.loc[frame["status"] == "ok", "step_time_s"].notna().all())
        self.assertTrue(frame.loc[frame["status"] != "ok", "step_time_s"].isna().all())

    def test_running_equals_finished(self):
        for path in (self.running, self.running + ".parts", self.running + ".parts/"):
            pd.testing.assert_frame_equal(sr.load(path), sr.load(self.done))
        pd.testing.assert_frame_equal(sr.links(self.running), sr.links(self.done))
        self.assertEqual(sr.units(self.running), sr.units(self.done))
        running, done = sr.summary(self.running), sr.summary(self.done)
        self.assertEqual(set(running), {"status", "reason", "pareto", "top"})
        for name, table in done.items():
            pd.testing.assert_frame_equal(running[name], table)

    def test_units(self):
        units = sr.units(self.done)
        self.assertEqual(units["step_time_s"], "s")
        self.assertEqual(units["device_hbm_bandwidth_bytes_per_s"], "byte s-1")
        self.assertEqual(set(units), set(sr.load(self.done).columns))
        with h5py.File(self.done) as file:
            file.visititems(lambda name, item: self.check_units(name, item))

    def check_units(self, name, item):
        if isinstance(item, h5py.Dataset) and not name.startswith("study/"):
            self.assertIsInstance(item.attrs["units"], str, name)
            self.assertIsInstance(item.attrs["long_name"], str, name)

    def test_best(self):
        frame = sr.load(self.done)
        ok = frame[frame["status"] == "ok"]
        row = sr.best(self.done).iloc[0]
        self.assertEqual(row["step_time_s"], ok["step_time_s"].min())
        self.assertEqual(row["point_id"], ok.loc[ok["step_time_s"] == ok["step_time_s"].min(), "point_id"].min())
        by_mfu = sr.best(self.running, n=3, by="mfu")
        self.assertEqual(list(by_mfu["mfu"]), sorted(ok["mfu"], reverse=True)[:3])
        self.assertEqual(list(sr.best(self.done, n=10)["point_id"]), list(sr.summary(self.done)["top"]["point_id"]))

    def test_study(self):
        study = sr.study(self.done)
        self.assertEqual(study["title"], "made up")
        self.assertEqual(study["complete"], 1)
        self.assertEqual(sr.study(self.running)["complete"], 0)
        self.assertEqual(study["seed"], 42)
        self.assertTrue(study["resolved_yaml"].startswith("study: made up"))
        self.assertEqual(study["sources"]["models/none.yaml"], "layers: 0\n")
        with h5py.File(self.done) as file:
            for text in file["study/sources"].values():
                self.assertEqual(text.attrs["sha256"], hashlib.sha256(text[()]).hexdigest())

    def test_links(self):
        links = sr.links(self.done)
        self.assertEqual(list(links["dimension"]), ["nvlink", "rail"])
        self.assertEqual(list(links["bandwidth_bytes_per_s"]), [300e9, 25e9])

    def test_summary_counts(self):
        counts = sr.summary(self.done)["status"].set_index("status")["count"]
        self.assertEqual(counts.sum(), 1001)
        self.assertEqual(counts["ok"], (sr.load(self.done)["status"] == "ok").sum())

    def test_fault_samples(self):
        finished = sr.fault_samples(os.path.join(self.folder, "faults.h5"))
        running = sr.fault_samples(os.path.join(self.folder, "sampling.h5"))
        pd.testing.assert_frame_equal(finished, running)
        self.assertEqual(len(finished), 300)
        self.assertTrue((finished["point_id"] == np.repeat(np.arange(0, 200, 2), 3)).all())
        self.assertTrue((finished["sample"] == np.tile(np.arange(3), 100)).all())
        self.assertEqual(set(finished["kind"]), {"hard_link"})
        self.assertEqual(set(finished["status"]), {"ok"})
        np.testing.assert_array_equal(finished["slowdown"], 0.01 * finished["sample"])
        self.assertEqual(list(sr.fault_samples(os.path.join(self.folder, "faults.h5"), ["link"])), ["link"])
        with self.assertRaisesRegex(sr.ResultsError, "no fault samples"):
            sr.fault_samples(self.done)

    def test_errors(self):
        with self.assertRaisesRegex(sr.ResultsError, "none.h5"):
            sr.load(os.path.join(self.folder, "none.h5"))
        foreign = os.path.join(self.folder, "foreign.h5")
        h5py.File(foreign, "w").close()
        with self.assertRaisesRegex(sr.ResultsError, "not a shardscape-results file"):
            sr.load(foreign)
        with self.assertRaisesRegex(sr.ResultsError, "has no column speed"):
            sr.best(self.done, by="speed")
        with self.assertRaisesRegex(sr.ResultsError, "no better direction"):
            sr.best(self.done, by="tensor_parallel")

    def test_program(self):
        command = [sys.executable, LOADER, self.done, "-n", "3"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for point in sr.best(self.done, n=3)["point_id"]:
            self.assertIn(str(point), text)
        failed = subprocess.run([sys.executable, LOADER, "none.h5"], capture_output=True, text=True)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("none.h5", failed.stderr)


if __name__ == "__main__":
    unittest.main()
