#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tools/compare ($1) on two pretended programs: the better variant counts, ratios point the right way, goals are
# judged, rows measured in pieces end in one table, inherited threading variables are dropped, and errors are told.
set -euo pipefail
compare=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

pretend() {  # pretend NAME ROWS: a program that knows these lines `case value unit`
  cat > "$folder/$1" <<EOF
#!/bin/bash
echo "\$0 OMP_NUM_THREADS=\$OMP_NUM_THREADS OPENBLAS_NUM_THREADS=\${OPENBLAS_NUM_THREADS-dropped} \$*" >> $folder/log
rows='$2'
filter=.
while [[ \$# -gt 0 ]]; do
  case \$1 in
    --list) awk '{print \$1 "\t" \$3}' <<< "\$rows"; exit;;
    --filter) filter=\${2//\\\\/}; shift;;
  esac
  shift
done
awk -v f="\$filter" '\$1 ~ f {print \$1 "\t" \$2 "\t" \$3; found = 1} END {exit !found}' <<< "\$rows"
EOF
  chmod +x "$folder/$1"
}
run() {  # run ARGUMENTS…: status and output in $status, $output
  status=0
  output=$(OPENBLAS_NUM_THREADS=7 OMP_NUM_THREADS=9 "$compare" libtorch --programs "$folder/ours" "$folder/theirs" \
           --build "$folder/build" --threads 2 "$@" 2>&1) || status=$?
}
expect() {  # expect STATUS TEXT: of the last run
  if [[ $status -ne $1 || $output != *"$2"* ]]; then
    echo "expected status $1 and '$2', got $status and: $output"
    exit 1
  fi
}

pretend ours 'resnet18_train_f32 100 images/s
resnet18_train_bf16 150 images/s
matmul_1024_f32 400 GFLOP/s
add_16 200 ns
sgd_step 10 ms
ours_alone 5 ms
startup 30 ms'
pretend theirs 'resnet18_train_f32 80 images/s
resnet18_train_f32@channels_last 90 images/s
resnet18_train_bf16 200 images/s
matmul_1024_f32 401 GFLOP/s
add_16 290 ns
sgd_step 20 ms
startup 60 ms'

run --rounds 2 --filter 'resnet18|matmul'
expect 0 '| resnet18_train_f32 | images/s | 100 | 90 (channels_last) | 1.11 | 1.0 | MEETS |'
expect 0 '| resnet18_train_bf16 | images/s | 150 | 200 | 0.75 | 1.0 | SHORT |'
expect 0 '| matmul_1024_f32 | GFLOP/s | 400 | 401 | 1.00 | 1.0 | SHORT |'
expect 0 '| resnet18_train bf16 : f32 (both weft) | images/s | 150 | 100 | 1.50 | 1.4 | MEETS |'
expect 0 'Geometric means: all cases (3) 0.94, whole networks (2) 0.91.'
# In turn, with the threads that were asked for and none of the caller's variables.
calls=$(grep -v -e --list "$folder/log" | grep matmul | sed "s|^$folder/||; s| --.*||")
[[ $calls == "$(printf '%s OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=dropped\n' ours theirs ours theirs)" ]] ||
  { echo "expected ours and theirs in turn, got: $calls"; exit 1; }

run --rounds 1 --filter 'add|step|alone|startup' --out "$folder/results/table.md"
expect 0 '| add_16 | ns | 200 | 290 | 1.45 | 1.5 | SHORT |'
expect 0 '| sgd_step | ms | 10 | 20 | 2.00 | 1.5 | MEETS |'
expect 0 '| ours_alone | ms | 5 | no such case | | | |'
[[ $output != *resnet18* ]] || { echo "expected the rows of this run alone, got: $output"; exit 1; }
# The file has the rows of both runs, in the order of the list.
names=$(grep -o '^| [a-z0-9_]* ' "$folder/results/table.md" | tr -d '| ' | paste -sd ' ')
[[ $names == "case resnet18_train_f32 resnet18_train_bf16 matmul_1024_f32 add_16 sgd_step ours_alone startup resnet18_train" ]] ||
  { echo "expected all rows in order, got: $names"; exit 1; }
grep -q "$(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')" "$folder/results/table.md"
grep -q 'medians of 1 to 2 processes each, in turn, of 5 repetitions each' "$folder/results/table.md"
# A torch.py in the working folder, where anybody may have left it, is not loaded.
mkdir "$folder/planted"
echo "__version__ = open('ran', 'w')" > "$folder/planted/torch.py"
(cd "$folder/planted" && "$compare" pytorch --programs "$folder/ours" "$folder/theirs" --build "$folder/build" --threads 1 --rounds 1 --filter add --out table.md) \
  > /dev/null 2>&1 || true
[[ -e $folder/planted/ran ]] && { echo "torch.py of the working folder was loaded"; exit 1; }

run --report --chart "$folder/results/chart.svg"
for shown in '>resnet18_train_bf16<' '>0.75<' '>2.00<' '</svg>'; do grep -qF "$shown" "$folder/results/chart.svg"; done
expect 0 '| startup | ms | 30 | 60 | 2.00 | 1.0 | MEETS |'
expect 0 '| resnet18_train_f32 |'

run --filter no_such_case
expect 1 "error: no case matches 'no_such_case'"
run --filter '['
expect 2 "--filter: '[' is no regular expression"
run --rounds 0
expect 2 "--rounds, --repetitions and --threads: expected at least 1"
run --suite gpu
expect 2 "libtorch has the suite cpu alone: use"
pretend theirs 'add_16 290 us'
run --filter add_16
expect 1 "error: add_16 is in ns here and in us there"
# A peer that cannot compile a network is compared without.
printf '#!/bin/bash\nif [[ $* == *--list* ]]; then printf "resnet18_train_f32\\timages/s\\nresnet18_train_f32@compiled\\timages/s\\n"; elif [[ $* == *compiled* ]]; then exit 3; else printf "resnet18_train_f32\\t50\\n"; fi\n' > "$folder/theirs"
run --filter resnet18_train_f32
expect 0 'resnet18_train_f32@compiled: left out'
expect 0 '| resnet18_train_f32 | images/s | 100 | 50 | 2.00 | 1.0 | MEETS |'
printf '#!/bin/bash\n[[ $* == *--list* ]] && printf "add_16\\tns\\n" && exit\necho broken >&2; exit 3\n' > "$folder/theirs"
run --filter add_16
expect 1 "ended with status 3: broken"
