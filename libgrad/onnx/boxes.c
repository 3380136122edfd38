/* boxes.c - ONNX's operators of boxes in images, which are read on the host. */
#include <math.h>
#include "import.h"

/* ---- selection of boxes ---- */

/* Sets v to the lowest and highest corner of a box: y or x of the one, of the other. */
static void corners_of(const float *box, bool by_centre, float v[4])
{
        for (int i = 0; i < 2; i++) {
                const float a = by_centre ? box[i] - box[2 + i] / 2 : fminf(box[i], box[2 + i]);
                v[i] = a;
                v[2 + i] = by_centre ? box[i] + box[2 + i] / 2 : fmaxf(box[i], box[2 + i]);
        }
}

/* Returns whether the intersection of two boxes is more than `most` of their union. */
static bool overlap(const float *p, const float *q, bool by_centre, float most)
{
        float a[4], b[4];
        corners_of(p, by_centre, a);
        corners_of(q, by_centre, b);
        const float h = fminf(a[2], b[2]) - fmaxf(a[0], b[0]), w = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
        const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
        return h > 0 && w > 0 && area_a > 0 && area_b > 0 && h * w / (area_a + area_b - h * w) > most;
}

/* The boxes that are selected: (image, class, box) each. */
typedef struct selection {
        int64_t images, classes, boxes; /* of the operands */
        int64_t (*items)[3];
        int64_t count, room;
} selection;

/* Selects boxes of one image and class in the descending order of their scores. */
static bool select_boxes(const lg__onnx_call *c, const float *boxes, const float *scores, const int64_t *order,
                         int64_t at, selection *s)
{
        const int64_t most = lg__onnx_in(c, 2) ? lg__onnx_whole(c, 2, 0) : 0, first = s->count;
        const float near = (float)lg__onnx_number(c, 3, 0), low = (float)lg__onnx_number(c, 4, -INFINITY);
        const bool by_centre = lg__onnx_int(c, "center_point_box", 0), all = !lg__onnx_in(c, 4);
        for (int64_t k = 0; k < s->boxes && s->count - first < most && lg__ok(c->ctx); k++) {
                const float score = scores[order[k]], *box = boxes + 4 * order[k];
                bool free = all ? !isnan(score) : score > low;
                for (int64_t i = first; free && i < s->count; i++)
                        free = !overlap(box, boxes + 4 * s->items[i][2], by_centre, near);
                if (free && !lg__grow(c->ctx, &s->items, s->count, &s->room, sizeof *s->items))
                        return false;
                if (free)
                        memcpy(s->items[s->count++], (int64_t[]){at / s->classes, at % s->classes, order[k]},
                               sizeof *s->items);
        }
        return lg__ok(c->ctx);
}

LG__ONNX(NonMaxSuppression)
{
        const lg_shape *b = &c->in[0]->at.shape, *s = &c->in[1]->at.shape;
        if (b->ndim != 3 || s->ndim != 3 || b->size[2] != 4 || b->size[0] != s->size[0] || b->size[1] != s->size[2])
                return lg__onnx_fail(c, LG_ERR_SHAPE, "boxes %s and scores %s", lg__tensor_text(c->in[0]).s,
                                     lg__tensor_text(c->in[1]).s);
        selection found = {.images = s->size[0], .classes = s->size[1], .boxes = s->size[2]};
        lg_tensor *boxes = lg__clone_values(c->in[0], lg_cpu(), LG_F32);
        lg_tensor *scores = boxes ? lg__clone_values(c->in[1], lg_cpu(), LG_F32) : NULL;
        lg_tensor *order = scores ? lg_argsort(scores, 2, .descending = true) : NULL;
        bool good = order != NULL;
        for (int64_t i = 0; i < found.images * found.classes && good && found.boxes; i++)
                good = select_boxes(c, (float *)lg__data(boxes) + i / found.classes * 4 * found.boxes,
                                    (float *)lg__data(scores) + i * found.boxes,
                                    (int64_t *)lg__data(order) + i * found.boxes, i, &found);
        lg_tensor *y = good ? lg__tensor_empty(c->ctx, lg_cpu(), LG_I64, LG_SHAPE(found.count, 3)) : NULL;
        if (y && found.count)
                memcpy(lg__data(y), found.items, (size_t)found.count * sizeof *found.items);
        lg__free(c->ctx, found.items, (size_t)found.room * sizeof *found.items);
        return y;
}

