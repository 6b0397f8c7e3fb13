#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a copy of `tools/ptxas_report` ($1) in a small tree of its own, with an nvcc that prints what the source's first line says: a page
# made in parts, and each fault that --check finds.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tools,kernels/cuda}
cp "$1" "$tree/tools/ptxas_report"
cat > "$tree/nvcc" << 'NVCC'
#!/bin/bash
[[ $1 == --version ]] && { printf 'Cuda compilation tools, release 1.0, V1.0.1\nBuild x\n'; exit 0; }
for word in "$@"; do [[ $word == *.cu ]] && source=$word; done
read -r _ registers spill < "$source"
name=$(basename "$source" .cu)_kernel
echo "ptxas info    : Compiling entry function '$name' for 'sm_90a'" >&2
echo "    0 bytes stack frame, $spill bytes spill stores, $spill bytes spill loads" >&2
echo "ptxas info    : Used $registers registers, used 1 barriers, 64 bytes smem" >&2
NVCC
chmod +x "$tree/nvcc"
export CUDACXX=$tree/nvcc
page=$tree/page.md
cd "$tree"

run() {  # run STATUS TEXT ARGUMENTS…: the tool's exit status, and a piece of what it prints
  local status=0 report
  report=$(tools/ptxas_report "${@:3}" 2>&1) || status=$?
  if [[ $status -ne $1 || $report != *"$2"* ]]; then
    echo "ptxas_report ${*:3}: expected status $1 and '$2', got $status and: $report"
    exit 1
  fi
}
holds() { grep -qF -- "$1" "$page" || { echo "expected '$1' in:"; cat "$page"; exit 1; }; }

echo '// 40 0' > kernels/cuda/add.cu
echo '// 168 0' > kernels/cuda/add_sm90.cu
run 0 '3 rows, 0 spill more than 0 bytes, most registers 168, most static shared memory 64 bytes' --markdown "$page"
holds '| kernels/cuda/add.cu | sm_80 | 1 | 40 | 64 | 0 | 0 |'
holds '| kernels/cuda/add_sm90.cu | sm_90a | 1 | 168 | 64 | 0 | 0 |'
run 0 '' --check "$page"

# One file anew: the other rows stay.
echo '// 48 0' > kernels/cuda/add.cu
run 0 '2 rows' --markdown "$page" kernels/cuda/add.cu
holds '| kernels/cuda/add.cu | sm_90a | 1 | 48 | 64 | 0 | 0 |'
holds '| kernels/cuda/add_sm90.cu | sm_90a | 1 | 168 | 64 | 0 | 0 |'
holds '3 rows, 0 spill'
run 0 '' --check "$page"

# A file that the page does not have, one that is gone, one that spills.
echo '// 30 0' > kernels/cuda/copy.cu
run 1 'no row for kernels/cuda/copy.cu on sm_90a' --check "$page"
rm kernels/cuda/copy.cu
mv kernels/cuda/add_sm90.cu "$tree/away"
run 1 'kernels/cuda/add_sm90.cu on sm_90a is not in kernels/cuda' --check "$page"
mv "$tree/away" kernels/cuda/add_sm90.cu
echo '// 255 24' > kernels/cuda/add_sm90.cu
run 1 'spills: add_sm90_kernel (sm_90a): 24 bytes, 255 registers' --markdown "$page"
run 1 '1 kernels of kernels/cuda/add_sm90.cu spill on sm_90a, at most 24 bytes' --check "$page"
run 0 '' --check "$page" --max-spill 24
echo 'a page made in parts, and each fault found'
