/* nulls.c - every public function is called with NULL in place of each argument: it sets LG_ERR_ARGUMENT where there is
 * a context that can be told, and else returns NULL, false or 0. Nothing crashes; values at the ends of their types
 * neither.
 *
 * calls.py writes the calls. A child makes them, and says in shared memory which one it makes; where it dies, the next
 * child goes on after that.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <grad.h>

typedef struct given {
        lg_ctx *c;
        lg_tensor *x, *labels, *index, *mask, *picture, *row;
        lg_module *net, *part, *attention, *encoder, *decoder, *transformer;
        lg_kv_cache *cache;
        lg_profiler *profiler;
        lg_tokenizer *tokenizer;
        lg_optimizer *opt;
        lg_scheduler *schedule;
        lg_ema *ema;
        lg_scaler *scaler;
        lg_recorder *recorder;
        lg_dataset *data;
        lg_loader *loader;
        lg_collate *collate;
        lg_transform *transform;
        lg_checkpoint *checkpoint;
        lg_weights *weights;
        lg_csv *csv;
        lg_board *board;
        lg_group *group;
        lg_scope scope;
        lg_sample sample;
        FILE *file;
        void *memory;
        bool closed;
} given;

/* What must come of a call. */
typedef enum expected {
        NOTHING,  /* a zero, and no error but LG_ERR_ARGUMENT */
        ARGUMENT, /* LG_ERR_ARGUMENT */
        ANYTHING  /* it returns */
} expected;

static struct progress {
        int function, call, failures;
        const char *text; /* of the call */
} * progress;

static void complain(const char *what, const char *message)
{
        printf("%s: %s%s%s\n", progress->text, what, message ? ": " : "", message ? message : "");
        fflush(stdout);
        progress->failures++;
}

static void check(const given *g, expected e, const void *result, size_t bytes)
{
        static const char zero[4096];
        const lg_error_code code = g->closed ? LG_ERR_NONE : lg_error_code_of(g->c);
        if (e == NOTHING && memcmp(result, zero, bytes) != 0)
                complain("its result is not zero", NULL);
        if (e == ARGUMENT && !code)
                complain("it sets no error", NULL);
        if (e != ANYTHING && code && code != LG_ERR_ARGUMENT)
                complain(lg_error_name(code), lg_error(g->c));
}

static lg_tensor *on_hook(lg_tensor *grad, void *user)
{
        (void)user;
        return grad;
}

static void on_message(lg_ctx *c, const char *text, void *user)
{
        (void)c, (void)text, (void)user;
}

static void on_parameter(const char *path, lg_tensor *t, bool is_buffer, void *user)
{
        (void)path, (void)t, (void)is_buffer, (void)user;
}

static double on_lambda(int64_t step, void *user)
{
        (void)step, (void)user;
        return 1;
}

/* Its file stays in the folder until the end, so it is made only for the calls that take it. */
static lg_board *board_of(given *g)
{
        if (!g->board)
                g->board = lg_board_open(g->c, "nulls.board");
        return g->board;
}

static void on_trace(const lg_trace_record *r, void *user)
{
        (void)r, (void)user;
}

static bool on_sample(lg_sample *s, void *user)
{
        (void)s, (void)user;
        return true;
}

static bool on_collate(const lg_collation *b, void *user)
{
        (void)b, (void)user;
        return true;
}

static bool on_transform(const lg_transform_call *call, void *user)
{
        (void)call, (void)user;
        return true;
}

static lg_tensor *on_check(lg_ctx *c, lg_list inputs, void *user)
{
        (void)c, (void)user;
        return lg_sum(inputs.items[0]);
}

static lg_tensor *on_closure(lg_ctx *c, void *user)
{
        (void)user;
        return lg_set_error(c, LG_ERR_ARGUMENT, "no loss"), NULL;
}

/* One function, and one call of it. */
#define BEGIN(name)                                                                                                    \
        static void call_##name(given *g, int number)                                                                  \
        {                                                                                                              \
                switch (number) {
#define CALL(number, expected, type, ...)                                                                              \
        case number: {                                                                                                 \
                progress->text = #__VA_ARGS__;                                                                         \
                type result = __VA_ARGS__;                                                                             \
                check(g, expected, &result, sizeof result);                                                            \
                break;                                                                                                 \
        }
#define CALL_VOID(number, expected, ...)                                                                               \
        case number: {                                                                                                 \
                progress->text = #__VA_ARGS__;                                                                         \
                __VA_ARGS__;                                                                                           \
                check(g, expected, "", 0);                                                                             \
                break;                                                                                                 \
        }
#define END                                                                                                            \
        }                                                                                                              \
        }

