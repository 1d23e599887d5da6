"""Builds, signs and publishes a release; the dry run does it twice, from clean clones, and all on this machine.

``dry-run`` ends with a folder of everything that a release consists of: wheel, source distribution, chart, CRDs, krew
plug-in, images as OCI archives, SBOMs, checksums and their signature. ``build`` and ``publish`` are its two halves,
``krew`` is the plug-in alone. What is not allowed, or missing, is one sentence, before anything is built or published.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from cryptography.hazmat.primitives.asymmetric import ec

import signatures
from bellwether import __version__
from bellwether.api.v1alpha1.schema.crd_manifests import manifests
from bellwether.core.listing import few
from images import building, machine, recipe
from node import archives
from realparts import cache, gotools
from realparts.helm import Helm, HelmFailed
from realparts.progress import step
from realparts.registry import Registry, answers
from realparts.toolruns import DownloadFailed
from sbom import files, in_layers, locked, written

ROOT = Path(__file__).resolve().parents[1]
KREW = ROOT / "packaging" / "krew"
SOURCES = ("operator", "spark", "helm", "tests/support")
ORGANISATION = "bellwether-kafka"
SUMS = "SHA256SUMS"
MANIFESTS = "application/vnd.oci.image.manifest.v1+json"


class ReleaseFailed(RuntimeError):
    """It cannot be released like this; the message is one sentence with what to do."""


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """What a program prints. Raises ReleaseFailed."""
    try:
        ended = subprocess.run(
            command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as problem:
        raise ReleaseFailed(f"{command[0]} is missing: install it") from problem
    if ended.returncode != 0:
        said = (ended.stderr or ended.stdout).strip()
        raise ReleaseFailed(
            f"{Path(command[0]).name} {command[1]} failed (exit status {ended.returncode}): {said[-2000:]}"
        )
    return ended.stdout.strip()


def check(tag: str) -> None:
    """Raise ReleaseFailed unless the tree is a commit's and each tag that is meant is the version's."""
    if changed := run("git", "status", "--porcelain").splitlines():
        first, more = changed[0].split(maxsplit=1)[1], f" and {len(changed) - 1} more" if changed[1:] else ""
        raise ReleaseFailed(f"not as committed: {first}{more}: commit or remove them")
    for one in {tag, *run("git", "tag", "--points-at", "HEAD", "v*").split()} - {"", f"v{__version__}"}:
        raise ReleaseFailed(
            f"tag {one} does not match version {__version__} of operator/bellwether/__init__.py: change one of them"
        )


def commit() -> tuple[str, datetime]:
    """What is released, and when it was committed."""
    name, when = run("git", "show", "--no-patch", "--format=%H %cI", "HEAD").split()
    return name, datetime.fromisoformat(when)


def packed(target: Path, files: Mapping[str, Path]) -> None:
    """Write files and folders, by their names in the archive, as .tar.gz or .tar without times and owners."""
    plain = target.with_name(f"{target.name}.plain")
    archives.write_layer(dict(sorted(files.items())), plain)
    if target.suffix == ".tar":
        plain.rename(target)
        return
    with plain.open("rb") as tar, target.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as compressed:
        shutil.copyfileobj(tar, compressed)
    plain.unlink()


def krew(out: Path) -> None:
    """Write the krew plug-in's archive, and its manifest with version and digest."""
    packed(out / "kubectl-leaders.tar.gz", {"kubectl-leaders": KREW / "kubectl-leaders", "LICENSE": ROOT / "LICENSE"})
    text = (KREW / "leaders.yaml").read_text()
    for name, value in {"VERSION": __version__, "SHA256": digest(out / "kubectl-leaders.tar.gz")}.items():
        text = text.replace(name, value)
    (out / "leaders.yaml").write_text(text)


def chart(out: Path, scratch: Path) -> None:
    """Write the chart as Helm packages it, without the times that Helm puts in."""
    Helm(scratch / "helm").run("package", ROOT / "helm" / "bellwether", "--destination", scratch)
    name = f"bellwether-{__version__}.tgz"
    with tarfile.open(scratch / name) as made:
        made.extractall(scratch / "chart", filter="data")
    packed(out / name, {"bellwether": scratch / "chart" / "bellwether"})


def image(out: Path, target: str, scratch: Path, *, cached: bool) -> None:
    """Write an image as an OCI archive, and an SBOM of what lies in its layers."""
    layout, name = scratch / target, recipe.TARGETS[target]
    building.layout(target, layout, cached=cached)
    packed(out / f"{name}-{__version__}.oci.tar", {path.name: path for path in layout.iterdir()})
    written(out / f"{name}-{__version__}.image.cdx.json", name, in_layers(layout), commit())


