package inventory

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errNoQuota = errors.New(" over the quota") // a message of a server may be padded

// TestAMessageNamesTheFirstFailedObjects by kind and name, and counts the others if there are at least two.
func TestAMessageNamesTheFirstFailedObjects(t *testing.T) {
	for n, want := range map[int]struct{ last, more string }{
		1: {"o00", ""}, 2: {"o01", ""}, 10: {"o09", ""}, 11: {"o10", ""}, 12: {"o09", "and 2 more"}, 100: {"o09", "and 90 more"},
	} {
		t.Run(fmt.Sprint(n, " failed"), func(t *testing.T) {
			failed := map[ObjectID]error{}
			for i := range n {
				failed[ObjectID{Kind: "ConfigMap", Name: fmt.Sprintf("o%02d", i)}] = errNoQuota
			}
			err := JoinErrors(failed)
			var lines []string
			for i := range n {
				line := fmt.Sprintf("ConfigMap/o%02d: over the quota", i)
				if lines = append(lines, line); strings.HasPrefix(line, "ConfigMap/"+want.last) {
					break
				}
			}
			if want.more != "" {
				lines = append(lines, want.more)
			}
			if diff := cmp.Diff(strings.Join(lines, "\n"), err.Error()); diff != "" {
				t.Errorf("the message (-want +got):\n%s", diff)
			}
			if all := Split(err); len(all) != n || !errors.Is(all[n-1], errNoQuota) {
				t.Errorf("%d of %d errors are there: %v", len(all), n, all)
			}
		})
	}
}

func TestErrorsAboutObjectsAreSplitAndJoined(t *testing.T) {
	if err := JoinErrors(map[ObjectID]error{}); err != nil {
		t.Errorf("none joined: %v", err)
	}
	if all := Split(nil); len(all) != 0 {
		t.Errorf("nil split: %v", all)
	}
	if all := Split(errNoQuota); len(all) != 1 || !errors.Is(all[0], errNoQuota) {
		t.Errorf("one split: %v", all)
	}
	id := ObjectID{Kind: "Secret", Name: "key"}
	both := fmt.Errorf("applying: %w", JoinErrors(map[ObjectID]error{id: errNoQuota, {Kind: "ConfigMap", Name: "web"}: errors.New("invalid")}))
	all := Split(both)
	if len(all) != 2 || all[0].Error() != "ConfigMap/web: invalid" {
		t.Fatalf("two split: %v", all)
	}
	if about := new(ObjectError); !errors.As(all[1], &about) || about.ID != id || !errors.Is(about, errNoQuota) {
		t.Errorf("the object of %v is lost", all[1])
	}
	if err := ErrorAbout(id, nil); err != nil {
		t.Errorf("no error about an object: %v", err)
	}
	if err := ErrorAbout(id, errNoQuota); err.Error() != "Secret/key: over the quota" || !errors.Is(err, errNoQuota) {
		t.Errorf("got %v", err)
	}
}
