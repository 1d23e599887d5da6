"""Builds a target of the Dockerfile with buildah, in a chroot and with its storage in our cache.

In: a target. Out: a docker-archive in the cache, named after the digest of what the image is made of. Needs root.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bellwether import __version__
from images import base, machine, recipe
from realparts import cache

# Every secret of every build has it; a test looks for it where it must not be.
CANARY = "canary-5a1d3c0f7be94d21"
_KEPT_ARCHIVES = 3
_STORAGE_GIGABYTES = 24
# Stages that take minutes. They get names of their own, so that they outlive the images that were made of them.
_DEAR_STAGES = {"operator": ("distributions",), "spark": ("distributions", "java", "spark-distributions")}


class BuildFailed(RuntimeError):
    """buildah ended with an error; its output is on the terminal."""


def archive(target: str) -> Path:
    """The cached docker-archive of a target, built now if anything that it is made of has changed.

    Raises MachineLacks, BuildFailed.
    """
    image = unique_name(target)

    def make(staged: Path) -> None:
        machine.require_root("building an image with buildah")
        machine.require_programs({"buildah": "buildah"})
        # One build at a time: the stages that targets share are then built once.
        with cache.lock("images-storage"):
            _make_room()
            _bud(target, image)
            _buildah("push", "--quiet", image, f"docker-archive:{staged}:{recipe.name(target)}")
            _clear_up(target, image)
        _forget_old(staged_for=target)

    return cache.once(
        f"images/{target}-{image.rpartition('-')[2]}.tar", f"building the image {recipe.name(target)} (minutes)", make
    )


def layout(target: str, folder: Path, *, cached: bool) -> None:
    """Write the image as an OCI layout into a folder that is not there yet; not ``cached``: every step runs again.

    The same sources give the same bytes, as long as Debian's packages are the same. Raises MachineLacks, BuildFailed.
    """
    machine.require_programs({"skopeo": "skopeo"})
    with cache.scratch() as scratch:
        source = archive(target) if cached else scratch / "image.tar"
        if not cached:
            again = f"{unique_name(target)}-again"
            with cache.lock("images-storage"):
                _make_room()
                _bud(target, again, cached=False)
                _buildah("push", "--quiet", again, f"docker-archive:{source}:{recipe.name(target)}")
                _clear_up(target, unique_name(target))
        command = ["skopeo", "copy", "--quiet", f"docker-archive:{source}", f"oci:{folder}:{__version__}"]
        if subprocess.run(command, stdout=2, check=False).returncode != 0:
            raise BuildFailed("skopeo copy failed; its output is above")
    without_build_ids(folder)


def without_build_ids(folder: Path) -> None:
    """Take out what buildah notes with each step of an image's history: ids of its own, which are new each time."""
    index, blobs = folder / "index.json", folder / "blobs" / "sha256"
    (listed,) = json.loads(index.read_text())["manifests"]
    manifest = blobs / listed["digest"].removeprefix("sha256:")
    configuration = blobs / json.loads(manifest.read_text())["config"]["digest"].removeprefix("sha256:")
    content = json.loads(configuration.read_text())
    for step in content["history"]:
        step.pop("comment", None)
    changed = json.dumps(content, sort_keys=True)
    for blob, named_in in ((configuration, manifest), (manifest, index)):
        name = hashlib.sha256(changed.encode()).hexdigest()
        (blobs / name).write_text(changed)
        # In place, so that all else is as skopeo wrote it: that is how it is pulled back.
        sizes = (f'"size":{blob.stat().st_size}', f'"size":{len(changed.encode())}')
        changed = named_in.read_text().replace(blob.name, name).replace(*sizes)
        blob.unlink()
    index.write_text(changed)


def unique_name(target: str) -> str:
    """The image's name in buildah's storage: its content's digest follows the tag."""
    return f"{recipe.name(target)}-{recipe.digest()}"


def _bud(target: str, image: str, *, cached: bool = True) -> None:
    base_archive = base.archive()
    base_image = f"localhost/bellwether-base:{base.version()}"
    if not _known(base_image):
        container = _buildah("from", "scratch", printed=True)
        try:
            _buildah("add", "--quiet", container, str(base_archive), "/")
            _buildah("commit", "--quiet", container, base_image)
        finally:
            _buildah("rm", container)
    with cache.scratch() as folder:
        noted = machine.secrets(folder / "secrets", canary=CANARY)
        options = ["--layers", "--pull-never", "--isolation", "chroot", "--format", "docker", "--timestamp", "0"]
        options += [] if cached else ["--no-cache"]
        options += ["--build-arg", f"BASE_IMAGE={base_image}"]
        options += [option for name, path in noted.items() for option in ("--secret", f"id={name},src={path}")]
        for stage in _DEAR_STAGES[target] if cached else ():
            name = f"localhost/bellwether-stage:{stage}"
            _buildah("bud", *options, "--target", stage, "--tag", name, str(recipe.ROOT))
        _buildah("bud", *options, "--target", target, "--tag", image, str(recipe.ROOT))


def _known(image: str) -> bool:
    return bool(machine.output("buildah", *_storage(), "images", "--quiet", image))


def _storage() -> Sequence[str]:
    """buildah's global options: everything below our cache, copied rather than mounted, as a chroot needs it."""
    folder = cache.root() / "images"
    return ("--root", str(folder / "storage"), "--runroot", str(folder / "running"), "--storage-driver", "vfs")


def _buildah(command: str, *arguments: str, printed: bool = False) -> str:
    """Run buildah; its output goes to the terminal's standard error, or is returned when asked for."""
    done = subprocess.run(
        ["buildah", *_storage(), command, *arguments],
        stdout=subprocess.PIPE if printed else 2,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildFailed(f"buildah {command} failed (exit status {done.returncode}); its output is above")
    return done.stdout.strip() if printed else ""


def _clear_up(target: str, image: str) -> None:
    """Forget this target's earlier images, and whatever neither they nor the expensive stages are made of any more."""
    listed = machine.output("buildah", *_storage(), "images", "--format", "{{.Name}}:{{.Tag}}").split()
    earlier = f"localhost/{recipe.TARGETS[target]}:"
    for name in listed:
        if name.startswith(earlier) and name != f"localhost/{image}":
            _buildah("rmi", "--force", name)
    _buildah("rmi", "--prune")


def _make_room() -> None:
    """Start again when the storage has grown too large all the same: each layer in it is a whole copy."""
    noted = machine.output("du", "--summarize", "--block-size=1G", str(cache.root() / "images" / "storage")).split()
    if noted and int(noted[0]) > _STORAGE_GIGABYTES:
        _buildah("rmi", "--all", "--force")


def _forget_old(staged_for: str) -> None:
    """Keep the newest archives of a target and remove older ones."""
    found = sorted((cache.root() / "images").glob(f"{staged_for}-*.tar"), key=lambda path: path.stat().st_mtime)
    for old in found[:-_KEPT_ARCHIVES]:
        old.unlink(missing_ok=True)
