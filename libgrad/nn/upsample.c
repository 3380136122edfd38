/* upsample.c - Upsample: lg_interpolate() as a module. */
#include "nn.h"

#define SIDES 3

/* The options, with copies of their lists, to which they point while the module runs. */
typedef struct upsample {
        lg_interpolate_options o;
        int64_t size[SIDES];
        double scales[SIDES];
} upsample;

static lg_tensor *forward_upsample(lg_module *m, lg_list inputs, void *user)
{
        const upsample *u = user;
        lg_interpolate_options o = u->o;
        lg_tensor *x = lg__module_input(m, inputs);
        o.size.items = u->size;
        o.scales.items = u->scales;
        return x ? lg_interpolate_with(x, &o) : NULL;
}

lg_module *lg_nn_upsample_with(lg_ctx *c, const lg_interpolate_options *options)
{
        upsample u = {.size = {0}};
        if (!lg__take(c, "lg_nn_upsample", options, &u.o, sizeof u.o) ||
            !lg__list_ok(c, "lg_nn_upsample", u.o.size.count, u.o.size.items) ||
            !lg__list_ok(c, "lg_nn_upsample", u.o.scales.count, u.o.scales.items))
                return NULL;
        if ((u.o.size.count != 0) + (u.o.scale != 0) + (u.o.scales.count != 0) != 1)
                return lg__fail(c, LG_ERR_ARGUMENT, "lg_nn_upsample: exactly one of size, scale and scales is given");
        if (u.o.size.count > SIDES || u.o.scales.count > SIDES)
                return lg__fail(c, LG_ERR_ARGUMENT,
                                "lg_nn_upsample: %lld sizes or scales, but images have up to %d sides",
                                (long long)(u.o.size.count + u.o.scales.count), SIDES);
        for (int64_t i = 0; i < u.o.size.count; i++)
                u.size[i] = u.o.size.items[i];
        for (int64_t i = 0; i < u.o.scales.count; i++)
                u.scales[i] = u.o.scales.items[i];
        u.o.size.items = NULL;
        u.o.scales.items = NULL;
        return lg__module_with(c, "Upsample", forward_upsample, &u, sizeof u);
}
