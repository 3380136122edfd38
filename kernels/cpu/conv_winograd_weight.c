/* conv_winograd_weight.c - weight gradient of a 3x3 convolution by Winograd's F(3x3, 4x4) in f32: tiles of 4x4 pixels
 * of g are the kernels, and 36 products of outputs by channels over all tiles replace 144.
 *
 * With V = B^T d B for each input tile and U = G g G^T for each tile of g, point i of the gradient is the sum over
 * tiles of the products of U_i (outputs) and V_i (channels), and A^T (...) A transforms it back to 3x3. A run of tiles
 * is first transformed to panels of channels; then each panel is multiplied by parts of the outputs. With a single run,
 * sums never leave the L2 cache. */
#include "conv_winograd.h"

#define RUN_BYTES (4 * 1024 * 1024) /* maximum bytes of the transformed tiles of a run */
#define FEW_TILES 96
#define OUTPUTS (4 * LG_BLOCK_ROWS) /* maximum outputs per part */

typedef struct job {
        const lg_conv_args *a;
        ptrdiff_t size;                   /* bytes of an element of the images */
        int64_t down, across, tiles, run; /* tiles of an image in each direction; of all images; of a run */
        int64_t start, count;             /* current run, whose tiles are transformed */
        int64_t panels, outputs, parts;   /* panels of channels; outputs per part, number of parts */
        ptrdiff_t row;                    /* stride between tiles of transformed outputs */
        ptrdiff_t input_step, gradient_step, sum_step;
        float *inputs, *gradients; /* (panels, points, tiles, WIDTH) and (points, tiles, row) */
        float *sums;               /* (panels, parts, points, outputs, WIDTH); (threads, points, ...) if one run */
        const void *zeros;         /* a pixel of zeros, for those outside the image */
} job;

/* ---- a run of tiles ---- */

static void take_tile(const job *j, int64_t tile)
{
        const lg_conv_args *a = j->a;
        const lg_conv_geometry *at = &a->at;
        const int64_t n = tile / (j->down * j->across), first = tile / j->across % j->down * 4;
        const int64_t top = first - at->padding[0], left = tile % j->across * 4 - at->padding[1];
        const void *from[MOST_POINTS];
        for (int i = 0; i < MOST_POINTS; i++) {
                const int64_t row = top + i / 6, col = left + i % 6;
                const bool inside = row >= 0 && row < at->in[0] && col >= 0 && col < at->in[1];
                from[i] =
                        inside ? (const char *)a->x + ((n * at->in[0] + row) * at->in[1] + col) * a->channels * j->size
                               : j->zeros;
        }
        float *to = j->inputs + (tile - j->start) * WIDTH;
        for (int64_t c = 0; c < a->channels; c += WIDTH, to += MOST_POINTS * j->input_step)
                lg_conv_take_tile(a->dtype, from, c, lg_least(c + WIDTH, a->channels),
                                  4 * at->in[1] * a->channels * j->size, to, j->input_step);
}

/* Transforms the 4x4 pixels of a tile of g to 36 points, for a vector of outputs. */
static void transform_gradient(const vec *in, float *to, ptrdiff_t step)
{
        vec half[24], out[6];
        LG_UNROLL
        for (int i = 0; i < 4; i++)
                gradient_line_4(in + i, 4, half + i, 4);
        LG_UNROLL
        for (int i = 0; i < 6; i++) {
                gradient_line_4(half + i * 4, 1, out, 1);
                LG_UNROLL
                for (int k = 0; k < 6; k++)
                        lg_vec_store_f32(to + (i * 6 + k) * step, out[k]);
        }
}

LG_INLINE void take_gradient_of(const job *j, const lg_dtype t, int64_t tile)
{
        enum { lanes = LG_LANES_f32 };
        const lg_conv_args *a = j->a;
        const lg_conv_geometry *at = &a->at;
        const int64_t n = tile / (j->down * j->across), ahead = 4 * at->out[1] * a->outputs * j->size;
        const int64_t top = tile / j->across % j->down * 4, left = tile % j->across * 4;
        const void *from[16];
        vec in[16];
        for (int i = 0; i < 16; i++) {
                const int64_t row = top + i / 4, col = left + i % 4;
                const bool inside = row < at->out[0] && col < at->out[1];
                from[i] =
                        inside ? (const char *)a->g + ((n * at->out[0] + row) * at->out[1] + col) * a->outputs * j->size
                               : j->zeros;
        }
        for (int64_t o = 0; o < a->outputs; o += lanes) {
                const int64_t some = lg_least(lanes, a->outputs - o);
                for (int i = 0; i < 16; i++) {
                        in[i] = some == lanes ? load_pixel(t, from[i], o, lanes) : load_pixel(t, from[i], o, some);
                        lg_prefetch(from[i], ahead + o * j->size);
                }
                transform_gradient(in, j->gradients + (tile - j->start) * j->row + o, j->gradient_step);
        }
}

static void take_gradient(const job *j, int64_t tile)
{
        if (j->a->dtype == LG_F32)
                take_gradient_of(j, LG_F32, tile);
        else if (j->a->dtype == LG_BF16)
                take_gradient_of(j, LG_BF16, tile);
        else
                take_gradient_of(j, LG_F16, tile);
}

static void tile_parts(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        (void)thread;
        for (int64_t i = first; i < end; i++)
                take_tile(j, j->start + i);
        for (int64_t i = first; i < end; i++)
                take_gradient(j, j->start + i);
}

