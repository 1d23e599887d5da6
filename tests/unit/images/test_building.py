"""The OCI layout of a built image."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from images import building


def put(layout: Path, content: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(content, separators=(",", ":"))
    name = hashlib.sha256(text.encode()).hexdigest()
    (layout / "blobs" / "sha256" / name).write_text(text)
    return {"digest": f"sha256:{name}", "size": len(text)}


def got(layout: Path, listed: dict[str, Any]) -> Any:
    """A blob, which is what its name and its size say."""
    content = (layout / "blobs" / Path(*listed["digest"].split(":"))).read_bytes()
    assert listed == {"digest": f"sha256:{hashlib.sha256(content).hexdigest()}", "size": len(content)}
    return json.loads(content)


def test_images_that_differ_in_ids_of_the_build_become_the_same(tmp_path: Path) -> None:
    layouts = []
    for step in ("FROM 2e2ad732e74d", "FROM b6fc90b707db1"):
        layout = tmp_path / step.split()[1]
        (layout / "blobs" / "sha256").mkdir(parents=True)
        configuration = put(layout, {"os": "linux", "history": [{"created_by": "CMD", "comment": step}]})
        manifest = put(layout, {"config": configuration, "layers": []})
        (layout / "index.json").write_text(json.dumps({"manifests": [manifest]}, separators=(",", ":")))
        building.without_build_ids(layout)
        (listed,) = json.loads((layout / "index.json").read_text())["manifests"]
        assert got(layout, got(layout, listed)["config"]) == {"os": "linux", "history": [{"created_by": "CMD"}]}
        layouts.append({path.relative_to(layout): path.read_bytes() for path in layout.rglob("*") if path.is_file()})
    assert layouts[0] == layouts[1]
