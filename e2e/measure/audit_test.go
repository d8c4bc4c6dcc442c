package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	operator = "system:serviceaccount:kubeop-system:kubeop"
	other    = "system:admin"
)

// event returns a line of an audit log. call is a stage, a verb and a URI.
func event(user, call, object string, code int) string {
	words := strings.Fields(call)
	return fmt.Sprintf(`{"kind":"Event","stage":%q,"requestURI":%q,"verb":%q,"user":{"username":%q},"impersonatedUser":{"username":"system:serviceaccount:p:kubeop-deployer"},"objectRef":%s,"responseStatus":{"code":%d}}`+"\n",
		words[0], words[2], words[1], user, object, code)
}

func TestAuditLogCountsByKind(t *testing.T) {
	tests := map[string]struct {
		line string
		want Counts
	}{
		"a read": {event(operator, "ResponseComplete get /api/v1/namespaces/p/secrets/a", `{"resource":"secrets"}`, 200),
			Counts{Requests: map[Request]int{{"get", "secrets"}: 1}}},
		"a write of a subresource": {event(operator, "ResponseComplete patch /apis/paas.kubeop.io/v1alpha1/x", `{"resource":"apps","subresource":"status"}`, 200),
			Counts{Requests: map[Request]int{{"patch", "apps/status"}: 1}}},
		"a dry run is no write": {event(operator, "ResponseComplete patch /apis/apps/v1/x?dryRun=All&force=true", `{"resource":"deployments"}`, 200),
			Counts{Requests: map[Request]int{{"dry-run patch", "deployments"}: 1}}},
		"what was refused": {event(operator, "ResponseComplete get /api/v1/x", `{"resource":"services"}`, 404),
			Counts{Requests: map[Request]int{{"get", "services"}: 1}, Refused: map[Request]int{{"get", "services"}: 1}}},
		"discovery": {event(operator, "ResponseComplete get /apis/apps/v1?timeout=32s", `{}`, 200),
			Counts{Requests: map[Request]int{{"get", "(discovery)"}: 1}}},
		"an OpenAPI document": {event(operator, "ResponseComplete get /openapi/v3/apis/apps/v1", `null`, 200),
			Counts{Requests: map[Request]int{{"get", "(openapi)"}: 1}}},
		"a watch that begins": {event(operator, "ResponseStarted watch /api/v1/pods?watch=1", `{"resource":"pods"}`, 200),
			Counts{Watches: map[Request]int{{"watch", "pods"}: 1}}},
		"the end of a watch":  {event(operator, "ResponseComplete watch /api/v1/pods?watch=1", `{"resource":"pods"}`, 200), Counts{}},
		"a log, at its begin": {event(operator, "ResponseStarted get /x/log", `{"resource":"pods","subresource":"log"}`, 200), Counts{Requests: map[Request]int{{"get", "pods/log"}: 1}}},
		"a log, at its end":   {event(operator, "ResponseComplete get /x/log", `{"resource":"pods","subresource":"log"}`, 200), Counts{}},
		"the leader's lease": {event(operator, "ResponseComplete update /x", `{"apiGroup":"coordination.k8s.io","resource":"leases"}`, 200),
			Counts{Leases: 1}},
		"another user": {event(other, "ResponseComplete get /api/v1/x", `{"resource":"services"}`, 200), Counts{}},
		"another user, with our name in the URI": {event(other, "ResponseComplete get /api/v1/x?user="+operator, `{"resource":"services"}`, 200),
			Counts{}},
		"a user with our name as prefix": {event(operator+"-other", "ResponseComplete get /api/v1/x", `{"resource":"services"}`, 200),
			Counts{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			log := &AuditLog{users: []string{operator}, counts: NewCounts()}
			if err := log.count([]byte(test.line)); err != nil {
				t.Fatal(err)
			}
			want := NewCounts()
			for to, from := range map[*map[Request]int]map[Request]int{
				&want.Requests: test.want.Requests, &want.Refused: test.want.Refused, &want.Watches: test.want.Watches,
			} {
				if from != nil {
					*to = from
				}
			}
			want.Leases = test.want.Leases
			if diff := cmp.Diff(want, log.counts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAuditLogTakesAPrefixOfUsers(t *testing.T) {
	log := &AuditLog{users: []string{"system:serviceaccount:flux-system:"}, counts: NewCounts()}
	for _, user := range []string{"system:serviceaccount:flux-system:helm-controller", "system:serviceaccount:flux-systems:other"} {
		if err := log.count([]byte(event(user, "ResponseComplete get /x", `{"resource":"secrets"}`, 200))); err != nil {
			t.Fatal(err)
		}
	}
	if got := log.counts.Cost(); got != 1 {
		t.Errorf("%d requests were counted, want one", got)
	}
}

// TestAuditLogIsFollowed writes the log in pieces, and rotates it while it is read.
func TestAuditLogIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	line := event(operator, "ResponseComplete get /x", `{"resource":"secrets"}`, 200)
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write(line)
	log, err := FollowAudit(path, []string{operator})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	counted := func(want int) {
		t.Helper()
		got, err := log.Read()
		if err != nil || got.Cost() != want {
			t.Fatalf("%d requests (%v), want %d", got.Cost(), err, want)
		}
	}
	counted(0) // earlier lines are not counted
	write(line + line[:40])
	counted(1)
	write(line[40:])
	counted(2)
	write(line)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	counted(3) // the old file's last line, while there is no new file
	write(line + line)
	counted(5)
}

func TestAuditLogThatCannotBeRead(t *testing.T) {
	if _, err := FollowAudit(filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("want an error for a log that is not there")
	}
	log := &AuditLog{users: []string{operator}, counts: NewCounts()}
	if err := log.count([]byte(operator + " is no JSON\n")); err == nil {
		t.Error("want an error for a line that is no event")
	}
}

func TestSinceCountsWhatWasAddedSince(t *testing.T) {
	before, after := NewCounts(), NewCounts()
	before.Requests[Request{"get", "apps"}], before.Leases = 2, 1
	after.Requests[Request{"get", "apps"}], after.Requests[Request{"patch", "apps"}], after.Leases = 2, 3, 4
	want := NewCounts()
	want.Requests[Request{"patch", "apps"}], want.Leases = 3, 3
	if diff := cmp.Diff(want, after.Since(before)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := after.Since(before).All(); got != 6 {
		t.Errorf("%d requests in all, want 6", got)
	}
}

func TestDryRunsAndReviewsWriteNothing(t *testing.T) {
	for r, want := range map[Request]bool{
		{"create", "secrets"}: true, {"patch", "apps/status"}: true, {"deletecollection", "pods"}: true,
		{"create", "selfsubjectaccessreviews"}: false, {"dry-run patch", "deployments"}: false, {"list", "secrets"}: false, {"get", "(discovery)"}: false,
	} {
		if got := r.Writes(); got != want {
			t.Errorf("%s writes: %t, want %t", r, got, want)
		}
	}
}
