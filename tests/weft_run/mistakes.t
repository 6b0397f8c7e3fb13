# What weft-run says of mistakes, and of the flight records of a job.

  $ fails weft-run --rdzv_backend etcd x
  weft-run: error: --rdzv-backend: expected c10d or static, got 'etcd'… [2]
  $ fails weft-run ./no-such-program
  weft-run: error: cannot start './no-such-program': No such file or directory [1]
  $ echo 'print(1)' > train.py; weft-run "$PWD"/train.py
  weft-run: error: cannot start 'FOLDER/train.py': Permission denied. A script of Python is started by python3 FOLDER/train.py
  [1]
  $ fails weft-run --num_processes 2 --nproc_per_node 3 true; fails weft-run --mixed_precision fp64 true
  weft-run: error: --num-processes 2: expected --nproc-per-node 2 beside it, got 3… [2]
  weft-run: error: --mixed-precision: expected no, bf16 or fp16, got 'fp64'… [2]
  $ fails weft-run --gpu_ids abc true; fails weft-run --gpu_ids 0,0 true
  weft-run: error: --gpu-ids: expected numbers such as 0,1 or all, got 'abc'… [2]
  weft-run: error: --gpu-ids: expected each GPU once, got '0,0'… [2]
  $ weft-run --help | grep -o -e '--rdzv_endpoint H:P'
  --rdzv_endpoint H:P

The records that a failed job leaves are explained.

  $ mkdir flight; printf "weft flight record\ngroup world\nmembers 0 1\nrank 0\nfailure \n  running  barrier #1 'start'  queued 2.0 s ago, runs for 2000.0 ms\n" > flight/rank_0.world.txt
  $ weft-run --explain flight
  group world of ranks 0 to 1:
    rank 1 left no file: killed, or stopped, or on another disk
    no two ranks differ in a call that all logs have
    where they are:
      rank 0: barrier #1 'start', running
  $ fails weft-run --explain flight ./train
  weft-run: error: --explain FOLDER: expected no other flag and no program… [2]
