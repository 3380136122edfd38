/* running.c - parts of a run that do not depend on the network: signals, the files of --save, the command that resumes.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "ranks.h"
#include "saving.h"

/* ---- signals ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
        interrupted = 1;
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        (void)number;
}

void run_catch_interrupt(void)
{
        sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
        sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
}

bool run_interrupted(void)
{
        return interrupted;
}

/* ---- profiles ---- */

void run_profile_begin(run *r)
{
        if (r->o->profile && ranks_first(r))
                r->profiler = lg_profiler_open(r->c, .skip = 3, .steps = 20, .path = r->o->profile);
}

void run_profile_step(run *r)
{
        if (r->profiler)
                lg_profiler_step(r->profiler);
}

void run_profile_end(run *r)
{
        if (!r->profiler)
                return;
        lg_profiler_print(stdout, r->profiler);
        lg_profiler_close(r->profiler);
        r->profiler = NULL;
}

/* ---- files ---- */

bool saving_replaceable(run *r, const char *option, const char *path, bool *ret_is_new)
{
        struct stat facts;
        *ret_is_new = stat(path, &facts) != 0;
        if (*ret_is_new)
                return true;
        if (!S_ISREG(facts.st_mode))
                return lg_set_error(r->c, LG_ERR_IO, "%s %s: it is no regular file", option, path);
        return !access(path, W_OK) ||
               lg_set_error(r->c, LG_ERR_IO, "%s %s: it cannot be written: %s", option, path, strerror(errno));
}

/* Writes new files at once, as a test: a first save loses nothing. Untrained weights are no result and are removed
 * again. */
bool saving_possible(run *r)
{
        const options *o = r->o;
        bool is_new = false;
        if (!ranks_first(r))
                return !lg_error(r->c);
        if (o->save && !lg_error(r->c) && saving_replaceable(r, "--save", o->save, &is_new) && is_new)
                lg_checkpoint_save(r->saved, o->save);
        if (o->keep_best && !lg_error(r->c) && saving_replaceable(r, "--keep-best", o->keep_best, &is_new) && is_new &&
            lg_save(r->net, o->keep_best))
                unlink(o->keep_best);
        return !lg_error(r->c);
}

bool saving_write(run *r)
{
        if (!r->o->save || lg_error(r->c))
                return !lg_error(r->c);
        r->saved_step = r->step;
        if (!ranks_first(r))
                return true;
        bool ok = lg_checkpoint_save(r->saved, r->o->save);
        r->unwritten = r->unwritten || !ok;
        return ok;
}

void run_flush(run *r, FILE *f, const char *name)
{
        errno = 0;
        if (!fflush(f) && !ferror(f))
                return;
        r->unwritten = true;
        lg_set_error(r->c, LG_ERR_IO, "%s cannot be written%s%s", name, errno ? ": " : "",
                     errno ? strerror(errno) : "");
}

/* ---- the command ---- */

/* Prints a word, quoted for a shell if necessary. */
static void print_word(FILE *f, const char *word)
{
        static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,=@%";
        if (*word && strspn(word, plain) == strlen(word)) {
                fputs(word, f);
                return;
        }
        fputc('\'', f);
        for (; *word; word++)
                fputs(*word == '\'' ? "'\\''" : (char[]){*word, 0}, f);
        fputc('\'', f);
}

void saving_print_command(FILE *f, const run *r, char *const *argv)
{
        for (int i = 0; argv[i]; i++) {
                fputs(i ? " " : "", f);
                print_word(f, argv[i]);
        }
        if (!r->o->resume || strcmp(r->o->resume, r->o->save)) { /* of two --resume the last one counts */
                fputs(" --resume ", f);
                print_word(f, r->o->save);
        }
        fputc('\n', f);
}

int exit_code(const run *r)
{
        if (r->unwritten)
                return 1;
        switch (lg_error_code_of(r->c)) {
        case LG_ERR_NONE:
                return 0;
        case LG_ERR_IO:
        case LG_ERR_FORMAT:
        case LG_ERR_DEVICE:
        case LG_ERR_SHAPE:
        case LG_ERR_ARGUMENT:
                return 2;
        default:
                return 1;
        }
}
