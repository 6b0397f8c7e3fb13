# A run that is stopped again and again, in the middle of its epochs, ends with the same losses bit for bit.

needs: hdf5 yaml

  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 41 > out; cd fields
  $ run='train_vit --device cpu --yaml_config ViT.yaml --local_batch_size 1 --num_iters 1000 --run_num'
  $ losses() { sed -n 's/.*Avg \(train\|val\) loss=/\1 /p' logs/base/1GPU/"$1"/out.log; }
  $ $run whole > out; losses whole | wc -l
  26

Each try has a quarter more time, since on a busy machine the start alone may take the first. The last one comes to the end.

  $ ended=75 tenths=3; while [[ $ended =~ 75|143 ]] && [ $tenths -lt 300 ]; do
  >   timeout --preserve-status -s TERM "$((tenths / 10)).$((tenths % 10))" $run parts --resume &>> said
  >   ended=$? tenths=$((tenths + tenths / 4 + 1))
  > done; echo $ended
  0
  $ grep -q 'continue with --resume' said
  $ diff <(losses whole) <(losses parts)
