#!/bin/sh
# Builds for AArch64 and runs the tests of kernels and operators in QEMU's
# emulator, NEON included. Debian's arm64 packages of our libraries are unpacked
# into the build folder; the system stays as it is.
# usage: scripts/neon.sh BUILD_FOLDER
# Exit 77, with a message, where something that it takes is not there.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
build=$(cd "$1" && pwd)
root=$build/sysroot
tests='geometry problem kernels strided_copy op_[a-z]* conv_[a-z]* backend_native'

skip() {
  echo "neon: skipped: $*" >&2
  exit 77
}
for program in aarch64-linux-gnu-gcc qemu-aarch64 apt-get dpkg-deb; do
  command -v $program >/dev/null || skip "there is no $program" \
    "(scripts/install-deps.sh --neon)"
done

# apt-get for arm64, with lists, status and packages of its own.
arm_apt() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
    -o APT::Sandbox::User="$(id -un)" -o Dir::State="$build/apt/state" \
    -o Dir::State::status="$build/apt/status" -o Dir::Cache="$build/apt" "$@"
}
libraries=$("$source/scripts/install-deps.sh" --libraries)
fetch() {
  mkdir -p "$build/apt/state/lists/partial" "$build/apt/archives/partial"
  : >"$build/apt/status"
  arm_apt update && arm_apt install -y --download-only \
    --no-install-recommends $libraries
}
unpack() {
  rm -rf "$root.new"
  mkdir "$root.new"
  for package in "$build"/apt/archives/*.deb; do
    dpkg-deb -x "$package" "$root.new" || return
  done
  # Links to absolute places mean those in the root: else the linker takes
  # libm.a, which the shared libc does not go with.
  find "$root.new" -type l -lname '/*' | while read -r link; do
    ln -sfnr "$root.new$(readlink "$link")" "$link"
  done
  echo "$libraries" >"$root.new/libraries"
  rm -rf "$root"
  mv "$root.new" "$root"
  rm -rf "$build/apt"
}
if [ "$(cat "$root/libraries" 2>/dev/null)" != "$libraries" ]; then
  fetch >&2 || skip "no arm64 packages of the libraries"
  unpack
fi

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_TOOLCHAIN_FILE="$source/cmake/aarch64.cmake" \
  -DPOLYPHASE_SYSROOT="$root" -DPOLYPHASE_WERROR=ON >/dev/null
names=$(echo $tests | sed 's/ /|/g')
targets=$(cd "$source/tests" && ls test_*.c | grep -E "^test_($names)\.c$" |
  sed 's/\.c$//')
cmake --build "$build" -j "${JOBS:-2}" --target $targets
cd "$build"
POLYPHASE_EMULATED=1 ctest --output-on-failure -j "${JOBS:-2}" -R "^($names)$"
