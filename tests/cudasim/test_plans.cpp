/* test_plans.cpp DEVICE GRAPHS EVERY COMPILED [each] - the real cuDNN makes plans for a GPU that is not there.
 *
 * From 9.8 on it plans for a device that is described by its properties (DEVICE, JSON). dnn.cu loads the library and
 * dnn_plan.cu describes the graphs and chooses; only what they say of a handle is said of the description instead.
 * GRAPHS (tests/data/graphs.txt) are planned with every setting of a context, or only each EVERY-th of them. Each
 * COMPILED-th is then planned by an engine that compiles its kernels at run time, if it has one: driver.cpp is the
 * driver that loads them. "each" prints a line for every plan. Attention, all of whose engines compile, is planned for
 * a few sizes.
 */
#include "cudasim.h"
#include "../../kernels/cuda/conv.h"
#undef LG_CUDASIM /* the real library */
#define lg_load_functions load_real_functions
#include "../../kernels/cuda/loaded.cu"
#define lg_dnn_find real_library
#include "../../kernels/cuda/dnn.cu"
#undef lg_dnn_find
#undef lg_load_functions

#if LG_CUDNN && CUDNN_VERSION >= 90800
#include <chrono>
#include <map>
#include <string>
#include <vector>

const lg_dnn_library *lg_dnn_find(void);

/* ---- the library, for a device that is described ---- */

static cudnnBackendDescriptor_t device, last; /* last: the engine of the plan that was tried last, and its settings */
static int tried;
static bool only_compiled; /* whether engines that compile nothing at run time are refused */

struct engine {
        int64_t number;
        bool tensor_core, unsteady, compiled; /* compiled: at run time, when a plan is made */
};
static bool look_at(cudnnBackendDescriptor_t config, engine *ret);

static cudnnStatus_t CUDNNWINAPI set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                     cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
        const auto real = real_library()->set;
        const cudnnBackendAttributeType_t part = CUDNN_TYPE_BACKEND_DESCRIPTOR;
        if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
                return CUDNN_STATUS_SUCCESS;
        if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
                return real(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, part, 1, &device);
        if (name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) {
                const cudnnStatus_t s = real(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, part, 1, &device);
                if (s != CUDNN_STATUS_SUCCESS)
                        return s;
        }
        if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) {
                memcpy(&last, values, sizeof last);
                engine e;
                if (only_compiled && look_at(last, &e) && !e.compiled)
                        return CUDNN_STATUS_NOT_SUPPORTED;
                tried++;
        }
        return real(d, name, type, count, values);
}

const lg_dnn_library *lg_dnn_find(void)
{
        static const lg_dnn_library library = [] {
                lg_dnn_library l = *real_library();
                l.set = set;
                return l;
        }();
        return &library;
}

static bool describe(const char *file)
{
        std::string text;
        FILE *from = fopen(file, "r");
        for (int c; from && (c = fgetc(from)) != EOF;)
                text += (char)c;
        if (!from || fclose(from) != 0)
                return false;
        const lg_dnn_library *l = real_library();
        return l->make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device) == CUDNN_STATUS_SUCCESS &&
               l->set(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)text.size() + 1,
                      text.c_str()) == CUDNN_STATUS_SUCCESS &&
               l->finish(device) == CUDNN_STATUS_SUCCESS;
}

/* ---- graphs ---- */

static const char *const kinds[] = {"forward", "input", "weight"};
static const struct {
        const char *name;
        lg_dtype t;
} types[] = {{"f32", LG_F32}, {"f64", LG_F64}, {"f16", LG_F16}, {"bf16", LG_BF16}};

