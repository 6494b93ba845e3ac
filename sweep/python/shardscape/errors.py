"""What may go wrong. Every message names the place: file, line and column, key, argument or column."""
from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ShardscapeError", "InputError", "RunError", "InternalError"]


class ShardscapeError(Exception):
    """Base of all errors of this package but that of result files, results.ResultsError.

    `problems` has one line for each problem; the message is all of them.
    """

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems: list[str] = list(problems) or [message]

    def __reduce__(self) -> tuple[type[ShardscapeError], tuple[str, list[str]]]:
        return type(self), (str(self), self.problems)


class InputError(ShardscapeError, ValueError):
    """The input is wrong: a study, an argument, a table. Nothing was written or changed."""


class RunError(ShardscapeError, RuntimeError):
    """The disk, the file system, the memory or a library failed. Sealed segments of a sweep remain."""


class InternalError(ShardscapeError, RuntimeError):
    """A check of the engine failed, which is a bug of Shardscape: please report it with its values."""
