"""Does the loader give pandas what the writer stored, from a finished file and from a running sweep alike?

Run by ctest with SHARDSCAPE_WRITE_RESULTS (the program that writes the results) and SHARDSCAPE_LOADER (the loader's file).
"""
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np
import pandas as pd
import xarray as xr

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
            self.assertEqual(file["points/sequence_parallel"].dtype, np.uint8)
        self.assertEqual(frame["sequence_parallel"].dtype, np.dtype(bool))

    def test_scales_are_ordered_categoricals(self):
        frame = sr.load(self.done)
        self.assertTrue(frame["recompute"].cat.ordered)
        self.assertEqual(list(frame["recompute"].cat.categories), ["none", "selective", "full"])
        self.assertEqual((frame["recompute"] < "full").sum(), (frame["recompute"] != "full").sum())
        self.assertEqual(frame["zero_stage"].dtype, np.int64)  # numbers stay numbers
        with h5py.File(self.done) as file:
            self.assertEqual((frame["zero_stage"] >= 2).sum(), (file["points/zero_stage"][:] >= 2).sum())
        for name in ("status", "reason", "schedule", "rank_order", "precision", "fabric_algorithm"):
            self.assertFalse(frame[name].cat.ordered, name)

    def test_integers_that_were_not_computed_are_missing(self):
        # The writer counts memory for ok, missed, memory and unreachable points only, as the program does.
        for path in (self.done, self.running):
            frame = sr.load(path)
            counted = frame["status"].isin(["ok", "missed", "memory", "unreachable"])
            self.assertEqual(frame["peak_stage"].dtype, pd.Int64Dtype())
            self.assertTrue((frame["peak_stage"].notna() == counted).all())
            self.assertTrue((frame.loc[counted, "peak_stage"] >= 0).all())
            self.assertEqual(frame["microbatches"].dtype, pd.Int64Dtype())
            self.assertEqual(frame["point_id"].dtype, np.uint64)
        samples = sr.fault_samples(os.path.join(self.folder, "faults.h5"))
        self.assertTrue(samples["device"].isna().all())  # they are faults of links
        self.assertTrue((samples["link_id"] == samples["sample"]).all())
        with h5py.File(self.done) as file:
            self.assertEqual(file["points/peak_stage"].attrs["_FillValue"].dtype, np.int32)

    def test_attributes_of_frames(self):
        frame = sr.load(self.done)
        self.assertEqual(frame.attrs["units"], sr.units(self.done))
        self.assertEqual(frame.attrs["long_names"]["mfu"][:5], "model")
        self.assertEqual((frame.attrs["study_points"], frame.attrs["selection"], frame.attrs["selection_text"]), (1001, "all", ""))
        self.assertEqual(sr.links(self.done).attrs["units"]["latency_s"], "s")
        faults = sr.fault_samples(os.path.join(self.folder, "faults.h5"), ["slowdown"])
        self.assertEqual(faults.attrs["units"], {"slowdown": "1"})

    def test_parts_of_a_study_say_so(self):
        expected = {"first.h5": "of 1,001 in the study, the first 128", "sample.h5": "of 1,001 in the study, a sample of 128",
                    "shard.h5": "of 1,001 in the study, shard 2 of 16"}
        for name, text in expected.items():
            frame = sr.load(os.path.join(self.folder, name))
            self.assertEqual(frame.attrs["selection_text"], text)
            self.assertEqual(frame.attrs["study_points"], 1001)
        ids = sr.load(os.path.join(self.folder, "sample.h5"))["point_id"].to_numpy().astype(np.int64)
        # 1001 = 128 * 7 + 105: 105 parts of 8 ids, then 23 of 7; one id of each.
        ends = np.cumsum([8] * 105 + [7] * 23)
        self.assertTrue(((ids < ends) & (ids >= ends - np.array([8] * 105 + [7] * 23))).all())

    def test_files_of_some_rows(self):
        full, expected = sr.load(self.done), sr.summary(self.done)
        best, choosing = (os.path.join(self.folder, name) for name in ("best.h5", "choosing.h5"))
        ok = full[full["status"] == "ok"].nsmallest(10, ["step_time_s", "point_id"]).sort_values("point_id")
        frame = sr.load(best)
        pd.testing.assert_frame_equal(frame, ok.reset_index(drop=True))
        self.assertEqual(frame.attrs["selection_text"], "of 1,001 in the study, the 10 best by step_time_s")
        candidates = sr.load(choosing)
        self.assertTrue(set(ok["point_id"]) <= set(candidates["point_id"]))
        self.assertLess(len(candidates), len(full))
        text = "of 1,001 in the study, candidates for the 10 best by step_time_s"
        self.assertEqual(candidates.attrs["selection_text"], text)
        for path in (best, choosing):  # the counts are of all points
            found = sr.summary(path)
            for name, table in expected.items():
                pd.testing.assert_frame_equal(found[name], table)

    def test_a_sweep_that_has_sealed_nothing_yet_is_empty(self):
        for name in ("running.h5", "choosing.h5"):
            parts = os.path.join(self.folder, "begun-" + name + ".parts")
            os.mkdir(parts)
            shutil.copy(os.path.join(self.folder, name + ".parts", "manifest.h5"), parts)
            self.assertEqual(len(sr.load(parts)), 0)
            self.assertEqual({len(table) for table in sr.summary(parts).values()}, {0})

    def test_xarray_reads_every_table(self):
        faults = os.path.join(self.folder, "faults.h5")
        with xr.open_dataset(self.done, group="points", engine="h5netcdf") as points:
            self.assertEqual(dict(points.sizes), {"point": 1001})
            frame = sr.load(self.done)
            self.assertEqual(list(points.data_vars), list(frame.columns))
            np.testing.assert_array_equal(points["step_time_s"], frame["step_time_s"])
            np.testing.assert_array_equal(np.isnan(points["peak_stage"]), frame["peak_stage"].isna())
            self.assertEqual(points["sequence_parallel"].dtype, np.dtype(bool))
            self.assertEqual(points["memory_peak_bytes"].attrs["units"], "byte")
            feasible = points.where(points["status"] == 0, drop=True)
            self.assertEqual(feasible.sizes["point"], (frame["status"] == "ok").sum())
        for group, dimension, rows in (("fault_samples", "fault_sample", 300), ("links", "link", 2)):
            with xr.open_dataset(faults, group=group, engine="h5netcdf") as table:
                self.assertEqual(dict(table.sizes), {dimension: rows})
                self.assertIn("link_id", table.data_vars)
        for group in ("status_counts", "reason_counts", "pareto", "top"):
            with xr.open_dataset(self.done, group="summary/" + group, engine="h5netcdf") as table:
                self.assertEqual(len(table.sizes), 1)
        with xr.open_dataset(self.done, engine="h5netcdf") as root:
            self.assertEqual(root.attrs["title"], "made up")

    def test_files_of_earlier_schemas_are_refused(self):
        old = os.path.join(self.folder, "old.h5")
        seed = os.path.join(os.path.dirname(__file__), "..", "fuzz", "corpus", "result", "finished_version_2.bin")
        with open(seed, "rb") as stored, open(old, "wb") as file:
            file.write(stored.read()[1:])  # the first byte is the fuzzer's
        with self.assertRaisesRegex(sr.ResultsError, "schema version 2; this loader reads version 4: make the sweep again"):
            sr.load(old)

    def changed(self, name, change):
        """A copy of the finished file, changed."""
        path = os.path.join(self.folder, name)
        shutil.copy(self.done, path)
        with h5py.File(path, "r+") as file:
            change(file)
        return path

    def test_damage_is_an_error(self):
        with h5py.File(self.done) as file:
            chunks = [file["points/mfu"].id.get_chunk_info(i) for i in range(2)]
            links = file["links/latency_s"].id.get_offset()
        with open(self.done, "rb") as file:
            good = file.read()
        entries = [good.index(chunk.byte_offset.to_bytes(8, "little")) for chunk in chunks]
        swapped = bytearray(good)  # an entry of the index is a length of four bytes, 20 of other things, the address
        for here, there in (entries, entries[::-1]):
            swapped[here - 24:here - 20], swapped[here:here + 8] = good[there - 24:there - 20], good[there:there + 8]
        flipped = bytearray(good)
        flipped[links] ^= 1
        bad = os.path.join(self.folder, "bad.h5")
        for content, read, problem in ((swapped, sr.load, "/points/mfu: the chunk of row 0 is missing, or not what its checksum says"),
                                       (flipped, sr.links, "/links/latency_s is not what its checksum says")):
            with open(bad, "wb") as file:
                file.write(content)
            with self.assertRaisesRegex(sr.ResultsError, "bad.h5: " + problem):
                read(bad)

    def test_links_to_other_places_are_refused(self):
        def soft(file):
            del file["points/mfu"]
            file["points/mfu"] = h5py.SoftLink("/points/step_time_s")
        with self.assertRaisesRegex(sr.ResultsError, "/points/mfu is a soft or external link"):
            sr.load(self.changed("soft.h5", soft))

    def test_bytes_that_are_no_utf8_become_surrogates(self):
        path = self.changed("bytes.h5", lambda file: file.attrs.modify("title", np.bytes_(b"up \xff")))
        self.assertEqual(sr.study(path)["title"], "up \udcff")
        self.assertEqual(sr.load(path).attrs["title"], "up \udcff")

    def test_texts_are_str(self):
        for path in (self.done, self.running):
            study = sr.study(path)
            for name in ("title", "schema", "objectives", "created_utc", "assumptions", "resolved_yaml"):
                self.assertIs(type(study[name]), str, name)
            self.assertEqual({type(text) for source in study["sources"].items() for text in source}, {str})
            self.assertEqual({type(unit) for unit in sr.units(path).values()}, {str})
            self.assertEqual({type(text) for text in sr.load(path).attrs["long_names"].values()}, {str})

    def test_codes_are_categoricals(self):
        frame = sr.load(self.done, columns=["status", "step_time_s", "rank_order", "fabric_algorithm"])
        self.assertEqual(list(frame.columns), ["status", "step_time_s", "rank_order", "fabric_algorithm"])
        self.assertEqual(list(frame["status"].cat.categories[:2]), ["ok", "indivisible"])
        self.assertEqual(set(frame["rank_order"]), {"pp-tp-dp-cp"})
        self.assertEqual(list(frame["fabric_algorithm"].cat.categories), ["ring", "tree", "in_network"])
        self.assertTrue(frame.loc[frame["status"] == "ok", "step_time_s"].notna().all())
        self.assertTrue(frame.loc[~frame["status"].isin(["ok", "missed"]), "step_time_s"].isna().all())

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
        if isinstance(item, h5py.Dataset) and not name.startswith("study/") and "CLASS" not in item.attrs:
            self.assertIsInstance(item.attrs["units"], bytes, name)  # UTF-8
            self.assertIsInstance(item.attrs["long_name"], bytes, name)

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
                self.assertEqual(text.attrs["sha256"].decode(), hashlib.sha256(text[()]).hexdigest())

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
        self.assertEqual(list(sr.fault_samples(os.path.join(self.folder, "faults.h5"), ["link_id"])), ["link_id"])
        with self.assertRaisesRegex(sr.ResultsError, "no fault samples"):
            sr.fault_samples(self.done)

    def test_errors(self):
        for kind in (sr.ResultsError, FileNotFoundError):
            with self.assertRaisesRegex(kind, "none.h5: there is no such file"):
                sr.load(os.path.join(self.folder, "none.h5"))
        with self.assertRaisesRegex(sr.ResultsError, "did you mean 'step_time_s'"):
            sr.best(self.done, by="step_time")
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
