/* board_records.h - reads the records of a file for TensorBoard. */
#ifndef LG_TEST_BOARD_RECORDS_H
#define LG_TEST_BOARD_RECORDS_H

#include "files.h"
#include "inspect/board.h"

/* One record: the fields of its Event, and of the Value in it. */
typedef struct record {
        double wall;
        int64_t step;
        lg__span version, session, tag, value; /* value: its field other than the tag, the last one */
        int kind;                              /* number of that field */
        float number;                          /* of kind LG__SCALAR */
} record;

#define MOST_RECORDS 4096
static record records[MOST_RECORDS];
static contents whole;

static inline uint64_t little_endian(const char *s, int bytes)
{
        uint64_t v = 0;
        for (int i = 0; i < bytes; i++)
                v |= (uint64_t)(unsigned char)s[i] << (8 * i);
        return v;
}

/* The checksum of the format, of an independent kind: a bit at a time. */
static inline uint32_t checksum(const char *s, size_t bytes)
{
        uint32_t crc = 0xffffffff;
        for (size_t i = 0; i < bytes * 8; i++) {
                const uint32_t bit = (crc ^ (uint32_t)((unsigned char)s[i / 8] >> i % 8)) & 1;
                crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
        }
        crc = ~crc;
        return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static inline void parse_value(record *r, lg__span bytes)
{
        lg__proto summary = {.rest = bytes};
        assert_true(lg__proto_next(&summary) && summary.field == 1 && !summary.rest.bytes);
        lg__proto p = {.rest = summary.bytes};
        while (lg__proto_next(&p)) {
                if (p.field == 1) {
                        r->tag = p.bytes;
                        continue;
                }
                if (p.field != LG__METADATA) {
                        r->kind = (int)p.field;
                        r->value = p.bytes;
                        r->number = lg__proto_f32(p.bits);
                }
        }
        assert_null(p.wrong);
}

static inline record parse(lg__span bytes)
{
        record r = {0};
        lg__proto p = {.rest = bytes};
        while (lg__proto_next(&p)) {
                if (p.field == 1)
                        r.wall = lg__proto_f64(p.bits);
                else if (p.field == 2)
                        r.step = (int64_t)p.bits;
                else if (p.field == 3)
                        r.version = p.bytes;
                else if (p.field == 5)
                        parse_value(&r, p.bytes);
                else if (p.field == 7)
                        r.session = p.bytes;
                else
                        fail_msg("field %lld", (long long)p.field);
        }
        assert_null(p.wrong);
        return r;
}

static inline bool is(lg__span s, const char *text)
{
        return s.bytes == strlen(text) && !memcmp(s.s, text, s.bytes);
}

/* Reads a file to `records`, in which the texts stay until the next call. Returns how many whole records there are;
 * *ret_rest is the number of bytes after them. */
static inline int read_records_of(const char *path, size_t *ret_rest)
{
        int n = 0;
        size_t at_byte = 0;
        free(whole.data);
        whole = get_file(path);
        while (whole.bytes - at_byte >= 16 && n < MOST_RECORDS) {
                const char *s = whole.data + at_byte;
                const uint64_t bytes = little_endian(s, 8);
                assert_int_equal(little_endian(s + 8, 4), checksum(s, 8));
                if (bytes > whole.bytes - at_byte - 16)
                        break;
                assert_int_equal(little_endian(s + 12 + bytes, 4), checksum(s + 12, bytes));
                records[n++] = parse((lg__span){s + 12, bytes});
                at_byte += 16 + bytes;
        }
        *ret_rest = whole.bytes - at_byte;
        return n;
}

/* The path of the only file in a folder. */
static inline const char *only_file(const char *in)
{
        static char path[512];
        int n = 0;
        DIR *d = opendir(in);
        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d));)
                if (*e->d_name != '.')
                        n += snprintf(path, sizeof path, "%s/%s", in, e->d_name) > 0;
        closedir(d);
        assert_int_equal(n, 1);
        return path;
}

/* Reads the only file, which has no torn record, removes it, and checks the number of records. */
static inline void read_records(int expected)
{
        size_t rest;
        const char *path = only_file(folder);
        assert_int_equal(read_records_of(path, &rest), expected);
        assert_int_equal(rest, 0);
        unlink(path);
        assert_true(is(records[0].version, "brain.Event:2"));
}

typedef struct histogram {
        double numbers[6]; /* from 1: min, max, num, sum, sum_squares */
        int64_t bins;
        double limits[2000], counts[2000];
} histogram;

static inline void parse_histogram(const record *r, histogram *h)
{
        assert_int_equal(r->kind, LG__HISTOGRAM);
        *h = (histogram){0};
        lg__proto p = {.rest = r->value};
        while (lg__proto_next(&p)) {
                if (p.field <= 5) {
                        h->numbers[p.field] = lg__proto_f64(p.bits);
                        continue;
                }
                lg__span left = p.bytes;
                uint64_t bits;
                for (h->bins = 0; lg__proto_number(&p, LG__FIXED64, &left, &bits); h->bins++)
                        (p.field == 6 ? h->limits : h->counts)[h->bins] = lg__proto_f64(bits);
        }
        assert_null(p.wrong);
}

#endif
