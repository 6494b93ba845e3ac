"""Can another C++ project link what `cmake --install` puts there, and is the engine pure?

Run by ctest with SHARDSCAPE_CMAKE, SHARDSCAPE_BUILD (the build folder), SHARDSCAPE_SOURCE and SHARDSCAPE_PROGRAM.
"""
import json
import os
import re
import subprocess
import tempfile
import unittest

CMAKE = os.environ["SHARDSCAPE_CMAKE"]
SOURCE = os.environ["SHARDSCAPE_SOURCE"]
EXAMPLE = os.path.join(SOURCE, "tests/library/example")


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


class LibraryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = os.path.join(cls.folder.name, "prefix")
        run(CMAKE, "--install", os.environ["SHARDSCAPE_BUILD"], "--prefix", cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build(self, name, *options):
        """Builds the example in a folder of its own, which it returns."""
        build = os.path.join(self.folder.name, name)
        run(CMAKE, "-G", "Ninja", "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", *options)
        run(CMAKE, "--build", build)
        return build

    def installed(self, name):
        for folder, _, files in os.walk(self.prefix):
            if name in files:
                return os.path.join(folder, name)
        self.fail(f"{name} is not installed")

    def test_example_reads_a_study_as_the_program_does(self):
        build = self.build("both")
        study = os.path.join(self.prefix, "share/shardscape/studies/llama3.1-70b-64xa100.yaml")
        point = "tp=4,pp=4,dp=4,zero=1,recompute=selective"
        line = run(os.path.join(build, "read_study"), study, point)
        told = json.loads(run(os.environ["SHARDSCAPE_PROGRAM"], "simulate", study, "--point", point, "--json"))
        self.assertRegex(line, r"^tp=4,.*: [0-9.]+ s\n$")
        self.assertEqual(float(line.split(": ")[1].split()[0]), told["step_time_s"])
        bad = subprocess.run([os.path.join(build, "read_study"), study, "tp=5"], capture_output=True, text=True)
        self.assertEqual(bad.returncode, 2)
        self.assertIn("tp", bad.stderr)

    def test_engine_alone_needs_nothing_of_files(self):
        build = self.build("engine", "-DWITH_STUDY=OFF")
        lines = run(os.path.join(build, "engine_alone")).splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["tp=1", "tp=2", "tp=4", "tp=8"])
        self.assertIn("memory_capacity", lines[0])  # 7 billion parameters of 16 bytes, and 64 GB
        # Forward and backward of 64 x 4096 tokens and 6.7e9 parameters on eight devices of 400 TFLOP/s take no less.
        least = 6 * 6.7e9 * 64 * 4096 / (8 * 400e12)
        for line in lines[1:]:
            self.assertEqual(line.split()[2], "ok")
            self.assertGreater(float(line.split()[3]), least)
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
            looked_for = cache.read()
        self.assertIn("SHARDSCAPE_Random123", looked_for)
        self.assertNotRegex(looked_for, "SHARDSCAPE_yaml|HDF5_|SHARDSCAPE_crypto")

    def test_engine_opens_no_file_and_asks_no_clock(self):
        symbols = run("nm", "--undefined-only", "--demangle", self.installed("libshardscape_engine.a"))
        impure = re.compile(r" U (f?open(64|at)?|getenv|secure_getenv|time|clock(_gettime)?|gettimeofday|rand|socket|fork|pthread_create"
                            r"|std::(cout|cerr|clog|cin)\b.*|std::basic_[io]?fstream.*|std::basic_filebuf.*|std::chrono::.*|std::thread.*"
                            r"|std::random_device.*|std::filesystem.*)$", re.MULTILINE)
        self.assertEqual([match.group(1) for match in impure.finditer(symbols)], [])
        self.assertGreater(symbols.count("\n"), 50, "the archive is read")

    def test_other_versions_are_refused(self):
        build = os.path.join(self.folder.name, "other")
        os.makedirs(build)
        with open(os.path.join(build, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write("cmake_minimum_required(VERSION 3.25)\nproject(other LANGUAGES CXX)\nfind_package(Shardscape 99 REQUIRED)\n")
        failed = subprocess.run([CMAKE, "-S", build, "-B", os.path.join(build, "b"), f"-DCMAKE_PREFIX_PATH={self.prefix}"],
                                capture_output=True, text=True)
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("version", failed.stderr)


if __name__ == "__main__":
    unittest.main()
