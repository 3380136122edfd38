/* npy_header.c - the header of an array in NumPy's npy format, versions 1.0, 2.0 and 3.0.
 *
 * A file begins with the magic, two bytes of version, the header's length (little-endian, 16 bits in 1.0, else 32),
 * then a Python dict of three keys: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
 */
#include "npy.h"
#include <string.h>

#define MOST_HEADER 65536 /* bytes; NumPy writes 118 or 119 for plain arrays */

typedef struct parser {
        const lg__npy_in *in;
        const char *s, *end;
        const char *begin; /* start of the dict in memory */
        int64_t offset;    /* position of the dict in the file, for messages */
} parser;

/* A piece of the dict's text. */
typedef struct word {
        const char *s;
        int length;
} word;

static bool expected(const parser *p, const char *what)
{
        return lg__npy_bad(p->in, "has a wrong header: byte %lld: %s is expected",
                           (long long)(p->offset + (p->s - p->begin)), what);
}

static void skip_space(parser *p)
{
        while (p->s < p->end && (*p->s == ' ' || (*p->s >= '\t' && *p->s <= '\r')))
                p->s++;
}

/* Skips spaces, and character c if present. Returns whether c was present. */
static bool take(parser *p, char c)
{
        skip_space(p);
        if (p->s == p->end || *p->s != c)
                return false;
        p->s++;
        return true;
}

/* Parses a string in single or double quotes, without escapes. `what` is for messages. Returns false with an error. */
static bool take_string(parser *p, const char *what, word *ret)
{
        skip_space(p);
        if (p->s == p->end || (*p->s != '\'' && *p->s != '"'))
                return expected(p, what);
        const char quote = *p->s++;
        ret->s = p->s;
        for (; p->s < p->end && *p->s != quote; p->s++)
                if (*p->s < 32 || *p->s > 126 || *p->s == '\\') /* rejects non-ASCII characters, too */
                        return expected(p, what);
        ret->length = (int)(p->s - ret->s);
        if (p->s == p->end)
                return expected(p, "the end of a string");
        p->s++;
        return true;
}

/* Returns the name, for messages, of an element kind that libgrad has no dtype for. */
static const char *refused(char kind)
{
        switch (kind) {
        case 'c':
                return "complex numbers";
        case 'S':
        case 'a':
        case 'U':
                return "strings";
        case 'V':
                return "records or raw bytes";
        case 'O':
                return "Python objects (a pickle)";
        case 'M':
                return "dates";
        case 'm':
                return "spans of time";
        case 'f':
                return "floating-point numbers of another width than 2, 4 or 8 bytes";
        }
        return "elements of an unknown type";
}

static bool find_type(const parser *p, word descr, lg__npy *ret)
{
        static const struct {
                char name[3];
                lg_dtype dtype;
        } types[] = {{"f8", LG_F64}, {"f4", LG_F32}, {"f2", LG_F16},  {"i8", LG_I64}, {"i4", LG_I32}, {"i2", LG_I32},
                     {"i1", LG_I32}, {"u1", LG_U8},  {"b1", LG_BOOL}, {"u2", LG_I32}, {"u4", LG_I64}, {"u8", LG_I64}};
        const char order = descr.length && strchr("<>=|", descr.s[0]) ? descr.s[0] : 0;
        const word type = {descr.s + !!order, descr.length - !!order};
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
                if (type.length == 2 && !memcmp(type.s, types[i].name, 2)) {
                        ret->kind = type.s[0];
                        ret->width = type.s[1] - '0';
                        ret->dtype = types[i].dtype;
                        ret->swapped = order == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
                        return true;
                }
        return lg__npy_bad(p->in, "holds %s (descr '%.*s'), which libgrad has no tensors for",
                           refused(type.length ? type.s[0] : 0), descr.length < 40 ? descr.length : 40, descr.s);
}

static bool take_descr(parser *p, lg__npy *ret)
{
        word descr;
        skip_space(p);
        if (p->s < p->end && (*p->s == '[' || *p->s == '('))
                return lg__npy_bad(p->in, "holds records (a structured dtype), which libgrad has no tensors for");
        return take_string(p, "the dtype as a string", &descr) && find_type(p, descr, ret);
}

static bool take_fortran(parser *p, lg__npy *ret)
{
        skip_space(p);
        const size_t left = (size_t)(p->end - p->s);
        ret->fortran = left >= 4 && !memcmp(p->s, "True", 4);
        if (!ret->fortran && (left < 5 || memcmp(p->s, "False", 5) != 0))
                return expected(p, "True or False");
        p->s += ret->fortran ? 4 : 5;
        return true;
}

/* Parses a size: 12, or 12L as Python 2 wrote. */
static bool take_size(parser *p, int64_t *ret)
{
        skip_space(p);
        const char *first = p->s;
        int64_t size = 0;
        for (; p->s < p->end && *p->s >= '0' && *p->s <= '9'; p->s++)
                if (__builtin_mul_overflow(size, 10, &size) || __builtin_add_overflow(size, *p->s - '0', &size))
                        return lg__npy_bad(p->in, "has a size beyond 64 bits");
        if (p->s == first)
                return expected(p, "a size");
        if (p->s < p->end && *p->s == 'L')
                p->s++;
        *ret = size;
        return true;
}

