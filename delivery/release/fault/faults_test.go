package fault_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubeop/kubeop/delivery/release/cause"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

func TestFaultsKeepTheirTypes(t *testing.T) {
	var f fault.Faults
	if err := f.All(); err != nil {
		t.Errorf("All returns an error before Note: %v", err)
	}
	starting := apierrors.NewServiceUnavailable("starting")
	if err := f.Note(fmt.Errorf("Service/web: %w", starting)); !errors.Is(err, starting) {
		t.Errorf("Note returns %v", err)
	}
	if !cause.IsEnvironment(errors.Join(errors.New("failed post-install"), f.All())) {
		t.Error("All lost the type of the noted error")
	}
}

// answers is a server that answers with a status code, or with an error.
type answers struct {
	code int
	err  error
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &http.Response{StatusCode: a.code, Body: http.NoBody}, nil
}

func TestAWitnessRecordsLookupsThatTheEnvironmentFailed(t *testing.T) {
	away := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		from answers
		want bool
	}{
		"found": {answers{code: 200}, false}, "not found": {answers{code: 404}, false}, "forbidden": {answers{code: 403}, false}, "almost": {answers{code: 499}, false},
		"too many requests": {answers{code: 429}, true}, "a failure": {answers{code: 500}, true}, "a proxy's": {answers{code: 503}, true}, "no answer": {answers{err: away}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var f fault.Faults
			request, err := http.NewRequest(http.MethodGet, "https://api/apis/apps/v1/deployments", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Witness(c.from).RoundTrip(request)
			if !errors.Is(err, c.from.err) || err == nil && got.StatusCode != c.from.code {
				t.Errorf("the caller gets %v, %v", got, err)
			}
			noted := f.All()
			if (noted != nil) != c.want || c.want && !cause.IsEnvironment(noted) || c.from.err != nil && !strings.Contains(noted.Error(), "looking up /apis/apps/v1/deployments: ") {
				t.Errorf("noted %v", noted)
			}
		})
	}
}
