package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"
)

func TestAKindOfErrorMayBelongToAnother(t *testing.T) {
	for name, tc := range map[string]struct {
		err, kind error
		is        bool
	}{
		"a chart that is too large is too large":        {ErrChartTooLarge, ErrTooLarge, true},
		"what is too large need not be a chart":         {ErrTooLarge, ErrChartTooLarge, false},
		"no tag is not found":                           {ErrNoTag, ErrNotFound, true},
		"what is not found need not be a tag":           {ErrNotFound, ErrNoTag, false},
		"an error of a server is unavailable":           {ErrServer, ErrUnavailable, true},
		"what is unavailable need not be a server's":    {ErrUnavailable, ErrServer, false},
		"what is slow is not unavailable, it may go on": {ErrSlow, ErrUnavailable, false},
		"an error of a limit is too large":              {TooMany("x", 1), ErrTooLarge, true},
		"aliases are too large":                         {AliasesTooLarge("x"), ErrTooLarge, true},
		"a limit of time is slow":                       {TooSlow("x", time.Second), ErrSlow, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := errors.Is(fmt.Errorf("fetching: %w", tc.err), tc.kind); got != tc.is {
				t.Errorf("got %v, want %v", got, tc.is)
			}
		})
	}
}

func TestAnErrorWrapsItsKindAndItsCause(t *testing.T) {
	cause := &fs.PathError{Op: "open", Path: "a", Err: fs.ErrPermission}
	err := Because(ErrInvalid, cause, "%s is wrong", "it")
	if err.Error() != "it is wrong" || !errors.Is(err, ErrInvalid) || !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if err := New(ErrInvalid, "100%% of %q", "it"); err.Error() != `100% of "it"` || !errors.Is(err, ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyErrorsAboutSizeHaveAnOversizedPath(t *testing.T) {
	at := &fs.PathError{Op: "read", Path: "media/video.mp4", Err: TooLarge("the file", 1)}
	for name, tc := range map[string]struct {
		err  error
		path string
		is   bool
	}{
		"a file that is too large": {fmt.Errorf("rendering: %w", at), "media/video.mp4", true},
		"a commit as a whole":      {TooLarge("the commit", 1), "", false},
		"a file that is not there": {&fs.PathError{Op: "read", Path: "a", Err: fs.ErrNotExist}, "", false},
		"none":                     {nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if path, is := OversizedPath(tc.err); path != tc.path || is != tc.is {
				t.Errorf("got %q, %v", path, is)
			}
		})
	}
}

func TestSizesAreInTheLargestUnitThatFits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1: "1 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1025: "1025 bytes", 1536: "1536 bytes", 10 << 10: "10 KiB",
		1<<20 - 1: "1048575 bytes", 1 << 20: "1 MiB", 1<<20 + 1<<10: "1025 KiB", 3 << 30: "3 GiB", 1536 << 20: "1536 MiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestMessagesNameTheLimit(t *testing.T) {
	for want, err := range map[string]error{
		"the file is larger than the limit of 2 MiB":                                   TooLarge("the file", 2<<20),
		"the number of charts is over the limit of 7":                                  TooMany("the number of charts", 7),
		"it did not end within the limit of 1m0s":                                      TooSlow("it did not end", time.Minute),
		"the YAML aliases of app.yaml stand for too much: write less with them in Git": AliasesTooLarge("app.yaml"),
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}
