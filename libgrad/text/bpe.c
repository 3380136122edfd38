/* bpe.c - byte-pair encoding of a word: its bytes, merged in the order of the merges' ranks. */
#include "tokenizer.h"

#define MIX 0x9e3779b97f4a7c15u

/* ---- hash tables ---- */

static uint64_t hash_of(const char *s, size_t bytes)
{
        uint64_t h = bytes * MIX, w;
        for (; bytes >= 8; s += 8, bytes -= 8) {
                memcpy(&w, s, 8);
                h = (h ^ w) * MIX;
                h ^= h >> 32;
        }
        for (w = 0; bytes > 0; s++, bytes--)
                w = w << 8 | (unsigned char)*s;
        h = (h ^ w) * MIX;
        return h ^ h >> 29;
}

/* Returns the place in the table of the token with these bytes, or of where it would be. */
static int64_t place_of(const lg_tokenizer *t, const char *s, size_t bytes)
{
        int64_t at = (int64_t)(hash_of(s, bytes) & (uint64_t)(t->map_size - 1));
        for (; t->map[at] != LG__NO_ID; at = (at + 1) & (t->map_size - 1)) {
                const lg__token *known = &t->tokens[t->map[at]];
                if (known->bytes == bytes && !memcmp(known->s, s, bytes))
                        break;
        }
        return at;
}

uint32_t lg__bpe_find(const lg_tokenizer *t, const char *s, size_t bytes)
{
        return t->map[place_of(t, s, bytes)];
}

bool lg__bpe_index(lg_tokenizer *t, uint32_t id)
{
        const lg__token *token = &t->tokens[id];
        const int64_t at = place_of(t, token->s, token->bytes);
        if (t->map[at] != LG__NO_ID)
                return false;
        t->map[at] = id;
        if (token->bytes == 1)
                t->byte_id[(unsigned char)*token->s] = id;
        return true;
}

static lg__merge *merge_of(const lg_tokenizer *t, uint32_t left, uint32_t right)
{
        const uint64_t pair = (uint64_t)left << 32 | right;
        const uint64_t h = pair * MIX;
        int64_t at = (int64_t)((h ^ h >> 32) & (uint64_t)(t->merges_size - 1));
        while (t->merges[at].rank != LG__NO_ID && t->merges[at].pair != pair)
                at = (at + 1) & (t->merges_size - 1);
        return &t->merges[at];
}

void lg__bpe_add_merge(lg_tokenizer *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t id)
{
        *merge_of(t, left, right) = (lg__merge){(uint64_t)left << 32 | right, rank, id};
}

/* ---- a heap of pairs: rank << 32 | place of the left symbol ---- */

static void push(uint64_t *heap, int64_t *count, uint64_t pair)
{
        int64_t i = (*count)++;
        for (; i > 0 && heap[(i - 1) / 2] > pair; i = (i - 1) / 2)
                heap[i] = heap[(i - 1) / 2];
        heap[i] = pair;
}

static uint64_t pop(uint64_t *heap, int64_t *count)
{
        const uint64_t top = heap[0], last = heap[--*count];
        int64_t i = 0;
        for (int64_t child; (child = 2 * i + 1) < *count; i = child) {
                child += child + 1 < *count && heap[child + 1] < heap[child];
                if (heap[child] >= last)
                        break;
                heap[i] = heap[child];
        }
        heap[i] = last;
        return top;
}

/* ---- a word ---- */

/* Part of a word; next is -1 for the last part and for one that was merged into the part before it. */
typedef struct symbol {
        uint32_t id;
        int32_t prev, next;
} symbol;

static void push_pair(const lg_tokenizer *t, const symbol *symbols, int32_t at, uint64_t *heap, int64_t *count)
{
        if (at < 0 || symbols[at].next < 0)
                return;
        const lg__merge *m = merge_of(t, symbols[at].id, symbols[symbols[at].next].id);
        if (m->rank != LG__NO_ID)
                push(heap, count, (uint64_t)m->rank << 32 | (uint32_t)at);
}

/* Merges symbols until no pair has a merge. Pairs that an earlier merge has changed stay in the heap and are skipped.
 */
