#!/bin/sh
# Makes the archive of the krew plug-in, the same bytes every time, and its manifest with the archive's digest:
#   archive.sh DIRECTORY
set -eu

source=$(cd "$(dirname "$0")" && pwd)
target=$1
mkdir -p "$target"
staged=$(mktemp -d)
trap 'rm -r "$staged"' EXIT
cp "$source/kubectl-leaders" "$source/../../LICENSE" "$staged"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$staged" -cf - kubectl-leaders LICENSE |
    gzip -n >"$target/kubectl-leaders.tar.gz"
digest=$(sha256sum "$target/kubectl-leaders.tar.gz" | cut -d ' ' -f 1)
sed "s/SHA256/$digest/" "$source/leaders.yaml" >"$target/leaders.yaml"
