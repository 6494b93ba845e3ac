"""Can the loader be imported after `cmake --install`, by the line that results_schema/README.md gives?

Run by ctest with SHARDSCAPE_CMAKE, SHARDSCAPE_BUILD (the build folder), SHARDSCAPE_README and SHARDSCAPE_WRITE_RESULTS.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest


class InstallTest(unittest.TestCase):
    def test_readme_line_imports_the_installed_loader(self):
        with open(os.environ["SHARDSCAPE_README"], encoding="utf-8") as file:
            lines = re.findall(r"^import sys; sys\.path\.insert.*$", file.read(), re.MULTILINE)
        self.assertEqual(len(lines), 1, "the README gives one such line")
        with tempfile.TemporaryDirectory() as folder:
            prefix = os.path.join(folder, "prefix")
            subprocess.run([os.environ["SHARDSCAPE_CMAKE"], "--install", os.environ["SHARDSCAPE_BUILD"], "--prefix", prefix],
                           check=True, stdout=subprocess.DEVNULL)
            for document in ("README.md", "sweep/README.md", "sweep/study/README.md", "engine/network/README.md"):
                self.assertTrue(os.path.isfile(os.path.join(prefix, "share/shardscape/doc", document)), document)
            program = os.path.join(prefix, "bin/shardscape")
            faults = subprocess.run([program, "help", "faults"], capture_output=True, text=True)
            self.assertTrue(faults.stdout.startswith("## Faults\n"), faults.stderr)
            subprocess.run([os.environ["SHARDSCAPE_WRITE_RESULTS"], folder], check=True)
            line = lines[0].split("#")[0].replace("/usr/local", prefix)
            self.assertIn(prefix, line)
            script = f"{line}\nimport shardscape_results as results\nprint(results.__file__, len(results.load('done.h5')))\n"
            # -I: neither the folder nor PYTHONPATH helps.
            run = subprocess.run([sys.executable, "-I", "-c", script], cwd=folder, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertTrue(run.stdout.startswith(prefix), run.stdout)
            self.assertTrue(run.stdout.endswith(" 1001\n"), run.stdout)
            self.check_package(prefix, folder)

    def check_package(self, prefix, folder):
        """The package, where it was built, with the presets and studies that were installed."""
        native = [os.path.join(at, name) for at, _, names in os.walk(prefix) for name in names if name.startswith("_shardscape.")]
        if not native:
            self.skipTest("the build has no package")
        place = os.path.dirname(os.path.dirname(native[0]))
        script = (f"import sys; sys.path.insert(0, {place!r})\nimport shardscape as ss\n"
                  "study = ss.Study.ready('llama3.1-70b-64xa100')\nprint(study._file, study.simulate(tp=8, pp=4).status)\n"
                  "print(len(ss.load('done.h5')), ss.presets['a100-sxm-80gb'].kind)\n")
        run = subprocess.run([sys.executable, "-I", "-W", "ignore", "-c", script], cwd=folder, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.startswith(os.path.join(prefix, "share")), run.stdout)
        self.assertTrue(run.stdout.endswith("1001 device\n"), run.stdout)


if __name__ == "__main__":
    unittest.main()