/* ---- means of regions ---- */

/* The elements that the results of a region of an image are computed from: bag b has those from offsets[b] on. */
typedef struct bags {
        int64_t height, width, out[2], count; /* count: of the elements of all bags */
        int64_t *index, *offsets;             /* index: rows of x (N H W, C); offsets NULL: elements are counted only */
        double *weights;
} bags;

/* One side of a region: its begin, the size of a bin, and how many points of each are read. */
typedef struct side {
        double begin, bin;
        int64_t points;
} side;

static bool take_side(const lg__onnx_call *c, const float *roi, int i, int64_t out, side *ret)
{
        const bool half = strcmp(lg__onnx_text(c, "coordinate_transformation_mode", "half_pixel"), "half_pixel") == 0 &&
                          c->opset >= 16;
        const double scale = lg__onnx_float(c, "spatial_scale", 1),
                     ratio = (double)lg__onnx_int(c, "sampling_ratio", 0);
        const double begin = roi[i] * scale - (half ? 0.5 : 0), end = roi[2 + i] * scale - (half ? 0.5 : 0);
        const double size = half ? end - begin : fmax(end - begin, 1);
        const double points = ratio > 0 ? ratio : ceil(size / (double)out);
        *ret = (side){.begin = begin, .bin = size / (double)out, .points = points > 0 ? (int64_t)fmin(points, 1e4) : 0};
        return (isfinite(begin) && isfinite(size) && points <= 1e4) ||
               lg__onnx_fail(c, LG_ERR_ARGUMENT, "a region from %g to %g", begin, end);
}

/* Sets the two elements of a side around place p, and their weights: 0 outside of the image. */
static void around(double p, int64_t size, int64_t at[2], double weights[2])
{
        const bool inside = p >= -1 && p <= (double)size;
        p = fmin(fmax(p, 0), (double)(size - 1));
        at[0] = (int64_t)p;
        at[1] = at[0] < size - 1 ? at[0] + 1 : at[0];
        weights[1] = inside ? p - (double)at[0] : 0;
        weights[0] = inside ? 1 - weights[1] : 0;
}

/* Adds the bags of one region of image n. */
static void add_region(bags *b, const side of[2], int64_t n, int64_t region, bool mean)
{
        const double part = mean ? 1 / fmax((double)(of[0].points * of[1].points), 1) : 1;
        if (!b->offsets) {
                b->count += b->out[0] * b->out[1] * of[0].points * of[1].points * 4;
                return;
        }
        for (int64_t bin = 0; bin < b->out[0] * b->out[1]; bin++) {
                b->offsets[region * b->out[0] * b->out[1] + bin] = b->count;
                for (int64_t k = 0; k < of[0].points * of[1].points; k++) {
                        const double iy = (double)(k / of[1].points) + 0.5, ix = (double)(k % of[1].points) + 0.5;
                        int64_t y[2], x[2];
                        double wy[2], wx[2];
                        around(of[0].begin + of[0].bin * ((double)(bin / b->out[1]) + iy / (double)of[0].points),
                               b->height, y, wy);
                        around(of[1].begin + of[1].bin * ((double)(bin % b->out[1]) + ix / (double)of[1].points),
                               b->width, x, wx);
                        for (int i = 0; i < 4; i++) {
                                b->index[b->count] = (n * b->height + y[i / 2]) * b->width + x[i % 2];
                                b->weights[b->count++] = wy[i / 2] * wx[i % 2] * part;
                        }
                }
        }
}

/* Adds the bags of all regions. */
static bool add_regions(const lg__onnx_call *c, const float *rois, const int64_t *images, bool mean, bags *b)
{
        const int64_t regions = c->in[1]->at.shape.size[0], most = c->in[0]->at.shape.size[0];
        b->count = 0;
        for (int64_t r = 0; r < regions; r++) {
                side of[2];
                if (images[r] < 0 || images[r] >= most)
                        return lg__onnx_fail(c, LG_ERR_ARGUMENT, "image %lld of %lld", (long long)images[r],
                                             (long long)most);
                if (!take_side(c, rois + 4 * r, 1, b->out[0], &of[0]) ||
                    !take_side(c, rois + 4 * r, 0, b->out[1], &of[1]))
                        return false;
                add_region(b, of, images[r], r, mean);
                if (b->count > INT32_MAX)
                        return lg__onnx_fail(c, LG_ERR_ARGUMENT, "more than 2^31 elements are read");
        }
        return true;
}

