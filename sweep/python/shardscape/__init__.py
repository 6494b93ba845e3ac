"""Shardscape: which way of sharding a large language model over a GPU cluster is fast, and fits.

    >>> import shardscape as ss
    >>> study = ss.Study.ready("llama3.1-70b-64xa100")            # or Study.load("mine.yaml")
    >>> r = study.simulate(tp=4, pp=4, zero=1, recompute="selective")
    >>> r.step_time_s, r.units["step_time_s"], r.status
    >>> points = study.set("workload.global_batch", 256).sweep()   # a DataFrame, one row per point; `study` has changed
    >>> ss.top(points, 5, by=lambda p: p.step_time_s * p.memory_peak_bytes)
    >>> study.search(3).attrs["certificate"]
    >>> ss.load("out.h5")                                         # what `shardscape sweep -o out.h5` wrote

All values are in SI units, which `units` of results and attrs["units"] of frames name. Errors are exceptions with the
messages of the program: InputError (what is wrong, and where), RunError, InternalError, ResultsError.
"""
from . import errors, plots, results
from ._columns import best, load
from ._commands import ShardscapeWarning
from ._shardscape import version as __version__
from .errors import InputError, InternalError, RunError, ShardscapeError
from .measurements import Calibration, Validation, calibrate, validate
from .presets import Preset, Presets, presets
from .ranking import top
from .result import Result
from .results import ResultsError, fault_samples, links, summary, units
from .study import Study

__all__ = [
    "Calibration", "InputError", "InternalError", "Preset", "Presets", "Result", "ResultsError", "RunError",
    "ShardscapeError", "ShardscapeWarning", "Study", "Validation", "__version__", "best", "calibrate", "errors",
    "fault_samples", "links", "load", "plots", "presets", "results", "summary", "top", "units", "validate",
]