static void merge_all(const lg_tokenizer *t, symbol *symbols, int32_t count, uint64_t *heap)
{
        int64_t pairs = 0;
        for (int32_t i = 0; i < count; i++)
                push_pair(t, symbols, i, heap, &pairs);
        while (pairs > 0) {
                const uint64_t top = pop(heap, &pairs);
                const int32_t at = (int32_t)(uint32_t)top, right = symbols[at].next;
                if (right < 0)
                        continue;
                const lg__merge *m = merge_of(t, symbols[at].id, symbols[right].id);
                if (m->rank != top >> 32)
                        continue;
                symbols[at].id = m->id;
                symbols[at].next = symbols[right].next;
                if (symbols[right].next >= 0)
                        symbols[symbols[right].next].prev = at;
                symbols[right].next = -1;
                push_pair(t, symbols, symbols[at].prev, heap, &pairs);
                push_pair(t, symbols, at, heap, &pairs);
        }
}

/* Makes a symbol of each byte and returns their number. */
static int32_t split_bytes(const lg_tokenizer *t, const char *s, int64_t bytes, symbol *symbols)
{
        int32_t count = 0;
        bool unknown_before = false;
        for (int64_t i = 0; i < bytes; i++) {
                const uint32_t id = t->byte_id[(unsigned char)s[i]];
                const bool unknown = id == LG__NO_ID;
                if (!unknown || (t->unknown != LG__NO_ID && !(t->fuse_unknown && unknown_before))) {
                        symbols[count] = (symbol){unknown ? t->unknown : id, count - 1, count + 1};
                        count++;
                }
                unknown_before = unknown;
        }
        if (count > 0)
                symbols[count - 1].next = -1;
        return count;
}

static bool encode_merged(lg_tokenizer *t, const char *op, const char *s, int64_t bytes, lg__ids *ids)
{
        lg_ctx *c = t->object.ctx;
        if (bytes > INT32_MAX / 2)
                return lg__fail(c, LG_ERR_ARGUMENT, "%s: a word of %lld bytes, which nothing splits", op,
                                (long long)bytes);
        t->symbols.bytes = t->heap.bytes = 0;
        /* Each of at most `bytes` merges adds two pairs to those of neighbours at the beginning. */
        if (!lg__buffer_reserve(c, &t->symbols, bytes * (int64_t)sizeof(symbol)) ||
            !lg__buffer_reserve(c, &t->heap, 3 * bytes * (int64_t)sizeof(uint64_t)))
                return false;
        symbol *symbols = (symbol *)(void *)t->symbols.s;
        const int32_t count = split_bytes(t, s, bytes, symbols);
        merge_all(t, symbols, count, (uint64_t *)(void *)t->heap.s);
        for (int32_t i = count > 0 ? 0 : -1; i >= 0; i = symbols[i].next)
                if (!lg__ids_add(c, ids, symbols[i].id))
                        return false;
        return true;
}

bool lg__ids_add(lg_ctx *c, lg__ids *ids, uint32_t id)
{
        if (ids->count == ids->room && !lg__grow(c, &ids->items, ids->count, &ids->room, sizeof *ids->items))
                return false;
        ids->items[ids->count++] = id;
        return true;
}

static bool encode_new(lg_tokenizer *t, const char *op, const char *s, int64_t bytes, lg__ids *ids)
{
        const uint32_t whole = t->ignore_merges ? lg__bpe_find(t, s, (size_t)bytes) : LG__NO_ID;
        return whole == LG__NO_ID ? encode_merged(t, op, s, bytes, ids) : lg__ids_add(t->object.ctx, ids, whole);
}

bool lg__bpe_encode(lg_tokenizer *t, const char *op, const char *s, int64_t bytes, lg__ids *ids)
{
        if (bytes < 1 || bytes > LG__WORD_BYTES)
                return bytes < 1 || encode_new(t, op, s, bytes, ids);
        if (!t->words && !(t->words = lg__alloc(t->object.ctx, (size_t)LG__WORDS * sizeof *t->words)))
                return false;
        lg__word *w = &t->words[hash_of(s, (size_t)bytes) & (uint64_t)(LG__WORDS - 1)];
        if (w->bytes == bytes && !memcmp(w->s, s, (size_t)bytes)) {
                for (int i = 0; i < w->count; i++)
                        if (!lg__ids_add(t->object.ctx, ids, w->ids[i]))
                                return false;
                return true;
        }
        const int64_t first = ids->count;
        if (!encode_new(t, op, s, bytes, ids))
                return false;
        if (ids->count - first > LG__WORD_IDS)
                return true;
        memcpy(w->s, s, (size_t)bytes);
        w->bytes = (uint8_t)bytes;
        w->count = (uint8_t)(ids->count - first);
        if (w->count)
                memcpy(w->ids, ids->items + first, w->count * sizeof *w->ids);
        return true;
}
