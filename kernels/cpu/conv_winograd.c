/* conv_winograd.c - 3x3 convolution by Winograd's minimal filtering in f32: a tile of 4x4 outputs costs 36 products of
 * channels by outputs instead of 144, one of 2x2 costs 16 instead of 36. f16 and bf16 are widened when tiles and
 * kernels are transformed, and rounded when outputs are stored.
 *
 * With V = B^T d B for each input tile d and U = G w G^T for each kernel w, point i of the output tile is the product
 * of V_i (tiles, channels) and U_i (channels, outputs), and A^T (...) A transforms it back. The points of 4x4 tiles are
 * 0, +-5/8, +-3/2 and infinity, with an error of 1.4e-6 of the largest value; 0, +-1, +-2 would give 5.9e-6. Blocks of
 * tiles stay in the L2 cache from input to output. */
#include "conv.h"
#include "conv_winograd.h"

#define BLOCK_BYTES (512 * 1024)
#define LARGE_WEIGHTS ((int64_t)8 << 20) /* bytes of transformed weights above which they are made panel by panel */
#define MOST_BLOCK 98
#define MANY_TILES 256
#define AHEAD 3 /* prefetch distance of outputs, in tiles */

#define W(name) name##_4
#define SIDE 4
#define POINTS 6
#include "conv_winograd.inc"
#undef W
#undef SIDE
#undef POINTS
#define W(name) name##_2
#define SIDE 2
#define POINTS 4
#include "conv_winograd.inc"
#undef W
#undef SIDE
#undef POINTS

void lg_conv_take_tile(lg_dtype t, const void *const *from, int64_t first, int64_t end, ptrdiff_t ahead, float *to,
                       ptrdiff_t step)
{
        take_tile_4(t, from, first, end, ahead, to, step);
}

/* ---- a call ---- */

/* Arguments of a call. Tiles are counted over all rows of all images. */
typedef struct job {
        const lg_conv_args *a; /* as a forward convolution; of kind INPUT_GRAD if weights are rotated */
        bool ends;             /* the call has an epilogue */
        ptrdiff_t size;        /* bytes of an image element */
        int side, points;      /* outputs per side of a tile; points per tile */
        int64_t down, across, tiles, block;
        int64_t panels;
        ptrdiff_t row;                                    /* stride between transformed tiles: channels, padded */
        ptrdiff_t input_step, product_step, weight_step;  /* strides between the points of transformed arrays */
        int64_t input_count, product_count, weight_count; /* elements of a block of tiles, and of a panel of weights */
        const float *zeros;                               /* a pixel of zeros, for those outside the image */
        float *weights, *inputs, *scratch;                /* of all panels, of all tiles (or NULL), of each thread */
        int64_t scratch_count;
        int64_t start; /* number of the first tile in `inputs` */
} job;

static const void *pixel_at(const job *j, int64_t n, int64_t row, int64_t col)
{
        const lg_conv_geometry *at = &j->a->at;
        if (row < 0 || row >= at->in[0] || col < 0 || col >= at->in[1])
                return j->zeros;
        return (const char *)j->a->x + ((n * at->in[0] + row) * at->in[1] + col) * j->a->channels * j->size;
}

static void take_inputs(const job *j, int64_t first, int64_t count, float *to)
{
        const lg_conv_geometry *at = &j->a->at;
        const int side = j->side + 2;
        const ptrdiff_t ahead = j->side * at->in[1] * j->a->channels * j->size;
        const void *from[MOST_POINTS];
        for (int64_t t = first; t < first + count; t++, to += j->row) {
                const int64_t n = t / (j->down * j->across);
                const int64_t row = t / j->across % j->down * j->side - at->padding[0];
                const int64_t col = t % j->across * j->side - at->padding[1];
                for (int i = 0; i < side; i++)
                        for (int k = 0; k < side; k++)
                                from[i * side + k] = pixel_at(j, n, row + i, col + k);
                (j->side == 4 ? take_tile_4 : take_tile_2)(j->a->dtype, from, 0, j->a->channels, ahead, to,
                                                           j->input_step);
        }
}

