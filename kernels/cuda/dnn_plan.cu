/* dnn_plan.cu - execution plans: a convolution as a cuDNN graph, and the choice of the engine that runs it. */
#include "dnn.h"
#if LG_CUDNN

#define CANDIDATES 64 /* engines to ask for: dozens with tensor cores may precede the first without */
#define WORKSPACE_MOST ((int64_t)1 << 30)

void lg_dnn_parts::drop(int from)
{
        while (count > from)
                lg_dnn_find()->destroy(part[--count]);
}

void lg_dnn_parts::remove(cudnnBackendDescriptor_t d)
{
        int at = 0;
        while (at < count && part[at] != d)
                at++;
        if (at == count)
                return;
        lg_dnn_find()->destroy(d);
        for (count--; at < count; at++)
                part[at] = part[at + 1];
}

lg_dnn_parts::~lg_dnn_parts()
{
        drop(0);
}

/* Makes cuDNN descriptors; after the first call that fails, all further calls do nothing. */
struct builder {
        lg_queue *q;
        lg_dnn_parts *parts;
        const lg_dnn_library *l = lg_dnn_find();
        lg_dnn_answer state = LG_DNN_DONE;
        cudnnStatus_t broken = CUDNN_STATUS_SUCCESS; /* first error of an engine, other than "not supported" */
        lg_dnn_words words = {};                     /* description of that error */
        int tried = 0; /* engines seen so far that may be used, in the order of preference */

        bool good() const
        {
                return state == LG_DNN_DONE;
        }
        void judge(const char *call, cudnnStatus_t s)
        {
                state = lg_dnn_judge(q, call, s);
        }
        cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type)
        {
                cudnnBackendDescriptor_t d = nullptr;
                if (good() && parts->count == LG_DNN_PARTS) {
                        lg_queue_fail(q, LG_BROKEN, "conv: a graph of too many parts");
                        state = LG_DNN_FAILED;
                }
                if (good())
                        judge("cudnnBackendCreateDescriptor", l->make(type, &d));
                if (good())
                        parts->part[parts->count++] = d;
                return d;
        }
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                 int64_t count, const void *values)
        {
                if (good())
                        judge("cudnnBackendSetAttribute", l->set(d, name, type, count, values));
        }
        /* Set an attribute to one value, whose cuDNN type follows from the argument's type. */
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t part)
        {
                set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
        }
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnDataType_t type)
        {
                set(d, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
        }
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, int64_t number)
        {
                set(d, name, CUDNN_TYPE_INT64, 1, &number);
        }
        void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, bool yes)
        {
                set(d, name, CUDNN_TYPE_BOOLEAN, 1, &yes);
        }
        /* Reads up to `room` values of an attribute; *count is the number available. */
        void get(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                 int64_t room, int64_t *count, void *values)
        {
                *count = 0;
                if (good())
                        judge("cudnnBackendGetAttribute", l->get(d, name, type, room, count, values));
        }
        void finish(cudnnBackendDescriptor_t d)
        {
                if (good())
                        judge("cudnnBackendFinalize", l->finish(d));
        }
};

static cudnnDataType_t data_type(int32_t t)
{
        return t == LG_F64    ? CUDNN_DATA_DOUBLE
               : t == LG_F16  ? CUDNN_DATA_HALF
               : t == LG_BF16 ? CUDNN_DATA_BFLOAT16
                              : CUDNN_DATA_FLOAT;
}

