/* conv_weight.c - direct weight gradient of a convolution: g^T, read in place, times windows, which are vectors at any
 * address of the image. Each chunk of images has its own sums, which are then added in a fixed order. */
#include "conv.h"

#define PIXELS 512 /* pixels per block, after which sums are stored to memory */
#define LATENCY 8  /* multiply-adds in flight that hide the latency of one */
#define CHUNKS 16
#define SLICES 16
#define CHUNK_PIXELS 256               /* minimum pixels of a chunk; adding chunks costs too much for fewer */
#define CHUNK_BYTES ((int64_t)4 << 20) /* maximum bytes of the sums of all chunks */
#define IMAGE_BYTES (256 * 1024)

/* Assignment of rows and vectors in a block of sums: BY_OUTPUTS: outputs by parts of a window; BY_WINDOWS: elements of
 * a window by outputs, if windows are short; BY_PIXELS: outputs by pixels of a line, if both others are few. */
typedef enum algorithm { BY_OUTPUTS, BY_WINDOWS, BY_PIXELS } algorithm;

typedef struct job {
        const lg_conv_args *a;
        algorithm algorithm;
        bool joined;               /* a line of a window is contiguous in the image */
        int64_t channels, outputs; /* channels and outputs per group */
        int64_t taps, k;           /* elements of a kernel; elements of a window */
        int64_t run, per_run;      /* elements of a contiguous run of a window; vectors per run */
        int64_t vectors, rows;     /* vectors per window; outputs per register block */
        int64_t lines;             /* lines of pixels after which sums are stored to memory */
        ptrdiff_t line;            /* stride between lines of the input of a part */
        int64_t chunks, slices;    /* slices: parts of the window's vectors, if chunks are few */
        int64_t sum_count;         /* elements in the sums of a chunk */
        char *sums;                /* sums of each chunk, in an order that depends on `algorithm` */
        char *images;              /* copies of all parts, if slices share them; or NULL */
        char *scratch;             /* scratch of each thread */
        int64_t scratch_bytes;
        lg_conv_cut cut;
} job;

#define LG_BOTH "conv_weight.inc"
#include "both.inc"

typedef struct addition {
        const lg_conv_args *a;
        const lg_conv_sums *s;
} addition;

static void output_parts(const void *addition_, int64_t first, int64_t end, int thread)
{
        const addition *x = addition_;
        (void)thread;
        for (int64_t o = first; o < end; o++)
                if (x->a->dtype == LG_F64)
                        add_sums_f64(x->s, o, x->a->out);
                else
                        add_sums_f32(x->s, o, x->a->out);
}

void lg_conv_add_sums(lg_queue *q, const lg_conv_args *a, const lg_conv_sums *s)
{
        const addition x = {a, s};
        lg_parallel(q, s->outputs, lg_grain(s->taps * s->channels * s->count), output_parts, &x);
}

static void image_parts(const void *job_, int64_t first, int64_t end, int thread)
{
        const job *j = job_;
        (void)thread;
        for (int64_t i = first; i < end; i++)
                lg_conv_take(&j->cut, i, j->images + i * j->cut.bytes);
}

/* Returns the estimated time per pixel of `blocks` blocks of sums, in multiply-adds. */
static int64_t work_of(int64_t blocks, int64_t rows, int64_t vectors)
{
        return blocks * lg_most(rows * vectors, LATENCY);
}

static algorithm algorithm_of(const job *j, int64_t lanes)
{
        const int64_t outputs = lg_ceil_div(j->outputs, lanes), rows = lg_even_part(j->k, LG_BLOCK_ROWS);
        const int64_t pairs = j->vectors / 2, panels = outputs / 2;
        const int64_t by_outputs =
                lg_ceil_div(j->outputs, j->rows) * (work_of(pairs, j->rows, 2) + work_of(j->vectors % 2, j->rows, 1));
        const int64_t by_windows = lg_ceil_div(j->k, rows) * (work_of(panels, rows, 2) + work_of(outputs % 2, rows, 1));
        const int64_t line = j->a->at.out[1], least = lg_least(by_windows, by_outputs);
        const int64_t by_pixels = lg_ceil_div(line, lanes) * lg_ceil_div(j->k, 2) * work_of(1, j->outputs, 2);
        if (j->a->channels == 1 && j->a->at.stride[1] == 1 && j->outputs <= LG_BLOCK_ROWS &&
            4 * by_pixels < 3 * least * line)
                return BY_PIXELS;
        /* With several vectors of outputs, BY_WINDOWS must be 1/8 faster: it loads each of them for every part of a
         * window, and elements of windows one by one. */
        return 8 * by_windows < (outputs > 1 ? 7 : 8) * by_outputs ? BY_WINDOWS : BY_OUTPUTS;
}

