"""dm-pix: 16 images over 8 devices, turned, blurred, recoloured and compared."""

import dm_pix
import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "dm-pix"


def run(mesh):
    images = jax.random.uniform(jax.random.key(0), (16, 24, 24, 3))
    images = jax.device_put(images, NamedSharding(mesh, P("x")))
    keys = jax.random.split(jax.random.key(1), 16)

    @jax.jit
    def augment(images):
        def one(key, image):
            flip, hue, crop, contrast = jax.random.split(key, 4)
            image = dm_pix.random_flip_left_right(flip, image)
            image = dm_pix.random_hue(hue, image, max_delta=0.2)
            image = dm_pix.random_contrast(contrast, image, lower=0.5, upper=1.5)
            image = dm_pix.rotate(image, 0.3, order=1, mode="nearest")
            return dm_pix.random_crop(crop, image, (16, 16, 3))

        return jax.vmap(one)(keys, images)

    @jax.jit
    def blur(images):
        return dm_pix.gaussian_blur(images, sigma=1.0, kernel_size=5)

    @jax.jit
    def compare(a, b):
        return dm_pix.ssim(a, b), dm_pix.psnr(a, b)

    blurred = blur(images)
    similarity, noise = compare(images, blurred)
    elastic = jax.jit(lambda i: dm_pix.elastic_deformation(jax.random.key(2), i, alpha=5.0, sigma=2.0))(images[3])
    return {"augmented": augment(images), "blurred": blurred, "ssim": similarity, "psnr": noise, "elastic": elastic}
