/* protobuf.c - reads and writes protobuf's wire format. */
#include "protobuf.h"

#define LONGEST 10 /* bytes of an integer of variable length */

/* ---- reading ---- */

static bool wrong(lg__proto *p, const char *what)
{
        p->wrong = what;
        return false;
}

static bool take_varint(lg__span *s, uint64_t *ret)
{
        *ret = 0;
        for (size_t i = 0; i < s->bytes && i < LONGEST; i++) {
                const unsigned char byte = (unsigned char)s->s[i];
                if (i == LONGEST - 1 && byte > 1) /* more than 64 bits */
                        return false;
                *ret |= (uint64_t)(byte & 0x7f) << (7 * i);
                if (byte < 0x80) {
                        *s = (lg__span){s->s + i + 1, s->bytes - i - 1};
                        return true;
                }
        }
        return false;
}

/* Takes an integer of `bytes` bytes, the lowest first. */
static bool take_fixed(lg__span *s, size_t bytes, uint64_t *ret)
{
        *ret = 0;
        if (s->bytes < bytes)
                return false;
        for (size_t i = 0; i < bytes; i++)
                *ret |= (uint64_t)(unsigned char)s->s[i] << (8 * i);
        *s = (lg__span){s->s + bytes, s->bytes - bytes};
        return true;
}

static bool take_number(lg__span *s, int wire, uint64_t *ret)
{
        return wire == LG__VARINT ? take_varint(s, ret) : take_fixed(s, wire == LG__FIXED64 ? 8 : 4, ret);
}

bool lg__proto_next(lg__proto *p)
{
        uint64_t key, length;
        if (p->wrong || !p->rest.bytes)
                return false;
        if (!take_varint(&p->rest, &key))
                return wrong(p, "a field's key is cut off or too long");
        p->wire = (int)(key & 7);
        p->field = (int64_t)(key >> 3);
        if (p->field < 1 || p->field >= 1 << 29)
                return wrong(p, "a field's number is out of range");
        if (p->wire == LG__VARINT || p->wire == LG__FIXED64 || p->wire == LG__FIXED32)
                return take_number(&p->rest, p->wire, &p->bits) || wrong(p, "a number is cut off or too long");
        if (p->wire != LG__BYTES)
                return wrong(p, "a field has an unknown wire type");
        if (!take_varint(&p->rest, &length) || length > p->rest.bytes)
                return wrong(p, "a field is longer than the message");
        p->bytes = (lg__span){p->rest.s, (size_t)length};
        p->rest = (lg__span){p->rest.s + length, p->rest.bytes - (size_t)length};
        return true;
}

bool lg__proto_number(lg__proto *p, int wire, lg__span *left, uint64_t *ret)
{
        if (p->wire == wire) {
                const bool again = left->bytes == SIZE_MAX;
                left->bytes = SIZE_MAX;
                *ret = p->bits;
                return !again;
        }
        if (p->wire != LG__BYTES)
                return wrong(p, "a number has another wire type than it must have");
        if (!left->bytes)
                return false;
        return take_number(left, wire, ret) || wrong(p, "packed numbers are cut off");
}

int64_t lg__proto_numbers(const lg__proto *p, int wire)
{
        if (p->wire != LG__BYTES)
                return p->wire == wire;
        if (wire != LG__VARINT)
                return (int64_t)(p->bytes.bytes / (wire == LG__FIXED64 ? 8 : 4));
        int64_t n = 0;
        for (size_t i = 0; i < p->bytes.bytes; i++)
                n += (unsigned char)p->bytes.s[i] < 0x80;
        return n;
}

/* ---- writing ---- */

char *lg__proto_append(lg__proto_out *o, const void *data, size_t bytes)
{
        if (!lg__ok(o->ctx))
                return NULL;
        if ((uint64_t)o->room - (uint64_t)o->bytes < bytes) {
                const int64_t room = (o->bytes + (int64_t)bytes) * 2 + 64;
                char *more = lg__alloc_unset(o->ctx, (size_t)room);
                if (!more)
                        return NULL;
                if (o->bytes)
                        memcpy(more, o->data, (size_t)o->bytes);
                lg__free(o->ctx, o->data, (size_t)o->room);
                o->data = more;
                o->room = room;
        }
        char *to = o->data + o->bytes;
        if (data && bytes)
                memcpy(to, data, bytes);
        o->bytes += (int64_t)bytes;
        return to;
}

static int varint(char *to, uint64_t v)
{
        int n = 0;
        for (; v >= 0x80; v >>= 7)
                to[n++] = (char)(v | 0x80);
        to[n++] = (char)v;
        return n;
}

static void put_varint(lg__proto_out *o, uint64_t v)
{
        char bytes[LONGEST];
        lg__proto_append(o, bytes, (size_t)varint(bytes, v));
}

static void put_key(lg__proto_out *o, int field, int wire)
{
        put_varint(o, (uint64_t)field << 3 | (uint64_t)wire);
}

static void put_fixed(lg__proto_out *o, uint64_t v, size_t bytes)
{
        char *to = lg__proto_append(o, NULL, bytes);
        for (size_t i = 0; to && i < bytes; i++)
                to[i] = (char)(v >> (8 * i));
}

void lg__proto_put_int(lg__proto_out *o, int field, int64_t v)
{
        put_key(o, field, LG__VARINT);
        put_varint(o, (uint64_t)v);
}

void lg__proto_put_f32(lg__proto_out *o, int field, float v)
{
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        put_key(o, field, LG__FIXED32);
        put_fixed(o, bits, sizeof bits);
}

void lg__proto_put_f64(lg__proto_out *o, int field, double v)
{
        uint64_t bits;
        memcpy(&bits, &v, sizeof bits);
        put_key(o, field, LG__FIXED64);
        put_fixed(o, bits, sizeof bits);
}

void lg__proto_put_length(lg__proto_out *o, int field, int64_t bytes)
{
        put_key(o, field, LG__BYTES);
        put_varint(o, (uint64_t)bytes);
}

void lg__proto_put_bytes(lg__proto_out *o, int field, const void *data, size_t bytes)
{
        lg__proto_put_length(o, field, (int64_t)bytes);
        lg__proto_append(o, data, bytes);
}

void lg__proto_put_text(lg__proto_out *o, int field, const char *s)
{
        lg__proto_put_bytes(o, field, s, strlen(s));
}

int64_t lg__proto_begin(lg__proto_out *o, int field)
{
        put_key(o, field, LG__BYTES);
        return o->bytes;
}

/* The length goes before what is already there. */
void lg__proto_end(lg__proto_out *o, int64_t begun)
{
        char length[LONGEST];
        const int64_t bytes = o->bytes - begun;
        const size_t n = (size_t)varint(length, (uint64_t)bytes);
        if (!lg__proto_append(o, NULL, n))
                return;
        memmove(o->data + begun + n, o->data + begun, (size_t)bytes);
        memcpy(o->data + begun, length, n);
}

void lg__proto_free(lg__proto_out *o)
{
        lg__free(o->ctx, o->data, (size_t)o->room);
        o->data = NULL;
        o->bytes = o->room = 0;
}