/* Applies the epilogue to `count` pixels of a line (1 or 4) and stores `some` outputs of each, from a->out[at] on. */
LG_INLINE void put_pixels(const job *j, const lg_dtype t, ptrdiff_t at, int64_t output, int64_t some, const vec *from,
                          const int count)
{
        const int64_t outputs = j->a->outputs;
        lg_sums_f32 sum[4];
        LG_UNROLL
        for (int i = 0; i < count; i++)
                sum[i][0] = from[i];
        if (j->ends) {
                const lg_sums_ending_f32 end = lg_conv_ending_f32(j->a, at, outputs, output);
                lg_sums_end_f32(sum, &end, count, 1, some == LG_LANES_f32, lg_mask_first_f32(some));
        }
        LG_UNROLL
        for (int i = 0; i < count; i++)
                store_pixel(t, j->a->out, at + i * outputs, some, sum[i][0]);
}

/* Stores the pixels of a tile that are inside the image, from their vectors: outputs from number `output` on, the first
 * one to element `at` of a->out. */
LG_INLINE void put_tile_of(const job *j, const lg_dtype t, ptrdiff_t at, int64_t rows, int64_t cols, int64_t output,
                           const vec *from)
{
        enum { lanes = LG_LANES_f32 };
        const int64_t outputs = j->a->outputs, left = outputs - output;
        for (int64_t i = 0; i < rows; i++, from += j->side, at += j->a->at.out[1] * outputs)
                if (cols == 4 && left >= lanes)
                        put_pixels(j, t, at, output, lanes, from, 4);
                else
                        for (int64_t k = 0; k < cols; k++)
                                put_pixels(j, t, at + k * outputs, output, lg_least(left, lanes), from + k, 1);
}

static void put_tile(const job *j, ptrdiff_t at, int64_t rows, int64_t cols, int64_t output, const vec *from)
{
        if (j->a->dtype == LG_F32)
                put_tile_of(j, LG_F32, at, rows, cols, output, from);
        else if (j->a->dtype == LG_BF16)
                put_tile_of(j, LG_BF16, at, rows, cols, output, from);
        else
                put_tile_of(j, LG_F16, at, rows, cols, output, from);
}

/* Prefetches the outputs of a tile from element `at` on, and the residual that is added to them. */
static void prefetch_tile(const job *j, ptrdiff_t at)
{
        const lg_conv_args *a = j->a;
        const int64_t outputs = a->outputs, line = a->at.out[1] * outputs;
        for (int i = 0; i < j->side; i++)
                for (int k = 0; k < j->side; k++) {
                        const ptrdiff_t pixel = at + i * line + k * outputs;
                        lg_prefetch_to(a->out, pixel * j->size);
                        if (a->z)
                                lg_prefetch(a->z, pixel * (ptrdiff_t)sizeof(float));
                }
}

static void put_outputs(const job *j, int64_t first, int64_t count, int64_t panel, const float *from)
{
        enum { lanes = LG_LANES_f32 };
        const lg_conv_args *a = j->a;
        const int64_t left = a->outputs - panel * WIDTH;
        vec bias[LG_BLOCK_VECTORS] = {{0}}, out[16];
        for (int v = 0; v < LG_BLOCK_VECTORS && a->b && lanes * v < left; v++)
                bias[v] = lg_vec_load_some_f32((const float *)a->b + panel * WIDTH + lanes * v,
                                               lg_mask_first_f32(lg_least(left - lanes * v, lanes)));
        for (int64_t t = first; t < first + count; t++, from += WIDTH) {
                const int64_t n = t / (j->down * j->across);
                const int64_t row = t / j->across % j->down * j->side, col = t % j->across * j->side;
                const int64_t rows = lg_least(j->side, a->at.out[0] - row);
                const int64_t cols = lg_least(j->side, a->at.out[1] - col);
                const ptrdiff_t at = ((n * a->at.out[0] + row) * a->at.out[1] + col) * a->outputs;
                for (int v = 0; v < LG_BLOCK_VECTORS && lanes * v < left; v++) {
                        const int64_t output = panel * WIDTH + lanes * v;
                        prefetch_tile(j, at + output + AHEAD * j->side * a->outputs);
                        (j->side == 4 ? tile_of_4 : tile_of_2)(from + lanes * v, j->product_step, bias[v], out);
                        put_tile(j, at + output, rows, cols, output, out);
                }
        }
}

/* Loads `count` rows of `run` weights from element `first` of w on, with row stride `step`, transposed: one vector for
 * each column. */