static bool key_of_line(const char *line, lg_dnn_key *k)
{
        char kind[16], type[16];
        long long v[18];
        memset(k, 0, sizeof *k);
        if (sscanf(line, "%15s %15s %lld%lld%lld%lld%lld%lld%lld%lld%lld%lld%lld%lld%lld%lld%lld%lld%lld%lld", kind,
                   type, v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7, v + 8, v + 9, v + 10, v + 11, v + 12,
                   v + 13, v + 14, v + 15, v + 16, v + 17) != 20)
                return false;
        k->n = v[0];
        k->channels = v[1];
        k->outputs = v[2];
        for (int i = 0; i < 2; i++) {
                k->at.in[i] = v[3 + i];
                k->at.kernel[i] = v[5 + i];
                k->at.out[i] = v[7 + i];
                k->at.stride[i] = v[9 + i];
                k->at.padding[i] = v[11 + i];
                k->at.dilation[i] = v[13 + i];
        }
        k->at.groups = v[15];
        k->bias = (int32_t)v[16];
        k->alignment = (int32_t)v[17];
        k->kind = -1;
        for (int i = 0; i < 3; i++)
                if (!strcmp(kind, kinds[i]))
                        k->kind = i;
        for (const auto &t : types)
                if (!strcmp(type, t.name))
                        k->dtype = t.t;
        return k->kind >= 0 && k->dtype;
}

/* Each line of the file with each setting that changes something. */
static bool read_keys(const char *file, std::vector<lg_dnn_key> *keys)
{
        char line[400];
        FILE *from = fopen(file, "r");
        bool good = from != nullptr;
        while (good && fgets(line, sizeof line, from)) {
                lg_dnn_key k;
                if (*line == '#')
                        continue;
                good = key_of_line(line, &k);
                if (!good)
                        printf("%s: this is no graph: %s", file, line);
                for (int setting = 0; good && setting < (k.dtype == LG_F32 ? 4 : 2); setting++) {
                        k.deterministic = setting % 2;
                        k.tf32 = setting / 2;
                        keys->push_back(k);
                }
        }
        if (from)
                fclose(from);
        return good && !keys->empty();
}

/* ---- plans ---- */

template <typename T>
static bool has_note(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     T note)
{
        T notes[64];
        int64_t count = 0;
        if (real_library()->get(of, name, type, 64, &count, notes) != CUDNN_STATUS_SUCCESS)
                return false;
        for (int64_t i = 0; i < count && i < 64; i++)
                if (notes[i] == note)
                        return true;
        return false;
}

