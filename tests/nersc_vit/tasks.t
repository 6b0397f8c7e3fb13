# Slurm's tasks find each other by its variables.

needs: hdf5 yaml ranks

As `srun -n 2 bash -c "source export_DDP_vars.sh; train_vit …"` starts two tasks:

  $ make_fields --out fields --channels 4 --rows 16 --columns 32 --times 41 > out; scripts=$WEFT/apps/nersc_vit
  $ losses() { sed -n 's/.*Avg \(train\|val\) loss=//p' "$1"; }
  $ train_vit --device cpu --yaml_config fields/ViT.yaml --num_iters 5 --run_num one &> one && losses one | wc -l
  2
  $ export MASTER_ADDR=127.0.0.1 MASTER_PORT=$(free_port)
  $ task() { SLURM_PROCID=$1 SLURM_LOCALID=$1 SLURM_NTASKS=2 bash -c "source $scripts/export_DDP_vars.sh; exec train_vit --device cpu --yaml_config fields/ViT.yaml --num_iters 5 --run_num tasks"; }
  $ task 1 &> other & task 0 &> first && wait $!
  $ cat first other | grep -c 'DONE ---- rank [01]'
  2
  $ near 5e-6 <(losses first) <(losses one)

The batch scripts do, with an srun that starts two tasks on this machine.

  $ mkdir bin; cat > bin/srun <<'END'
  > #!/bin/bash
  > [[ $1 == -u ]] || exit 9
  > shift
  > for r in 1 0; do SLURM_PROCID=$r SLURM_LOCALID=$r SLURM_NTASKS=2 "$@" & done
  > wait
  > END
  $ printf '#!/bin/bash\necho localhost\n' > bin/hostname; chmod +x bin/*
  $ submit() { PATH=$PWD/bin:$PATH MASTER_PORT=$(free_port) TRAIN_VIT=train_vit WEFT_NERSC_VIT=$scripts YAML_CONFIG=$PWD/fields/ViT.yaml \
  >   "$scripts/$1" "${@:2}" --config=base --device=cpu --num_iters 5 --run_num script &> out && near 5e-6 <(losses out) <(losses one); }
  $ submit submit.sh
  $ submit submit_mp.sh --row_parallel_size=2
