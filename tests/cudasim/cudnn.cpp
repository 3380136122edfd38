/* cudnn.cpp - the functions of cuDNN 9 in use: convolutions and attention by the graph API, when the stream gets there.
 *
 * Engines of every graph: one that says only at the plan that it cannot; one that compiles its kernels, for aligned
 * operands; one on tensor cores, which rounds f32 to TF32; one that adds up gradients in another order each time; and,
 * from the fallback heuristic, a plain one. All want channels last. Only the tensor cores' adds a bias. Attention has
 * the one that compiles alone. Misuse dies; what cuDNN refuses is refused.
 */
#include "cudnn_calls.h"
#include "cudnn_graph.h"
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace cudasim;
using namespace cudasim::dnn;

namespace
{
std::vector<int> engines_of(const descriptor *heuristic)
{
        const auto mode = value<cudnnBackendHeurMode_t>(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE);
        if (mode == CUDNN_HEUR_MODE_A)
                return {LATE, COMPILED, TENSOR, UNSTEADY};
        if (mode == CUDNN_HEUR_MODE_FALLBACK)
                return {PLAIN};
        die("cuDNN: heuristic mode %d", (int)mode);
}

void fill(descriptor *empty, cudnnBackendDescriptorType_t type, int engine, descriptor *graph)
{
        if (empty->type != type || empty->finished)
                die("cudnnBackendGetAttribute: a descriptor of type %d, where an empty one of type %d is filled in",
                    (int)empty->type, (int)type);
        empty->finished = true;
        empty->engine = engine;
        empty->graph = graph;
}

int64_t get(descriptor *d, int name, int64_t room, void *to)
{
        if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
                const std::vector<int> engines = engines_of(d);
                for (int64_t i = 0; i < room && i < (int64_t)engines.size(); i++)
                        fill(of(((void **)to)[i], "cudnnBackendGetAttribute"), CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                             engines[(size_t)i], part(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
                return (int64_t)engines.size();
        }
        if (d->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && name == CUDNN_ATTR_ENGINECFG_ENGINE && room == 1) {
                fill(of(*(void **)to, "cudnnBackendGetAttribute"), CUDNN_BACKEND_ENGINE_DESCRIPTOR, d->engine,
                     d->graph);
                return 1;
        }
        if (d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
                const cudnnBackendNumericalNote_t note =
                        d->engine == TENSOR ? CUDNN_NUMERICAL_NOTE_TENSOR_CORE : CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
                const descriptor *graph = of(d->graph, "cudnnBackendGetAttribute");
                const bool steady = !is_convolution(graph) || meaning_of(graph).kind == 0;
                const int64_t count = d->engine == TENSOR || (d->engine == UNSTEADY && !steady);
                if (count && room)
                        memcpy(to, &note, sizeof note);
                return count;
        }
        if (d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE) {
                const cudnnBackendBehaviorNote_t note = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
                const int64_t count = d->engine == COMPILED;
                if (count && room)
                        memcpy(to, &note, sizeof note);
                return count;
        }
        if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE &&
            room == 1) {
                *(int64_t *)to = workspace_of(d->engine);
                return 1;
        }
        die("cudnnBackendGetAttribute: attribute %d of a descriptor of type %d", name, (int)d->type);
}

/* What cudnnGetLastErrorString says. */
thread_local std::string last_words;

/* Where the pack says that a tensor is. */
cudnnStatus_t find(const descriptor *pack, const tensor &t, char **ret)
{
        const attribute &ids = pack->has.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
        *ret = nullptr;
        for (int i = 0; i < ids.count; i++)
                if (value<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == t.name)
                        *ret = value<char *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
        if (!*ret)
                die("cudnnBackendExecute: the pack has no tensor %d", (int)t.name);
        if (t.by_value)
                return CUDNN_STATUS_SUCCESS;
        if ((uintptr_t)*ret % (uintptr_t)t.alignment)
                return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
        int64_t span = 1;
        for (int i = 0; i < 4; i++)
                span += (t.dims[i] - 1) * t.strides[i];
        check_device("cudnnBackendExecute", *ret, (size_t)span * size_of(t.type));
        return CUDNN_STATUS_SUCCESS;
}

char *workspace_in(const descriptor *plan, const descriptor *pack)
{
        const size_t bytes = (size_t)workspace_of(plan->engine);
        if (!bytes)
                return nullptr;
        char *p = value<char *>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
        check_device("cudnnBackendExecute (workspace)", p, bytes);
        return p;
}

/* Runs a graph that is no convolution. Numbers by value are read now, tensors in memory when the stream gets there. */
cudnnStatus_t execute_other(cudaStream_t stream, const descriptor *plan, const descriptor *pack)
{
        const std::vector<operation> all = operations_of(plan->graph);
        std::map<int64_t, char *> memory;
        std::map<int64_t, std::array<char, 8>> numbers;
        for (const operation &o : all)
                for (size_t i = 0; i <= o.in.size(); i++) {
                        const tensor &t = i < o.in.size() ? o.in[i] : o.to;
                        if (t.is_virtual)
                                continue;
                        const cudnnStatus_t s = find(pack, t, &memory[t.name]);
                        if (s != CUDNN_STATUS_SUCCESS)
                                return s;
                        if (t.by_value)
                                memcpy(numbers[t.name].data(), memory[t.name], size_of(t.type));
                }
        if ((int64_t)memory.size() != pack->has.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count)
                die("cudnnBackendExecute: the pack has tensors that the graph does not have");
        char *workspace = workspace_in(plan, pack);
        const size_t bytes = (size_t)workspace_of(plan->engine);
        static bool other;
        other = !other;
        enqueue(stream, [all, memory, numbers, workspace, bytes, backwards = other] {
                std::map<int64_t, char *> at = memory;
                for (const auto &[name, number] : numbers)
                        at[name] = (char *)number.data();
                if (workspace)
                        memset(workspace, 0x5a, bytes);
                compute(all, at, backwards);
        });
        return CUDNN_STATUS_SUCCESS;
}
} // namespace

