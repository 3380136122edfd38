/* transforms.h - images for tests of transforms, and what transforms make of them. */
#ifndef LG_TEST_TRANSFORMS_H
#define LG_TEST_TRANSFORMS_H

#include "test.h"

typedef struct image {
        int64_t c, h, w;
} image;

static inline int64_t pixels(image n)
{
        return n.c * n.h * n.w;
}

/* Pixel i of all, of sizes that resize.py has, too: bytes, or floats in [0, 1]. */
static inline double pixel(lg_dtype dtype, int64_t i)
{
        double byte = (double)((37 * i + 11 * i * i / 7 + 90) % 256);
        return dtype == LG_U8 ? byte : dtype == LG_F32 ? (double)(float)(byte / 256) : byte / 256;
}

/* That many images one after the other, and their numbers as y. */
static inline lg_dataset *images(lg_ctx *c, lg_dtype dtype, image n, int64_t count)
{
        const int64_t all = count * pixels(n);
        double *v = calloc((size_t)all + 1, sizeof *v);
        for (int64_t i = 0; i < all; i++)
                v[i] = pixel(dtype, i);
        lg_tensor *x = lg_from(c, v, LG_SHAPE(count, n.c, n.h, n.w), .dtype = dtype, .device = lg_cpu());
        lg_tensor *y = lg_arange(c, 0, (double)count, 1, .dtype = LG_I64, .device = lg_cpu());
        free(v);
        lg_dataset *d = lg_dataset_tensors(c, x, y);
        assert_ok(c);
        return d;
}

/* The first field of sample i; returns how many numbers it has. */
static inline int64_t sample(lg_ctx *c, lg_dataset *d, int64_t i, double *out, int64_t room)
{
        lg_scope scope = lg_scope_begin(c);
        lg_batch b = {.x = NULL};
        if (!lg_dataset_get(d, i, &b))
                fail_msg("sample %lld: %s", (long long)i, lg_error(c));
        int64_t n = read_all(b.x, out, room);
        lg_scope_end(c, scope);
        return n;
}

/* A chain of everything that is random, from bytes to floats of another size. Its parts are the caller's to free. */
#define PARTS 11
static inline lg_transform *chain_of_all(lg_ctx *c, lg_transform *parts[PARTS + 1])
{
        int n = 0;
        parts[n++] = lg_transform_random_crop(c, 14, 10, .padding = 3, .mode = LG_PAD_REFLECT);
        parts[n++] = lg_transform_random_horizontal_flip(c);
        parts[n++] = lg_transform_random_rotation(c, 20);
        parts[n++] = lg_transform_resize(c, 9, 17);
        parts[n++] = lg_transform_color_jitter(c, .brightness = 0.3, .contrast = 0.3);
        parts[n++] = lg_transform_random_vertical_flip(c);
        parts[n++] = lg_transform_to_float(c);
        parts[n++] = lg_transform_random_affine(c, .degrees = 5, .shear = 3);
        parts[n++] = lg_transform_random_erasing(c, .random = true);
        parts[n++] = lg_transform_center_crop(c, 8, 20);
        parts[n++] = lg_transform_normalize(c, LG_NUMBERS(0.5, 0.4, 0.3), LG_NUMBERS(0.2));
        parts[n] = LG_END;
        return lg_transforms_list(c, parts);
}

static inline lg_transform *everything(lg_ctx *c)
{
        lg_transform *parts[PARTS + 1];
        return chain_of_all(c, parts);
}

#define DRAWS 24
static inline bool note_draws(const lg_transform_call *call, void *user)
{
        (void)user;
        for (int i = 0; i < DRAWS; i++)
                ((double *)call->to)[i] = lg_rng_uniform(call->rng);
        return true;
}

/* The uniform numbers that a transform of sample i draws, in place of the sample. */
static inline lg_dataset *draws_of(lg_ctx *c, lg_dataset *d)
{
        return lg_dataset_transform(
                d, lg_transform_new(c, note_draws, NULL, .shape = LG_SHAPE(DRAWS), .dtype = LG_F64, .random = true));
}

#endif
