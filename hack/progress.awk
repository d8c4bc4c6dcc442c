# Turns the package list of `go build -v` into a line now and then, so that a long build shows that it moves.
# Usage: go build -v … 2>&1 | awk -v about=3100 -f hack/progress.awk
/^[A-Za-z0-9._~\/-]+$/ {
	if (++n % 200 == 0) { printf "  %d packages of about %d\n", n, about; fflush() }
	next
}
{ print; fflush() }
