/* find.c - looks for the files of a data set in the folder that was named, in $LIBGRAD_DATA and in the system's. */
#include "find.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* folder/sub/file or folder/sub/file.gz, whichever is there. */
static bool in_folder(const lg__where *w, const char *folder, const char *sub, const char *file,
                      char path[LG__FILE_PATH])
{
        for (int zipped = 0; zipped <= w->zipped; zipped++) {
                int n = snprintf(path, LG__FILE_PATH, "%s%s%s/%s%s", folder, *sub ? "/" : "", sub, file,
                                 zipped ? ".gz" : "");
                if (n < LG__FILE_PATH && access(path, F_OK) == 0)
                        return true;
        }
        return false;
}

/* "FILE or FILE.gz" */
static const char *names(const lg__where *w, const char *file, char text[200])
{
        snprintf(text, 200, w->zipped ? "%.80s or %.80s.gz" : "%.80s", file, file);
        return text;
}

bool lg__find_file(lg_ctx *c, const lg__where *w, const char *file, char ret_path[LG__FILE_PATH])
{
        const char *named = getenv("LIBGRAD_DATA");
        char text[200];
        if (w->folder) {
                if (in_folder(w, w->folder, "", file, ret_path) ||
                    (w->in_sub && in_folder(w, w->folder, w->sub, file, ret_path)))
                        return true;
                return lg__fail(c, LG_ERR_IO, "%s: there is no %s in %.400s%s%s", w->who, names(w, file, text),
                                w->folder, w->in_sub ? " and its " : "", w->in_sub ? w->sub : "");
        }
        if (named && *named && (in_folder(w, named, "", file, ret_path) || in_folder(w, named, w->sub, file, ret_path)))
                return true;
        if (w->system && in_folder(w, w->system, "", file, ret_path))
                return true;
        return lg__fail(c, LG_ERR_IO, "%s: there is no %s in $LIBGRAD_DATA (%.200s)%s%s; %s, or name a folder", w->who,
                        names(w, file, text), named && *named ? named : "not set", w->system ? " or " : "",
                        w->system ? w->system : "", w->advice);
}

int lg__is_train(lg_ctx *c, const char *who, const char *part)
{
        if (part && !strcmp(part, "train"))
                return 1;
        if (part && !strcmp(part, "test"))
                return 0;
        lg__fail(c, LG_ERR_ARGUMENT, "%s: the part is \"%.40s\"; it is \"train\" or \"test\"", who,
                 part ? part : "NULL");
        return -1;
}
