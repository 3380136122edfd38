/* dnn_plan.cu - execution plans: a cuDNN graph, and the choice of the engine that runs it. */
#include "dnn_graph.h"
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

cudnnBackendDescriptor_t lg_dnn_tensor(lg_dnn_builder *b, cudnnDataType_t type, int64_t number, const int64_t *dims,
                                       const int64_t *strides, int64_t alignment, lg_dnn_memory memory)
{
        cudnnBackendDescriptor_t t = b->make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        b->set(t, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
        b->set(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
        b->set(t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
        b->set(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, number);
        b->set(t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
        if (memory == LG_DNN_VIRTUAL)
                b->set(t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
        if (memory == LG_DNN_BY_VALUE)
                b->set(t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
        b->finish(t);
        return t;
}

cudnnBackendDescriptor_t lg_dnn_pointwise(lg_dnn_builder *b, cudnnPointwiseMode_t mode, cudnnDataType_t precision,
                                          cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y,
                                          cudnnBackendDescriptor_t z, cudnnBackendDescriptor_t to, int64_t axis)
{
        cudnnBackendDescriptor_t p = b->make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
        b->set(p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
        b->set(p, CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
        if (axis >= 0)
                b->set(p, CUDNN_ATTR_POINTWISE_AXIS, axis);
        b->finish(p);
        cudnnBackendDescriptor_t o = b->make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
        b->set(o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
        b->set(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
        if (y)
                b->set(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, y);
        if (z)
                b->set(o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, z);
        b->set(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
        b->finish(o);
        return o;
}

static cudnnBackendDescriptor_t graph_of(lg_dnn_builder *b, const lg_dnn_key *k, cudnnHandle_t handle)
{
        cudnnBackendDescriptor_t operations[LG_DNN_OPERATIONS];
        const int64_t count = k->kind < LG_DNN_ATTENTION ? lg_dnn_conv_operations(b, k, operations)
                                                         : lg_dnn_attention_operations(b, k, operations);
        cudnnBackendDescriptor_t g = b->make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        b->set(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operations);
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

static engine_use use_of(lg_dnn_builder *b, const lg_dnn_key *k, cudnnBackendDescriptor_t config)
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
static void finish_plan(lg_dnn_builder *b, cudnnBackendDescriptor_t plan)
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

static void plan_by(lg_dnn_builder *b, cudnnHandle_t handle, cudnnBackendDescriptor_t config, lg_dnn_plan *p)
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
static void search(lg_dnn_builder *b, cudnnHandle_t handle, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode,
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
        lg_dnn_builder b = {q, &p->parts};
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
