/* safetensors_header.c - parses the JSON header of a safetensors file to a list of tensors, and checks all contents. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"
#include "safetensors.h"

#define BAD(w, format, ...) lg__fail((w)->ctx, LG_ERR_FORMAT, "%s: %s: " format, (w)->op, (w)->path, __VA_ARGS__)

/* Dtypes of the format, with the bits of an element and libgrad's dtype, if there is one. */
static const struct {
        const char *name;
        int bits;
        lg_dtype dtype;
} dtypes[] = {
        {"F32", 32, LG_F32},
        {"F64", 64, LG_F64},
        {"F16", 16, LG_F16},
        {"BF16", 16, LG_BF16},
        {"I64", 64, LG_I64},
        {"I32", 32, LG_I32},
        {"U8", 8, LG_U8},
        {"BOOL", 8, LG_BOOL},
        {"I8", 8, LG_DTYPE_NONE},
        {"I16", 16, LG_DTYPE_NONE},
        {"U16", 16, LG_DTYPE_NONE},
        {"U32", 32, LG_DTYPE_NONE},
        {"U64", 64, LG_DTYPE_NONE},
        {"C64", 64, LG_DTYPE_NONE},
        {"F8_E4M3", 8, LG_DTYPE_NONE},
        {"F8_E5M2", 8, LG_DTYPE_NONE},
        {"F8_E8M0", 8, LG_DTYPE_NONE},
        {"F8_E4M3FNUZ", 8, LG_DTYPE_NONE},
        {"F8_E5M2FNUZ", 8, LG_DTYPE_NONE},
        {"F6_E2M3", 6, LG_DTYPE_NONE},
        {"F6_E3M2", 6, LG_DTYPE_NONE},
        {"F4", 4, LG_DTYPE_NONE},
};

const char *lg__weight_dtype_name(lg_dtype dtype)
{
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
                if (dtype != LG_DTYPE_NONE && dtypes[i].dtype == dtype)
                        return dtypes[i].name;
        return NULL;
}

/* ---- one tensor ---- */

static bool get_dtype(const lg__weights *w, lg__weight *e, lg__json v, int *ret_bits)
{
        if (*v.s != '"')
                return BAD(w, "the dtype of %s is no string", lg__quoted(e->name).s);
        const char *name = lg__json_string(&v);
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
                if (!strcmp(dtypes[i].name, name)) {
                        e->dtype = dtypes[i].dtype;
                        e->dtype_name = dtypes[i].name;
                        *ret_bits = dtypes[i].bits;
                        return true;
                }
        }
        return BAD(w, "%s has the unknown dtype %s", lg__quoted(e->name).s, lg__quoted(name).s);
}

/* Reads an array of at most `most` integers. Returns their number, or -1 with an error. */
static int get_numbers(const lg__weights *w, const lg__weight *e, lg__json v, const char *what, int most, int64_t *ret)
{
        int n = 0;
        if (*v.s++ != '[') {
                BAD(w, "the %s of %s is no array", what, lg__quoted(e->name).s);
                return -1;
        }
        while (lg__json_next(&v)) {
                if (*v.s < '0' || *v.s > '9') {
                        BAD(w, "the %s of %s holds more than numbers", what, lg__quoted(e->name).s);
                        return -1;
                }
                if (n == most) {
                        BAD(w, "the %s of %s has more than %d numbers", what, lg__quoted(e->name).s, most);
                        return -1;
                }
                ret[n++] = lg__json_number(&v);
        }
        return n;
}

static bool check_bytes(const lg__weights *w, const lg__weight *e, int bits)
{
        lg__quote name = lg__quoted(e->name);
        int64_t most = 1, data = w->file_bytes - w->data_at; /* most: product of nonzero sizes */
        for (int i = 0; i < e->shape.ndim; i++)
                if (__builtin_mul_overflow(most, e->shape.size[i] ? e->shape.size[i] : 1, &most) ||
                    most > INT64_MAX / 64)
                        return BAD(w, "the shape of %s is beyond all memory", name.s);
        int64_t total = lg__shape_numel(e->shape) * bits;
        if (total % 8)
                return BAD(w, "%s, %s %s, does not end with a byte", name.s, e->dtype_name, lg__shape_text(e->shape).s);
        if (e->begin > e->end)
                return BAD(w, "the data_offsets of %s, %" PRId64 " and %" PRId64 ", are not in rising order", name.s,
                           e->begin, e->end);
        if (e->end - e->begin != total / 8)
                return BAD(w, "%s is %s %s, %" PRId64 " bytes, but its data_offsets hold %" PRId64, name.s,
                           e->dtype_name, lg__shape_text(e->shape).s, total / 8, e->end - e->begin);
        if (e->end > data)
                return BAD(w, "%s ends at byte %" PRId64 " of the data, but the file holds only %" PRId64, name.s,
                           e->end, data);
        return true;
}