/* ---- parts: some outputs by a panel of channels ---- */

/* Transforms the 36 points of one output and a vector of channels back, and stores 3x3 kernels. */
static void put_kernels(const job *j, const float *from, int64_t output, int64_t channel)
{
        enum { lanes = LG_LANES_f32 };
        const lg_conv_args *a = j->a;
        const int64_t channels = lg_least(lanes, a->channels - channel);
        vec in[MOST_POINTS], half[18], out[9];
        float turned[lanes * lanes], kernels[lanes * 9];
        for (int i = 0; i < MOST_POINTS; i++)
                in[i] = lg_vec_load_f32(from + i * j->sum_step);
        for (int i = 0; i < 6; i++)
                weight_line_4(in + i, 6, half + i, 6);
        for (int i = 0; i < 3; i++)
                weight_line_4(half + i * 6, 1, out + i * 3, 1);
        for (int64_t k = 0; k < 9; k += lanes) {
                const lg_mask_f32 some = lg_mask_first_f32(lg_least(lanes, 9 - k));
                lg_vec_transpose_f32((const float *)(out + k), lanes, turned, lanes, lg_least(lanes, 9 - k), channels);
                for (int64_t c = 0; c < channels; c++)
                        lg_vec_store_some_f32(kernels + c * 9 + k, some, lg_vec_load_f32(turned + c * lanes));
        }
        lg_store[LG_COMPUTE_F32][a->dtype](channels * 9,
                                           (char *)a->out + (output * a->channels + channel) * 9 * j->size, kernels);
}

static void multiply_part(const job *j, int64_t panel, int64_t output, int64_t outputs, float *sums)
{
        const int64_t left = j->a->channels - panel * WIDTH;
        for (int p = 0; p < MOST_POINTS; p++) {
                const lg_panel_product m = {.a = j->gradients + p * j->gradient_step + output,
                                            .a_row = 1,
                                            .a_col = j->row,
                                            .panel = j->inputs + (panel * MOST_POINTS + p) * j->input_step,
                                            .c = sums + p * j->sum_step,
                                            .rows = outputs,
                                            .cols = left > LG_LANES_f32 ? WIDTH : LG_LANES_f32,
                                            .k = j->count,
                                            .adds = j->start > 0};
                lg_multiply_panel(&m);
        }
}

static void sum_parts(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        const bool last = j->start + j->count == j->tiles, one = j->run == j->tiles;
        for (int64_t i = first; i < end; i++) {
                const int64_t panel = i / j->parts, output = i % j->parts * j->outputs;
                const int64_t outputs = lg_least(j->outputs, j->a->outputs - output);
                float *sums = j->sums + (one ? thread : i) * MOST_POINTS * j->sum_step;
                multiply_part(j, panel, output, outputs, sums);
                for (int64_t o = 0; o < outputs && last; o++)
                        for (int64_t v = 0; v < WIDTH && panel * WIDTH + v < j->a->channels; v += LG_LANES_f32)
                                put_kernels(j, sums + o * WIDTH + v, output + o, panel * WIDTH + v);
        }
}

/* ---- sizes ---- */

static void set_sizes(job *j)
{
        const lg_conv_args *a = j->a;
        j->down = lg_ceil_div(a->at.out[0], 4);
        j->across = lg_ceil_div(a->at.out[1], 4);
        j->tiles = a->n * j->down * j->across;
        j->panels = lg_ceil_div(a->channels, WIDTH);
        j->outputs = lg_even_part(a->outputs, OUTPUTS);
        j->parts = lg_ceil_div(a->outputs, j->outputs);
        j->row = lg_conv_spread(lg_ceil_div(a->outputs, LG_LANES_f32) * LG_LANES_f32);
        const int64_t bytes = MOST_POINTS * (j->row + j->panels * WIDTH) * (int64_t)sizeof(float);
        j->run = lg_even_part(j->tiles, lg_most(RUN_BYTES / bytes, FEW_TILES));
        j->input_step = lg_conv_spread(j->run * WIDTH);
        j->gradient_step = lg_conv_spread(j->run * j->row);
        j->sum_step = lg_conv_spread(j->outputs * WIDTH);
}

bool lg_conv_winograd_weight(lg_queue *q, const lg_conv_args *a)
{
        job j = {.a = a, .size = (ptrdiff_t)lg_bytes_of(a->dtype)};
        set_sizes(&j);
        const int64_t zeros = lg_most(a->channels, a->outputs), parts = j.panels * j.parts;
        const int64_t sums = j.run == j.tiles ? q->threads : parts;
        float *zero = q->workspace(q, (size_t)zeros * sizeof *zero);
        j.inputs = q->workspace(q, (size_t)(j.panels * MOST_POINTS * j.input_step) * sizeof *zero);
        j.gradients = q->workspace(q, (size_t)(MOST_POINTS * j.gradient_step) * sizeof *zero);
        j.sums = q->workspace(q, (size_t)(sums * MOST_POINTS * j.sum_step) * sizeof *zero);
        if (!zero || !j.inputs || !j.gradients || !j.sums)
                return false;
        memset(zero, 0, (size_t)zeros * sizeof *zero);
        j.zeros = zero;
        for (j.start = 0; j.start < j.tiles; j.start += j.count) {
                j.count = lg_least(j.run, j.tiles - j.start);
                lg_conv_share(q, a, j.count, tile_parts, &j);
                lg_conv_share(q, a, parts, sum_parts, &j);
        }
        return true;
}
