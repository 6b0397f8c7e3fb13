# Kept features are computed anew for other images in a file of the same name.

needs: jpeg

  $ images() { rm -rf images images.packed; for part in train val; do for class in ants bees; do mkdir -p images/$part/$class; for i in 0 1 2 3; do cp "$WEFT"/tests/golden/images/$1.jpg images/$part/$class/$i.jpg; done; done; done; pack --data_root images --dset_type packed --out images.packed > log 2>&1; }
  $ probe() { linear_probe --data packed:images.packed --model vit_tiny4 --workers 1 --precision f32 -b 4 -e 1 --phases probe --overwrite --cache-features kept.safetensors --out run 2>&1 | grep '^features'; }
  $ images baseline; probe; probe
  features kept.safetensors: computed
  features kept.safetensors: read, 8 + 8 images
  $ images grey; probe
  features kept.safetensors: recomputed, because these changed since they were stored: the images
