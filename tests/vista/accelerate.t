# finetune below accelerate's flags, without a launcher and with weft-run in accelerate's place.

needs: utf8proc ranks yaml

  $ mkdir data; for part in train dev; do
  >   (printf 'sentence\tlabel\n'; for i in 0 1 2 3 4 5 6 7; do printf "a good film $i\t1\na bad film $i\t0\n"; done) > data/$part.tsv
  > done
  $ printf 'distributed_type: MULTI_GPU\nnum_machines: 2\nmixed_precision: bf16\n' > multi_config.yaml
  $ flags='--data data --model bert_tiny --vocab-size 100 --epochs 1 --batch-size 4'
  $ export WEFT_JOB_SECRET=known-to-two-ranks; said() { grep -hoE '^ranks   2|weights random, bf16|\{.eval_loss.' first second | sort; ls test-trainer/checkpoint-2/*.safetensors; }

Two machines of one rank each. The precision is the file's; one of them prints the numbers.

  $ place="--config_file multi_config.yaml --main_process_ip localhost --num_processes 2"; port=$(free_port)
  $ finetune $place --main_process_port $port --machine_rank 1 $flags &> second & finetune $place --main_process_port $port --machine_rank 0 $flags &> first; wait $!
  $ said
  ranks   2
  weights random, bf16
  {'eval_loss'
  test-trainer/checkpoint-2/model.safetensors
  $ rm -r test-trainer; port=$(free_port); place="$place --rdzv_backend static"
  $ weft-run $place --main_process_port $port --machine_rank 1 finetune $flags &> second & weft-run $place --main_process_port $port --machine_rank 0 finetune $flags &> first; wait $!
  $ said
  ranks   2
  weights random, bf16
  {'eval_loss'
  test-trainer/checkpoint-2/model.safetensors

A dry run does not wait for the other machine.

  $ timeout --foreground 60 finetune --dry-run --main_process_ip 192.0.2.1 --main_process_port 1234 --num_processes 2 --machine_rank 1 $flags | grep -E '^ranks|^dry run'
  ranks   2, of which this is machine 1; the steps below are those of one alone
  dry run: would train …

What is wrong is said in one line.

  $ finetune --num_processes 2 --machine_rank 0 $flags
  finetune: error: --main-process-ip: expected the host of machine 0 beside --num-processes (finetune --help lists the flags)
  [2]
  $ printf 'num_machines: 2\nmixed_precison: bf16\n' > bad.yaml; finetune --config_file bad.yaml $flags
  finetune: error: bad.yaml:2: unknown key 'mixed_precison'. Did you mean 'mixed_precision'? (finetune --help lists the flags)
  [2]
  $ echo 'mixed_precision: fp16' > half.yaml; finetune --config_file half.yaml $flags
  finetune: error: mixed_precision: expected no or bf16, got 'fp16' (finetune --help lists the flags)
  [2]