static void load_columns(const job *j, int64_t first, int64_t step, int64_t count, int64_t run, vec *ret)
{
        enum { lanes = LG_LANES_f32 };
        float widened[lanes * lanes * 9];
        const float *w = (const float *)j->a->w + first;
        if (j->a->dtype != LG_F32) {
                for (int64_t i = 0; i < count; i++)
                        lg_load[LG_COMPUTE_F32][j->a->dtype](run, widened + i * run,
                                                             (const uint16_t *)j->a->w + first + i * step);
                w = widened;
                step = run;
        }
        for (int64_t k = 0; k < run; k += lanes)
                lg_vec_transpose_f32(w + k, step, (float *)(ret + k), lanes, count, lg_least(lanes, run - k));
}

/* Loads the kernels of channels [c, c + channels) for a vector of outputs, as vectors in the order (channel, tap). */
static void load_kernels(const job *j, int64_t c, int64_t channels, int64_t output, vec *ret)
{
        enum { lanes = LG_LANES_f32 };
        const lg_conv_args *a = j->a;
        const bool turned = a->kind == LG_CONV_INPUT_GRAD;
        const int64_t outputs = lg_least(lanes, a->outputs - output);
        if (!turned)
                load_columns(j, (output * a->channels + c) * 9, a->channels * 9, outputs, channels * 9, ret);
        for (int64_t i = 0; turned && i < channels; i++)
                load_columns(j, ((c + i) * a->outputs + output) * 9, 9, outputs, 9, ret + i * 9);
}

/* Transforms the weights of channels [first, end) for one panel of outputs. */
static void take_weights(const job *j, int64_t panel, int64_t first, int64_t end, float *to)
{
        enum { lanes = LG_LANES_f32 };
        const bool turned = j->a->kind == LG_CONV_INPUT_GRAD;
        vec kernels[lanes * 9], taps[9];
        for (int64_t v = 0; v < WIDTH && panel * WIDTH + v < j->a->outputs; v += lanes)
                for (int64_t c = first; c < end; c += lanes) {
                        const int64_t channels = lg_least(lanes, end - c);
                        load_kernels(j, c, channels, panel * WIDTH + v, kernels);
                        for (int64_t i = 0; i < channels; i++) {
                                for (int k = 0; k < 9; k++)
                                        taps[k] = kernels[i * 9 + (turned ? 8 - k : k)];
                                (j->side == 4 ? take_kernel_4 : take_kernel_2)(taps, to + (c + i) * WIDTH + v,
                                                                               j->weight_step);
                        }
                }
}

/* Computes one panel of the outputs of `count` tiles. */
static void make_panel(const job *j, int64_t first, int64_t count, int64_t panel, const float *inputs,
                       const float *weights, float *products)
{
        const int64_t cols = lg_least(WIDTH, lg_ceil_div(j->a->outputs - panel * WIDTH, LG_LANES_f32) * LG_LANES_f32);
        for (int p = 0; p < j->points; p++) {
                const lg_panel_product m = {.a = inputs + p * j->input_step,
                                            .a_row = j->row,
                                            .a_col = 1,
                                            .panel = weights + p * j->weight_step,
                                            .c = products + p * j->product_step,
                                            .rows = count,
                                            .cols = cols,
                                            .k = j->a->channels};
                lg_multiply_panel(&m);
        }
        put_outputs(j, first, count, panel, products);
}

/* ---- parts of the work: a block of tiles, with all weights ready; or a panel of weights, with all tiles ready ---- */

static void weight_parts(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        (void)thread;
        for (int64_t i = first; i < end; i++)
                take_weights(j, i, 0, j->a->channels, j->weights + i * j->weight_count);
}

static void block_parts(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        float *inputs = j->scratch + thread * j->scratch_count, *products = inputs + j->input_count;
        for (int64_t i = first; i < end; i++) {
                const int64_t start = i * j->block, count = lg_least(j->block, j->tiles - start);
                take_inputs(j, start, count, inputs);
                for (int64_t p = 0; p < j->panels; p++)
                        make_panel(j, start, count, p, inputs, j->weights + p * j->weight_count, products);
        }
}

/* Transforms some of the tiles from j->start on. */
static void input_parts(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        (void)thread;
        for (int64_t i = first; i < end; i++) {
                const int64_t from = i * LG_BLOCK_ROWS, count = lg_least(j->block, j->tiles - j->start);
                take_inputs(j, j->start + from, lg_least(LG_BLOCK_ROWS, count - from), j->inputs + from * j->row);
        }
}

