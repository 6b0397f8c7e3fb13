# tools/compare judges two programs

`pretend NAME ROWS` writes a program that knows these lines `case value unit`, and logs how it is started.

  $ pretend() {
  >   printf '%s\n' "$2" > $1.rows; cat > $1 <<'END'
  > #!/bin/bash
  > here=$(dirname "$0") filter=.
  > echo "${0##*/} OMP_NUM_THREADS=$OMP_NUM_THREADS OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS-dropped} $*" >> "$here/log"
  > while [[ $# -gt 0 ]]; do
  >   case $1 in --list) awk '{print $1 "\t" $3}' "$0.rows"; exit ;; --filter) filter=${2//\\/}; shift ;; esac
  >   shift
  > done
  > awk -v f="$filter" '$1 ~ f {print $1 "\t" $2 "\t" $3; found = 1} END {exit !found}' "$0.rows"
  > END
  >   chmod +x $1
  > }
  $ pretend ours "$(printf '%s\n' 'resnet18_train_f32 100 images/s' 'resnet18_train_bf16 150 images/s' 'matmul_1024_f32 400 GFLOP/s' 'add_16 200 ns' \
  >   'sgd_step 10 ms' 'ours_alone 5 ms' 'startup 30 ms')"
  $ pretend theirs "$(printf '%s\n' 'resnet18_train_f32 80 images/s' 'resnet18_train_f32@channels_last 90 images/s' 'resnet18_train_bf16 200 images/s' \
  >   'matmul_1024_f32 401 GFLOP/s' 'add_16 290 ns' 'sgd_step 20 ms' 'startup 60 ms')"
  $ export OPENBLAS_NUM_THREADS=7 OMP_NUM_THREADS=9
  $ run() { compare libtorch --programs ./ours ./theirs --build build --threads 2 "$@"; }

The better variant counts, ratios point the right way, goals are judged.

  $ run --rounds 2 --filter 'resnet18|matmul' > out 2>&1; grep -E '^\| [rm]|Geometric' out
  | resnet18_train_f32 | images/s | 100 | 90 (channels_last) | 1.11 | 1.0 | MEETS |
  | resnet18_train_bf16 | images/s | 150 | 200 | 0.75 | 1.0 | SHORT |
  | matmul_1024_f32 | GFLOP/s | 400 | 401 | 1.00 | 1.0 | SHORT |
  | resnet18_train bf16 : f32 (both weft) | images/s | 150 | 100 | 1.50 | 1.4 | MEETS |
  Geometric means: all cases (3) 0.94, whole networks (2) 0.91.

They are started in turn, with the threads that were asked for and none of the caller's variables.

  $ grep -v -e --list log | grep matmul | sed 's/ --.*//'
  ours OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=dropped
  theirs OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=dropped
  ours OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=dropped
  theirs OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=dropped

Another run adds its rows to the file of results.

  $ run --rounds 1 --filter 'add|step|alone|startup' --out results/table.md > out 2>&1; grep '^| [a-z]' out
  | case | unit | weft | libtorch | ratio | goal | |
  | add_16 | ns | 200 | 290 | 1.45 | 1.5 | SHORT |
  | sgd_step | ms | 10 | 20 | 2.00 | 1.5 | MEETS |
  | ours_alone | ms | 5 | no such case | | | |
  | startup | ms | 30 | 60 | 2.00 | 1.0 | MEETS |
  $ grep -o '^| [a-z0-9_]* ' results/table.md | tr -d '| ' | paste -sd ' '
  case resnet18_train_f32 resnet18_train_bf16 matmul_1024_f32 add_16 sgd_step ours_alone startup resnet18_train
  $ grep -qF "$(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')" results/table.md && grep -c 'medians of 1 to 2 processes each, in turn, of 5 repetitions each' results/table.md
  1
  $ run --report --chart results/chart.svg > out 2>&1; grep -E '^\| (startup|resnet18_train_f32) ' out
  | resnet18_train_f32 | images/s | 100 | 90 (channels_last) | 1.11 | 1.0 | MEETS |
  | startup | ms | 30 | 60 | 2.00 | 1.0 | MEETS |
  $ grep -oE '>resnet18_train_bf16<|>0\.75<|>2\.00<|</svg>' results/chart.svg | sort -u
  </svg>
  >0.75<
  >2.00<
  >resnet18_train_bf16<

A torch.py in the working folder, where anybody may have left it, is not loaded.

  $ mkdir planted; echo "__version__ = open('ran', 'w')" > planted/torch.py
  $ (cd planted; compare pytorch --programs ../ours ../theirs --build ../build --threads 1 --rounds 1 --filter add --out table.md > log 2>&1); ls planted
  log
  torch.py

# Mistakes

  $ wrong() { fails run "$@" | tail -n 1; }
  $ wrong --filter no_such_case; wrong --filter '['; wrong --rounds 0; wrong --suite gpu
  error: no case matches 'no_such_case' [1]
  compare: error: --filter: '[' is no regular expression: … [2]
  compare: error: --rounds, --repetitions and --threads: expected at least 1 [2]
  compare: error: libtorch has the suite cpu alone: use `tools/compare pytorch --suite gpu` [2]
  $ pretend theirs 'add_16 290 us'; wrong --filter add_16
  error: add_16 is in ns here and in us there [1]

A peer that cannot compile a network is compared without; another error is told.

  $ printf '#!/bin/bash\nif [[ $* == *--list* ]]; then printf "resnet18_train_f32\\timages/s\\nresnet18_train_f32@compiled\\timages/s\\n"; elif [[ $* == *compiled* ]]; then exit 3; else printf "resnet18_train_f32\\t50\\n"; fi\n' > theirs
  $ run --filter resnet18_train_f32 2>&1 | grep resnet18
  resnet18_train_f32@compiled: left out: ./theirs --suite cpu --filter ^resnet18_train_f32@compiled$ --seconds 1 --repetitions 5 ended with status 3:
  resnet18_train_f32: 100 : 50 images/s, ratio 2.00
  | resnet18_train_f32 | images/s | 100 | 50 | 2.00 | 1.0 | MEETS |
  $ printf '#!/bin/bash\n[[ $* == *--list* ]] && printf "add_16\\tns\\n" && exit\necho broken >&2; exit 3\n' > theirs
  $ wrong --filter add_16
  add_16: ./theirs --suite cpu --filter ^add_16$ --seconds 1 --repetitions 5 ended with status 3: broken [1]