struct function {
        void (*call)(given *g, int number);
        int calls;
};
#include "calls.inc"

static given begin(void)
{
        static char memory[8192];
        lg_ctx *c = lg_open(.threads = 1);
        given g = {.c = c, .memory = memset(memory, 0, sizeof memory), .file = fopen("/dev/null", "w")};
        progress->text = "begin";
        g.x = lg_ones(c, LG_SHAPE(2, 3));
        g.row = lg_ones(c, LG_SHAPE(3));
        g.labels = lg_zeros(c, LG_SHAPE(2), .dtype = LG_I64);
        g.mask = lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_BOOL);
        g.index = lg_zeros(c, LG_SHAPE(3), .dtype = LG_I64);
        g.picture = lg_ones(c, LG_SHAPE(2, 3), .dtype = LG_U8);
        g.net = lg_nn_linear(c, 3, 3);
        g.part = lg_nn_relu(c);
        g.attention = lg_nn_multihead_attention(c, 3, 1);
        g.encoder = lg_nn_transformer_encoder_layer(c, 3, 1, .feedforward = 4);
        g.decoder = lg_nn_transformer_decoder_layer(c, 3, 1, .feedforward = 4);
        g.transformer = lg_nn_transformer(c, 3, 1, .feedforward = 4, .encoder_layers = 1, .decoder_layers = 1);
        g.cache = lg_kv_cache_new(g.attention, 3, 4);
        g.tokenizer = lg_tokenizer_open(c, "nulls.json");
        g.opt = lg_sgd(c, lg_parameters(g.net), 0.1);
        g.schedule = lg_exponential_lr(g.opt, 0.9);
        g.ema = lg_ema_new(g.net, 0.9);
        g.scaler = lg_scaler_new(c);
        g.recorder = lg_recorder_new(c, on_check);
        g.data = lg_dataset_tensors(c, g.x, g.labels);
        g.loader = lg_loader_open(c, g.data, 1);
        g.collate = lg_mixup(c, .classes = 3);
        g.transform = lg_transform_random_horizontal_flip(c);
        g.checkpoint = lg_checkpoint_new(c);
        g.weights = lg_weights_open(c, "nulls.safetensors");
        g.csv = lg_csv_open(c, "nulls.csv");
        g.group = lg_group_open(c);
        g.profiler = lg_profiler_open(c);
        g.scope = lg_scope_begin(c);
        if (lg_error(c))
                complain("it failed", lg_error(c));
        return g;
}

static void end(given *g)
{
        fclose(g->file);
        if (!g->closed)
                lg_close(g->c);
}

/* All calls from that of `progress` on. */
static void make_calls(int functions_count)
{
        for (; progress->function < functions_count; progress->function++, progress->call = 0)
                for (; progress->call < functions[progress->function].calls; progress->call++) {
                        given g = begin();
                        functions[progress->function].call(&g, progress->call);
                        end(&g);
                }
}

static const char tokenizer[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"x\":0},\"merges\":[]},"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}}";

static bool write_files(void)
{
        lg_ctx *c = lg_open(.threads = 1);
        lg_checkpoint *k = lg_checkpoint_new(c);
        FILE *f = fopen("nulls.csv", "w"), *json = fopen("nulls.json", "w");
        bool ok = f && fputs("x\n1\n2\n", f) >= 0 && !fclose(f) && json && fputs(tokenizer, json) >= 0 &&
                  !fclose(json) && lg_checkpoint_add(k, "model", lg_nn_linear(c, 3, 3)) &&
                  lg_checkpoint_save(k, "nulls.safetensors");
        lg_close(c);
        return ok;
}

int main(void)
{
        const int count = sizeof functions / sizeof *functions;
        char folder[] = "nulls-XXXXXX";
        progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (progress == MAP_FAILED || !mkdtemp(folder) || chdir(folder) || !write_files())
                return 1;
        while (progress->function < count) {
                int status;
                const pid_t child = fork();
                if (child == 0) {
                        make_calls(count);
                        exit(0);
                }
                if (child < 0 || waitpid(child, &status, 0) != child)
                        return 1;
                if (status != 0) {
                        complain("it ends the process", strsignal(status & 127));
                        progress->call++;
                }
        }
        unlink("x"); /* which a call may have written */
        if (system("rm -r nulls.board"))
                return 1;
        if (unlink("nulls.csv") || unlink("nulls.json") || unlink("nulls.safetensors") || chdir("..") || rmdir(folder))
                printf("files are left in %s\n", folder);
        printf("%d functions, %d failures\n", count, progress->failures);
        return progress->failures != 0;
}
