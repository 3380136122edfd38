/* save.c - saves state entries to a safetensors file: tensors as tensors, numbers and texts as metadata strings. */
#include <inttypes.h>
#include "core/observer.h"
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

static void write_number(const lg__state_entry *entry, char text[DIGITS])
{
        if (entry->kind == LG__ENTRY_I64)
                snprintf(text, DIGITS, "%" PRId64, *(int64_t *)entry->at);
        else if (entry->kind == LG__ENTRY_U64)
                snprintf(text, DIGITS, "%" PRIu64, *(uint64_t *)entry->at);
        else if (entry->kind == LG__ENTRY_F64)
                snprintf(text, DIGITS, "%a", *(double *)entry->at);
        else if (entry->kind == LG__ENTRY_BOOL)
                snprintf(text, DIGITS, "%s", *(bool *)entry->at ? "true" : "false");
}

/* The arrays of a save, which are allocated before anything is written. */
typedef struct save {
        lg__weight_out *tensors;
        lg__meta *numbers;
        char (*texts)[DIGITS];
        int64_t tensor_count, number_count;
} save;

static void describe(const lg__state_entries *list, save *s)
{
        locale_t was = lg__point_begin();
        for (int64_t i = 0; i < list->count; i++) {
                const lg__state_entry *entry = &list->items[i];
                if (entry->kind == LG__ENTRY_COUNT) {
                        s->tensors[s->tensor_count++] = (lg__weight_out){
                                .name = entry->name, .dtype = LG_I64, .shape = LG_SHAPE_0D, .data = entry->at};
                        continue;
                }
                if (entry->kind != LG__ENTRY_TENSOR) {
                        char *text = s->texts[s->number_count];
                        write_number(entry, text);
                        s->numbers[s->number_count++] =
                                (lg__meta){entry->name, entry->kind == LG__ENTRY_TEXT ? entry->at : text};
                        continue;
                }
                lg_tensor *t = *(lg_tensor **)entry->at;
                if (t)
                        s->tensors[s->tensor_count++] = (lg__weight_out){.name = entry->name,
                                                                         .dtype = t->at.dtype,
                                                                         .shape = t->at.shape,
                                                                         .data = host_data(t),
                                                                         .read = read_part,
                                                                         .user = t};
        }
        lg__point_end(was);
}

bool lg__state_save(lg__state_entries *list, const char *path)
{
        lg_ctx *c = list->c;
        lg__frame span;
        lg__span_begin(c, &span, "save", NULL, NULL);
        save s = {NULL, NULL, NULL, 0, 0};
        const size_t n = (size_t)list->count + 1;
        if (!lg__unrecorded(c, list->op))
                return false;
        s.tensors = lg__alloc(c, n * sizeof *s.tensors);
        s.numbers = s.tensors ? lg__alloc(c, n * sizeof *s.numbers) : NULL;
        s.texts = s.numbers ? lg__alloc(c, n * sizeof *s.texts) : NULL;
        bool ok = s.texts && lg_synchronize(c); /* fails after a device-side error, so that a good file is kept */
        if (ok) {
                describe(list, &s);
                ok = lg__weights_save(c, list->op, path, s.tensors, s.tensor_count, s.numbers, s.number_count);
        }
        lg__free(c, s.texts, n * sizeof *s.texts);
        lg__free(c, s.numbers, n * sizeof *s.numbers);
        lg__free(c, s.tensors, n * sizeof *s.tensors);
        lg__span_end(c, &span);
        return ok;
}
