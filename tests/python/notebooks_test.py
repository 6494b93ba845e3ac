"""Do the notebooks run from beginning to end, and do the types of the package hold?

Run by ctest with PYTHONPATH (the package) and SHARDSCAPE_SOURCE (the source tree).
"""
import os
import subprocess
import sys
import unittest

import nbclient
import nbformat
import shardscape

SOURCE = os.environ["SHARDSCAPE_SOURCE"]
NOTEBOOKS = os.path.join(SOURCE, "sweep", "python", "notebooks")


class NotebooksTest(unittest.TestCase):
    def run_notebook(self, name):
        notebook = nbformat.read(os.path.join(NOTEBOOKS, name), as_version=4)
        self.assertFalse(any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept in the source tree")
        nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
        kinds = [kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
        self.assertIn("image/png", kinds)
        self.assertIn("text/html", kinds)

    def test_training_plan(self):
        self.run_notebook("training_plan.ipynb")

    def test_serving_decision(self):
        self.run_notebook("serving_decision.ipynb")

    def test_no_other_notebooks(self):
        self.assertEqual(sorted(os.listdir(NOTEBOOKS)), ["serving_decision.ipynb", "training_plan.ipynb"])


class TypesTest(unittest.TestCase):
    def check(self, *words):
        run = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_mypy(self):
        self.check("mypy", "--config-file", os.path.join(SOURCE, "pyproject.toml"), "--cache-dir", os.devnull,
                   os.path.dirname(shardscape.__file__))


if __name__ == "__main__":
    unittest.main()