def build(out: Path, targets: Iterable[str], *, cached: bool = True) -> None:
    """Build everything from this tree into a new folder."""
    if out.exists():
        raise ReleaseFailed(f"{out} is there already: remove it, or name another folder with --out")
    out.mkdir(parents=True)
    with cache.scratch() as scratch:
        with step("building wheel, source distribution, chart, CRDs and krew plug-in"):
            run(sys.executable, "-m", "hatchling", "build", "--directory", out)
            chart(out, scratch)
            krew(out)
            (out / f"bellwether-crds-{__version__}.yaml").write_text(manifests())
            listed = locked((ROOT / "requirements" / "runtime.lock").read_text())
            written(out / f"bellwether-{__version__}.python.cdx.json", "bellwether-kafka", listed, commit())
        for target in targets:
            with step(f"building the image {recipe.name(target)}{'' if cached else ', every step of it'}"):
                image(out, target, scratch, cached=cached)
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in sorted(out.iterdir()))
    (out / SUMS).write_text(sums)


def images_of(out: Path) -> dict[str, Path]:
    """The OCI archives of a built release, by the names of the images."""
    ending = f"-{__version__}.oci.tar"
    return {archive.name.removesuffix(ending): archive for archive in sorted(out.glob(f"*{ending}"))}


def digest(file: Path) -> str:
    """Its SHA-256."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def key_of(file: Path) -> ec.EllipticCurvePrivateKey:
    """The private key to sign with. Raises ReleaseFailed."""
    try:
        return signatures.private_key(file)
    except OSError as problem:
        remedy = "make one with openssl ecparam -name prime256v1 -genkey, or name another"
        raise ReleaseFailed(f"no key at {file}: {remedy}") from problem
    except ValueError as problem:
        raise ReleaseFailed(f"{file} is no private key in PEM for P-256, without a password") from problem


def as_built(out: Path) -> bool:
    """Whether a folder holds this version, and each file of it as it was built."""
    sums = out / SUMS
    listed = [line.split("  ", 1) for line in sums.read_text().splitlines()] if sums.is_file() else []
    same = all((out / name).is_file() and digest(out / name) == sum_of for sum_of, name in listed)
    return same and any(name == f"bellwether-{__version__}.tgz" for _, name in listed)


def publish(out: Path, registry: str, key: Path) -> None:
    """Sign the checksums, and push images and chart; the chart comes last, as it names the images."""
    host, _, path = registry.partition("/")
    private = key_of(key)
    if not answers(host):
        raise ReleaseFailed(f"no registry answers at {host}: start one, or name another with --registry")
    if not as_built(out):
        raise ReleaseFailed(f"{out} does not hold {__version__} as it was built: build a release there first")
    gotools.binary(gotools.HELM)
    sources = {name: f"oci-archive:{archive}:{__version__}" for name, archive in images_of(out).items()}
    named = {name: run("skopeo", "inspect", "--format", "{{.Digest}}", source) for name, source in sources.items()}
    for name in (*named, "charts/bellwether"):
        there = pushed(f"{host}/v2/{path}/{name}/manifests/{__version__}")
        if there and there != named.get(name):  # the same image is there after a publication that was interrupted
            raise ReleaseFailed(f"{registry}/{name} has {__version__} already: a release is never replaced")
    signatures.sign(out / SUMS, private)
    # No image has its tag before all are there.
    for ending in ({name: f"@{named[name]}" for name in named}, dict.fromkeys(named, f":{__version__}")):
        for name in named:
            copy = ("skopeo", "copy", "--quiet", "--preserve-digests", "--dest-tls-verify=false", sources[name])
            run(*copy, f"docker://{registry}/{name}{ending[name]}")
    with cache.scratch() as scratch:
        Helm(scratch).run("push", out / f"bellwether-{__version__}.tgz", f"oci://{registry}/charts", "--plain-http")


def pushed(manifest: str) -> str:
    """The digest of this manifest in the registry; empty if it has none."""
    try:
        with urlopen(Request(f"http://{manifest}", method="HEAD", headers={"Accept": MANIFESTS}), timeout=10) as found:
            return str(found.headers["Docker-Content-Digest"])
    except HTTPError as problem:
        if problem.code == HTTPStatus.NOT_FOUND:
            return ""
        raise ReleaseFailed(f"the registry says {problem.code} {problem.reason} for {manifest}") from problem


def files_that_differ(image: str, *built: Path) -> list[str]:
    """Names of the files that are not the same in an image that was built twice."""
    found = []
    for out in built:
        with cache.scratch() as layout, tarfile.open(out / image) as archive:
            archive.extractall(layout, filter="data")
            found.append(files(layout))
    one, other = found
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def pulled_back(out: Path, registry: str) -> None:
    """Pull everything, compare it with what was built, and verify the signature of that. Raises ReleaseFailed."""
    with cache.scratch() as scratch:
        Helm(scratch / "helm").run(
            *("pull", f"oci://{registry}/charts/bellwether", "--version", __version__, "--plain-http"),
            *("--destination", scratch),
        )
        for name, archive in images_of(out).items():
            layout = scratch / name
            source = f"docker://{registry}/{name}:{__version__}"
            run("skopeo", "copy", "--quiet", "--src-tls-verify=false", source, f"oci:{layout}:{__version__}")
            packed(scratch / archive.name, {path.name: path for path in layout.iterdir()})
        wrong = [path.name for path in scratch.glob("*-*.t*") if digest(path) != digest(out / path.name)]
        if wrong:
            raise ReleaseFailed(f"pulled back, these are not what was pushed: {', '.join(wrong)}")
    if not signatures.verified(out / SUMS, out / "release.pub"):
        raise ReleaseFailed(f"the signature of {SUMS} is not that of the key")


def dry_run(asked: argparse.Namespace) -> None:
    """Build twice, compare, publish to a registry of its own, pull back; then put all of it where it is wanted."""
    check(asked.tag)
    if asked.key:
        key_of(asked.key)
    if asked.out.exists() and not (asked.out / SUMS).is_file() and any(asked.out.iterdir()):
        raise ReleaseFailed(f"{asked.out} holds something else than a release: name another folder with --out")
    if asked.image:
        machine.require_root("building an image with buildah")
        machine.require_programs({"buildah": "buildah", "skopeo": "skopeo"})
    for tool in (gotools.HELM, gotools.REGISTRY):
        gotools.binary(tool)
    took: dict[str, float] = {}
    with cache.scratch() as scratch:
        built = []
        for number in ("first", "second"):
            began = time.monotonic()
            tree, out = scratch / number / "bellwether", scratch / number / "dist"
            run("git", "clone", "--quiet", ROOT, tree)
            again = [] if number == "first" else ["--again"]
            chosen = [word for target in asked.image for word in ("--image", target)]
            paths = os.pathsep.join(str(tree / source) for source in SOURCES)
            command = [sys.executable, tree / "packaging" / "release.py", "build", "--out", out, *chosen, *again]
            environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
            if subprocess.run(command, cwd=tree, env=environment, check=False).returncode != 0:
                raise ReleaseFailed(f"the {number} build failed: see above")
            built.append(out)
            took[f"{number} build"] = time.monotonic() - began
        first, second = ({path.name: digest(path) for path in out.iterdir()} for out in built)
        if differ := sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)):
            for image in tuple(differ):
                if image.endswith(".oci.tar"):
                    differ += files_that_differ(image, *built)
            raise ReleaseFailed(f"built twice, these differ: {few(differ, 20)}")
        if not asked.key:
            signatures.new_key(scratch / "key.pem")
        began = time.monotonic()
        with Registry(scratch / "registry") as registry:
            publish(built[0], f"{registry.address}/{ORGANISATION}", asked.key or scratch / "key.pem")
            took["publish"] = time.monotonic() - began
            began = time.monotonic()
            pulled_back(built[0], f"{registry.address}/{ORGANISATION}")
            took["pull and verify"] = time.monotonic() - began
        shutil.rmtree(asked.out, ignore_errors=True)
        shutil.move(built[0], asked.out)
    for name, sum_of in sorted(first.items()):
        print(f"{(asked.out / name).stat().st_size:>12,} bytes  {sum_of[:16]}  twice the same  {name}")
    print(f"chart and {len(asked.image)} images pulled back the same; signature of {SUMS} verified")
    print(", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items()))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python packaging/release.py", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    made = {name: verbs.add_parser(name) for name in ("check", "dry-run", "build", "publish", "krew")}
    for name in ("dry-run", "build", "publish", "krew"):
        made[name].add_argument("--out", type=lambda text: Path(text).resolve(), default=ROOT / "dist", help="folder")
    for name in ("dry-run", "build"):
        made[name].add_argument(
            "--image", action="append", choices=recipe.TARGETS, default=[], help="an image to build"
        )
    made["build"].add_argument("--again", action="store_true", help="run every step of images again")
    for name in ("check", "dry-run"):
        made[name].add_argument("--tag", default="", help="the tag that it is released by")
    made["dry-run"].add_argument("--key", type=Path, help="private key in PEM; else a new one, which is thrown away")
    made["publish"].add_argument("--key", type=Path, required=True, help="private key in PEM")
    made["publish"].add_argument("--registry", required=True, help="address and path, as in 127.0.0.1:5000/bellwether")
    asked = parser.parse_args()
    try:
        match asked.verb:
            case "check":
                check(asked.tag)
            case "dry-run":
                dry_run(asked)
            case "build":
                build(asked.out, asked.image, cached=not asked.again)
            case "publish":
                check("")
                publish(asked.out, asked.registry, asked.key.resolve())
            case "krew":
                asked.out.mkdir(parents=True, exist_ok=True)
                krew(asked.out)
    except (ReleaseFailed, machine.MachineLacks, building.BuildFailed, DownloadFailed, HelmFailed) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