static bool take_shape(parser *p, lg__npy *ret)
{
        bool comma = false;
        ret->shape = (lg_shape){.ndim = 0};
        if (!take(p, '('))
                return expected(p, "the shape as a tuple");
        while (!take(p, ')')) {
                if (ret->shape.ndim && !comma)
                        return expected(p, "a comma or the end of the shape");
                if (ret->shape.ndim == LG_MAX_DIMS)
                        return lg__npy_bad(p->in, "has more than %d dimensions", LG_MAX_DIMS);
                if (!take_size(p, &ret->shape.size[ret->shape.ndim++]))
                        return false;
                comma = take(p, ',');
        }
        if (ret->shape.ndim == 1 && !comma)
                return expected(p, "a comma behind the only size of a tuple");
        return true;
}

/* Parses 'key': value. Bit i of *seen records key i, which may occur only once. Returns false with an error. */
static bool take_item(parser *p, lg__npy *ret, unsigned *seen)
{
        static const struct {
                const char *name;
                bool (*take)(parser *p, lg__npy *ret);
        } keys[] = {{"descr", take_descr}, {"fortran_order", take_fortran}, {"shape", take_shape}};
        word key;
        if (!take_string(p, "a key", &key))
                return false;
        for (unsigned i = 0; i < 3; i++) {
                if (strlen(keys[i].name) != (size_t)key.length || memcmp(keys[i].name, key.s, (size_t)key.length) != 0)
                        continue;
                if (*seen & 1u << i)
                        return expected(p, "no key twice");
                *seen |= 1u << i;
                return take(p, ':') ? keys[i].take(p, ret) : expected(p, "a colon");
        }
        return expected(p, "descr, fortran_order or shape as the key");
}

static bool take_dict(parser *p, lg__npy *ret)
{
        unsigned seen = 0;
        bool comma = true;
        if (!take(p, '{'))
                return expected(p, "{");
        while (!take(p, '}')) {
                if (!comma)
                        return expected(p, "a comma or }");
                if (!take_item(p, ret, &seen))
                        return false;
                comma = take(p, ',');
        }
        skip_space(p);
        if (p->s != p->end)
                return expected(p, "nothing but spaces behind the dict");
        return seen == 7 || expected(p, "each of descr, fortran_order and shape");
}

/* Limits the product of nonzero sizes, as lg__shape_valid() does: strides must not overflow, even in empty arrays. */
static bool check_sizes(const lg__npy_in *in, const lg__npy *h)
{
        int64_t most = 1;
        for (int i = 0; i < h->shape.ndim; i++)
                if (__builtin_mul_overflow(most, h->shape.size[i] ? h->shape.size[i] : 1, &most) ||
                    most > PTRDIFF_MAX / 16)
                        return lg__npy_bad(in, "has the shape %s, which is beyond all memory",
                                           lg__shape_text(h->shape).s);
        return true;
}

/* Reads the magic, the version and the length of the dict. Returns false with an error. */
static bool get_front(lg__npy_in *in, size_t *ret_length)
{
        uint8_t b[12];
        const size_t most = in->bytes < 8 ? (size_t)in->bytes : 8;
        if (!lg__npy_get(in, b, most))
                return false;
        if (!in->name && most >= 4 && !memcmp(b, "PK\3\4", 4))
                return lg__npy_bad(in, "is an archive; lg_read_npz() reads its arrays");
        if (memcmp(b, "\x93NUMPY", most < 6 ? most : 6) != 0)
                return lg__npy_bad(in, "is no npy file: byte 0: the magic \\x93NUMPY is expected");
        if (most < 8)
                return lg__npy_bad(in, "is truncated: it ends at byte %lld, in front of its header",
                                   (long long)in->bytes);
        if (b[6] < 1 || b[6] > 3 || b[7] != 0)
                return lg__npy_bad(in, "has version %d.%d (byte 6); 1.0, 2.0 and 3.0 can be read", b[6], b[7]);
        if (!lg__npy_get(in, b + 8, b[6] == 1 ? 2 : 4))
                return false;
        *ret_length = b[8] | (size_t)b[9] << 8;
        if (b[6] > 1)
                *ret_length |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
        if (*ret_length > MOST_HEADER)
                return lg__npy_bad(in, "has a header of %zu bytes (byte 8); at most %d can be read", *ret_length,
                                   MOST_HEADER);
        return true;
}

bool lg__npy_get_header(lg__npy_in *in, lg__npy *ret)
{
        size_t length = 0;
        if (!get_front(in, &length))
                return false;
        const int64_t offset = in->at;
        if (in->bytes - offset < (int64_t)length)
                return lg__npy_bad(in, "is truncated: it ends at byte %lld, its header at byte %lld",
                                   (long long)in->bytes, (long long)offset + (long long)length);
        char *text = lg__alloc(in->ctx, length + 1);
        if (!text)
                return lg__npy_no_memory(in);
        parser p = {in, text, text + length, text, offset};
        bool ok = lg__npy_get(in, text, length) && take_dict(&p, ret) && check_sizes(in, ret);
        lg__free(in->ctx, text, length + 1);
        return ok;
}
