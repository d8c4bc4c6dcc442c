package repository

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

func TestAPathThatIsNoFolderStopsAndAStoreThatCannotBeReadIsTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"no such folder":          {folder.ErrNotExist, "stopped SourceNotFound: "},
		"a file":                  {failure.New(failure.ErrInvalid, "is a file, not a folder"), "stopped SourceNotFound: "},
		"a link":                  {folder.ErrSymlink, "stopped SourceNotFound: "},
		"a submodule":             {folder.ErrSubmodule, "stopped SourceNotFound: "},
		"the disk cannot be read": {errors.New("input/output error"), "failed FetchFailed: "},
	} {
		if got := steptest.Outcome(t, pathError(fmt.Errorf("spec.path: %w", tc.err))); !strings.HasPrefix(got, tc.want+"spec.path: "+tc.err.Error()) {
			t.Errorf("%s: got %q, want it to begin with %q", name, got, tc.want)
		}
	}
}
