#!/usr/bin/env bash
# Builds one pinned tool into bin/, unless the one there is already it.
#
#   tools/build.sh <module dir> <binary> <package> [ldflags]
#
# "Already it" means: built from the same go.mod and go.sum, the same package
# (and its source, where it is the module's own) and flags, for the same
# platform. Dates are not looked at, so a fresh checkout with a kept bin/ (a CI
# cache) builds nothing.
set -euo pipefail

module=$1 binary=$2 package=$3 ldflags=${4:-}
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$root/bin
stamp=$bin/.stamps/$binary
mkdir -p "$bin/.stamps"

cd "$root/tools/$module"
want=$({
	cat go.mod go.sum
	[[ $package != . ]] || cat ./*.go
	echo "$package $ldflags $(go env GOOS GOARCH)"
} | git hash-object --stdin)

if [[ -x $bin/$binary && -f $stamp && $(<"$stamp") == "$want" ]]; then
	exit 0
fi

case $binary in
etcd) expected="about 30 seconds" ;;
kube-apiserver | kube-apiserver-before) expected="4 to 6 minutes" ;;
kube-controller-manager) expected="1 to 2 minutes" ;;
kwok) expected="1 to 3 minutes" ;;
helm) expected="3 to 6 minutes" ;;
kustomize-controller) expected="3 to 6 minutes" ;;
helm-controller) expected="1 to 5 minutes" ;;
argocd) expected="3 to 6 minutes" ;;
containerd) expected="2 to 6 minutes" ;;
golangci-lint) expected="2 to 3 minutes" ;;
*) expected="up to a minute" ;;
esac
echo "tools: building $binary from $package; the first time takes $expected on two cores"

# Into a file of its own and then renamed: two builds at once, or one that is
# stopped half-way, never leave a torn binary behind.
fresh=$(mktemp "$bin/.$binary.XXXXXX")
trap 'rm -f "$fresh"' EXIT
SECONDS=0
# GOFLAGS is emptied of what a developer may have set for the product (-mod,
# -tags): the tools are built the same way everywhere.
CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off \
	go build -trimpath -buildvcs=false -ldflags "-s -w $ldflags" -o "$fresh" "$package"
chmod 755 "$fresh"
mv -f "$fresh" "$bin/$binary"
echo "$want" >"$stamp"
echo "tools: bin/$binary is ready after ${SECONDS}s"
