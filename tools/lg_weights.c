/* lg_weights.c - lg-weights: lists a safetensors or ONNX file, or prints the differences between two.
 *
 * lg-weights FILE [OTHER]
 */
#include <string.h>
#include "weights.h"

static const char usage[] = "usage: lg-weights FILE [OTHER]\n";
static const char help[] =
        "Lists the tensors of a safetensors file: name, dtype, shape, mean and standard deviation of the finite\n"
        "values (divided by n - 1), numbers of NaNs and infinities; then the texts of the file. Of an ONNX file,\n"
        "whose name ends in .onnx, these are the initialisers; then inputs, opset, outputs and producer.\n"
        "\n"
        "With OTHER, prints what is different in the tensors of two files, by name: those in one file only,\n"
        "shapes, dtypes, how many values differ and the largest difference. A NaN is equal to a NaN. Texts\n"
        "are not compared.\n"
        "\n"
        "Exit status: 0 if the tensors are the same or one file was listed, 1 if they differ, 2 if something\n"
        "failed.\n";

/* Flushes the output and returns the exit status: 0, or 2 if not everything was written. */
static int finish(void)
{
        if (!fflush(stdout) && !ferror(stdout))
                return 0;
        fputs("lg-weights: the standard output cannot be written\n", stderr);
        return 2;
}

int main(int argc, char **argv)
{
        bool wanted = argc == 2 && !strcmp(argv[1], "--help");
        int first = argc > 1 && !strcmp(argv[1], "--") ? 2 : 1, files = argc - first;
        if (wanted || files < 1 || files > 2 || (first == 1 && argv[1][0] == '-')) {
                fputs(usage, wanted ? stdout : stderr);
                fputs(wanted ? help : "lg-weights --help says more\n", wanted ? stdout : stderr);
                return wanted ? finish() : 2;
        }
        lg_ctx *c = lg_open();
        if (!c) {
                fprintf(stderr, "lg-weights: %s\n", lg_error(c));
                return 2;
        }
        lg_set_default_device(c, lg_cpu());
        bool same = files == 1 ? weights_list(c, argv[first]) : weights_compare(c, argv[first], argv[first + 1]);
        bool failed = finish() || lg_error(c);
        if (lg_error(c))
                fprintf(stderr, "lg-weights: %s\n", lg_error(c));
        lg_close(c);
        return failed ? 2 : same ? 0 : 1;
}
