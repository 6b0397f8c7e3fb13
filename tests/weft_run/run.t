# weft-run starts the ranks of one node: their variables, their logs, its mistakes.

needs: crypto

Ranks get torchrun's variables, and nothing but their own words is printed.

  $ OMP_NUM_THREADS=3 weft-run --nproc_per_node 2 --rdzv-id job7 bash -c 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE \
  > $MASTER_ADDR $TORCHELASTIC_RUN_ID $TORCHELASTIC_RESTART_COUNT ${#WEFT_JOB_SECRET} [$OMP_NUM_THREADS]"; test $MASTER_PORT -gt 1023' 2>&1 | sort
  0/2 0/2 0/1 127.0.0.1 job7 0 64 [3]
  1/2 1/2 0/1 127.0.0.1 job7 0 64 [3]

So they do for torchrun's and accelerate's other flags. What is passed over, or comes from a variable, is said.

  $ PET_MAX_RESTARTS=1 weft-run --nproc_per_node=2 --role=trainer --gpu_ids=3,5 --num_cpu_threads_per_process=2 -t 3 \
  >   bash -c 'echo "$ROLE_NAME $ROLE_RANK/$ROLE_WORLD_SIZE $TORCHELASTIC_USE_AGENT_STORE $CUDA_VISIBLE_DEVICES $OMP_NUM_THREADS"' 2>&1 | sort
  trainer 0/2 False 3,5 2
  trainer 1/2 False 3,5 2
  weft-run: --max-restarts 1, from PET_MAX_RESTARTS
  weft-run: --tee is passed over: …
  $ env -u OMP_NUM_THREADS weft-run --nproc_per_node 64 bash -c 'test $OMP_NUM_THREADS -ge 1'
  weft-run: OMP_NUM_THREADS is not set: [0-9]+ for each of 64 ranks on [0-9]+ cores (re)
  $ weft-run --nproc_per_node=2 --master_addr=localhost --master_port=12345 bash -c 'echo $MASTER_ADDR:$MASTER_PORT'
  localhost:12345
  localhost:12345

  $ touch file; weft-run --nproc_per_node=1 --log_dir file true
  weft-run: error: --log-dir: expected to create the folder file, got 'Not a directory'
  [1]

With --log_dir each rank writes a file for each start. A link that another user left in the place of a log is not followed.

  $ weft-run --nproc_per_node=2 --max_restarts=1 --log_dir logs bash -c 'echo rank $RANK >&2; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3' &> out && ! grep -x 'rank .' out
  $ grep . logs/*.restart_1.log
  logs/rank_0.restart_1.log:rank 0
  logs/rank_1.restart_1.log:rank 1
  $ mkdir shared; echo kept > outside; ln -s ../outside shared/rank_0.log; weft-run --nproc_per_node=1 --log_dir shared bash -c 'echo written'
  weft-run: error: … shared/rank_0.log: Too many levels of symbolic links…
  [1]
  $ cat outside
  kept
