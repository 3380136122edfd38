/* tokenizer.h - byte-level BPE: vocabulary, merges, and the stages that split a text into words. Private. */
#ifndef LG_TEXT_TOKENIZER_H
#define LG_TEXT_TOKENIZER_H

#include <string.h>
#include "io/text.h"
#include "pattern.h"

#define LG__NO_ID UINT32_MAX

/* Bytes that grow; `s` is NULL as long as room is 0. */
typedef struct lg__buffer {
        char *s;
        int64_t bytes, room;
} lg__buffer;
/* Makes room for `more` bytes after b->bytes. Returns false with LG_ERR_MEMORY. */
bool lg__buffer_reserve(lg_ctx *c, lg__buffer *b, int64_t more);
bool lg__buffer_put(lg_ctx *c, lg__buffer *b, const char *s, int64_t bytes);
void lg__buffer_free(lg_ctx *c, lg__buffer *b);

typedef struct lg__ids {
        uint32_t *items;
        int64_t count, room;
} lg__ids;

/* ---- vocabulary and merges: bpe.c ---- */

typedef struct lg__token {
        const char *s;  /* the bytes that the id stands for, followed by a NUL; NULL: no token has this id */
        uint32_t bytes; /* their number */
        bool special;
} lg__token;

/* Two ids that become one; the pair of lowest rank is merged first. */
typedef struct lg__merge {
        uint64_t pair; /* left id << 32 | right id */
        uint32_t rank; /* LG__NO_ID: this place of the table is free */
        uint32_t id;
} lg__merge;

/* Ids of a short word that was encoded before; bytes is 0 if the place is free. 64 bytes, a line of the CPU's cache. */
#define LG__WORD_BYTES 22
#define LG__WORD_IDS 10
typedef struct lg__word {
        char s[LG__WORD_BYTES];
        uint8_t bytes, count;
        uint32_t ids[LG__WORD_IDS];
} lg__word;
#define LG__WORDS ((int64_t)1 << 15)

/* ---- stages: stages.c ---- */

/* Token that is found in a text before the text is split. */
typedef struct lg__added {
        const char *s;
        uint32_t bytes, id;
        bool special, lstrip, rstrip, single_word, normalized;
} lg__added;

typedef struct lg__stage lg__stage;
typedef struct lg__call lg__call;
/* Consumes `bytes` bytes of text and passes its parts to stage k + 1. Unless `final`, the text goes on, and the
 * function returns how many bytes it could consume without knowing the rest; otherwise it returns `bytes`. -1: an error
 * is set. */
typedef int64_t lg__stage_fn(lg__call *call, int k, const char *s, int64_t bytes, bool final);
struct lg__stage {
        lg__stage_fn *run;
        lg__pattern *pattern;         /* of split stages */
        bool drop_match, drop_others; /* split stages leave out what matches, or what is between matches */
        const lg__added *added;       /* of stages that find added tokens: sorted by bytes */
        int64_t added_count;
        int64_t longest; /* bytes of the longest of them */
        bool lstrip;     /* one of them takes the blanks before it */
};
#define LG__STAGES 16
struct lg__call {
        lg_tokenizer *t;
        const char *op;
        lg__ids *ids;
        bool plain;       /* special tokens are read as text */
        bool normalized;  /* the text is in the normal form already */
        bool word_before; /* the last character that was consumed is part of a word */
        uint32_t begun;   /* bit k: stage k has consumed the beginning of its text in an earlier call */
};

struct lg_tokenizer {
        lg__object object;
        lg__token *tokens;
        int64_t size;     /* the largest id, plus 1 */
        lg__buffer texts; /* memory of tokens[].s */
        uint32_t *map;    /* hash table from bytes of the vocabulary to ids, without added tokens */
        int64_t map_size;
        lg__merge *merges; /* hash table */
        int64_t merges_size;
        uint32_t byte_id[256]; /* ids of single bytes, or LG__NO_ID */
        uint32_t unknown;      /* id for bytes without one; LG__NO_ID: they are left out */
        bool fuse_unknown, ignore_merges;
        lg__word *words;          /* LG__WORDS places, made at the first word; or NULL */
        lg__buffer symbols, heap; /* scratch memory of merging */
        lg__buffer spaced, out;   /* a text after an added space; the text that was returned last */
        lg__added *added;         /* first those of the first stage, then those matched in normalised text */
        int64_t added_count, added_room;
        lg__pattern *letters; /* matches a character of a word; NULL unless an added token is a single word */
        lg__stage stages[LG__STAGES];
        int stage_count;
        bool normalizes, looks_back;
        lg__ids before, after; /* ids that the file's template adds */
        int64_t bos, eos;
};

/* Returns the id of a token of the vocabulary by its bytes, or LG__NO_ID. */
uint32_t lg__bpe_find(const lg_tokenizer *t, const char *s, size_t bytes);
/* Adds tokens[id] to the table of lg__bpe_find(). Returns false if the table has these bytes already. */
bool lg__bpe_index(lg_tokenizer *t, uint32_t id);
/* Adds or replaces a merge; the table must have a free place. */
void lg__bpe_add_merge(lg_tokenizer *t, uint32_t left, uint32_t right, uint32_t rank, uint32_t id);
/* Appends the ids of a word. Returns false with an error. */
bool lg__bpe_encode(lg_tokenizer *t, const char *op, const char *s, int64_t bytes, lg__ids *ids);
bool lg__ids_add(lg_ctx *c, lg__ids *ids, uint32_t id);

/* Passes a text to stage k. Returns as an lg__stage_fn does. */
int64_t lg__stages_run(lg__call *call, int k, const char *s, int64_t bytes, bool final);
/* Functions of stages: added tokens; parts that are UTF-8; the normal form NFC; a pattern; a space in front; BPE. */
lg__stage_fn lg__stage_added, lg__stage_utf8, lg__stage_nfc, lg__stage_split, lg__stage_space, lg__stage_bpe;
/* Returns the bytes, 1 to 3, of an incomplete or invalid UTF-8 character at the beginning of a text, and whether more
 * bytes could complete it. */
int lg__utf8_broken(const char *s, int64_t bytes, bool *ret_incomplete);
/* Returns whether the first, or the last, character of a text is part of a word. */
bool lg__is_word(const lg_tokenizer *t, const char *s, int64_t bytes, bool last);
/* Appends the normal form NFC of a text, which must be UTF-8. Returns false with an error. */
bool lg__normalize(lg_ctx *c, const char *op, const char *s, int64_t bytes, lg__buffer *to);
/* Returns whether lg__normalize() works, else false with an error. */
bool lg__can_normalize(lg_ctx *c, const char *op);

/* Reads the files of a tokenizer that is empty. Returns false with an error. */
bool lg__tokenizer_read(lg_tokenizer *t, const char *path);

#endif
