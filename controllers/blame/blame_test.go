package blame

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestTheLogHasFailuresOfTenantsAsInformation(t *testing.T) {
	unreached := fmt.Errorf("applying: %w", &url.Error{Op: "Patch", URL: "https://api", Err: errors.New("connection refused")})
	resource := schema.GroupResource{Resource: "configmaps"}
	cases := map[string]struct {
		tenant, reason string
		err            error
		asError        bool
	}{
		"a chart that cannot be installed":         {"acme", v1alpha1.InstallFailedReason, errors.New("no"), false},
		"an app that is unhealthy":                 {"acme", v1alpha1.UnhealthyReason, errors.New("no"), false},
		"an object that the API server refuses":    {"acme", v1alpha1.ApplyFailedReason, apierrors.NewForbidden(resource, "x", errors.New("quota")), false},
		"a Git server that does not answer":        {"acme", v1alpha1.FetchFailedReason, unreached, false},
		"the API server does not answer":           {"acme", v1alpha1.ApplyFailedReason, unreached, true},
		"the API server fails":                     {"acme", v1alpha1.ApplyFailedReason, fmt.Errorf("applying: %w", apierrors.NewInternalError(errors.New("x"))), true},
		"the API server is overloaded":             {"acme", v1alpha1.ApplyFailedReason, apierrors.NewTooManyRequests("x", 1), true},
		"no reason is known":                       {"acme", v1alpha1.FailedReason, errors.New("no"), true},
		"the operator lacks a right":               {"acme", v1alpha1.AccessDeniedReason, errors.New("no"), true},
		"an app of the platform itself":            {"platform", v1alpha1.UnhealthyReason, errors.New("no"), true},
		"an object of no tenant, such as a Tenant": {"", v1alpha1.ApplyFailedReason, errors.New("no"), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var lines []string
			log := Logger(funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})).WithName("app").WithValues("name", "web")
			err := Judge(c.tenant, c.reason, c.err)
			if !errors.Is(err, c.err) || err.Error() != c.err.Error() {
				t.Errorf("got %v, want %v", err, c.err)
			}
			log.Error(fmt.Errorf("%w", err), "Reconciler error", "reconcileID", 7)
			line := strings.Join(lines, "\n")
			if got := strings.Contains(line, `"msg":"Reconciler error"`) && !strings.Contains(line, `"level"`); len(lines) != 1 || got != c.asError {
				t.Errorf("as an error: %t, want %t: %s", got, c.asError, line)
			}
			for _, want := range []string{`"name":"web"`, `"reconcileID":7`, strings.Trim(strconv.Quote(c.err.Error()), `"`)} {
				if !strings.Contains(line, want) {
					t.Errorf("the log lacks %s: %s", want, line)
				}
			}
		})
	}
	if err := Judge("acme", v1alpha1.UnhealthyReason, nil); err != nil {
		t.Errorf("no failure became %v", err)
	}
}

func TestALogWithoutInformationHasNoFailuresOfTenants(t *testing.T) {
	log := Logger(logr.New(silent{t: t}))
	log.Error(Judge("acme", v1alpha1.UnhealthyReason, errors.New("no")), "Reconciler error")
}

// silent is a sink that has only errors.
type silent struct {
	logr.LogSink
	t *testing.T
}

func (silent) Init(logr.RuntimeInfo)      {}
func (silent) Enabled(int) bool           { return false }
func (s silent) Info(int, string, ...any) { s.t.Error("it logs information") }
