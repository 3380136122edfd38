# images.sh - data sets for test scripts, after script.sh.

# images NAME COUNT: an IDX file of 28 x 28 bytes and one of labels 0 ... 9
images()
{
        {
                printf '\000\000\010\003\000\000\000'
                printf "\\$(printf %03o "$2")"
                printf '\000\000\000\034\000\000\000\034'
                head -c $(($2 * 784)) /dev/urandom
        } >"$work/$1-images-idx3-ubyte"
        {
                printf '\000\000\010\001\000\000\000'
                printf "\\$(printf %03o "$2")"
                i=0
                while [ $i -lt "$2" ]; do
                        printf "\\00$((i % 8))"
                        i=$((i + 1))
                done
        } >"$work/$1-labels-idx1-ubyte"
}