static cudnnDataType_t compute_type(const lg_dnn_key *k)
{
        return k->dtype == LG_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/* Describes a tensor (N, C, H, W), stored with channels last. A virtual tensor is never in memory. */
static cudnnBackendDescriptor_t tensor(builder *b, const lg_dnn_key *k, int64_t name, const int64_t dims[4],
                                       bool is_virtual)
{
        const int64_t strides[] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
        cudnnBackendDescriptor_t t = b->make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        b->set(t, CUDNN_ATTR_TENSOR_DATA_TYPE, is_virtual ? compute_type(k) : data_type(k->dtype));
        b->set(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
        b->set(t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
        b->set(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, name);
        b->set(t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, (int64_t)(is_virtual ? 16 : k->alignment));
        if (is_virtual)
                b->set(t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
        b->finish(t);
        return t;
}

static cudnnBackendDescriptor_t geometry(builder *b, const lg_dnn_key *k)
{
        const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
        cudnnBackendDescriptor_t c = b->make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
        b->set(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute_type(k));
        b->set(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
        b->set(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, (int64_t)2);
        b->set(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, k->at.padding);
        b->set(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, k->at.padding);
        b->set(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, k->at.stride);
        b->set(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, k->at.dilation);
        b->finish(c);
        return c;
}

/* cuDNN's names of the operations and their attributes, indexed by lg_conv_kind. */
static const struct {
        cudnnBackendDescriptorType_t type;
        cudnnBackendAttributeName_t geometry, x, w, y, alpha, beta;
} operations[] = {{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
                  {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
                  {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

/* Describes the convolution of k->kind, with alpha = 1 and beta = 0 (the result is overwritten). */
static cudnnBackendDescriptor_t convolution(builder *b, const lg_dnn_key *k, cudnnBackendDescriptor_t x,
                                            cudnnBackendDescriptor_t w, cudnnBackendDescriptor_t y)
{
        const auto &names = operations[k->kind];
        const float f[] = {1, 0};
        const double d[] = {1, 0};
        const bool wide = k->dtype == LG_F64;
        const cudnnBackendAttributeType_t type = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
        cudnnBackendDescriptor_t conv = geometry(b, k), o = b->make(names.type);
        b->set(o, names.geometry, conv);
        b->set(o, names.x, x);
        b->set(o, names.w, w);
        b->set(o, names.y, y);
        b->set(o, names.alpha, type, 1, wide ? (const void *)&d[0] : &f[0]);
        b->set(o, names.beta, type, 1, wide ? (const void *)&d[1] : &f[1]);
        b->finish(o);
        return o;
}

/* Describes y = x + values, with one value for each channel. */
static cudnnBackendDescriptor_t bias(builder *b, const lg_dnn_key *k, cudnnBackendDescriptor_t x,
                                     cudnnBackendDescriptor_t values, cudnnBackendDescriptor_t y)
{
        const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
        cudnnBackendDescriptor_t add = b->make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        b->set(add, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
        b->set(add, CUDNN_ATTR_POINTWISE_MATH_PREC, compute_type(k));
        b->finish(add);
        cudnnBackendDescriptor_t o = b->make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        b->set(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
        b->set(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
        b->set(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, values);
        b->set(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
        b->finish(o);
        return o;
}

static cudnnBackendDescriptor_t graph_of(builder *b, const lg_dnn_key *k, cudnnHandle_t handle)
{
        const lg_conv_geometry *at = &k->at;
        const int64_t x_dims[] = {k->n, k->channels, at->in[0], at->in[1]};
        const int64_t w_dims[] = {k->outputs, k->channels / at->groups, at->kernel[0], at->kernel[1]};
        const int64_t y_dims[] = {k->n, k->outputs, at->out[0], at->out[1]}, b_dims[] = {1, k->outputs, 1, 1};
        cudnnBackendDescriptor_t operation[2], x = tensor(b, k, LG_DNN_X, x_dims, false);
        cudnnBackendDescriptor_t w = tensor(b, k, LG_DNN_W, w_dims, false), y = tensor(b, k, LG_DNN_Y, y_dims, false);
        int64_t count = 1;
        if (k->bias) {
                cudnnBackendDescriptor_t values = tensor(b, k, LG_DNN_B, b_dims, false);
                cudnnBackendDescriptor_t sum = tensor(b, k, LG_DNN_SUM, y_dims, true);
                operation[0] = convolution(b, k, x, w, sum);
                operation[1] = bias(b, k, sum, values, y);
                count = 2;
        } else {
                operation[0] = convolution(b, k, x, w, y);
        }
        cudnnBackendDescriptor_t g = b->make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        b->set(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operation);
        b->set(g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        b->finish(g);
        return g;
}

/* Returns whether an engine with these notes may be used: no TF32 in f32 unless allowed, sums in f32 or better, results
 * that repeat bit for bit if required. */
static bool is_allowed(const lg_dnn_key *k, int64_t count, const cudnnBackendNumericalNote_t *notes)
{
        for (int64_t i = 0; i < count; i++)
                if (notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
                    notes[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
                    (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC && k->deterministic) ||
                    (notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && k->dtype == LG_F32 && !k->tf32))
                        return false;
        return true;
}

/* READY: kernels are in the library. SLOW: the engine compiles them when a plan is made, which takes seconds. */
typedef enum engine_use { FORBIDDEN, READY, SLOW } engine_use;

static engine_use use_of(builder *b, const lg_dnn_key *k, cudnnBackendDescriptor_t config)
{
        cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT + 16]; /* room for later libraries */
        cudnnBackendBehaviorNote_t behaviors[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT + 16];
        const int64_t notes_room = sizeof notes / sizeof *notes, behaviors_room = sizeof behaviors / sizeof *behaviors;
        int64_t notes_count = 0, behaviors_count = 0;
        const int mark = b->parts->count;
        cudnnBackendDescriptor_t engine = b->make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        b->get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &notes_count, &engine);
        b->get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, notes_room, &notes_count, notes);
        b->get(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, behaviors_room, &behaviors_count,
               behaviors);
        b->parts->drop(mark);
        if (!b->good() || !is_allowed(k, notes_count < notes_room ? notes_count : notes_room, notes))
                return FORBIDDEN;
        for (int64_t i = 0; i < behaviors_count && i < behaviors_room; i++)
                if (behaviors[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)
                        return SLOW;
        return READY;
}

/* Finalizes a plan. A failure counts as REFUSED; b->broken keeps the first error, reported if no engine works. */
static void finish_plan(builder *b, cudnnBackendDescriptor_t plan)
{
        cudnnStatus_t s;
        bool broken;
        do {
                s = b->l->finish(plan);
                broken = s != CUDNN_STATUS_SUCCESS && CUDNN_STATUS_CATEGORY(s) != CUDNN_STATUS_NOT_SUPPORTED &&
                         s != CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED;
        } while (broken && lg_cuda_again(b->q, lg_dnn_lacked_memory(s)));
        b->state = s == CUDNN_STATUS_SUCCESS ? LG_DNN_DONE : LG_DNN_REFUSED;
        if (broken && b->broken == CUDNN_STATUS_SUCCESS) {
                b->broken = s;
                b->words = lg_dnn_last_words();
        }
}

static void plan_by(builder *b, cudnnHandle_t handle, cudnnBackendDescriptor_t config, lg_dnn_plan *p)
{
        const int mark = b->parts->count;
        int64_t count = 0;
        p->plan = b->make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        b->set(p->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        b->set(p->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
        if (b->good())
                finish_plan(b, p->plan);
        b->get(p->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &p->workspace);
        if (b->good() && p->workspace > WORKSPACE_MOST)
                b->state = LG_DNN_REFUSED;
        if (!b->good())
                b->parts->drop(mark);
}

/* Makes a plan with the first engine of a heuristic that is allowed and works; SLOW ones are tried after the others. */
static void search(builder *b, cudnnHandle_t handle, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode,
                   lg_dnn_plan *p)
{
        cudnnBackendDescriptor_t found[CANDIDATES] = {};
        int64_t count = 0, given = 0;
        cudnnBackendDescriptor_t h = b->make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
        b->set(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
        b->set(h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
        b->finish(h);
        b->get(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr);
        count = count < CANDIDATES ? count : CANDIDATES;
        for (int64_t i = 0; i < count; i++)
                found[i] = b->make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        b->get(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &given, found);
        if (!b->good())
                return;
        b->state = LG_DNN_REFUSED;
        engine_use use[CANDIDATES];
        const int64_t known = count < given ? count : given;
        int64_t chosen = 0;
        for (int64_t turn = 0; turn < 2 * known && b->state == LG_DNN_REFUSED; turn++) {
                const int64_t i = turn % known;
                b->state = LG_DNN_DONE;
                if (turn < known)
                        use[i] = use_of(b, &p->key, found[i]);
                if (use[i] == (turn < known ? READY : SLOW) && ++b->tried > p->tried) {
                        p->tried = b->tried;
                        plan_by(b, handle, found[chosen = i], p);
                } else if (b->good()) {
                        b->state = LG_DNN_REFUSED;
                }
        }
        for (int64_t i = 0; i < count; i++)
                if (i != chosen)
                        b->parts->remove(found[i]);
}

lg_dnn_answer lg_dnn_build(lg_queue *q, cudnnHandle_t handle, lg_dnn_plan *p)
{
        const bool again = p->tried > 0;
        p->parts.drop(0);
        builder b = {q, &p->parts};
        cudnnBackendDescriptor_t graph = graph_of(&b, &p->key, handle);
        const int mark = p->parts.count;
        const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
        bool described = b.good();
        for (int i = 0; described && i < 2; i++) {
                p->parts.drop(mark);
                b.state = LG_DNN_DONE;
                search(&b, handle, graph, modes[i], p);
                if (b.state != LG_DNN_REFUSED)
                        break;
        }
        if (b.state == LG_DNN_REFUSED && b.broken != CUDNN_STATUS_SUCCESS && !again)
                b.state = lg_dnn_judge(q, "cudnnBackendFinalize", b.broken, &b.words);
        p->works = b.good();
        if (!p->works) {
                p->parts.drop(0);
                p->plan = nullptr;
                p->workspace = 0;
        }
        return b.state;
}
#endif
