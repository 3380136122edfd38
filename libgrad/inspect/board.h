/* board.h - records of the files that TensorBoard reads. Private. */
#ifndef LG_INSPECT_BOARD_H
#define LG_INSPECT_BOARD_H

#include "io/protobuf.h"
#include "tensor/tensor.h"

/* The fields of a Summary.Value (tensorboard/compat/proto/summary.proto) in use. */
enum { LG__SCALAR = 2, LG__IMAGE = 4, LG__HISTOGRAM = 5, LG__TENSOR = 8, LG__METADATA = 9 };

/* A record with one value, which is being written to `out`. */
typedef struct lg__event {
        lg_board *board;
        const char *op; /* name of the public function, for messages */
        lg__proto_out out;
        int64_t summary, value; /* where the messages begin */
} lg__event;

/* Checks b and the tag and begins a record, to which the caller adds a field of the value. After a success the caller
 * calls lg__event_end(). Returns false with an error. */
bool lg__event_begin(lg__event *e, lg_board *b, const char *op, const char *tag, int64_t step);
/* Checks b, the tag and a tensor of the caller, and begins a record in the same way. */
bool lg__event_begin_of(lg__event *e, lg_board *b, const char *op, const char *tag, const lg_tensor *t, int64_t step);
/* Writes the record if `ok`, and frees its memory. Returns whether it was written. */
bool lg__event_end(lg__event *e, bool ok);

/* Returns the CRC-32C (RFC 3720, appendix B.4) of data. */
uint32_t lg__crc32c(const void *data, size_t bytes);

#endif
