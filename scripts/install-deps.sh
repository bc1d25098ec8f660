#!/bin/sh
# Installs the Debian packages that are missing; does nothing, quickly, when all
# are there.
# usage: scripts/install-deps.sh [--dev | --bench | --neon | --libraries]
#   --dev: the developers' tools as well; --bench: the benchmarks' too;
#   --neon: what scripts/neon.sh needs; --libraries: install nothing, print the
#   names of the libraries' packages
set -eu

packages='build-essential cmake ninja-build pkg-config
  libxnnpack-dev libpthreadpool-dev libcpuinfo-dev
  protobuf-c-compiler libprotobuf-c-dev libmd-dev
  libpng-dev libjpeg62-turbo-dev libsndfile1-dev
  libcmocka-dev'
bench_packages='python3 python3-venv libdnnl-dev'
dev_packages='clang libclang-rt-dev clang-format valgrind'
neon_packages='gcc-aarch64-linux-gnu qemu-user'

case ${1-} in
  '') ;;
  --dev) packages="$packages $dev_packages" ;;
  --bench) packages="$packages $bench_packages" ;;
  --neon) packages="$packages $neon_packages" ;;
  --libraries) printf '%s\n' $packages | grep '^lib'; exit ;;
  *)
    echo "usage: $0 [--dev | --bench | --neon | --libraries]" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "This is no Debian system. Please install by hand what these hold, then" \
    "use cmake:" $packages >&2
  exit 1
fi

# "install ok installed" for each package that is there; one call for all.
# $packages is meant to split into words here and below.
installed=$(dpkg-query -W -f '${Package} ${Status}\n' $packages 2>/dev/null |
  awk '/ install ok installed$/ { print $1 }')
missing=
for package in $packages; do
  case " $(echo $installed) " in
    *" $package "*) ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=
elif command -v sudo >/dev/null; then
  as_root=sudo
else
  echo "Missing packages, and neither root nor sudo to install them." \
    "As root: apt-get install$missing" >&2
  exit 1
fi

echo "Installing:$missing" >&2
install() {
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $missing
}
# Lists that were never fetched, or are old, make the first try fail.
if ! install; then
  $as_root apt-get update
  if ! install; then
    echo "apt-get could not install:$missing" >&2
    exit 1
  fi
fi
