package problem

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
)

// TestEveryCodeIsExplained compares the codes and their statuses with the rows of docs/errors.md.
func TestEveryCodeIsExplained(t *testing.T) {
	text, err := os.ReadFile("../../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Answers of the management API\n")
	explained := map[Code]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([0-9]{3}) \\| `([a-z-]+)` \\| .{20,} \\| .{10,} \\|$").FindAllStringSubmatch(section, -1) {
		explained[Code(row[2])], _ = strconv.Atoi(row[1])
	}
	if diff := cmp.Diff(Codes(), explained); diff != "" {
		t.Errorf("codes, and the rows of docs/errors.md (-code +row):\n%s", diff)
	}
}

func TestEachStatusHasOneCode(t *testing.T) {
	statuses := map[int]bool{}
	for status := range maps.Values(Codes()) {
		statuses[status] = true
	}
	if len(statuses) != len(byStatus) || len(byStatus) != len(Codes()) {
		t.Errorf("%d codes of %d statuses: what huma refuses would have any code of its status", len(Codes()), len(statuses))
	}
}

func TestWhatHumaRefusesIsAProblem(t *testing.T) {
	got := huma.NewError(http.StatusUnprocessableEntity, "validation failed", &huma.ErrorDetail{Message: "expected string", Location: "body.name", Value: "hunter2"})
	want := New(Invalid, "validation failed", Fault{Location: "body.name", Message: "expected string"})
	if diff := cmp.Diff(huma.StatusError(want), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := huma.NewError(http.StatusTeapot, "?"); got.GetStatus() != http.StatusBadRequest {
		t.Errorf("a status without a code becomes %v", got)
	}
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadGateway} {
		if diff := cmp.Diff(huma.StatusError(New(Internal, "")), huma.NewError(status, "unexpected", errors.New("dial 10.0.0.1: secret"))); diff != "" {
			t.Errorf("%d tells the caller what is for the log (-want +got):\n%s", status, diff)
		}
	}
}
