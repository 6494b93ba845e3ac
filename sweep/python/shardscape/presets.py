"""Models, devices, clusters, stacks and technologies: those that come with the program, and those made in Python."""
from __future__ import annotations

import atexit
import copy
import hashlib
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _shardscape
from ._commands import PathLike, encoded, run
from .errors import InputError

KINDS = (
    "model", "device", "cluster", "stack", "logic node", "memory technology", "network technology", "floor plan",
)

__all__ = ["Preset", "Presets", "presets"]


class Preset:
    """A model, device, cluster or stack: its keys are those of its file (models/README.md, hw_presets/README.md).

    A study takes it in place of a name. `changed` makes another one; a preset itself never changes.
    """

    def __init__(self, kind: str, name: str, keys: Mapping[str, object]) -> None:
        self.kind, self.name, self._keys = kind, name, copy.deepcopy(dict(keys))

    @classmethod
    def model(cls, name: str, **keys: object) -> Preset:
        return cls("model", name, {"name": name, **keys})

    @classmethod
    def device(cls, name: str, **keys: object) -> Preset:
        """A device; with base="a100-sxm-80gb" the keys are what differs from that one."""
        return cls("device", name, {"name": name, **keys})

    @classmethod
    def cluster(cls, name: str, **keys: object) -> Preset:
        """A fabric of devices: cluster("mine", device=..., dimensions=[{"kind": "ring", ...}])."""
        return cls("cluster", name, {"name": name, **keys})

    @classmethod
    def stack(cls, name: str, **keys: object) -> Preset:
        return cls("stack", name, {"name": name, **keys})

    def to_dict(self) -> dict[str, Any]:
        """A copy of the keys, quantities as texts with units."""
        return copy.deepcopy(self._keys)

    def __getitem__(self, key: str) -> Any:
        """The value of a dotted key: device["hbm.bandwidth"]."""
        value: Any = self._keys
        for part in key.split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise KeyError(key)
            value = value[part]
        return copy.deepcopy(value)

    def changed(self, name: str, changes: Mapping[str, object]) -> Preset:
        """Another preset, with the values of some dotted keys: device.changed("mine", {"hbm.bandwidth": "4 TB/s"})."""
        keys = self.to_dict()
        for key, value in changes.items():
            part: Any = keys
            *folders, last = key.split(".")
            for folder in folders:
                part = part.setdefault(folder, {})
                if not isinstance(part, dict):
                    raise InputError(f"{self.name}: {key}: {folder} holds a value, and no further keys")
            part[last] = value
        if "name" in keys:
            keys["name"] = name
        return Preset(self.kind, name, keys)

    def save(self, path: PathLike, force: bool = False) -> None:
        """Writes the preset as a file (JSON, which YAML reads: call it .yaml); FileExistsError where there is one,
        unless `force`."""
        if force and (os.path.isfile(path) or os.path.islink(path)):
            os.remove(path)
        with open(path, "x", encoding="utf-8") as file:
            json.dump(plain(self._keys), file, indent=1, ensure_ascii=False)

    def check(self) -> dict[str, Any]:
        """The preset with every default filled in; InputError with what is wrong."""
        path = _file_of(self)
        return _shown(path, {path: f"{self.name}.yaml"})[0][2]

    def __repr__(self) -> str:
        return f"<shardscape.Preset {self.kind} {self.name}>"


class Presets(Mapping[str, Preset]):
    """The presets of the program by name, and of the folders given: presets["a100-sxm-80gb"]; `of(kind)` names those of
    a kind. Where two kinds have a name, presets["device/NAME"] says which."""

    def __init__(self, folders: Sequence[PathLike] = ()) -> None:
        self._folders = [encoded(folder) for folder in folders]

    def of(self, kind: str) -> list[str]:
        """Names of a kind: model, device, cluster, stack, logic node, memory technology, network technology, floor
        plan."""
        listed = _shardscape.list_presets(self._folders)
        names = [name for of, name, _ in listed if of == kind]
        if not names:
            raise InputError(f"presets: no kind '{kind}'; kinds: {', '.join(dict.fromkeys(of for of, _, _ in listed))}")
        return names

    def __getitem__(self, name: str) -> Preset:
        kind, _, plain_name = str(name).rpartition("/")
        try:
            found = [one for one in _shown(plain_name, {}, self._folders) if kind in ("", one[0])]
        except InputError as error:
            raise KeyError(str(error)) from None
        if not found:
            raise KeyError(name)
        return Preset(found[0][0], plain_name, found[0][2])

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for _, name, _ in _shardscape.list_presets(self._folders)))

    def __len__(self) -> int:
        return len(list(iter(self)))


presets = Presets()


def plain(value: object) -> Any:
    """A value as JSON has it: presets become files, and numbers of numpy numbers."""
    if isinstance(value, Preset):
        return _file_of(value)
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    item = getattr(value, "item", None)  # numpy's
    if callable(item) and getattr(value, "ndim", None) == 0:
        return plain(item())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise InputError(f"a value of type {type(value).__name__} has no meaning in a study")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise InputError(f"a key of a study is a text, not {key!r}")
    return key


_folder: list[str] = []


def _file_of(preset: Preset) -> str:
    """A file of the preset, for this process: its name is that of the preset, its folder that of its content."""
    if not _folder:
        _folder.append(tempfile.mkdtemp(prefix="shardscape-presets-"))
        atexit.register(_remove, _folder[0], os.getpid())
    text = json.dumps(plain(preset._keys), indent=1, ensure_ascii=False)
    folder = os.path.join(_folder[0], hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16])
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, preset.name.replace(os.sep, "_").lstrip(".") + ".yaml")
    if not os.path.exists(path):  # its folder says what it holds; another thread may write the same
        part = f"{path}.{os.getpid()}.{threading.get_ident()}"
        with open(part, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.replace(part, path)
    return path


def _remove(folder: str, process: int) -> None:
    """Removes the folder of this process: a process that was forked has the one of its parent."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _shown(
    name: str, places: Mapping[str, str], folders: Sequence[bytes] = ()
) -> list[tuple[str, str, dict[str, Any]]]:
    """What `presets NAME` shows: kind, file and keys of each preset of that name."""
    if name.startswith("-"):
        raise InputError(f"presets: no preset '{name}'")
    _, out, _ = run(["presets", name], presets=folders, places=places)
    found = []
    heads = list(re.finditer(rf"^# ({'|'.join(KINDS)}), (.*)$", out, re.MULTILINE))
    for head, after in zip(heads, [*heads[1:], None]):
        text = out[head.end() : after.start() if after else None]
        found.append((head[1], head[2], _shardscape.parse_yaml(text, name)))
    return found