/* Returns the sums or maxima of all bags: (bags, C). */
static lg_tensor *reduced(const lg__onnx_call *c, lg_tensor *index, lg_tensor *offsets, lg_tensor *weights, bool mean)
{
        lg_tensor *x = c->in[0];
        const lg_shape *s = &x->at.shape;
        const lg_device device = x->storage->device->id;
        lg_tensor *rows = lg_reshape(lg_permute(x, LG_DIMS(0, 2, 3, 1)),
                                     LG_SHAPE(s->size[0] * s->size[2] * s->size[3], s->size[1]));
        index = lg_to(index, device);
        offsets = lg_to(offsets, device);
        weights = lg_cast(lg_to(weights, device), x->at.dtype);
        if (mean)
                return lg_embedding_bag(index, rows, .offsets = offsets, .mode = LG_BAG_SUM,
                                        .per_sample_weights = weights);
        rows = lg_mul(lg_index_select(rows, 0, index), lg_unsqueeze(weights, 1));
        index = rows ? lg_arange(c->ctx, 0, (double)rows->at.shape.size[0], 1, .dtype = LG_I64, .device = device)
                     : NULL;
        return rows ? lg_embedding_bag(index, rows, .offsets = offsets, .mode = LG_BAG_MAX) : NULL;
}

/* Gradients flow to the image alone. */
LG__ONNX(RoiAlign)
{
        const lg_shape *s = &c->in[0]->at.shape, *r = &c->in[1]->at.shape;
        const bool mean = strcmp(lg__onnx_text(c, "mode", "avg"), "max") != 0;
        bags b = {.height = s->ndim == 4 ? s->size[2] : 0,
                  .width = s->ndim == 4 ? s->size[3] : 0,
                  .out = {lg__onnx_int(c, "output_height", 1), lg__onnx_int(c, "output_width", 1)}};
        if (s->ndim != 4 || r->ndim != 2 || r->size[1] != 4 || c->in[2]->at.shape.ndim != 1 ||
            c->in[2]->at.shape.size[0] != r->size[0] || s->size[2] < 1 || s->size[3] < 1)
                return lg__onnx_fail(c, LG_ERR_SHAPE, "an image %s and regions %s", lg__tensor_text(c->in[0]).s,
                                     lg__tensor_text(c->in[1]).s);
        if (b.out[0] < 1 || b.out[1] < 1 || b.out[0] > INT16_MAX || b.out[1] > INT16_MAX)
                return lg__onnx_fail(c, LG_ERR_ARGUMENT, "a result of %lld x %lld", (long long)b.out[0],
                                     (long long)b.out[1]);
        lg_tensor *rois = lg__clone_values(c->in[1], lg_cpu(), LG_F32);
        lg_tensor *images = rois ? lg__clone_values(c->in[2], lg_cpu(), LG_I64) : NULL;
        if (!images || !add_regions(c, lg__data(rois), lg__data(images), mean, &b))
                return NULL;
        lg_tensor *index = lg__tensor_empty(c->ctx, lg_cpu(), LG_I64, LG_SHAPE(b.count));
        lg_tensor *weights = lg__tensor_empty(c->ctx, lg_cpu(), LG_F64, LG_SHAPE(b.count));
        lg_tensor *offsets = lg__tensor_empty(c->ctx, lg_cpu(), LG_I64, LG_SHAPE(r->size[0] * b.out[0] * b.out[1]));
        if (!index || !weights || !offsets)
                return NULL;
        b.index = lg__data(index);
        b.weights = lg__data(weights);
        b.offsets = lg__data(offsets);
        if (b.offsets && !add_regions(c, lg__data(rois), lg__data(images), mean, &b))
                return NULL;
        lg_tensor *y = reduced(c, index, offsets, weights, mean);
        y = y ? lg_reshape(y, LG_SHAPE(r->size[0], b.out[0], b.out[1], s->size[1])) : NULL;
        return y ? lg_permute(y, LG_DIMS(0, 3, 1, 2)) : NULL;
}
