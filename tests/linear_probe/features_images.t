# Kept features are computed anew for other images in a file of the same name.

needs: jpeg

  $ images() { rm -rf images images.packed; for part in train val; do for class in ants bees; do mkdir -p images/$part/$class; for i in 0 1 2 3; do cp "$WEFT"/tests/golden/images/$1.jpg images/$part/$class/$i.jpg; done; done; done; pack --data_root images --dset_type packed --out images.packed > log; }
  $ probe() { linear_probe --data packed:images.packed --model vit_tiny4 --workers 1 --precision f32 -b 4 -e 1 --phases probe --overwrite --cache-features kept.safetensors --out run 2>&1 | grep '^features'; }
  $ images baseline; probe; probe
  2026-11-30 02:28:32 rank 0: pack train  step 8/8  104885 images/s  elapsed 0:00  done
  2026-11-30 02:28:32 rank 0: pack val  step 8/8  135345 images/s  elapsed 0:00  done
  2026-11-30 02:28:33 rank 0: verify train  step 8/8  473793 images/s  elapsed 0:00  done
  2026-11-30 02:28:33 rank 0: verify val  step 8/8  967118 images/s  elapsed 0:00  done
  features kept.safetensors: computed
  features kept.safetensors: read, 8 + 8 images
  $ images grey; probe
  2026-11-30 02:28:35 rank 0: pack train  step 8/8  107051 images/s  elapsed 0:00  done
  2026-11-30 02:28:35 rank 0: pack val  step 8/8  137346 images/s  elapsed 0:00  done
  2026-11-30 02:28:35 rank 0: verify train  step 8/8  672948 images/s  elapsed 0:00  done
  2026-11-30 02:28:35 rank 0: verify val  step 8/8  1349300 images/s  elapsed 0:00  done
  features kept.safetensors: recomputed, because these changed since they were stored: the images
