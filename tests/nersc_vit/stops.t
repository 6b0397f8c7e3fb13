# A run that is stopped again and again, in the middle of its epochs, ends with the same losses bit for bit.

needs: hdf5 yaml

  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 41 > out; cd fields
  $ run='train_vit --device cpu --yaml_config ViT.yaml --local_batch_size 1 --num_iters 2000 --run_num'
  $ losses() { sed -n 's/.*Avg \(train\|val\) loss=/\1 /p' logs/base/1GPU/"$1"/out.log; }
  $ $run whole > out; losses whole | wc -l
  50

Each try has a quarter more time, since on a busy machine the start alone may take the first. The last one comes to the end.

  $ ended=75 tenths=1; while [[ $ended =~ 75|143 ]] && [ $tenths -lt 300 ]; do
  >   timeout --foreground --preserve-status -s TERM "$((tenths / 10)).$((tenths % 10))" $run parts --resume &>> said
  >   ended=$? tenths=$((tenths + tenths / 4 + 1))
  > done; echo $ended
  0
  $ grep -q 'continue with --resume' said
  $ diff <(losses whole) <(losses parts)

SIGINT ends a run, SIGTERM asks to submit it again, in short and long epochs alike.

  $ for signal in INT TERM; do for batch in 1 80; do
  >   name=$signal$batch; (exec train_vit --device cpu --yaml_config ViT.yaml --local_batch_size $batch --num_iters 1000000 --run_num $name) > $name.log 2>&1 & run=$!
  >   until_true grep -q "'Time taken for epoch'" $name.log; kill -$signal $run; wait $run; echo $? $(grep -c 'continue with --resume' $name.log); ls logs/base/1GPU/$name/checkpoint.safetensors
  > done; done
  0 1
  logs/base/1GPU/INT1/checkpoint.safetensors
  0 1
  logs/base/1GPU/INT80/checkpoint.safetensors
  75 1
  logs/base/1GPU/TERM1/checkpoint.safetensors
  75 1
  logs/base/1GPU/TERM80/checkpoint.safetensors