static bool get_tensor(const lg__weights *w, lg__weight *e, lg__json *p)
{
        static const char *const members[] = {"dtype", "shape", "data_offsets"};
        lg__json found[3] = {{0}};
        lg__quote name = lg__quoted(e->name);
        const char *member;
        int64_t offsets[2];
        int bits = 0, i;
        if (*p->s++ != '{')
                return BAD(w, "%s is no object with dtype, shape and data_offsets", name.s);
        while ((member = lg__json_member(p))) {
                for (i = 0; i < 3 && strcmp(member, members[i]); i++)
                        ;
                if (i == 3)
                        return BAD(w, "%s has the unknown member %s", name.s, lg__quoted(member).s);
                if (found[i].s)
                        return BAD(w, "%s has two members \"%s\"", name.s, members[i]);
                found[i] = *p;
                lg__json_skip(p);
        }
        for (i = 0; i < 3; i++)
                if (!found[i].s)
                        return BAD(w, "%s has no member \"%s\"", name.s, members[i]);
        if (!get_dtype(w, e, found[0], &bits))
                return false;
        e->shape.ndim = get_numbers(w, e, found[1], members[1], LG_MAX_DIMS, e->shape.size);
        if (e->shape.ndim < 0 || (i = get_numbers(w, e, found[2], members[2], 2, offsets)) < 0)
                return false;
        if (i < 2)
                return BAD(w, "the data_offsets of %s are not two numbers", name.s);
        e->begin = offsets[0];
        e->end = offsets[1];
        return check_bytes(w, e, bits);
}

/* ---- the whole header ---- */

static bool add_tensor(lg__weights *w, const char *name, lg__json *p)
{
        if (!lg__grow(w->ctx, &w->entries, w->count, &w->room, sizeof *w->entries))
                return false;
        lg__weight *e = &w->entries[w->count];
        e->name = name;
        bool ok = get_tensor(w, e, p);
        w->count += ok;
        return ok;
}

static bool add_metas(lg__weights *w, lg__json *p)
{
        const char *key;
        if (*p->s++ != '{')
                return BAD(w, "\"%s\" is no object", "__metadata__");
        while ((key = lg__json_member(p))) {
                if (!lg__grow(w->ctx, &w->metas, w->meta_count, &w->meta_room, sizeof *w->metas))
                        return false;
                if (*p->s != '"')
                        return BAD(w, "%s in \"__metadata__\" is no string", lg__quoted(key).s);
                w->metas[w->meta_count++] = (lg__meta){key, lg__json_string(p)};
        }
        return true;
}

static bool add_members(lg__weights *w, lg__json p)
{
        bool has_metadata = false;
        for (const char *name; (name = lg__json_member(&p));) {
                const bool metadata = !strcmp(name, "__metadata__");
                if (metadata && has_metadata)
                        return BAD(w, "there are two members \"%s\"", "__metadata__");
                has_metadata = has_metadata || metadata;
                if (!(metadata ? add_metas(w, &p) : add_tensor(w, name, &p)))
                        return false;
        }
        return true;
}

static int by_bytes(const void *a, const void *b)
{
        const lg__weight *x = a, *y = b;
        if (x->begin != y->begin)
                return x->begin < y->begin ? -1 : 1;
        if (x->end != y->end)
                return x->end < y->end ? -1 : 1;
        return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
        return strcmp((*(lg__weight *const *)a)->name, (*(lg__weight *const *)b)->name);
}

static int by_key(const void *a, const void *b)
{
        return strcmp(((const lg__meta *)a)->key, ((const lg__meta *)b)->key);
}

static bool index_names(lg__weights *w)
{
        w->by_name = lg__alloc(w->ctx, (size_t)w->count * sizeof *w->by_name);
        if (!w->by_name)
                return false;
        for (int64_t i = 0; i < w->count; i++)
                w->by_name[i] = &w->entries[i];
        qsort(w->by_name, (size_t)w->count, sizeof *w->by_name, by_name);
        for (int64_t i = 1; i < w->count; i++)
                if (!strcmp(w->by_name[i - 1]->name, w->by_name[i]->name))
                        return BAD(w, "there are two tensors %s", lg__quoted(w->by_name[i]->name).s);
        if (w->meta_count)
                qsort(w->metas, (size_t)w->meta_count, sizeof *w->metas, by_key);
        for (int64_t i = 1; i < w->meta_count; i++)
                if (!strcmp(w->metas[i - 1].key, w->metas[i].key))
                        return BAD(w, "there are two strings %s in \"__metadata__\"", lg__quoted(w->metas[i].key).s);
        return true;
}

/* Checks that the tensors cover all bytes after the header, in order, without gaps or overlaps. */
static bool check_order(const lg__weights *w)
{
        int64_t data = w->file_bytes - w->data_at, at = 0;
        for (int64_t i = 0; i < w->count; i++) {
                const lg__weight *e = &w->entries[i];
                if (e->begin < at)
                        return BAD(w, "%s begins at byte %" PRId64 " of the data, within %s, which ends at %" PRId64,
                                   lg__quoted(e->name).s, e->begin, lg__quoted(e[-1].name).s, at);
                if (e->begin > at)
                        return BAD(w, "%s begins at byte %" PRId64 " of the data, but at %" PRId64 " a tensor must",
                                   lg__quoted(e->name).s, e->begin, at);
                at = e->end;
        }
        return at == data || BAD(w, "%" PRId64 " bytes follow the last tensor", data - at);
}

bool lg__weights_parse(lg__weights *w, const char *header, size_t bytes)
{
        lg__span text = {header, bytes};
        const char *wrong;
        size_t at;
        if (!lg__json_check(text, &wrong, &at))
                return BAD(w, "is no safetensors file: its header is wrong at byte %zu: %s", at + 8, wrong);
        w->text_bytes = (int64_t)bytes;
        w->text = lg__alloc(w->ctx, bytes);
        if (!w->text || !add_members(w, (lg__json){.s = header + 1, .end = header + bytes, .to = w->text}))
                return false;
        if (w->count)
                qsort(w->entries, (size_t)w->count, sizeof *w->entries, by_bytes);
        return index_names(w) && check_order(w);
}
