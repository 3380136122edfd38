/* profiler.h - the records of a profiler: spans that are open, rows of the tables, events of the trace. Private to
 * inspect/. */
#ifndef LG_PROFILER_H
#define LG_PROFILER_H

#include "core/observer.h"
#include "graph/op.h"

/* Kinds of rows: tables in which they are printed. The rows with the numbers below always exist. */
typedef enum lg__row_kind { LG__ROW_OP, LG__ROW_MODULE, LG__ROW_REGION } lg__row_kind;
enum {
        LG__OTHER,     /* in no op: the program's own time */
        LG__NO_MODULE, /* outside of modules */
        LG__NO_REGION,
        LG__FORWARD, /* calls of modules, without their ops */
        LG__ROWS
};

typedef struct lg__row {
        char name[116];
        int open; /* how many spans of this row are open: the outermost one counts in `calls` and `total` */
        lg__row_kind kind;
        uint32_t parent;            /* module: row of the module around it when it was first called, or 0 */
        int64_t calls, self, total; /* times in ns */
        int64_t bytes;              /* read and written */
        int64_t allocated, kept, peak;
        double flops, device; /* device: seconds */
} lg__row;

/* Rows to which a span's own time counts: one of each table. */
typedef struct lg__places {
        uint32_t op, module, region;
} lg__places;

/* Event of the trace. */
typedef enum lg__event_kind {
        LG__EVENT_OP,
        LG__EVENT_DERIVATIVE,
        LG__EVENT_SPAN,
        LG__EVENT_MODULE,
        LG__EVENT_REGION,
        LG__EVENT_MEMORY
} lg__event_kind;
typedef struct lg__event {
        lg__event_kind kind;
        lg__places at;
        int64_t start, end; /* ns since the recording began */
        uint64_t node;      /* of the op that recorded it, or of the derivative; 0: none */
        int64_t shapes;     /* where the shapes of its inputs begin in lg_profiler.words */
        int shape_words;    /* their number; of LG__EVENT_MEMORY: the number of the device */
        double number;      /* floating-point operations, inside as well; bytes in use */
} lg__event;

typedef struct lg__open_span {
        const void *key; /* of the call or frame */
        lg__event event;
        int64_t inside; /* time of the spans inside it */
        double work, work_inside;
        lg__device *device; /* device that `mark` is of; NULL: none */
        void *mark;
        const lg_device_api *range; /* device type whose tools know the span */
} lg__open_span;

/* Work of a span on a device, between two marks; then its times in ns, as those of events. */
typedef struct lg__device_span {
        lg__device *device;
        void *from, *to;
        lg__places at;
        int64_t start, end;
} lg__device_span;

typedef struct lg__row_key {
        const void *p, *q;
        lg__row_kind kind;
        uint32_t row; /* 0: free */
} lg__row_key;

#define LG__PROFILED_DEVICES 16
typedef struct lg__region lg__region;
struct lg_profiler {
        lg__object object;
        lg__observer observer;
        int64_t skip, steps, done; /* done: recorded steps */
        char *path;
        bool recording, stopped, written;
        bool failed;           /* there was no memory: recording stopped */
        int64_t start, wall;   /* ns */
        uint64_t since, until; /* sequence numbers of nodes recorded meanwhile: since < n <= until */
        lg__region *regions;   /* open regions, the newest first */
        lg__open_span *spans;
        int64_t depth, span_room;
        lg__row *rows;
        int64_t row_count, row_room;
        lg__row_key *keys; /* hash table of key_room entries, a power of two */
        int64_t key_count, key_room;
        lg__event *events;
        int64_t event_count, event_room;
        int64_t *words; /* shapes: for each tensor dtype * 256 + ndim, then the sizes */
        int64_t word_count, word_room;
        lg__device_span *device_spans;
        int64_t device_span_count, device_span_room;
        const lg_device_api *ranges; /* device type whose tools name ranges, or NULL */
        bool marking;                /* an open span has a mark: those inside get none */
        lg__device *devices[LG__PROFILED_DEVICES];
        int64_t used[LG__PROFILED_DEVICES]; /* bytes in use that no event shows yet; -1: shown */
        int device_count;
};

/* profiler_rows.c: makes room for one more item, by c's memory functions and without an error. Returns false if there
 * is no memory. `items` is the address of the array pointer. */
bool lg__profiler_room(const lg_profiler *p, void *items, int64_t count, int64_t *room, size_t item_bytes);
/* Creates the rows that always exist. Returns false if there is no memory. */
bool lg__profiler_first_rows(lg_profiler *p);
/* Returns the row of an op or span "a b", where b may be NULL, with the constants `key` and `second` (ROW_OP); of the
 * module of frame f, which is `key` (ROW_MODULE); or of the region a (ROW_REGION). 0: no memory. */
uint32_t lg__profiler_row(lg_profiler *p, lg__row_kind kind, const void *key, const void *second, const char *a,
                          const char *b);
uint32_t lg__profiler_module_row(lg_profiler *p, const lg__frame *f);

/* profiler_spans.c: attaches the observer; begins to record; stops and detaches the observer. */
void lg__profiler_attach(lg_profiler *p);
void lg__profiler_start(lg_profiler *p);
void lg__profiler_stop(lg_profiler *p);
int64_t lg__profiler_clock(void);                /* returns the time in ns */
int64_t lg__profiler_wall(const lg_profiler *p); /* returns the ns that were recorded */

/* profiler_device.c: returns the number of a device, or -1 if there are too many. */
int lg__profiler_device(lg_profiler *p, lg__device *d);
/* Marks where s begins on device d, which may be NULL, or where it ends. The latter returns false without memory. */
void lg__profiler_begin_mark(lg_profiler *p, lg__open_span *s, lg__device *d);
bool lg__profiler_end_mark(lg_profiler *p, lg__open_span *s);
/* Waits for the devices and turns marks into times. Returns false with an error if a device fails. */
bool lg__profiler_resolve(lg_profiler *p);
void lg__profiler_free_marks(lg_profiler *p);

/* profiler_trace.c: writes the trace to p->path. Returns false with an error that begins with `op`. */
bool lg__profiler_write(lg_profiler *p, const char *op);

#endif
