/* protobuf.h - reads and writes protobuf's wire format: https://protobuf.dev/programming-guides/encoding. Private.
 *
 * A message is a sequence of fields. A field is a key (field number and wire type) and a value: an integer of variable
 * length, 8 or 4 bytes, or a length and so many bytes, which hold a text, a message or packed numbers.
 */
#ifndef LG_IO_PROTOBUF_H
#define LG_IO_PROTOBUF_H

#include <string.h>
#include "core/core.h"
#include "text.h"

enum { LG__VARINT = 0, LG__FIXED64 = 1, LG__BYTES = 2, LG__FIXED32 = 5 };

/* ---- reading ---- */

/* Reading of the fields of a message, in memory. Initialise with .rest only. */
typedef struct lg__proto {
        lg__span rest;     /* the unread fields */
        int64_t field;     /* number of the field that was read last */
        int wire;          /* LG__VARINT, ... */
        uint64_t bits;     /* the value of a field of wire type LG__VARINT, LG__FIXED64 or LG__FIXED32 */
        lg__span bytes;    /* the value of a field of wire type LG__BYTES */
        const char *wrong; /* why reading ended early, or NULL */
} lg__proto;

/* Reads the next field. Returns false at the end, or with p->wrong set if the next field is damaged. */
bool lg__proto_next(lg__proto *p);

/* Calls of lg__proto_number() return the numbers of the field that was read last, a single one or packed ones, of wire
 * type `wire` each: set `left` to p->bytes before. Returns false after the last, or with p->wrong set. */
bool lg__proto_number(lg__proto *p, int wire, lg__span *left, uint64_t *ret);

/* Returns how many numbers the field has that was read last, or 0 if the packed numbers are damaged. */
int64_t lg__proto_numbers(const lg__proto *p, int wire);

static inline float lg__proto_f32(uint64_t bits)
{
        const uint32_t low = (uint32_t)bits;
        float v;
        memcpy(&v, &low, sizeof v);
        return v;
}

static inline double lg__proto_f64(uint64_t bits)
{
        double v;
        memcpy(&v, &bits, sizeof v);
        return v;
}

/* ---- writing ---- */

/* A message that is being written to memory, which grows. Initialise with .ctx only. A failure is an error of the
 * context, after which all calls do nothing. */
typedef struct lg__proto_out {
        lg_ctx *ctx;
        char *data;
        int64_t bytes, room;
} lg__proto_out;

/* Appends bytes that are no field, or room for them if data is NULL. Returns where they are until the next call, or
 * NULL. */
char *lg__proto_append(lg__proto_out *o, const void *data, size_t bytes);
void lg__proto_put_int(lg__proto_out *o, int field, int64_t v);
void lg__proto_put_f32(lg__proto_out *o, int field, float v);
void lg__proto_put_f64(lg__proto_out *o, int field, double v);
void lg__proto_put_bytes(lg__proto_out *o, int field, const void *data, size_t bytes);
void lg__proto_put_text(lg__proto_out *o, int field, const char *s);
/* Writes the key and the length of a field whose `bytes` bytes the caller stores elsewhere. */
void lg__proto_put_length(lg__proto_out *o, int field, int64_t bytes);
/* Begins a field that is a message, whose fields are then written to o, and ends it. */
int64_t lg__proto_begin(lg__proto_out *o, int field);
void lg__proto_end(lg__proto_out *o, int64_t begun);
/* Frees the memory. */
void lg__proto_free(lg__proto_out *o);

#endif