static void set_sizes(job *j, int64_t size)
{
        const lg_conv_args *a = j->a;
        const int64_t lanes = LG_VECTOR / size;
        j->channels = a->channels / a->at.groups;
        j->outputs = a->outputs / a->at.groups;
        j->joined = a->at.dilation[1] == 1 && a->at.groups == 1;
        j->taps = a->at.kernel[0] * a->at.kernel[1];
        j->k = j->taps * j->channels;
        j->run = j->joined ? a->at.kernel[1] * j->channels : j->channels;
        j->per_run = lg_ceil_div(j->run, lanes);
        j->vectors = j->k / j->run * j->per_run;
        j->rows = lg_even_part(j->outputs, LG_BLOCK_ROWS);
        j->algorithm = algorithm_of(j, lanes);
}

/* Sets the division of the work into chunks, slices and parts, and the scratch size. */
static void set_parts(job *j, int64_t size)
{
        const lg_conv_args *a = j->a;
        const int64_t pairs = lg_ceil_div(j->vectors, LG_BLOCK_VECTORS);
        const int64_t pixels = a->n * a->at.out[0] * a->at.out[1], fit = CHUNK_BYTES / (a->outputs * j->k * size);
        j->chunks = lg_most(lg_least(lg_least(fit, pixels / CHUNK_PIXELS), CHUNKS), 1);
        j->cut = lg_conv_cut_of(a, IMAGE_BYTES, j->chunks, PIXELS);
        j->chunks = lg_least(j->chunks, j->cut.parts);
        j->slices = j->algorithm == BY_OUTPUTS ? lg_least(SLICES / j->chunks, pairs) : 1;
        j->line = (j->cut.copies ? j->cut.width : a->at.in[1]) * a->channels;
        j->lines = lg_least(lg_ceil_div(PIXELS, a->at.out[1]), j->cut.pixels / a->at.out[1]);
        j->scratch_bytes = lg_ceil_div(j->lines * a->at.out[1] * (int64_t)sizeof(void *), 64) * 64;
        j->sum_count = a->outputs * j->k;
        if (j->algorithm == BY_PIXELS) {
                j->sum_count = lg_ceil_div(j->k, LG_BLOCK_VECTORS) * LG_BLOCK_VECTORS * a->outputs * (LG_VECTOR / size);
                j->scratch_bytes += j->lines * lg_ceil_div(a->at.out[1] * size, LG_VECTOR) * LG_VECTOR * a->outputs;
        }
}

bool lg_conv_weight(lg_queue *q, const lg_conv_args *a)
{
        const int64_t size = (int64_t)lg_bytes_of(a->dtype);
        const bool f64 = a->dtype == LG_F64;
        job j = {.a = a};
        set_sizes(&j, size);
        set_parts(&j, size);
        const bool shares = j.slices > 1 && j.cut.copies;
        if (shares && !(j.images = q->workspace(q, (size_t)(j.cut.parts * j.cut.bytes))))
                return false;
        j.scratch_bytes += shares ? 0 : j.cut.bytes;
        j.sums = q->workspace(q, (size_t)(j.chunks * j.sum_count * size));
        j.scratch = q->workspace(q, (size_t)(q->threads * j.scratch_bytes));
        if (!j.sums || !j.scratch)
                return false;
        if (shares)
                lg_conv_share(q, a, j.cut.parts, image_parts, &j);
        lg_conv_share(q, a, j.chunks * j.slices, f64 ? sum_parts_f64 : sum_parts_f32, &j);
        if (j.algorithm == BY_WINDOWS) {
                lg_conv_share(q, a, a->at.groups, f64 ? window_parts_f64 : window_parts_f32, &j);
                return true;
        }
        if (j.algorithm == BY_PIXELS) {
                lg_conv_share(q, a, a->outputs, f64 ? line_parts_f64 : line_parts_f32, &j);
                return true;
        }
        lg_conv_add_sums(q, a, &(lg_conv_sums){j.sums, j.chunks, a->outputs, j.taps, j.channels, j.channels});
        return true;
}
