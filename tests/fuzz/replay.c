/* replay.c - a fuzzer without libFuzzer: runs every file of the folders that are named, or the files, once. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include "fuzz.h"

static int replayed;

static void replay_file(const char *path, size_t bytes)
{
        uint8_t *data = malloc(bytes + 1);
        FILE *f = fopen(path, "rb");
        FUZZ_CHECK(data && f, "%s cannot be opened", path);
        FUZZ_CHECK(fread(data, 1, bytes, f) == bytes, "%s cannot be read", path);
        fclose(f);
        if (getenv("FUZZ_VERBOSE"))
                fprintf(stderr, "%s\n", path);
        LLVMFuzzerTestOneInput(data, bytes);
        free(data);
        replayed++;
}

static void replay(const char *path)
{
        struct stat facts;
        FUZZ_CHECK(stat(path, &facts) == 0, "%s is not there", path);
        if (!S_ISDIR(facts.st_mode)) {
                replay_file(path, (size_t)facts.st_size);
                return;
        }
        struct dirent **entries;
        int count = scandir(path, &entries, NULL, alphasort);
        FUZZ_CHECK(count >= 0, "%s cannot be read", path);
        for (int i = 0; i < count; i++) {
                char file[4096];
                snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
                if (entries[i]->d_name[0] != '.')
                        replay(file);
                free(entries[i]);
        }
        free(entries);
}

int main(int argc, char **argv)
{
        for (int i = 1; i < argc; i++)
                replay(argv[i]);
        printf("%d inputs\n", replayed);
        return replayed ? 0 : 1;
}
