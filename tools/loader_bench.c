/* loader_bench.c - measures the images per second that a loader makes, for tools/loader_torch.py.
 *
 * loader_bench WORKERS [SECONDS]: 60,000 images of 28 by 28 bytes, shuffled, in batches of 128, with a random crop with
 * padding 4, a random horizontal flip, and normalisation in f32. Prints the speed of the fastest epoch.
 */
#include <grad.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { IMAGES = 60000, SIDE = 28, BATCH = 128 };

static double now(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lg_dataset *images(lg_ctx *c)
{
        lg_tensor *x = lg_randint(c, 0, 256, LG_SHAPE(IMAGES, 1, SIDE, SIDE), .device = lg_cpu());
        lg_tensor *y = lg_randint(c, 0, 10, LG_SHAPE(IMAGES), .device = lg_cpu());
        lg_transform *t = lg_transforms(c, lg_transform_random_crop(c, SIDE, SIDE, .padding = 4),
                                        lg_transform_random_horizontal_flip(c),
                                        lg_transform_normalize(c, LG_NUMBERS(0.286), LG_NUMBERS(0.353)));
        return lg_dataset_transform(lg_dataset_tensors(c, lg_cast(x, LG_U8), y), t);
}

int main(int argc, char **argv)
{
        const int workers = argc > 1 ? atoi(argv[1]) : 0;
        const double seconds = argc > 2 ? atof(argv[2]) : 2;
        lg_ctx *c = lg_open();
        lg_loader *loader = lg_loader_open(c, images(c), BATCH, .shuffle = true, .workers = workers, .seed = 1);
        double best = 0;
        for (double end = now() + seconds; !lg_error(c) && now() < end;) {
                int64_t count = 0;
                const double begin = now();
                lg_each_batch(b, loader)
                {
                        count += lg_size_of(b.x, 0);
                }
                const double speed = (double)count / (now() - begin);
                best = speed > best ? speed : best;
        }
        if (lg_error(c))
                fprintf(stderr, "%s\n", lg_error(c));
        else
                printf("%.0f\n", best);
        const bool failed = lg_error(c) != NULL;
        lg_close(c);
        return failed;
}
