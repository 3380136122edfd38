/* dist_kinds.h - the table of the kinds of distributions. Private to libgrad/dist/. */
#ifndef LG_DIST_KINDS_H
#define LG_DIST_KINDS_H

#include "graph/op.h"

typedef enum lg__dist_id {
        LG__DIST_NONE,
#define KIND(name, ...) LG__DIST_##name,
#include "kinds.def"
        LG__DIST_COUNT
} lg__dist_id;

typedef struct lg__dist_kind {
        const char *name;
        int vectors;  /* dimensions of an element */
        bool rsample; /* samples have gradients */
        lg_tensor *(*sample)(const lg_dist *d, lg_shape s);
        lg_tensor *(*log_prob)(const lg_dist *d, lg_tensor *x);
        lg_tensor *(*entropy)(const lg_dist *d); /* returns NULL without an error if there is none */
        lg_tensor *(*mean)(const lg_dist *d);
        lg_tensor *(*variance)(const lg_dist *d);
} lg__dist_kind;

extern const lg__dist_kind lg__dist_kinds[LG__DIST_COUNT]; /* row 0 is empty */

/* Functions of multivariate_normal.c. */
lg_tensor *lg__multivariate_normal_sample(const lg_dist *d, lg_shape s);
lg_tensor *lg__multivariate_normal_log_prob(const lg_dist *d, lg_tensor *x);
lg_tensor *lg__multivariate_normal_entropy(const lg_dist *d);
lg_tensor *lg__multivariate_normal_kl(const lg_dist *p, const lg_dist *q);

/* Returns KL(p || q) of two distributions of one kind; NULL and an error if there is no formula. */
lg_tensor *lg__dist_divergence(const lg_dist *p, const lg_dist *q);

#endif
