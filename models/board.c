/* board.c - curves and histograms of a run for TensorBoard. */
#include "board.h"
#include "ranks.h"

#define STEPS 50 /* between two losses, unless --log-steps says how many */

bool board_open(run *r)
{
        if (r->o->board && ranks_first(r) && !lg_error(r->c))
                r->board = lg_board_open(r->c, r->o->board, .purge_step = r->step ? r->step + 1 : 0);
        return !lg_error(r->c);
}

bool board_is_due(const run *r)
{
        return r->o->board && r->step % (r->o->log_steps ? r->o->log_steps : STEPS) == 0;
}

static bool is_open(const run *r)
{
        return r->board && !lg_error(r->c);
}

void board_number(run *r, const char *tag, double value)
{
        if (is_open(r) && !lg_board_scalar(r->board, tag, value, r->step))
                r->unwritten = true;
}

void board_parameters(run *r)
{
        if (is_open(r) && !lg_board_parameters(r->board, r->net, r->step))
                r->unwritten = true;
}

void board_close(run *r)
{
        if (r->board && !lg_board_close(r->board))
                r->unwritten = true;
        r->board = NULL;
}
