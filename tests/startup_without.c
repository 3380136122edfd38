/* startup_without.c - a program that links what libgrad links and does nothing. */
int main(void)
{
        return 0;
}
