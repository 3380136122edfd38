/* predict.c - classifies a picture by trained weights. */
#include <string.h>
#include "models.h"
#include "predict.h"
#include "report.h"
#include "saving.h"

#define SIDE 28

/* ---- weights ---- */

/* Returns the prefix of the names of a network's weights in a file, or NULL. The file of a run has one: that of the
 * averages if it has averages. */
static const char *prefix_in(lg_ctx *c, const char *path)
{
        static const char *const prefixes[] = {"average.average.model.", "model."};
        const char *found = NULL;
        lg_weights *w = lg_weights_open(c, path);
        for (int p = 0; p < 2 && !found; p++) {
                lg_weight weight;
                for (int64_t i = 0; !found && lg_weights_at(w, i, &weight); i++)
                        if (!strncmp(weight.name, prefixes[p], strlen(prefixes[p])))
                                found = prefixes[p];
        }
        lg_weights_close(w);
        return found;
}

/* Returns the network whose weights the file of --weights has, with these weights; NULL and an error if there is none.
 */
static lg_module *load(lg_ctx *c, const options *o)
{
        const char *prefix = prefix_in(c, o->weights);
        if (lg_error(c))
                return NULL;
        const char *model = saving_model_in(c, o->weights, prefix);
        if (!model)
                lg_set_error(c, LG_ERR_ARGUMENT, "--weights %s: it has the weights of none of %s", o->weights,
                             lg_model_names());
        else if (o->model && strcmp(o->model, model))
                lg_set_error(c, LG_ERR_ARGUMENT, "--weights %s: it has the weights of --model %s, not %s", o->weights,
                             model, o->model);
        if (lg_error(c))
                return NULL;
        lg_module *net = lg_model(c, model);
        lg_load(net, o->weights, .prefix = prefix, .cast = true);
        lg_train(net, false);
        return net;
}

/* ---- pictures ---- */

/* Reads a PNG file as (1, 1, 28, 28), f32 in [0, 1], resized if necessary. */
static lg_tensor *picture(lg_ctx *c, const char *path)
{
        lg_tensor *grey = lg_read_png(c, path, .channels = 1);
        const int64_t height = lg_size_of(grey, 1), width = lg_size_of(grey, 2);
        if (lg_error(c))
                return NULL;
        if (height != SIDE || width != SIDE)
                fprintf(stderr, "%s: %lld x %lld pixels, resized to %d x %d\n", path, (long long)width,
                        (long long)height, SIDE, SIDE);
        lg_transform *t = lg_transforms(c, lg_transform_resize(c, SIDE, SIDE), lg_transform_to_float(c));
        lg_dataset *one = lg_dataset_transform(lg_dataset_list(c, LG_LIST(lg_unsqueeze(grey, 0))), t);
        lg_batch b;
        return lg_dataset_get(one, 0, &b) ? lg_unsqueeze(b.x, 0) : NULL;
}

static bool print(FILE *f, lg_tensor *sorted, lg_tensor *classes)
{
        double p[REPORT_CLASSES];
        int64_t k[REPORT_CLASSES];
        if (!lg_read(sorted, p, LG_F64, sizeof p) || !lg_read(classes, k, LG_I64, sizeof k))
                return false;
        for (int i = 0; i < REPORT_CLASSES; i++)
                fprintf(f, "%-12s %.4f\n", report_names[k[i]], p[i]);
        return true;
}

bool predict(FILE *f, lg_ctx *c, const options *o)
{
        lg_device device = o->device ? lg_parse_device(c, o->device) : lg_try_cuda(c, 0);
        lg_module *net = load(c, o);
        lg_tensor *classes = NULL, *sorted = NULL;
        lg_module_to(net, device);
        lg_no_grad(c)
        {
                lg_tensor *scores = lg_forward(net, lg_to(picture(c, o->predict), device));
                sorted = lg_sort(lg_softmax(scores, 1), 1, .descending = true, .indices = &classes);
        }
        return !lg_error(c) && print(f, sorted, classes);
}
