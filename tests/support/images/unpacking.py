"""Opens a docker-archive: its settings, its layers, and the root file system that they add up to.

In: the archive that ``building`` made. Out: an ``Image``; ``unpack`` lays its files out as a container would see them.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class Image:
    """An image at rest in a docker-archive."""

    archive: Path
    names: Sequence[str]
    layers: Sequence[str]
    """Members of the archive, from the bottom up."""
    settings: Mapping[str, Any]
    """The image's configuration: ``config`` (user, environment, entrypoint, labels) and ``history``."""

    @property
    def command(self) -> list[str]:
        """What starts, before a container's own arguments."""
        return list(self.settings["config"]["Entrypoint"])

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the image sets."""
        return dict(text.split("=", 1) for text in self.settings["config"]["Env"])

    @property
    def labels(self) -> dict[str, str]:
        """The image's labels."""
        return dict(self.settings["config"]["Labels"])

    @property
    def user(self) -> tuple[int, int]:
        """The uid and gid that it runs as. Raises ValueError where it names them otherwise than by number."""
        uid, _, gid = self.settings["config"]["User"].partition(":")
        return int(uid), int(gid)

    def layer_bytes(self) -> list[int]:
        """The size of each layer, uncompressed."""
        with tarfile.open(self.archive) as archive:
            return [archive.getmember(layer).size for layer in self.layers]

    def unpack(self, folder: Path) -> Path:
        """Lay the layers out in ``folder``, owners and modes as they are (needs root), and return it."""
        folder.mkdir(parents=True)
        for layer in self.layers:
            with self._opened(layer) as content:
                self._extract(content, folder)
        return folder

    def finds(self, needle: bytes) -> list[str]:
        """The layers, or the settings, whose raw bytes contain the needle."""
        found = [name for name in self.layers if self._holds(name, needle)]
        return [*found, *(["settings"] if needle in json.dumps(self.settings).encode() else [])]

    def _holds(self, layer: str, needle: bytes) -> bool:
        with self._opened(layer) as content:
            last = b""
            while block := content.read(_BLOCK):
                if needle in last + block:
                    return True
                last = block[-len(needle) :]
        return False

    def _opened(self, layer: str) -> IO[bytes]:
        content = tarfile.open(self.archive).extractfile(layer)  # noqa: SIM115 - closed with its content
        assert content is not None, f"{layer} is no file"
        return content

    @staticmethod
    def _extract(layer: IO[bytes], folder: Path) -> None:
        command = ["tar", "--extract", "--numeric-owner", "--preserve-permissions", "--directory", str(folder)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as extracting:
            assert extracting.stdin is not None
            for block in _blocks(layer):
                extracting.stdin.write(block)
        if extracting.returncode != 0:
            raise RuntimeError(f"tar failed on a layer (exit status {extracting.returncode})")
        if whiteouts := [str(path) for path in folder.rglob(".wh.*")]:
            raise RuntimeError(f"a layer deletes files of another, which is not expected here: {whiteouts}")


def opened(archive: Path) -> Image:
    """Read the manifest and the settings of a docker-archive that holds one image."""
    with tarfile.open(archive) as members:

        def read(name: str) -> Any:
            content = members.extractfile(name)
            assert content is not None, f"{name} is no file"
            return json.load(content)

        (manifest,) = read("manifest.json")
        return Image(archive, manifest["RepoTags"], manifest["Layers"], read(manifest["Config"]))


def _blocks(content: IO[bytes]) -> Iterator[bytes]:
    while block := content.read(_BLOCK):
        yield block
