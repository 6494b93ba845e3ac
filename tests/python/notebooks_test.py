"""Do the notebooks run from beginning to end, and do the types of the package hold?

Run by ctest with PYTHONPATH (the package) and SHARDSCAPE_SOURCE (the source tree).
"""
import os
import re
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


    def test_columns_of_results_have_types(self):
        stub = os.path.join(SOURCE, "sweep", "python", "shardscape", "_result_columns.pyi")
        with open(stub, encoding="utf-8") as stubs, open(os.path.join(SOURCE, "results_schema", "SCHEMA.md"), encoding="utf-8") as schema:
            typed = re.findall(r"^    (\w+): (\w+)$", stubs.read(), re.MULTILINE)
            points = schema.read().split("\n## Columns of /points\n")[1].split("\n## ")[0]
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \| .* \| (.*) \|$", points, re.MULTILINE)
        kinds = {"f4": "float", "f8": "float", "bool": "bool"}
        expected = [(name, "str" if meaning.endswith("(code)") else kinds.get(kind, "int")) for name, kind, meaning in rows]
        self.assertEqual(typed, expected[1:])  # the first, point_id, is none of a result's
        self.assertEqual(expected[0][0], "point_id")


if __name__ == "__main__":
    unittest.main()
