#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cuda_wheels.sh pretended|real ROOT [weft-emulate]: tools/cuda_wheels on a machine that has no nvcc, as far as it can see. pretended: pip only notes its
# words. real: the wheels come, CMake takes their nvcc, and a program that it compiles runs on the emulated GPU; skipped without the network.
set -euo pipefail
which=$1 root=$2 emulate=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
for tool in bash env dirname cat awk rm mkdir mv ln grep tail; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
unset CUDACXX WEFT_CUDA WEFT_CUDA_WHEELS
export BUILD=$work/build CUDA_HOME=/none

fail() {
  echo "$*" >&2
  exit 1
}
wheels() { PATH=$work/bin "$root/tools/cuda_wheels" "$@" >"$work/log" 2>&1; }

if [[ $which == real ]]; then
  python3 -m pip download -q --no-deps -d "$work/try" pip >/dev/null 2>&1 || { echo "SKIPPED: needs pip and the network" && exit 77; }
  path=$PATH ignored=/usr/local/bin  # CMake looks there in any case
  while found=$(PATH=$path command -v nvcc); do
    folder=${found%/nvcc} path=:$path:
    path=${path//:$folder:/:} ignored+=";$folder"
    path=${path#:} path=${path%:}
  done
  PATH=$path "$root/tools/cuda_wheels" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
  nvcc=$BUILD/cuda-wheels/nvcc/bin/nvcc
  configure() {
    PATH=$path cmake -S "$root" -B "$BUILD" -DCMAKE_IGNORE_PATH="$ignored" -DWEFT_BUILD_TESTS=OFF -DWEFT_BUILD_BENCHMARKS=OFF "$@" \
      >"$work/log" 2>&1 || fail "$(cat "$work/log")"
  }
  configure -DWEFT_CUDA=OFF
  grep -q 'off      emulator .*configure without -DWEFT_CUDA=OFF' "$work/log" || fail "$(cat "$work/log")"
  configure -DWEFT_CUDA=AUTO -DWEFT_CUDA_WHEELS=OFF
  grep -q 'MISSING  CUDA .*Cure: configure without -DWEFT_CUDA_WHEELS=OFF and run' "$work/log" || fail "$(cat "$work/log")"
  grep -q 'MISSING  emulator .*Cure: CUDA first' "$work/log" || fail "$(cat "$work/log")"
  configure -DWEFT_CUDA_WHEELS=ON  # what was OFF and not found before is found
  grep -q 'found    CUDA' "$work/log" || fail "$(cat "$work/log")"
  grep -q "^CUDA_CUDART:FILEPATH=$BUILD/cuda-wheels/" "$BUILD/CMakeCache.txt" || fail "CMake takes another toolkit"
  [[ -n $emulate ]] || { echo "SKIPPED: there is no weft-emulate to run a program" && exit 77; }
  "$nvcc" -std=c++20 -cudart shared -gencode arch=compute_80,code=compute_80 "$root/docs/course/transpose.cu" -o "$work/program"
  [[ $("$emulate" "$work/program") == "0 wrong elements of "* ]] || fail "the program is wrong"
  exit 0
fi

cat >"$work/bin/python3" <<'PIP'
#!/bin/bash
# pip install … --target DIR -r FILE
echo "$@" >>"$BUILD/asked"
[[ ! -e $BUILD/no_network ]] || { echo "there is no network"; exit 1; }
while [[ $1 != --target ]]; do shift; done
grep -o '^nvidia-[^=]*' "$4" | while read -r package; do
  mkdir -p "$2/nvidia/cu13/bin" "$2/nvidia/cu13/lib" "$2/$package.dist-info"
  echo "$package" >"$2/nvidia/cu13/bin/$package"
done
echo 13 >"$2/nvidia/cu13/lib/libcudart.so.13"
PIP
chmod +x "$work/bin/python3"
mkdir "$BUILD"
asked() { [[ $(grep -c . "$BUILD/asked" 2>/dev/null || true) == "$1" ]] || fail "pip was asked $(cat "$BUILD/asked"), expected $1 times"; }

# Refused, by a variable or by what the folder was configured with.
for variable in WEFT_CUDA WEFT_CUDA_WHEELS; do
  if env $variable=OFF PATH="$work/bin" "$root/tools/cuda_wheels" 2>"$work/log"; then fail "$variable=OFF does not refuse"; fi
done
echo "WEFT_CUDA_WHEELS:BOOL=OFF" >"$BUILD/CMakeCache.txt"
if wheels test; then fail "the option does not refuse"; fi
grep -q "no nvcc, and WEFT_CUDA_WHEELS=OFF" "$work/log" || fail "$(cat "$work/log")"
rm "$BUILD/CMakeCache.txt"
asked ''

# pip fails: said so, and nothing is left.
touch "$BUILD/no_network"
if wheels test; then fail "without a network it succeeds"; fi
grep -q "there is no network" "$work/log" || fail "$(cat "$work/log")"
grep -q "nothing is built for the device cuda" "$work/log" || fail "$(cat "$work/log")"
[[ -z $(ls "$BUILD/cuda-wheels") ]] || fail "left: $(ls "$BUILD/cuda-wheels")"
rm "$BUILD/no_network" "$BUILD/asked"

# A GPU whose driver could not run what it compiles.
printf '#!/bin/bash\nprintf "550.54.15\\n550.54.15\\n"\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/nvidia-smi"
if wheels; then fail "an old driver is accepted"; fi
grep -q "driver 550.54.15 is too old" "$work/log" || fail "$(cat "$work/log")"
asked ''
sed -i s/550/580/g "$work/bin/nvidia-smi"

# The compiler alone; a second time nothing; for tests the rest.
wheels || fail "$(cat "$work/log")"
asked 1
nvcc=$BUILD/cuda-wheels/nvcc
[[ $(cat "$nvcc/lib64/libcudart.so") == 13 && -e $nvcc/bin/nvidia-cuda-nvcc && -d $nvcc/licenses/nvidia-nvvm.dist-info ]] || fail "$(find "$nvcc")"
wheels
asked 1
wheels test
asked 3
[[ -e $BUILD/cuda-wheels/disassemblers/bin/nvidia-cuda-cuobjdump && -d $BUILD/cuda-wheels/nccl/lib ]] || fail "$(find "$BUILD")"
# Other pins: the compiler is got again.
echo old >"$nvcc/wheels.txt"
wheels test
asked 4
# What is installed is all pinned, by version and by two hashes.
grep -q -- '--no-deps --require-hashes --only-binary=:all:' "$BUILD/asked" || fail "$(cat "$BUILD/asked")"
[[ $(grep -cE '^nvidia-[a-z0-9-]+==[0-9.]+ \\$' "$root/tools/cuda_wheels.txt") == "$(grep -c '^nvidia' "$root/tools/cuda_wheels.txt")" ]] || fail "a version is not pinned"
[[ $(grep -cE -- '--hash=sha256:[0-9a-f]{64}' "$root/tools/cuda_wheels.txt") == $((2 * $(grep -c '^nvidia' "$root/tools/cuda_wheels.txt"))) ]] || fail "a hash is missing"

# With an nvcc only what lacks.
printf '#!/bin/sh\n' >"$work/bin/nvcc"
chmod +x "$work/bin/nvcc"
rm -r "$BUILD/cuda-wheels" "$BUILD/asked"
wheels
asked ''
wheels test
asked 1
[[ $(ls "$BUILD/cuda-wheels") == disassemblers ]] || fail "$(ls "$BUILD/cuda-wheels")"