cudnnStatus_t cudasim::dnn::failed(const char *call, cudnnStatus_t s)
{
        last_words = std::string(call) + " fails on purpose";
        return s;
}

extern "C" {
size_t CUDNNWINAPI cudnnGetVersion(void)
{
        return CUDNN_VERSION;
}

const char *CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t s)
{
        return s == CUDNN_STATUS_SUCCESS            ? "CUDNN_STATUS_SUCCESS"
               : s == CUDNN_STATUS_INTERNAL_ERROR   ? "CUDNN_STATUS_INTERNAL_ERROR"
               : s == CUDNN_STATUS_EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
               : s == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
                       ? "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"
               : s == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                       ? "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"
               : CUDNN_STATUS_CATEGORY(s) == CUDNN_STATUS_BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM"
                                                                    : "CUDNN_STATUS_NOT_SUPPORTED";
}

void CUDNNWINAPI cudnnGetLastErrorString(char *text, size_t size)
{
        snprintf(text, size, "%s", last_words.c_str());
        last_words.clear();
}

cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t *h)
{
        LOCK;
        FAIL;
        FAIL_MEMORY(HOST);
        if (fails(__func__, LOAD) || breaks_capture())
                return failed(__func__, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
        *h = new cudnnContext{nullptr, current_device};
        count_handles(1);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnDestroy(cudnnHandle_t h)
{
        LOCK;
        delete h;
        count_handles(-1);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
        LOCK;
        FAIL;
        h->stream = s;
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *ret)
{
        LOCK;
        FAIL;
        FAIL_MEMORY(HOST);
        *ret = create(type);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t p)
{
        LOCK;
        destroy(of(p, "cudnnBackendDestroyDescriptor"));
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendSetAttribute(cudnnBackendDescriptor_t p, cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
        LOCK;
        FAIL;
        set(of(p, "cudnnBackendSetAttribute"), name, type, count, values);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendGetAttribute(cudnnBackendDescriptor_t const p, cudnnBackendAttributeName_t name,
                                                   cudnnBackendAttributeType_t, int64_t room, int64_t *count,
                                                   void *values)
{
        LOCK;
        FAIL;
        descriptor *d = of(p, "cudnnBackendGetAttribute");
        if (!d->finished)
                die("cudnnBackendGetAttribute: a descriptor of type %d that is not finalised", (int)d->type);
        *count = get(d, name, room, values);
        return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendFinalize(cudnnBackendDescriptor_t p)
{
        LOCK;
        FAIL;
        descriptor *d = of(p, "cudnnBackendFinalize");
        if (d->finished)
                die("cudnnBackendFinalize: a descriptor of type %d, a second time", (int)d->type);
        if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && (fails(__func__, LOAD) || breaks_capture()))
                return failed(__func__, CUDNN_STATUS_EXECUTION_FAILED);
        const cudnnStatus_t s = finish(d);
        d->finished = s == CUDNN_STATUS_SUCCESS;
        return s;
}

cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan,
                                              cudnnBackendDescriptor_t pack)
{
        LOCK;
        FAIL;
        FAIL_MEMORY(DEVICE);
        if (fails(__func__, LOAD))
                return failed(__func__, CUDNN_STATUS_EXECUTION_FAILED);
        descriptor *p = of(plan, "cudnnBackendExecute"), *v = of(pack, "cudnnBackendExecute");
        if (!p->finished || !v->finished || p->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
            v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
                die("cudnnBackendExecute: not a plan and a pack that are finalised");
        if (current_device != h->device || value<cudnnHandle_t>(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != h)
                die("cudnnBackendExecute: a handle of another plan or device");
        const char *broken = getenv("CUDASIM_CUDNN_FAIL");
        if (broken && atoi(broken) >> p->engine & 1)
                return failed(__func__, CUDNN_STATUS_EXECUTION_FAILED);
        if (!is_convolution(of(p->graph, "cudnnBackendExecute")))
                return execute_other(h->stream, p, v);
        run r = {meaning_of(of(p->graph, "cudnnBackendExecute")),
                 nullptr,
                 nullptr,
                 nullptr,
                 nullptr,
                 nullptr,
                 (size_t)workspace_of(p->engine),
                 p->engine,
                 false};
        cudnnStatus_t s = find(v, r.m.x, &r.x);
        s = s == CUDNN_STATUS_SUCCESS ? find(v, r.m.w, &r.w) : s;
        s = s == CUDNN_STATUS_SUCCESS ? find(v, r.m.y, &r.y) : s;
        if (r.m.biased && s == CUDNN_STATUS_SUCCESS)
                s = find(v, r.m.bias, &r.bias);
        if (s != CUDNN_STATUS_SUCCESS)
                return s;
        r.workspace = workspace_in(p, v);
        static bool other;
        other = !other;
        r.backwards = p->engine == UNSTEADY && r.m.kind != 0 && other;
        enqueue(h->stream, [r] {
                if (r.workspace_bytes)
                        memset(r.workspace, 0x5a, r.workspace_bytes);
                convolve(r);
        });
        return CUDNN_STATUS_SUCCESS;
}
} // extern "C"