static void panel_parts(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        float *weights = j->scratch + thread * j->scratch_count, *products = weights + j->weight_count;
        const int64_t count = lg_least(j->block, j->tiles - j->start);
        for (int64_t i = first; i < end; i++) {
                take_weights(j, i, 0, j->a->channels, weights);
                make_panel(j, j->start, count, i, j->inputs, weights, products);
        }
}

/* ---- sizes ---- */

static void set_block(job *j, int64_t most)
{
        j->block = lg_ceil_div(j->tiles, lg_ceil_div(j->tiles, most));
        j->input_step = lg_conv_spread(j->block * j->row);
        j->product_step = lg_conv_spread(j->block * WIDTH);
        j->input_count = j->points * j->input_step;
        j->product_count = j->points * j->product_step;
}

static void set_tiles(job *j, int side)
{
        const lg_conv_args *a = j->a;
        j->side = side;
        j->points = (side + 2) * (side + 2);
        j->down = lg_ceil_div(a->at.out[0], side);
        j->across = lg_ceil_div(a->at.out[1], side);
        j->tiles = a->n * j->down * j->across;
}

static void set_sizes(job *j)
{
        const lg_conv_args *a = j->a;
        set_tiles(j, 2);
        const int64_t small = j->tiles * j->points;
        set_tiles(j, 4);
        if (small <= j->tiles * j->points)
                set_tiles(j, 2);
        j->panels = lg_ceil_div(a->outputs, WIDTH);
        j->row = lg_conv_spread(lg_ceil_div(a->channels, LG_LANES_f32) * LG_LANES_f32);
        j->weight_step = lg_conv_spread(a->channels * WIDTH);
        j->weight_count = j->points * j->weight_step;
}

static bool by_blocks(lg_queue *q, job *j)
{
        const int64_t bytes = j->points * (j->row + WIDTH) * (int64_t)sizeof(float);
        const int64_t most = lg_most(BLOCK_BYTES / bytes, 2 * LG_BLOCK_ROWS) / LG_BLOCK_ROWS * LG_BLOCK_ROWS;
        set_block(j, lg_least(most, MOST_BLOCK));
        j->scratch_count = j->input_count + j->product_count;
        j->weights = q->workspace(q, (size_t)(j->panels * j->weight_count) * sizeof(float));
        j->scratch = q->workspace(q, (size_t)(q->threads * j->scratch_count) * sizeof(float));
        if (!j->weights || !j->scratch)
                return false;
        lg_conv_share(q, j->a, j->panels, weight_parts, j);
        lg_conv_share(q, j->a, lg_ceil_div(j->tiles, j->block), block_parts, j);
        return true;
}

static bool by_panels(lg_queue *q, job *j)
{
        set_block(j, MANY_TILES);
        j->scratch_count = j->weight_count + j->product_count;
        j->inputs = q->workspace(q, (size_t)j->input_count * sizeof(float));
        j->scratch = q->workspace(q, (size_t)(q->threads * j->scratch_count) * sizeof(float));
        if (!j->inputs || !j->scratch)
                return false;
        for (j->start = 0; j->start < j->tiles; j->start += j->block) {
                const int64_t count = lg_least(j->block, j->tiles - j->start);
                lg_conv_share(q, j->a, lg_ceil_div(count, LG_BLOCK_ROWS), input_parts, j);
                lg_conv_share(q, j->a, j->panels, panel_parts, j);
        }
        return true;
}

bool lg_conv_winograd_fits(const lg_conv_args *a)
{
        const lg_conv_geometry *at = &a->at;
        for (int d = 0; d < 2; d++)
                if (at->kernel[d] != 3 || at->stride[d] != 1 || at->dilation[d] != 1)
                        return false;
        return a->dtype != LG_F64 && at->groups == 1;
}

bool lg_conv_winograd(lg_queue *q, const lg_conv_args *a)
{
        const lg_conv_args turned = lg_conv_as_forward(a);
        job j = {.a = &turned, .ends = lg_conv_has_end(a), .size = (ptrdiff_t)lg_bytes_of(a->dtype)};
        set_sizes(&j);
        float *zeros = q->workspace(q, (size_t)turned.channels * sizeof *zeros);
        if (!zeros)
                return false;
        memset(zeros, 0, (size_t)turned.channels * sizeof *zeros);
        j.zeros = zeros;
        return j.panels * j.weight_count * (int64_t)sizeof(float) > LARGE_WEIGHTS ? by_panels(q, &j) : by_blocks(q, &j);
}
