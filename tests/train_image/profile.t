# --profile: a trace and a table of some steps.

  $ train() { train_image --data random:96x16x16x3 --model resnet8 --batch-size 16 --epochs 2 --seed 3 --overwrite --out run "$@"; }
  $ train --device cpu --workers 1 --profile trace.json --profile-steps 1:11 > log 2>&1; grep -o 'profiled .*' log
  profiled steps 1 to 10: wrote trace.json and trace.txt

The table is in a file, and at the end of the output.

  $ grep -o 'conv2d backward *conv2d_backward_weight\|main: step *10 ' trace.txt
  conv2d backward              conv2d_backward_weight
  main: step                                                        10 
  $ tail -n "$(wc -l < trace.txt)" log | diff - trace.txt

The trace has spans of the step, its parts, ops, kernels and memory, on tracks of threads and devices.

  $ jq -r '.traceEvents[] | select(.ph != "M") | .name' trace.json | sort -u > names
  $ for name in step forward backward optimizer 'next batch' 'assemble images' conv2d 'conv2d backward' conv2d_statistics sgd_step memory; do grep -qx "$name" names || echo "no $name"; done
  $ jq -r '.traceEvents[] | select(.ph == "M") | .args.name' trace.json | sort -u | grep -x 'threads\|cpu\|main\|loader 0\|kernels of main'
  cpu
  kernels of main
  loader 0
  main
  threads

tools/trace_svg draws each step.

  $ for step in 0 1 2 3 4 5 6 7 8 9; do
  >   trace_svg trace.json $step.svg --step $step > out || echo $?
  >   for text in '<svg ' 'One training step: ' 'cpu memory' 'conv2d backward: ' '</svg>'; do grep -q "$text" $step.svg || echo "step $step: no $text"; done
  > done

The loader is ahead and rests for some of the steps.

  $ grep -l 'loader 0' ?.svg > busy; [ -s busy ]
  $ trace_svg trace.json step.svg --step 10
  trace_svg: --step 10: the trace has 10 steps
  [1]
  $ trace_svg trace.txt step.svg
  trace_svg: trace.txt is no trace: expected JSON with traceEvents
  [1]

A profile leaves the training as it is.

  $ train --export plain.safetensors > log 2>&1; train --export profiled.safetensors --profile t.json > log 2>&1; same plain.safetensors profiled.safetensors

Runs that end early.

  $ train --profile t.json --profile-steps 1:100 --max-steps 3 2>&1 | grep profiled
  … rank 0: profiled steps 1 to 2: wrote t.json and t.txt
  $ rm t.json; train --profile t.json --profile-steps 50:60 2>&1 | grep profiled; ls t.json
  … rank 0: nothing is profiled: --profile-steps begins at 50, this process made 12 steps
  ls: cannot access 't.json': No such file or directory
  [2]

Killed at any moment: the trace is absent or whole.

  $ for delay in 0.10 0.16 0.22 0.28 0.34 0.40 0.46 0.52 0.58 0.64 0.70 0.76; do
  >   rm -f t.json; timeout --foreground --signal=KILL $delay train_image --data random:96x16x16x3 --model resnet8 --batch-size 16 --epochs 2 --overwrite --out run --profile-steps 0:2 --profile t.json > log 2>&1
  >   [ ! -e t.json ] || jq -se 'first.traceEvents | length > 0' t.json > checked || echo torn
  > done 2> killed

A signal that asks the program to stop gives it the time to write.

  $ (exec train_image --data random:96x16x16x3 --model resnet8 --batch-size 16 --epochs 100000 --overwrite --out run --profile-steps 0:1000000 --profile t.json) > stop.log 2>&1 & run=$!
  $ until_true grep -q "'epoch 1/'" stop.log; kill -TERM $run; wait $run
  [75]
  $ grep -o 'stopped by SIGTERM' stop.log; jq -se 'first.traceEvents | length > 0' t.json > checked
  stopped by SIGTERM

Wrong options.

  $ for steps in 5 5:5 8:5 -1:2 a:b 1:2:3 ''; do train --profile-steps "$steps" 2>&1 | tail -n 1; echo ${PIPESTATUS[0]}; done
  train_image: error: --profile-steps: expected A:B with 0 <= A < B, such as 5:8, got '5' (train_image --help lists the flags)
  2
  train_image: error: --profile-steps: expected A:B with 0 <= A < B, such as 5:8, got '5:5' (train_image --help lists the flags)
  2
  train_image: error: --profile-steps: expected A:B with 0 <= A < B, such as 5:8, got '8:5' (train_image --help lists the flags)
  2
  train_image: error: --profile-steps: expected A:B with 0 <= A < B, such as 5:8, got '-1:2' (train_image --help lists the flags)
  2
  train_image: error: --profile-steps: expected A:B with 0 <= A < B, such as 5:8, got 'a:b' (train_image --help lists the flags)
  2
  train_image: error: --profile-steps: expected A:B with 0 <= A < B, such as 5:8, got '1:2:3' (train_image --help lists the flags)
  2
  train_image: error: --profile-steps: expected A:B with 0 <= A < B, such as 5:8, got '' (train_image --help lists the flags)
  2
  $ train --profile /no/such/folder/t.json 2>&1 | tail -n 1
  train_image: error: profile: expected an existing folder for /no/such/folder/t.json, got none at /no/such/folder
  [1]
  $ train --profile t.txt 2>&1 | tail -n 1
  train_image: error: --profile: expected FILE.json, got 't.txt': FILE.txt is where the table goes (train_image --help lists the flags)
  [2]