static bool look_at(cudnnBackendDescriptor_t config, engine *e)
{
        const lg_dnn_library *l = real_library();
        cudnnBackendDescriptor_t d = nullptr;
        int64_t count = 0;
        if (l->make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &d) != CUDNN_STATUS_SUCCESS)
                return false;
        const bool good = l->get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &d) ==
                                  CUDNN_STATUS_SUCCESS &&
                          l->get(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &e->number) ==
                                  CUDNN_STATUS_SUCCESS;
        e->tensor_core = has_note(d, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                  CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
        e->unsteady = has_note(d, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
        e->compiled = has_note(d, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                               CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
        l->destroy(d);
        return good;
}

/* An attention of heads one after the other, or of packed q, k and v beside heads of o in the order of positions. */
static lg_dnn_key attention_key(int kind, lg_dtype dtype, const int64_t (&size)[7], bool packed, bool deterministic)
{
        lg_dnn_key k;
        memset(&k, 0, sizeof k);
        k.kind = kind;
        k.dtype = dtype;
        k.deterministic = deterministic;
        k.alignment = 16;
        lg_dnn_heads *h = &k.heads;
        *h = {size[0], size[1], size[2], size[3], size[4], size[5], size[6], {}};
        for (int i = 0; i < 8; i++) {
                const bool keys = i == 1 || i == 2 || i == 6 || i == 7, values = i == 2 || i == 3 || i == 4 || i == 7;
                const int64_t rows = keys ? h->keys : h->queries, n = values ? h->v_dim : h->dim;
                const int64_t row = h->heads * n * (packed && i < 3 ? 3 : 1);
                h->at[i] = packed ? lg_head_strides{rows * row, n, row}
                                  : lg_head_strides{h->heads * rows * n, rows * n, n};
        }
        return k;
}

/* Plans an attention of each kind. Returns how many plans were refused; each is printed. */
static int plan_attention(lg_queue *q, lg_dtype dtype, const int64_t (&size)[7], bool packed)
{
        int refused = 0;
        for (int way = 0; way < 3; way++) {
                lg_dnn_plan p;
                engine e = {};
                p.key = attention_key(way ? LG_DNN_ATTENTION_VJP : LG_DNN_ATTENTION, dtype, size, packed, way == 2);
                tried = 0;
                const lg_dnn_answer answer = lg_dnn_build(q, nullptr, &p);
                const bool made = answer == LG_DNN_DONE && look_at(last, &e);
                printf("attention %s %s: %lld x %lld heads, %lld queries, %lld keys, %lld and %lld wide, keys seen: "
                       "%lld%s: ",
                       way == 0   ? "forward"
                       : way == 1 ? "backward"
                                  : "backward, deterministic",
                       dtype == LG_F16 ? "f16" : "bf16", (long long)size[0], (long long)size[1], (long long)size[2],
                       (long long)size[3], (long long)size[4], (long long)size[5], (long long)size[6],
                       packed ? ", packed" : "");
                if (made)
                        printf("engine %lld, workspace %lld, candidates %d\n", (long long)e.number,
                               (long long)p.workspace, tried);
                else
                        puts(answer == LG_DNN_REFUSED ? "refused" : q->message);
                q->status = LG_OK;
                refused += !made;
        }
        return refused;
}

/* Returns how many plans for attention were refused. */
static int plan_attentions(lg_queue *q)
{
        const int64_t plain[] = {4, 12, 1024, 1024, 64, 64, LG_DNN_FROM_FIRST},
                      longer[] = {2, 8, 128, 384, 128, 128, LG_DNN_FROM_LAST},
                      odd[] = {3, 2, 33, 77, 24, 24, LG_DNN_ALL};
        return plan_attention(q, LG_BF16, plain, true) + plan_attention(q, LG_F16, longer, false) +
               plan_attention(q, LG_F16, odd, true);
}

/* Over the plans of a kind and type. apart: the bias is added by another kernel; later: not by the first candidate. */
struct sums {
        int plans, made, apart, later, tensor_core, compiled;
        int64_t workspace;              /* the largest */
        std::map<int64_t, int> engines; /* plans by the number of the engine */
};
static sums table[3][5], all; /* TF32 is a type here */
static sums alone;            /* by engines that compile at run time alone */
static const char *const columns[] = {"f32", "tf32", "f64", "f16", "bf16"};

static int column_of(const lg_dnn_key *k)
{
        return k->dtype == LG_F32 ? k->tf32 : k->dtype == LG_F64 ? 2 : k->dtype == LG_F16 ? 3 : 4;
}

static void print_key(const char *what, const lg_dnn_key *k)
{
        const lg_conv_geometry *g = &k->at;
        printf("%s: %s %s n %lld, %lld -> %lld, image %lld x %lld, kernel %lld x %lld, stride %lld, %lld, padding "
               "%lld, %lld, dilation %lld, %lld, groups %lld, alignment %d%s%s",
               what, kinds[k->kind], columns[column_of(k)], (long long)k->n, (long long)k->channels,
               (long long)k->outputs, (long long)g->in[0], (long long)g->in[1], (long long)g->kernel[0],
               (long long)g->kernel[1], (long long)g->stride[0], (long long)g->stride[1], (long long)g->padding[0],
               (long long)g->padding[1], (long long)g->dilation[0], (long long)g->dilation[1], (long long)g->groups,
               k->alignment, k->bias ? ", bias" : "", k->deterministic ? ", deterministic" : "");
}

static void add(sums *s, const lg_dnn_plan &p, const engine &e, bool apart)
{
        s->made++;
        s->apart += apart;
        s->later += tried > 1;
        s->tensor_core += e.tensor_core;
        s->compiled += e.compiled;
        s->engines[e.number]++;
        s->workspace = p.workspace > s->workspace ? p.workspace : s->workspace;
}

/* Makes a plan for the key, or as lg_dnn_conv() does, without its bias, and counts it in each of `to`. */
static void make_plan(lg_queue *q, const lg_dnn_key &key, bool each, std::initializer_list<sums *> to)
{
        lg_dnn_plan plans[2], *p = plans;
        engine e = {};
        p->key = key;
        tried = 0;
        lg_dnn_answer answer = lg_dnn_build(q, nullptr, p);
        if (answer == LG_DNN_REFUSED && key.bias) {
                p = plans + 1;
                p->key = key;
                p->key.bias = 0;
                tried = 0;
                answer = lg_dnn_build(q, nullptr, p);
        }
        if (only_compiled && answer == LG_DNN_REFUSED)
                return; /* it has no such engine, or not for these sizes */
        const char *wrong = nullptr;
        if (answer != LG_DNN_DONE)
                wrong = answer == LG_DNN_REFUSED ? "refused" : q->message;
        else if (!look_at(last, &e))
                wrong = "nothing is known of the engine";
        else if (e.tensor_core && key.dtype == LG_F32 && !key.tf32)
                wrong = "TF32, which is not allowed";
        else if (e.unsteady && key.deterministic)
                wrong = "not deterministic";
        if (wrong || each) {
                print_key(wrong ? wrong : "made", &key);
                printf("; engine %lld, workspace %lld%s%s%s; candidates %d\n", (long long)e.number,
                       (long long)p->workspace, e.tensor_core ? ", tensor cores" : "",
                       e.compiled ? ", compiled at run time" : "", p != plans ? ", bias apart" : "", tried);
        }
        q->status = LG_OK;
        for (sums *s : to) {
                s->plans++;
                if (!wrong)
                        add(s, *p, e, p != plans);
        }
}

static void print_row(const char *kind, const char *type, const sums *s)
{
        if (s->plans)
                printf("%-8s %-5s %6d %6d %10d %6d %13d %9d %12.1f\n", kind, type, s->plans, s->made, s->apart,
                       s->later, s->tensor_core, s->compiled, (double)s->workspace / 1048576);
}

static void print_table(void)
{
        printf("%-8s %-5s %6s %6s %10s %6s %13s %9s %12s\n", "kind", "type", "plans", "made", "bias apart", "later",
               "tensor cores", "compiled", "MiB at most");
        for (int kind = 0; kind < 3; kind++)
                for (int column = 0; column < 5; column++)
                        print_row(kinds[kind], columns[column], &table[kind][column]);
        print_row("all", "", &all);
}

static void print_engines(const char *what, const sums *s)
{
        printf("%s: %d plans, %d made, %d refused, %d compiled at run time; engine (plans):", what, s->plans, s->made,
               s->plans - s->made, s->compiled);
        for (const auto &[number, plans] : s->engines)
                printf(" %lld (%d)", (long long)number, plans);
        putchar('\n');
}

int main(int count, char **words)
{
        std::vector<lg_dnn_key> keys;
        lg_queue q = {};
        q.release_cached = [](lg_queue *) { return false; };
        const size_t every = count < 5 ? 0 : (size_t)atoll(words[3]), sample = count < 5 ? 0 : (size_t)atoll(words[4]);
        if (!every || !sample) {
                puts("test_plans DEVICE GRAPHS EVERY COMPILED [each]");
                return 2;
        }
        if (!dlopen(DRIVER, RTLD_NOW | RTLD_GLOBAL)) {
                puts(dlerror());
                return 1;
        }
        const lg_dnn_library *l = real_library();
        if (!l->there || l->number < 90800) {
                printf("skipped: %s\n", l->there ? "cuDNN is older than 9.8" : l->reason);
                return 77;
        }
        if (!describe(words[1])) {
                printf("%s: cuDNN knows no such device\n", words[1]);
                return 1;
        }
        if (!read_keys(words[2], &keys)) {
                printf("%s: there are no graphs\n", words[2]);
                return 1;
        }
        const auto begin = std::chrono::steady_clock::now();
        for (size_t i = 0; i < keys.size(); i += every)
                make_plan(&q, keys[i], count > 5, {&table[keys[i].kind][column_of(&keys[i])], &all});
        only_compiled = true;
        for (size_t i = 0; i < keys.size(); i += sample)
                make_plan(&q, keys[i], count > 5, {&alone});
        only_compiled = false;
        const int refused = plan_attentions(&q);
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
        print_table();
        printf("cuDNN %zu, %.1f s\n", l->number, time.count());
        print_engines("all engines", &all);
        print_engines("compiled at run time alone", &alone);
        l->destroy(device);
        return all.made != all.plans || alone.made != alone.plans || !alone.made || refused;
}

#else
int main()
{
        puts("skipped: this build knows nothing of cuDNN 9.8");
        return 77;
}
#endif
