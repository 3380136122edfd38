/* run.h - a training on Fashion-MNIST: what it needs, a pass over the training set, the figures on the test set. */
#ifndef RUN_H
#define RUN_H

#include <stdio.h>
#include <grad.h>
#include "options.h"
#include "progress.h"
#include "report.h"

/* All that a run needs. What could not be made is NULL, and the context says why. */
typedef struct run {
        lg_ctx *c;
        const options *o;
        lg_group *group; /* NULL: --group was not given */
        lg_module *net;
        lg_optimizer *opt;
        lg_scheduler *schedule; /* NULL: none */
        bool each_step;         /* the schedule goes on after each step, not after each epoch */
        lg_scaler *scaler;      /* used with f16 */
        lg_ema *average;        /* NULL: none */
        lg_loader *train, *test;
        int64_t train_images; /* in an epoch, of all processes */
        lg_checkpoint *saved; /* what --save writes and --resume reads; NULL: neither is wanted */
        int64_t last_step;
        int64_t saved_step; /* of the last save; -1: none */
        bool midway;        /* the epoch under way is not at its end */
        bool stopped;       /* it was saved in the midst of an epoch, after which no step was made */
        bool interrupted;   /* Ctrl-C has come, to one of the processes */
        bool unwritten;     /* a file that was open could not be written */
        report *report;     /* filled by evaluate; NULL: not wanted */

        /* What changes, and is saved. */
        int64_t step;
        int64_t epoch;           /* the one that is under way, from 1 */
        int64_t images;          /* of it so far, of all processes */
        double loss_sum, spent;  /* their losses where it was saved; seconds */
        double best;             /* test accuracy */
        int64_t best_epoch;      /* 0: none yet */
        int64_t schedule_number; /* which one */
        int64_t augment;         /* 0 or 1 */
        lg_dtype amp;            /* of lg_autocast() around the network; LG_F32: no casts */
} run;

/* The figures of an epoch. */
typedef struct figures {
        double train_loss, test_loss, accuracy, time;
} figures;

/* Makes everything; the context has an error where that fails. What is saved is where r is. */
void run_make(run *r, lg_ctx *c, const options *o);
/* From now on Ctrl-C or SIGTERM ends a run after its step; a second one ends the program. */
void run_catch_interrupt(void);
/* Whether one has come to this process; r->interrupted says what all have agreed on. */
bool run_interrupted(void);
/* Passes over the rest of the epoch's batches, saving where that is wanted; the mean loss of the epoch. */
double run_train_epoch(run *r, progress *p);
/* Loss and accuracy on the test set. */
void run_evaluate(run *r, progress *p, figures *f);
/* Puts the averages of the weights into the network, where there are some, or the weights back. */
void run_swap(run *r);
/* Sends what was written to its file, which may be full. */
void run_flush(run *r, FILE *f, const char *name);

#endif
