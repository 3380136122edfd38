/* save.c - saves a roster's items to a safetensors file: tensors as tensors, numbers and texts as metadata strings. */
#include <inttypes.h>
#include "load.h"

#define DIGITS 32 /* bytes of the longest number as text */

/* Copies `bytes` bytes of a tensor's row-major values, from byte `at`, to host memory. */
static bool read_part(void *user, int64_t at, size_t bytes, void *to)
{
        lg_tensor *t = user;
        int64_t size = (int64_t)lg__dtype_bytes(t->at.dtype), first = at / size;
        lg_scope scope = lg__scope_begin(t->ctx);
        lg_tensor *flat = scope.id ? lg_reshape(lg_detach(t), LG_SHAPE(lg__shape_numel(t->at.shape))) : NULL;
        lg_tensor *part = flat ? lg_slice(flat, 0, first, first + (int64_t)bytes / size) : NULL;
        bool ok = part && lg_read(part, to, t->at.dtype, bytes);
        lg_scope_end(t->ctx, scope);
        return ok;
}

/* Returns the address of t's values if they are on the host and contiguous; NULL: read_part() copies them. */
static const void *host_data(const lg_tensor *t)
{
        return t->storage->device->id.type == LG_DEVICE_CPU && lg__layout_is_contiguous(&t->at) ? lg__data(t) : NULL;
}

static void write_number(const lg__held *h, char text[DIGITS])
{
        if (h->kind == LG__HELD_I64)
                snprintf(text, DIGITS, "%" PRId64, *(int64_t *)h->at);
        else if (h->kind == LG__HELD_U64)
                snprintf(text, DIGITS, "%" PRIu64, *(uint64_t *)h->at);
        else if (h->kind == LG__HELD_F64)
                snprintf(text, DIGITS, "%a", *(double *)h->at);
        else if (h->kind == LG__HELD_BOOL)
                snprintf(text, DIGITS, "%s", *(bool *)h->at ? "true" : "false");
}

/* The arrays of a save, which are allocated before anything is written. */
typedef struct save {
        lg__weight_out *tensors;
        lg__meta *numbers;
        char (*texts)[DIGITS];
        int64_t tensor_count, number_count;
} save;

static void describe(const lg__roster *r, save *s)
{
        locale_t was = lg__point_begin();
        for (int64_t i = 0; i < r->count; i++) {
                const lg__held *h = &r->items[i];
                if (h->kind == LG__HELD_COUNT) {
                        s->tensors[s->tensor_count++] =
                                (lg__weight_out){.name = h->name, .dtype = LG_I64, .shape = LG_SHAPE_0D, .data = h->at};
                        continue;
                }
                if (h->kind != LG__HELD_TENSOR) {
                        char *text = s->texts[s->number_count];
                        write_number(h, text);
                        s->numbers[s->number_count++] = (lg__meta){h->name, h->kind == LG__HELD_TEXT ? h->at : text};
                        continue;
                }
                lg_tensor *t = *(lg_tensor **)h->at;
                if (t)
                        s->tensors[s->tensor_count++] = (lg__weight_out){.name = h->name,
                                                                         .dtype = t->at.dtype,
                                                                         .shape = t->at.shape,
                                                                         .data = host_data(t),
                                                                         .read = read_part,
                                                                         .user = t};
        }
        lg__point_end(was);
}

bool lg__state_save(lg__roster *r, const char *path)
{
        lg_ctx *c = r->c;
        save s = {NULL, NULL, NULL, 0, 0};
        const size_t n = (size_t)r->count + 1;
        s.tensors = lg__alloc(c, n * sizeof *s.tensors);
        s.numbers = s.tensors ? lg__alloc(c, n * sizeof *s.numbers) : NULL;
        s.texts = s.numbers ? lg__alloc(c, n * sizeof *s.texts) : NULL;
        bool ok = s.texts && lg_synchronize(c); /* fails after a device-side error, so that a good file is kept */
        if (ok) {
                describe(r, &s);
                ok = lg__weights_save(c, r->op, path, s.tensors, s.tensor_count, s.numbers, s.number_count);
        }
        lg__free(c, s.texts, n * sizeof *s.texts);
        lg__free(c, s.numbers, n * sizeof *s.numbers);
        lg__free(c, s.tensors, n * sizeof *s.tensors);
        return ok;
}
