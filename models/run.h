/* run.h - a training run on Fashion-MNIST: its parts, training for an epoch, and testing. */
#ifndef RUN_H
#define RUN_H

#include <stdio.h>
#include <grad.h>
#include "options.h"
#include "progress.h"
#include "report.h"

/* The parts and the state of a run. Parts that could not be made are NULL, and the context has an error. */
typedef struct run {
        lg_ctx *c;
        const options *o;
        const char *program; /* name in messages */
        lg_group *group;     /* processes of --group; NULL without --group */
        lg_module *net;
        lg_optimizer *opt;
        lg_scheduler *schedule; /* schedule of the learning rate; NULL: constant */
        bool each_step;         /* the schedule steps after each training step, not after each epoch */
        lg_scaler *scaler;      /* scaler of losses, used with f16 only */
        lg_ema *average;        /* moving averages of the weights (--ema), or NULL */
        lg_loader *train, *test;
        int64_t train_images; /* training images per epoch, over all processes */
        lg_board *board;      /* of --board, on rank 0; NULL without it */
        lg_checkpoint *saved; /* checkpoint for --save and --resume; NULL without both */
        int64_t last_step;
        int64_t saved_step;    /* value of `step` at the last save; -1: none */
        bool midway;           /* the current epoch has steps left */
        bool stopped;          /* the run was saved in the middle of an epoch and ends there */
        bool interrupted;      /* one of the processes has received Ctrl-C or SIGTERM */
        bool unwritten;        /* writing to an open file has failed */
        lg_profiler *profiler; /* of --profile, or NULL */
        report *report;        /* confusion matrix that run_evaluate() fills, or NULL */

        /* State of the run, saved in a checkpoint. */
        int64_t step;
        int64_t epoch;           /* number of the current epoch, from 1 */
        int64_t images;          /* images of this epoch so far, over all processes */
        double loss_sum, spent;  /* sum of this epoch's losses at the last save; its seconds */
        double best;             /* best test accuracy so far */
        int64_t best_epoch;      /* epoch with the best accuracy; 0: none yet */
        int64_t schedule_number; /* number of --schedule */
        int64_t augment;         /* 1 with --augment, else 0 */
        int64_t amp;             /* lg_dtype of lg_autocast() around the network; LG_F32: no casts */
} run;

/* The figures of an epoch: mean losses, test accuracy, seconds of training. */
typedef struct figures {
        double train_loss, test_loss, accuracy, time;
} figures;

/* Makes all parts of *r, or sets an error in c. *r must not move afterwards: the checkpoint points into it. */
void run_make(run *r, lg_ctx *c, const options *o);
/* Begins the profile of --profile after three more steps; ends a step of it; prints it. The first process does so. */
void run_profile_begin(run *r);
void run_profile_step(run *r);
void run_profile_end(run *r);
/* Lets Ctrl-C or SIGTERM end a run after its current step; a second signal ends the program. */
void run_catch_interrupt(void);
/* Returns whether this process has received a signal. r->interrupted is what all processes have agreed on. */
bool run_interrupted(void);
/* Trains on the rest of the epoch's batches, saves if that is due, and returns the mean loss of the epoch. */
double run_train_epoch(run *r, progress *p);
/* Computes loss and accuracy on the test set in *f. */
void run_evaluate(run *r, progress *p, figures *f);
/* Exchanges the weights and their moving averages, if there are any; a second call exchanges them back. */
void run_swap(run *r);
/* Flushes f, the file called `name`, and sets an error if that fails, as on a full disk. */
void run_flush(run *r, FILE *f, const char *name);

/* Returns the exit status: 0; 2 if an argument, an input file or a device is wrong; 1 for other failures, such as a
 * full disk. */
int exit_code(const run *r);

#endif
