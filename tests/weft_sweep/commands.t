# The commands of a sweep

  $ weft-sweep --help | grep -oE -e '--grid lr=1e-5,5e-5,1e-4 batch_size=16,32|--random|--slurm|\{run\}|not run again' | sort -u
  --grid lr=1e-5,5e-5,1e-4 batch_size=16,32
  --random
  --slurm
  not run again
  {run}

Values go where the command says: {name}, or a flag of this name. `{run}` is the folder of the run, for which Weft's programs have flags that are
known, and so are those with which they go on.

  $ dry() { weft-sweep --dry-run --out s "$@"; }
  $ dry --grid lr=0.1 -lr=3 seed=5 -- prog --out {run} s{seed}
  prog --out s/lr=0.1,-lr=3,seed=5 s5 --lr=0.1 -lr 3
  $ dry --grid lr=0.1 -- weft-run --nproc_per_node 2 ./bin/train_multi_gpu --config x
  weft-run --nproc_per_node 2 ./bin/train_multi_gpu --config x --root_dir=s/lr=0.1 --sweep_id=s --lr=0.1
  $ dry --grid lr=0.1 -- ddp_training
  ddp_training --output-dir=s/lr=0.1 --log-dir=s/lr=0.1 --lr=0.1
  $ for program in train_image train_gpt finetune 'train_image --overwrite' 'train_image --resume x'; do dry --grid lr=0.1 -- $program; done
  train_image --out=s/lr=0.1 --resume=auto --lr=0.1
  train_gpt --out=s/lr=0.1 --resume=auto --lr=0.1
  finetune --out=s/lr=0.1 --resume-from-checkpoint=auto --lr=0.1
  train_image --overwrite --out=s/lr=0.1 --lr=0.1
  train_image --resume x --out=s/lr=0.1 --lr=0.1
  $ dry --grid 'x={run},{y}' --grid y=1 -- prog --x={x} --out={run}
  prog '--x={run}' '--out=s/x=_run_,y=1~b9366f72' --y=1
  prog '--x={y}' '--out=s/x=_y_,y=1~6ab312b6' --y=1
  $ dry --bayes x=int:1..4 --trials 2 --metric m -- prog {run}
  prog 's/x=_x_~25ad6985' '--x={x}'
  $ ls

The seed chooses the points of a random search.

  $ random() { dry --random x=log:1e-3..1 n=int:1..9 --trials 5 --seed $1 -- prog {run}; }
  $ random 1 > one; wc -l < one; random 1 | cmp - one; random 2 | cmp -s - one
  5
  [1]

# Batch scripts

A line break in a path would begin a command of the script.

  $ slurm() { weft-sweep --slurm --grid x=1 "$@" -- prog {run}; }
  $ slurm --out $'s\ntouch evil\n'
  weft-sweep: error: --out: expected a path without control characters, which a batch script cannot name, got 'FOLDER/s\x0atouch evil\x0a/slurm-%A_%a.log' (weft-sweep --help lists the flags)
  [2]
  $ mkdir $'a\nb'; (cd $'a\nb'; slurm --out s)
  weft-sweep: error: the working folder: expected a path without control characters, which a batch script cannot name, got 'FOLDER/a\x0ab' (weft-sweep --help lists the flags)
  [2]
  $ slurm --out 'my "runs'
  wrote my "runs/sweep.sbatch: 1 points. Then
    sbatch 'my "runs/sweep.sbatch'
    weft-sweep --out 'my "runs' --rank
  $ grep -o '/my .*log" --open-mode' 'my "runs/sweep.sbatch'
  /my \"runs/slurm-%A_%a.log" --open-mode

# Mistakes

  $ fails weft-sweep; fails weft-sweep --grid x=1; fails weft-sweep -- prog; fails weft-sweep --grid x=1 --random y=2 -- prog
  weft-sweep: error: expected a sweep in sweep, got no sweep/sweep.json [1]
  weft-sweep: error: expected a program: weft-sweep … -- PROGRAM [its flags] (weft-sweep --help lists the flags) [2]
  weft-sweep: error: expected --grid, --random, --bayes or --sweep, which give the values of flags (weft-sweep --help lists the flags) [2]
  weft-sweep: error: expected one of --grid, --random and --bayes, got several (weft-sweep --help lists the flags) [2]
  $ fails weft-sweep --random x=1..2 -- prog {run}; fails weft-sweep --bayes x=1..2 --metric m -- prog {run}
  weft-sweep: error: --trials: expected the number of points of a search (weft-sweep --help lists the flags) [2]
  weft-sweep: error: --trials: expected the number of points of a search (weft-sweep --help lists the flags) [2]
  $ fails weft-sweep --bayes x=1..2 --trials 3 -- prog {run}; fails weft-sweep --grid x=1 --min-iter 3 -- prog {run}
  weft-sweep: error: --bayes: needs --metric, whose values it compares (weft-sweep --help lists the flags) [2]
  weft-sweep: error: --min-iter: needs --metric, whose values it compares (weft-sweep --help lists the flags) [2]
  $ fails weft-sweep --grid x=1 --eta 3 -- prog {run}; fails weft-sweep --grid x=1 --trials 3 -- prog
  weft-sweep: error: --eta: needs --min-iter (weft-sweep --help lists the flags) [2]
  weft-sweep: error: --trials: expected --random or --bayes, a grid has all points (weft-sweep --help lists the flags) [2]
  $ fails weft-sweep --grid x=1 --sweep s.yaml -- prog; fails weft-sweep --grid x=1 --sbatch --time=5 -- prog {run}
  weft-sweep: error: expected --sweep or --grid, --random, --bayes, got both (weft-sweep --help lists the flags) [2]
  weft-sweep: error: --sbatch: needs --slurm (weft-sweep --help lists the flags) [2]
  $ fails weft-sweep --grid x=1 --slurm --sbatch=hour --out s2 -- prog {run}; fails weft-sweep --grid x=1,2 --point 2 -- prog {run}
  weft-sweep: error: --sbatch: expected flags such as --time=60, got 'hour' (weft-sweep --help lists the flags) [2]
  weft-sweep: error: --point: expected a number below 2, got 2 (weft-sweep --help lists the flags) [2]
  $ fails weft-sweep --grid x=1 x=2 -- prog; fails weft-sweep --grid run=1 -- prog; fails weft-sweep --grid x=1 --goal low -- prog
  weft-sweep: error: x: expected each flag once, got it twice (weft-sweep --help lists the flags) [2]
  weft-sweep: error: run: expected another name, {run} is the folder of a run (weft-sweep --help lists the flags) [2]
  weft-sweep: error: --goal: unknown value 'low'. Known: min, max. (weft-sweep --help lists the flags) [2]
  $ fails weft-sweep --grid x=1 --out '' -- prog {run}
  weft-sweep: error: --out: expected a folder, got an empty name (weft-sweep --help lists the flags) [2]
  $ fails weft-sweep --grid x=1 -- prog; fails weft-sweep --grid x=1 --out s -- /no/such/program {run}
  weft-sweep: error: expected {run} in the command, which stands for the folder of a run: prog is not a program whose flag for it is known (weft-sweep --help lists the flags) [2]
  weft-sweep: error: cannot start /no/such/program: No such file or directory [1]
  $ fails weft-sweep --grid x=1 --out s -- prog {run}
  weft-sweep: error: s holds a sweep of another command (/no/such/program, {run}). Choose another --out [1]
  $ echo '[]' > s/sweep.json; weft-sweep --out s
  weft-sweep: error: s/sweep.json: expected a file of weft-sweep, got something else. Delete it to start over
  [1]
